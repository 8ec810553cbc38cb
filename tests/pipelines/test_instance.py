"""Dagster accepts the settings that a ledger gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import DagsterInstance

from pipelines.instance import INSTANCE_YAML

if TYPE_CHECKING:
    from pathlib import Path


def test_dagster_accepts_its_settings_and_keeps_to_itself(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text(INSTANCE_YAML)
    with DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 1  # type: ignore[union-attr]
