"""Hosts with addresses of their own on one machine: network namespaces on a bridge that this machine is on too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Hosts:
    """``here`` is this machine's address on their network; ``addresses`` and ``names`` are the namespaces'.

    ``links`` are this machine's ends of the links that lead to them.
    """

    here: str
    addresses: list[str]
    names: list[str]
    links: list[str]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """That many of them; nothing is left at the end.

    Raises:
        OSError, CalledProcessError: namespaces cannot be made here.
    """
    mark = os.getpid()
    bridge, network = f"hy{mark}", f"10.213.{mark % 250}"
    names = [f"hydra-{mark}-{n}" for n in range(count)]
    links = [f"hy{mark}v{n}" for n in range(count)]
    with ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{network}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for n, (name, own) in enumerate(zip(names, links, strict=True)):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "del", name)
            _ip("link", "add", own, "type", "veth", "peer", "name", "eth0", "netns", name)
            # It goes with its namespace, but that takes its time.
            stack.callback(_ip, "link", "del", own)
            _ip("link", "set", own, "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{network}.{n + 2}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield Hosts(f"{network}.1", [f"{network}.{n + 2}" for n in range(count)], names, links)
