"""Network namespaces of this host, as iproute2 reports them: addresses, and bytes that passed their interfaces."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

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
