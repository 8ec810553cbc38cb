"""How Dagster itself is set up for a ledger: the text of ``dagster.yaml`` in its folder below the ledger's home."""

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
"""Contents of ``dagster/dagster.yaml``; ``DAGSTER_HOME`` names that folder."""
