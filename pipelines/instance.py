"""How Dagster itself is set up for a ledger: the text of ``dagster.yaml`` in the ledger's home."""

from __future__ import annotations

INSTANCE_YAML = """\
# Dagster's own settings. Runs of the ledger wait for each other in any case; here they wait before they start.
telemetry:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 1
retention:
  schedule:
    purge_after_days: 90
  sensor:
    purge_after_days:
      skipped: 7
      failure: 30
      success: 90
"""
"""What ``gpuledger init`` writes as ``dagster.yaml``; ``DAGSTER_HOME`` is then the ledger's home."""
