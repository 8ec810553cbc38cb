"""Servers that take more than a line to set up: a test session starts them in a folder of their own and stops them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SLURM_PROGRAMS = ("munged", "mariadb-install-db", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "sacctmgr", "sacct")
SLURM_CONF = """\
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
KillWait=1
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database_port}
AccountingStoragePass={folder}/munge.socket
AccountingStorageTRES=gres/gpu,gres/gpu:a100
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 Gres=gpu:a100:4 State=UNKNOWN
PartitionName=gpu Nodes={host} Default=YES State=UP
"""
SLURMDBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
DbdHost=localhost
DbdPort={database_port}
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
"""


def free_port() -> int:
    """A TCP port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Slurm:
    """A running Slurm with accounting, of one node with four devices that say they are A100."""

    folder: Path
    host: str

    @property
    def environment(self) -> dict[str, str]:
        """What its programs need to find it, and the time zone that they speak in."""
        socket_of_database = {"MYSQL_UNIX_PORT": f"{self.folder}/mariadb.socket"}
        return {**os.environ, **socket_of_database, "SLURM_CONF": f"{self.folder}/slurm.conf", "TZ": "Asia/Tokyo"}

    def ask(self, *command: str) -> str:
        """What one of its programs prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=30, check=True)
        return done.stdout.strip()

    def submit(self, name: str, gpus: int, command: str, *options: str) -> str:
        """Submit a batch job; returns its id."""
        about = [f"--job-name={name}", "--account=vision", f"--gres=gpu:a100:{gpus}", "--output=/dev/null"]
        return self.ask("sbatch", "--parsable", "--chdir=/", *about, *options, f"--wrap={command}")

    def state(self, job: str) -> str:
        """State of a job in the queue, empty once it has left."""
        return self.ask("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T")

    def has_run(self, job: str) -> bool:
        """Whether a job has been running for a second or more: before that, a requeue may meet its launch."""
        return self.ask("squeue", "--noheader", "--states=running", f"--jobs={job}", "--format=%M") not in {"", "0:00"}

    def wait(self, what: str, question: Callable[[], object]) -> None:
        """Ask until the answer is yes.

        Raises:
          TimeoutError: It is not, for a minute; with what the servers wrote last.
        """
        last = time.monotonic() + 60
        while time.monotonic() < last:
            with suppress(subprocess.SubprocessError):
                if question():
                    return
            time.sleep(0.1)
        said = "\n".join(f"{path.name}: {path.read_text()[-500:]}" for path in sorted(self.folder.glob("*.log")))
        raise TimeoutError(f"waited in vain until {what}\n{said}")


@contextmanager
def running_slurm(folder: Path) -> Iterator[Slurm]:
    """Start munge, MariaDB and Slurm's three daemons, as root, on free ports; stop them at the end."""
    slurm = Slurm(folder, socket.gethostname().partition(".")[0])
    ports = {name: free_port() for name in ("controller_port", "node_port", "database_port")}
    _write_slurm(slurm, ports)
    with ExitStack() as running:

        def start(*command: str) -> None:
            log = running.enter_context((folder / f"{command[0]}.log").open("wb"))
            server = subprocess.Popen(command, env=slurm.environment, stdout=log, stderr=subprocess.STDOUT)
            running.callback(_stop, server)

        keys = [f"--{kind}-file={folder}/munge/{kind}" for kind in ("key", "pid", "log", "seed")]
        start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *keys)
        data = f"--datadir={folder}/mariadb"
        as_root = ["--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]
        slurm.ask("mariadb-install-db", "--no-defaults", data, *as_root)
        to_socket = [f"--socket={folder}/mariadb.socket", "--skip-networking", f"--pid-file={folder}/mariadb.pid"]
        start("mariadbd", "--no-defaults", data, "--user=root", *to_socket)
        sockets = [folder / "munge.socket", folder / "mariadb.socket"]
        slurm.wait("munge and MariaDB listen", lambda: all(one.exists() for one in sockets))
        start("slurmdbd", "-D")
        slurm.wait("slurmdbd answers", lambda: not slurm.ask("sacctmgr", "--noheader", "list", "cluster"))
        slurm.ask("sacctmgr", "--immediate", "add", "cluster", "trial")
        slurm.ask("sacctmgr", "--immediate", "add", "account", "vision")
        slurm.ask("sacctmgr", "--immediate", "add", "user", "root", "account=vision")
        start("slurmctld", "-D", "-i")
        start("slurmd", "-D", "-N", slurm.host)
        slurm.wait("the node is idle", lambda: slurm.ask("sinfo", "--noheader", "--format=%T") == "idle")
        yield slurm


def _write_slurm(slurm: Slurm, ports: dict[str, int]) -> None:
    folder = slurm.folder
    folder.chmod(0o755)  # munge's clients must reach its socket
    for name in ("munge", "spool", "state"):
        (folder / name).mkdir(mode=0o700)
    (folder / "munge" / "key").write_bytes(os.urandom(128))
    (folder / "munge" / "key").chmod(0o400)
    for name, text in (("slurm.conf", SLURM_CONF), ("slurmdbd.conf", SLURMDBD_CONF)):
        (folder / name).write_text(text.format(folder=folder, host=slurm.host, **ports))
        (folder / name).chmod(0o600)  # slurmdbd refuses a file that others can read
    devices = [folder / f"gpu{number}" for number in range(4)]
    for device in devices:
        device.touch()
    (folder / "gres.conf").write_text("".join(f"Name=gpu Type=a100 File={device}\n" for device in devices))


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def slurm_is_here() -> bool:
    """Whether Slurm, MariaDB and munge are installed and we may run them: slurmd starts jobs as their user."""
    return os.geteuid() == 0 and all(map(shutil.which, SLURM_PROGRAMS))
