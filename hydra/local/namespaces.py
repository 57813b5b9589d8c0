"""Agents of the embedded engine that have a network namespace, and with it an address, of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hydra.client.network_namespaces import interfaces
from hydra.engine.address import route_to
from hydra.errors import ClusterError

_LOOPBACK: Final = "127.0.0.1"
_REMEDY: Final = "make the namespaces first, as root: scripts/namespaces up N"


def address_in(netns: str) -> str:
    """The first address in a network namespace.

    Raises:
        ClusterError: it is not there, has no address, or may not be looked into.
    """
    try:
        found = interfaces(netns)
    except OSError as e:
        raise ClusterError(f"the agents' network namespace {netns}: {e}", _REMEDY) from None
    if not found:
        raise ClusterError(f"the agents' network namespace {netns} has no IPv4 address", _REMEDY)
    return found[0].address


def here(hosts: Iterable[str]) -> str:
    """The address at which all of these reach this machine; the loopback's if there are none.

    Raises:
        ClusterError: there is no route to one, or not from one address.
    """
    found = {_route_to(host) for host in hosts}
    if len(found) > 1:
        raise ClusterError(f"the agents' networks reach this machine at several addresses: {sorted(found)}", _REMEDY)
    return found.pop() if found else _LOOPBACK


def inside(netns: str, command: Sequence[str]) -> list[str]:
    """The command that runs this one in there; the process stays the same."""
    return ["nsenter", f"--net=/run/netns/{netns}", "--", *command]


def _route_to(host: str) -> str:
    try:
        return route_to(host)
    except OSError as e:
        raise ClusterError(f"there is no route to the agent at {host}: {e.strerror}", _REMEDY) from None
