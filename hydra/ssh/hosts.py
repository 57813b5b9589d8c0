"""The hosts of a run and the command that starts a program on each; the tables of the cluster file for them. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from hydra.engine.resources import parse_attributes, parse_resources
from hydra.model import FieldError, Resources

_T = TypeVar("_T")

Launcher = Literal["ssh", "srun"]

_DESTINATION: Final = re.compile(r"(?:(?P<user>[\w.][\w.-]*)@)?(?P<name>\w[\w.-]*)(?::(?P<port>\d+))?", re.ASCII)
_NAME: Final = re.compile(r"\w[\w.-]*", re.ASCII)
_NODES: Final = re.compile(r"NodeAddr=(\S+)")
_FEATURES: Final = re.compile(r"ActiveFeatures=(\S+)")
_HIGHEST_PORT: Final = 65535
_MOST_NAMED: Final = 8
_KEYS: Final = {"name": str, "address": str, "user": str, "port": int, "attributes": str, "resources": str}

_OPTIONS: Final = (
    "BatchMode=yes",  # it asks nothing
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=6",
    # One connection of its own: the end of another program's connection must not end the run.
    "ControlMaster=no",
    "ControlPath=none",
    "ForwardAgent=no",
    "ForwardX11=no",
    "LogLevel=INFO",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
)

_STEP: Final = ("--overlap", "--nodes=1", "--ntasks=1", "--unbuffered", "--cpu-bind=none", "--mem=0")
"""A step beside others of the job, with all CPUs and all memory of the job on its node."""


@dataclass(frozen=True, slots=True)
class HostEntry:
    """A host as the user named it.

    Attributes:
        name: the agent's id; also the host's name for ssh, unless ``address`` is given.
        address: the address to which ssh connects; "" has ssh find it by ``name``.
        user, port: for ssh; "" and 0 have ssh choose.
        attributes: the agent's attributes.
        resources: the agent's resources; None: those that the host has.
        via: the program that starts the supervisor there.
    """

    name: str
    address: str = ""
    user: str = ""
    port: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)
    resources: Resources | None = None
    via: Launcher = "ssh"

    def command(self, remote: Sequence[str], forwarded_to: int = 0) -> list[str]:
        """The command that starts a program on the host, whose standard streams are this command's.

        Args:
            remote: the program and its arguments.
            forwarded_to: the port of this machine to which a port of the host is forwarded; 0 forwards none.
        """
        if self.via == "srun":
            return ["srun", *_STEP, f"--nodelist={self.name}", *remote]
        words = ["ssh", "-T", *(word for option in _OPTIONS for word in ("-o", option))]
        if forwarded_to:
            words += ["-o", "ExitOnForwardFailure=yes", "-R", f"127.0.0.1:0:127.0.0.1:{forwarded_to}"]
        else:
            words += ["-o", "ClearAllForwardings=yes"]
        words += ["-l", self.user] if self.user else []
        words += ["-p", str(self.port)] if self.port else []
        # The login shell of the user may be any; all know single quotes.
        return [*words, "--", self.address or self.name, f"exec {shlex.join(remote)}"]


def listed(names: Sequence[str]) -> str:
    """Names of hosts for a sentence; of many hosts, the first and the number of the others."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def named_hosts(text: str, declared: Sequence[HostEntry]) -> list[HostEntry]:
    """The hosts in ``a,bench@b,c:2222``; a name that the cluster file declares has the user, port and rest from there.

    Raises:
        ValueError: a host is malformed, or named twice.
    """
    known = {host.name: host for host in declared}
    found: dict[str, HostEntry] = {}
    for part in map(str.strip, text.split(",")):
        match = _DESTINATION.fullmatch(part)
        port = int(match["port"] or 0) if match else 0
        if match is None or port > _HIGHEST_PORT:
            raise ValueError(f"{part!r} is not a host of the form name, user@name or user@name:port")
        name, user = match["name"], match["user"] or ""
        if name in found:
            raise ValueError(f"host {name} is named twice")
        found[name] = known[name] if part == name and name in known else HostEntry(name, user=user, port=port)
    return list(found.values())


def declared_hosts(rows: Sequence[Mapping[str, object]]) -> list[HostEntry]:
    """The hosts of ``[[hosts]]`` in a cluster file.

    Raises:
        FieldError: a row is malformed; its field is the key, as in ``hosts.0.port``.
    """
    found: dict[str, HostEntry] = {}
    for index, row in enumerate(rows):
        key = f"hosts.{index}"
        for name, value in row.items():
            if name not in _KEYS:
                raise FieldError(f"is no key of a host: {', '.join(_KEYS)}", f"{key}.{name}")
            if type(value) is not _KEYS[name]:
                kind = "a whole number" if _KEYS[name] is int else "a text in quotes"
                raise FieldError(f"must be {kind}, not {value!r}", f"{key}.{name}")
        texts = {name: str(value) for name, value in row.items()}
        for name in ("name", "address", "user"):
            if (name in row or name == "name") and not _NAME.fullmatch(texts.get(name, "")):
                raise FieldError("must have letters, digits, ., - and _ only", f"{key}.{name}")
        port = int(texts.get("port", "0"))
        if not 0 <= port <= _HIGHEST_PORT:
            raise FieldError(f"must be 1 to {_HIGHEST_PORT}, not {port}", f"{key}.port")
        if texts["name"] in found:
            raise FieldError(f"is {texts['name']}, which another host has", f"{key}.name")
        host = HostEntry(
            texts["name"],
            texts.get("address", ""),
            texts.get("user", ""),
            port,
            _parsed(f"{key}.attributes", parse_attributes, texts.get("attributes", "")),
            _parsed(f"{key}.resources", parse_resources, texts["resources"]) if "resources" in texts else None,
        )
        found[host.name] = host
    return list(found.values())


def slurm_nodes(text: str) -> list[HostEntry]:
    """The nodes in the output of ``scontrol show node --oneliner``; their active features are attributes."""
    found = []
    for line in text.splitlines():
        name, address, features = re.search(r"NodeName=(\S+)", line), _NODES.search(line), _FEATURES.search(line)
        if name is not None:
            words = features[1].split(",") if features and features[1] != "(null)" else []
            attributes = dict.fromkeys(words, "yes")
            found.append(HostEntry(name[1], address[1] if address else name[1], attributes=attributes, via="srun"))
    return found


def _parsed(key: str, parse: Callable[[str], _T], text: str) -> _T:
    try:
        return parse(text)
    except ValueError as e:
        raise ValueError(f"{key}: {e}") from e


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """The keys of ``[slurm]``.

    Attributes:
        advertise: the address at which hosts reach this machine; "" is the address that routes to them.
    """

    advertise: str = ""


@dataclass(frozen=True, slots=True)
class SshSettings:
    """The keys of ``[ssh]``, and the hosts of the cluster file.

    Attributes:
        advertise: the address at which hosts reach this machine; "" is the one that they see.
        hosts: the tables of ``[[hosts]]``, with the keys of :class:`~hydra.ssh.hosts.HostEntry`.
    """

    advertise: str = ""
    hosts: tuple[Mapping[str, object], ...] = ()

    def __post_init__(self) -> None:
        declared_hosts(self.hosts)
