"""A real Slurm on this machine: slurmctld, and for each node a slurmd in a network namespace of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from hydra.client.server_interface import free_ports
from tests.mesos.namespaces import hosts as network_hosts
from tests.suite.bare_python import bare_python
from tests.suite.waiting import LONG_S, SOON_S, wait_until

_PROGRAMS = ("slurmctld", "slurmd", "srun", "scontrol", "salloc", "sinfo", "squeue", "scancel")
_SLURMD_PORT = 6818
_CONFIG = """\
ClusterName=hydra
SlurmctldHost={name}({here})
SlurmctldPort={port}
SlurmdPort={slurmd_port}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
InactiveLimit=0
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass
class Slurm:
    """A cluster with an allocation of all nodes, n1, n2 and so on.

    Attributes:
        environment: for commands inside the allocation, whose processes have ``tmp`` as TMPDIR.
        tmp: the folder for temporary files of all nodes.
        slurmd: the slurmd of each node.
    """

    environment: dict[str, Any]
    folder: Path
    tmp: Path
    addresses: dict[str, str]
    namespaces: dict[str, str]
    slurmd: dict[str, psutil.Popen]

    def ask(self, *words: str) -> str:
        """What a command of Slurm prints."""
        around = {**os.environ, **self.environment}
        done = subprocess.run(words, env=around, capture_output=True, text=True, timeout=LONG_S, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout + done.stderr

    def processes(self, node: str) -> list[psutil.Process]:
        """All processes of a node: slurmd, a slurmstepd for each step, and what they have started."""
        done = subprocess.run(
            ["ip", "netns", "pids", self.namespaces[node]], capture_output=True, text=True, check=True
        )
        found = []
        for pid in map(int, done.stdout.split()):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
        return found

    def step_on(self, node: str) -> str:
        """The id of the step that runs on a node."""
        steps = (line.split() for line in self.ask("squeue", "--steps", "--noheader", "--format=%i %N").splitlines())
        return next(step for step, its in steps if its == node)

    def start(self, node: str) -> None:
        """Starts the slurmd of a node."""
        # Not ip netns exec, which hides the control groups that slurmd looks for.
        within = ["nsenter", f"--net=/run/netns/{self.namespaces[node]}"]
        with (self.folder / f"{node}.log").open("a") as log:
            self.slurmd[node] = psutil.Popen(
                [*within, "slurmd", "-D", "-N", node, "-f", self.environment["SLURM_CONF"]], stdout=log, stderr=log
            )
        wait_until(lambda: self._listens(node), f"slurmd of {node}", LONG_S)

    def end(self, node: str) -> None:
        """Ends all processes of a node."""
        for process in self.processes(node):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if node in self.slurmd:
            _end(self.slurmd[node])

    def _listens(self, node: str) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection((self.addresses[node], _SLURMD_PORT), 1.0).close()
            return True
        return False


@contextlib.contextmanager
def slurm(folder: Path, count: int) -> Iterator[Slurm]:
    """A cluster with this number of nodes; skips where that is not possible."""
    if missing := [program for program in _PROGRAMS if shutil.which(program) is None]:
        pytest.skip(f"{', '.join(missing)} not installed: apt install slurmctld slurmd slurm-client")
    if os.geteuid():
        pytest.skip("slurmd needs root")
    names = [f"n{number + 1}" for number in range(count)]
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(network_hosts(count))
        except (OSError, subprocess.CalledProcessError) as e:
            pytest.skip(f"no network namespaces here: {e}")
        addresses = dict(zip(names, network.addresses, strict=True))
        for path in ("state", "tmp"):
            (folder / path).mkdir()
        config = folder / "slurm.conf"
        nodes = (f"NodeName={name} NodeAddr={address} CPUs=4 RealMemory=1000" for name, address in addresses.items())
        config.write_text(
            _CONFIG.format(
                name=socket.gethostname().partition(".")[0],
                here=network.here,
                port=free_ports("127.0.0.1", 1)[0],
                slurmd_port=_SLURMD_PORT,
                folder=folder,
                nodes="\n".join(nodes),
            )
        )
        # A step gets the PATH of the command that starts it.
        path = f"{bare_python(folder / 'python')}:{os.environ['PATH']}"
        environment: dict[str, Any] = {"SLURM_CONF": str(config), "TMPDIR": str(folder / "tmp"), "PATH": path}
        namespaces = dict(zip(names, network.names, strict=True))
        cluster = Slurm(environment, folder, folder / "tmp", addresses, namespaces, {})
        with (folder / "slurmctld.log").open("w") as log:
            controller = psutil.Popen(["slurmctld", "-D", "-f", str(config)], stdout=log, stderr=log)
        stack.callback(_end, controller)
        for name in names:
            stack.callback(cluster.end, name)
            cluster.start(name)
        wait_until(
            lambda: set(cluster.ask("sinfo", "--noheader", "--format=%T").split()) == {"idle"},
            "nodes that are idle",
            LONG_S,
            saw=lambda: (folder / "slurmctld.log").read_text()[-2000:],
        )
        granted = cluster.ask("salloc", "--no-shell", f"--nodes={count}", "--exclusive", "--time=60")
        found = re.search(r"Granted job allocation (\d+)", granted)
        assert found, granted
        environment["SLURM_JOB_ID"] = found[1]
        yield cluster


def _end(daemon: psutil.Popen) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        daemon.kill()
    daemon.wait(SOON_S)
