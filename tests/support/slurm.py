"""A cluster of one node under SLURM on this machine, with its accounting, for a test."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from support.sweep import children

PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sbatch")
CONTROLLER = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthInfo=socket={folder}/munge
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
SchedulerParameters=bf_interval=1
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SlurmdTimeout=5
ReturnToService=2
KillWait=5
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePass={folder}/munge
AccountingStoragePort={ports[2]}
NodeName={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=main Nodes={host} Default=YES
"""
ACCOUNTING = """DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[2]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[3]}
StorageUser=root
PidFile={folder}/slurmdbd.pid
"""


def find_programs() -> list[str]:
    """Return the programs that are missing."""
    os.environ["PATH"] += ":/usr/sbin"
    return [name for name in PROGRAMS if shutil.which(name) is None]


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_until(what: str, is_so: Callable[[], bool], seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"waited {seconds} s: {what}"
        time.sleep(0.2)


class Cluster:
    """Its programs; folder: of their files."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        facts = {"host": socket.gethostname(), "folder": folder, "ports": free_ports(4)}
        for name, text in {"slurm.conf": CONTROLLER, "slurmdbd.conf": ACCOUNTING}.items():
            (folder / name).write_text(text.format(**facts))
            (folder / name).chmod(0o600)
        (folder / "cgroup.conf").touch()
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o600)
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
        data, port = f"--datadir={folder}/data", facts["ports"][3]
        files = [f"--{n}={folder}/munge{end}" for n, end in (("socket", ""), ("pid-file", ".pid"))]
        more = [f"--key-file={folder}/key", f"--log-file={folder}/munge.log", "--force"]
        self.start("munged", "--foreground", *files, f"--seed-file={folder}/munge.seed", *more)
        install = ("mariadb-install-db", "--no-defaults", "--user=root", data)
        subprocess.run(install, check=True, capture_output=True)
        more = ["--user=root", "--skip-grant-tables", f"--socket={folder}/sql", f"--port={port}"]
        self.start("mariadbd", "--no-defaults", data, "--bind-address=127.0.0.1", *more)
        wait_until("the data base", (folder / "sql").exists)
        self.start("slurmdbd", "-D")
        wait_until("accounting", lambda: not run("sacctmgr", "-n", "list", "cluster").returncode)
        self.start("slurmctld", "-D")
        self.node = self.start("slurmd", "-D")
        wait_until("the node", lambda: "idle" in run("sinfo", "-h", "-o", "%T").stdout)

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        log = self.stack.enter_context((self.folder / f"{command[0]}.out").open("ab"))
        process = subprocess.Popen(command, stdout=log, stderr=log)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def kill_node(self) -> None:
        """Kill the node and all that it runs, wait until SLURM notices, and start it again."""
        for pid in (self.node.pid, *descendants(self.node.pid), *find_steps()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until("failure", lambda: "down" in run("sinfo", "-h", "-o", "%T").stdout)
        self.node = self.start("slurmd", "-D")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield from (child, *descendants(child))


def find_steps() -> Iterator[int]:
    """Yield the processes of jobs, which leave the node's own tree."""
    for file in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if file.read_text().startswith("slurmstepd"):
                pid = int(file.parent.name)
                yield from (pid, *descendants(pid))
