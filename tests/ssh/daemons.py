"""Real hosts on this machine: an sshd each, on a port or in a network namespace of its own."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from hydra.client.server_interface import free_ports
from tests.suite.bare_python import bare_python
from tests.suite.waiting import SOON_S, wait_until

SSHD = "/usr/sbin/sshd"
_SSHD_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication {password}
KbdInteractiveAuthentication no
MaxSessions 1
SetEnv TMPDIR={tmp} PATH={python}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME={home}
"""
"""The shell reads no file of this machine's user, which could put another Python before that of the host."""
_SSH_CONFIG = """\
Host {name}
  HostName {address}
  Port {port}
  IdentityFile {key}
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {known}
  GlobalKnownHostsFile /dev/null
  ControlMaster auto
  ControlPath {control}
  ControlPersist yes
"""
"""Users who share connections have the last three: nothing of Hydra's may join such a connection, or become one."""


def needs_sshd() -> None:
    """Skips where no sshd is installed."""
    if not Path(SSHD).exists():
        pytest.skip("sshd is not installed: apt install openssh-server")
    if os.geteuid():
        pytest.skip("sshd with keys of a test needs root")


@dataclass
class Daemon:
    """A host: ``name`` for ssh, its ``sshd`` with its ``log``, and ``tmp``, its folder for temporary files."""

    name: str
    sshd: psutil.Popen
    tmp: Path
    log: Path

    def accepted(self) -> int:
        """How many connections it has accepted so far."""
        return self.log.read_text().count("Accepted publickey ")

    def connections(self) -> list[psutil.Process]:
        """The processes of sshd that serve one connection each."""
        return [each for each in self.sshd.children(recursive=True) if each.name() == "sshd"]


def left_in(folders: Sequence[Path], path: str = "") -> list[str]:
    """What runs have left: folders and sockets, or else processes.

    Args:
        folders: the hosts' folders for temporary files.
        path: the ``PATH`` of the commands, whose drivers and connections on this machine are looked for, too.
    """
    if found := [
        str(each) for folder in folders for each in folder.iterdir() if each.match("hydra-run-*") or each.is_socket()
    ]:
        return found  # a search of all processes costs more than one of files
    known = set(map(str, folders))
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            its = process.environ()
            present = "HYDRA_RUN" in its and its.get("TMPDIR") in known
            if present or (
                its.get("PATH") == path and {"ssh", "hydra.ssh.driver"} & {process.name(), *process.cmdline()}
            ):
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
    return found


class Daemons:
    """Hosts that a wrapper of ssh knows by name; ``path`` is the ``PATH`` with the wrapper, whose folder is ``bin``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.path = f"{self.bin}:{os.environ['PATH']}"
        self._sockets = folder / "sockets"
        self._sockets.mkdir()
        self._config = folder / "ssh_config"
        self._config.touch()
        self._stack = contextlib.ExitStack()
        self.hosts: dict[str, Daemon] = {}
        keygen(folder / "key")
        wrapper = self.bin / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {shlex.quote(str(self._config))} "$@"\n')
        wrapper.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)

    def add(
        self,
        name: str,
        address: str = "127.0.0.1",
        *,
        within: Sequence[str] = (),
        password: bool = False,
        known: bool = True,
        options: str = "",
    ) -> Daemon:
        """Starts a host; ``within`` is the command that enters its namespaces."""
        folder = self.folder / name
        for each in ("tmp", "home"):
            (folder / each).mkdir(parents=True)
        keygen(folder / "host_key")
        (folder / "authorized_keys").write_text((self.folder / "key.pub").read_text())
        port = free_ports("127.0.0.1", 1)[0]
        config = folder / "sshd_config"
        config.write_text(
            _SSHD_CONFIG.format(
                port=port,
                address=address,
                folder=folder,
                tmp=folder / "tmp",
                python=bare_python(folder / "python"),
                home=folder / "home",
                password="yes" if password else "no",
            )
        )
        self.configure(name, address, port, options=options)
        if known:
            self.trust(name, address, port)
        with (folder / "log").open("w") as log:
            daemon = psutil.Popen([*within, SSHD, "-D", "-e", "-f", str(config)], stderr=log)
        self._stack.callback(_end, daemon)
        self.hosts[name] = Daemon(name, daemon, folder / "tmp", folder / "log")
        wait_until(lambda: _greets(folder / "log"), f"sshd of {name}")
        return self.hosts[name]

    def left(self) -> list[str]:
        """What runs have left on the hosts and on this machine."""
        sockets = [str(each) for each in self._sockets.iterdir()]
        return sockets or left_in([host.tmp for host in self.hosts.values()], self.path)

    def configure(self, name: str, address: str, port: int, key: Path | None = None, options: str = "") -> None:
        """The entry of a host for ssh."""
        entry = _SSH_CONFIG.format(
            name=name,
            address=address,
            port=port,
            key=key or self.folder / "key",
            known=self.folder / "known_hosts",
            control=self._sockets / "%C",
        )
        self._config.write_text(f"{entry}  {options}\n{self._config.read_text()}")

    def trust(self, name: str, address: str, port: int, key: str = "") -> None:
        """Has ssh know a host by this key, or by the one it has."""
        key = key or (self.folder / name / "host_key.pub").read_text()
        with (self.folder / "known_hosts").open("a") as file:
            file.write(f"[{address}]:{port} {key}")

    def close(self) -> None:
        """Ends all of them."""
        self._stack.close()


def keygen(path: Path) -> None:
    """Makes a pair of keys."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


def closed_port() -> int:
    """A port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _greets(log: Path) -> bool:
    return "Server listening" in log.read_text()


def _end(daemon: psutil.Popen) -> None:
    for process in [*daemon.children(recursive=True), daemon]:
        with contextlib.suppress(psutil.Error):
            process.kill()
    daemon.wait(SOON_S)
