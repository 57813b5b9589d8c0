"""Why hosts cannot be used: the messages of ssh and srun as reasons with remedies, in one line for all hosts. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from hydra.errors import UsageError
from hydra.ssh.hosts import listed

CHANGED: Final = "REMOTE HOST IDENTIFICATION HAS CHANGED"
"""Contained in ssh's message about a changed host key, with which ssh may connect all the same."""


class HostFailure(NamedTuple):
    """Why a host cannot be used.

    Attributes:
        why: the reason.
        remedy: what to do; ``HOST`` is the host's name.
        transient: whether it can pass by itself: the network failed, or the host starts again.
    """

    why: str
    remedy: str = ""
    transient: bool = False


_KEYS: Final = (
    "try ssh -o BatchMode=yes HOST true: install your key there (ssh-copy-id HOST), and load one with a passphrase "
    "into your agent (ssh-add)"
)
_NETWORK: Final = "look at the host and at the network"
_TABLE: Final[Mapping[str, HostFailure]] = {
    CHANGED: HostFailure(
        "its host key has changed",
        "if the host was installed again: ssh-keygen -R HOST, then ssh HOST; otherwise another host answers",
    ),
    r"Host key verification failed": HostFailure(
        "its host key is not known here", "compare the key's fingerprint and accept it once: ssh HOST"
    ),
    r"Permission denied \((?P<text>[^)]*(?:password|keyboard-interactive)[^)]*)\)": HostFailure(
        "it refuses your keys and asks for a password, which Hydra has not", _KEYS
    ),
    r"Permission denied \(": HostFailure("it refuses your keys", _KEYS),
    r"Too many authentication failures": HostFailure(
        "it refuses your keys: too many were tried", "name one in ~/.ssh/config: IdentityFile and IdentitiesOnly yes"
    ),
    r"Could not resolve hostname [^:]*: (?P<text>.+)": HostFailure(
        "its name cannot be resolved ({text})", "check the name, or give address under [[hosts]]", transient=True
    ),
    r"(?:ssh: connect to host .*|kex_exchange_identification): (?P<text>.+)"
    r"|(?P<more>Connection (?:closed|reset) by .*|Connection timed out.*)": HostFailure(
        "it is not reachable ({text})", "try ssh HOST true", transient=True
    ),
    r"(?P<text>Connection to .* closed by remote host|Read from remote host .*|client_loop: .*)": HostFailure(
        "the connection broke ({text})", _NETWORK, transient=True
    ),
    r"Timeout, server .* not responding": HostFailure("the connection was silent for 30 s", _NETWORK, transient=True),
    r"remote port forwarding failed": HostFailure(
        "it cannot reach this machine, and allows no forwarded port (-R)",
        "set AllowTcpForwarding yes in its sshd_config, or name another address of this machine (--advertise)",
    ),
    r"Bad configuration option: (?P<text>.+)|(?P<more>Bad owner or permissions on .*)": HostFailure(
        "ssh rejects its configuration ({text})", "correct ~/.ssh/config"
    ),
    r"No space left on device": HostFailure("its disk is full", "make room in TMPDIR there, or set TMPDIR"),
    r"srun: error: \S+: task \d+: (?P<text>.+)": HostFailure(
        "Slurm ended its step there ({text})", "see whether the node, or the allocation, still exists: squeue"
    ),
    r"srun: error: (?P<text>.+)": HostFailure(
        "srun cannot start a step there ({text})", "run hydra inside the allocation: salloc or sbatch"
    ),
}
"""What ssh and srun print, as patterns; the first one that is found counts."""


def failure(stderr: str, status: int | None = None) -> HostFailure:
    """Why a host's connection failed or ended.

    Args:
        stderr: what ssh or srun printed on standard error.
        status: its exit status; None: it is still running.
    """
    for pattern, found in _TABLE.items():
        if match := re.search(pattern, stderr):
            groups = match.groupdict()
            text = (groups.get("text") or groups.get("more") or "").strip().rstrip(".")
            return found._replace(why=found.why.format(text=text))
    last = next((line.strip() for line in reversed(stderr.splitlines()) if line.strip()), "")
    how = "" if status is None else f"the connection ended with status {status}"
    return HostFailure(": ".join(filter(None, (how, last))) or "the connection ended", "try ssh HOST true")


def supervisor_failure(what: str) -> HostFailure:
    """Why a program does not start on a host, or its supervisor cannot work, from what it printed."""
    if "No space left on device" in what:
        return failure(what)
    text, _, remedy = what.strip().removeprefix("hydra-run: ").partition(";")
    return HostFailure(text.replace("this agent", "it"), remedy.strip())


def reasons(failures: Mapping[str, HostFailure]) -> str:
    """The hosts and their reasons; hosts with the same reason stand together."""
    return "; ".join(f"{listed(names)}: {each.why}" for each, names in _alike(failures).items())


def refusal(failures: Mapping[str, HostFailure], total: int, *, doing: str = "be used") -> UsageError:
    """The error about all hosts that failed.

    Args:
        failures: why, by host; one or more.
        total: the number of hosts that were tried.
        doing: what these hosts cannot.
    """
    remedies = dict.fromkeys(
        each.remedy.replace("HOST", names[0]) for each, names in _alike(failures).items() if each.remedy
    )
    hosts = "the host" if total == 1 else f"{len(failures)} of {total} hosts"
    return UsageError(f"{hosts} cannot {doing}: {reasons(failures)}", "; ".join(remedies))


def _alike(failures: Mapping[str, HostFailure]) -> dict[HostFailure, list[str]]:
    found: dict[HostFailure, list[str]] = {}
    for name, each in failures.items():
        found.setdefault(each, []).append(name)
    return found
