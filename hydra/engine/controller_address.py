"""The address at which agents reach this machine."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from hydra.errors import UsageError

_REACHABLE: Final = "name one that agents can reach; ip addr lists them"


def resolved(advertise: str, *, loopback: bool = True) -> str:
    """The address that ``--advertise`` names.

    Args:
        advertise: a name or an address.
        loopback: whether groups may run on this machine, in its own network, so a loopback address serves.

    Raises:
        UsageError: it cannot be resolved, is no address of this machine, or other hosts cannot reach it.
    """
    try:
        address = socket.gethostbyname(advertise)
    except OSError as e:
        raise UsageError(f"--advertise {advertise} cannot be resolved: {e}", "name an address of this machine") from e
    known = ipaddress.ip_address(address)
    if known.is_unspecified or (known.is_loopback and not loopback):
        to_itself = "leads every host to itself" if known.is_loopback else "is where to listen, and no place to dial"
        raise UsageError(f"--advertise {advertise} {to_itself}", _REACHABLE)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as e:
            raise UsageError(
                f"--advertise {advertise} is no address of this machine: {e.strerror}",
                _REACHABLE,
            ) from e
    return address


def route_to(host: str, port: int = 1) -> str:
    """The address of this machine from which packets to a host leave; that host can probably reach it.

    Raises:
        OSError: the host's name cannot be resolved, or there is no route.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))  # sends nothing
        return str(probe.getsockname()[0])
