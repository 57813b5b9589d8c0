"""Addresses of this machine, and its network namespaces, as iproute2 reports them."""

from __future__ import annotations

import ipaddress
import json
import socket
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from hydra.errors import UsageError

_WITHIN_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """An interface other than loopback: its IPv4 address, and the bytes received and sent since it was created."""

    address: str
    incoming: int
    outgoing: int


def interfaces(namespace: str) -> list[NetworkInterface]:
    """The interfaces of a namespace that have an IPv4 address.

    Raises:
        OSError: there is no such namespace, or this user may not read it; the text has the reason.
    """
    return _parsed(_ip("-n", namespace, "-s", "address", "show"))


def traffic(addresses: Iterable[str]) -> dict[str, NetworkInterface]:
    """The interfaces with these addresses in all named namespaces; none if this user may not read them."""
    wanted = set(addresses)
    found: dict[str, NetworkInterface] = {}
    try:
        for namespace in _ip("netns", "list"):
            if not wanted <= found.keys():
                found |= {each.address: each for each in interfaces(namespace["name"]) if each.address in wanted}
    except OSError:
        return {}
    return found


def _ip(*words: str) -> list[dict[str, Any]]:
    try:
        done = subprocess.run(["ip", "-j", *words], capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    except FileNotFoundError:
        raise OSError("the command ip (iproute2) is not there") from None
    except subprocess.TimeoutExpired:
        raise OSError(f"ip {' '.join(words)} took longer than {_WITHIN_S:g} s") from None
    if done.returncode != 0:
        raise OSError(" ".join(done.stderr.split()) or f"ip {' '.join(words)} failed")
    # The output is empty if there is nothing to list.
    return list(json.loads(done.stdout or "[]"))


def _parsed(links: Iterable[dict[str, Any]]) -> list[NetworkInterface]:
    return [
        NetworkInterface(info["local"], link["stats64"]["rx"]["bytes"], link["stats64"]["tx"]["bytes"])
        for link in links
        if "LOOPBACK" not in link["flags"]
        for info in link["addr_info"]
        if info["family"] == "inet"
    ]


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
