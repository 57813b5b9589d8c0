"""A host of its own on this machine, behind a link of a known rate: a token bucket on its way in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.mesos.namespaces import hosts


@dataclass(frozen=True)
class SlowHost:
    """``here`` is this machine's address on its network; ``within`` are the words that run a command on it."""

    here: str
    within: str

    def bytes_in(self) -> int:
        """What its interface has received so far, headers of Ethernet included."""
        return int(_output(*self.within.split(), "cat", "/sys/class/net/eth0/statistics/rx_bytes"))


@contextmanager
def slow_host(bits_s: int, burst_bytes: int, queue_bytes: int) -> Iterator[SlowHost]:
    """One behind a link that carries ``bits_s``, ``burst_bytes`` at once, and lets ``queue_bytes`` wait.

    Raises:
        OSError, CalledProcessError: that cannot be made here.
    """
    with hosts(1) as network:
        (name,), (link,) = network.names, network.links
        bucket = ("rate", f"{bits_s}bit", "burst", str(burst_bytes), "limit", str(queue_bytes))
        _output("tc", "qdisc", "add", "dev", link, "root", "tbf", *bucket)
        yield SlowHost(network.here, f"ip netns exec {name}")


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
