"""Fixtures shared by all tests: the folder of real files, and servers that a session starts and stops by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import hypothesis
import pytest

from tests.components import free_port, running_slurm, slurm_is_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.components import Slurm

ROOT = Path(__file__).resolve().parents[1]

# A busy machine is slow, not wrong.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


def missing(what: str, remedy: str) -> NoReturn:
    """Skip loudly on a laptop, fail in CI, because ``what`` is not there."""
    message = f"{what} is not here: {remedy}"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real input files with known totals, beside the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        missing("the folder ../shared/data", "tests against real files need it beside the project")
    return folder


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The libpq string of an empty PostgreSQL server of our own."""
    on_debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    pg_ctl = str(on_debian[-1]) if on_debian else shutil.which("pg_ctl")
    if pg_ctl is None:
        missing("PostgreSQL", "apt-get install postgresql")
    # It refuses to run as root, and pytest's own temporary folders are closed to other users.
    as_root = os.geteuid() == 0
    prefix = ["runuser", "-u", "postgres", "--"] if as_root else []
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="gpuledger-postgres-") as folder:
        if as_root:
            shutil.chown(folder, "postgres")
        base = [*prefix, str(pg_ctl), "--pgdata", f"{folder}/data", "--silent"]
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        subprocess.run([*base, "initdb", "-o", "--auth=trust --username=postgres"], cwd=folder, check=True)
        subprocess.run([*base, "--wait", "--log", f"{folder}/log", "-o", options, "start"], cwd=folder, check=True)
        try:
            yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        finally:
            subprocess.run([*base, "--mode", "immediate", "stop"], cwd=folder, check=True)


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A Slurm of our own with accounting and one node with four GPUs in name."""
    if not slurm_is_here():
        missing("Slurm", "as root: apt-get install slurm-wlm slurmdbd mariadb-server munge")
    with tempfile.TemporaryDirectory(prefix="gpuledger-slurm-") as folder, running_slurm(Path(folder)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3 server of our own with an empty bucket ``ledger``; both keys are ``test``."""
    import boto3  # noqa: PLC0415 - slow to import, and few tests need it
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="ledger")
    yield endpoint
    server.stop()


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser that pages are tried in."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        missing("chromium", "apt-get install chromium")
    return str(found)
