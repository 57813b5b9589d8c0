"""The tables ``[ssh]`` and ``[slurm]`` of the cluster file, and its list ``[[hosts]]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hydra.ssh.hosts import declared_hosts


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
