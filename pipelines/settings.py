"""One frozen Settings, read once from the environment; nothing else reads ``os.environ``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the ledger lives and how its log is stored.

    Attributes:
      home: Folder of the ledger (``GPULEDGER_HOME``, default ``./ledger``).
      reporting_currency: ISO 4217 code of all micros (``GPULEDGER_CURRENCY``, default USD).
      catalog: Empty for the embedded catalogue, or a libpq connection string of a PostgreSQL database shared by a
        team, such as ``dbname=ledger host=db`` (``GPULEDGER_CATALOG``).
      data_path: Folder or ``s3://bucket/prefix`` of the Parquet files (``GPULEDGER_DATA_PATH``).
      s3_endpoint: ``host:port`` of an S3 API other than AWS (``GPULEDGER_S3_ENDPOINT``); plain HTTP if it starts
        with ``http://``. Keys and region come from the usual AWS_* variables.
      s3_key_id: ``AWS_ACCESS_KEY_ID``.
      s3_secret: ``AWS_SECRET_ACCESS_KEY``.
      s3_region: ``AWS_REGION``.
      memory_limit: Most memory that DuckDB takes before it spills to disk (``GPULEDGER_MEMORY_LIMIT``, default 3GB).
    """

    home: Path
    reporting_currency: str = "USD"
    catalog: str = ""
    data_path: str = ""
    s3_endpoint: str = ""
    s3_key_id: str = ""
    s3_secret: str = ""
    s3_region: str = "us-east-1"
    memory_limit: str = "3GB"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings.

        Raises:
          UsageError: A value is not what its variable takes; the message names the variable.
        """
        env = os.environ if environment is None else environment
        currency = env.get("GPULEDGER_CURRENCY", "USD").upper()
        if not re.fullmatch(r"[A-Z]{3}", currency):
            raise UsageError(
                f"GPULEDGER_CURRENCY: expected a three-letter ISO 4217 code such as USD, found {currency!r}"
            )
        home = Path(env.get("GPULEDGER_HOME", "ledger")).expanduser().absolute()
        return cls(
            home=home,
            reporting_currency=currency,
            catalog=env.get("GPULEDGER_CATALOG", ""),
            data_path=env.get("GPULEDGER_DATA_PATH", "") or str(home / "lake" / "data"),
            s3_endpoint=env.get("GPULEDGER_S3_ENDPOINT", ""),
            s3_key_id=env.get("AWS_ACCESS_KEY_ID", ""),
            s3_secret=env.get("AWS_SECRET_ACCESS_KEY", ""),
            s3_region=env.get("AWS_REGION", "us-east-1"),
            memory_limit=env.get("GPULEDGER_MEMORY_LIMIT", "3GB"),
        )

    @classmethod
    def of_existing_ledger(cls) -> Settings:
        """The settings of a ledger that is there: a mistyped home must not become an empty ledger.

        Raises:
          UsageError: It is not there, or a value is not what its variable takes.
        """
        settings = cls.from_environment()
        if not (settings.home / "lake").is_dir():
            raise UsageError(
                f"there is no ledger in {settings.home}: run gpuledger init, or set GPULEDGER_HOME to its folder"
            )
        return settings

    @property
    def build_path(self) -> Path:
        """The projections' own DuckDB file: derived, may be deleted at any time."""
        return self.home / "build" / "ledger.duckdb"

    @property
    def published_path(self) -> Path:
        """The read-only file that dashboards and analysts open."""
        return self.home / "published" / "ledger.duckdb"

    @property
    def inbox_path(self) -> Path:
        """Folder whose files the inbox sensor ingests."""
        return self.home / "inbox"
