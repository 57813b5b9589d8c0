"""A host without a free local port: its clients are neither refused nor timed out."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connections.words import NATS_PY, PAHO, SMALL, native
from tests.integration.command import Hydra, table
from tests.mesos.namespaces import hosts

pytestmark = pytest.mark.tier("all")

PORTS = range(30_000, 30_030)
HELD = """
import socket, sys
held = [socket.create_server(("127.0.0.1", int(port))) for port in sys.argv[1:]]
print(flush=True)
input()
"""


@contextlib.contextmanager
def host_with_few_ports() -> Iterator[list[str]]:
    """A host of its own whose local ports are ``PORTS``, two thirds of them in use; its words run a command there."""
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(hosts(1))
        except (OSError, subprocess.CalledProcessError) as e:
            pytest.skip(f"no network namespace can be made here: {e}")
        within = ["ip", "netns", "exec", network.names[0]]
        range_of = f"net.ipv4.ip_local_port_range={PORTS[0]} {PORTS[-1]}"
        subprocess.run([*within, "sysctl", "-q", range_of], check=True)
        holds = [*within, sys.executable, "-c", HELD, *map(str, PORTS[:20])]
        holder = stack.enter_context(subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        stack.callback(holder.kill)
        assert holder.stdout is not None
        holder.stdout.readline()
        yield within


@pytest.mark.usefixtures("needs_nats")
@pytest.mark.parametrize(
    ("command", "implementation", "limit"),
    [
        ("nats-connections", NATS_PY, "EADDRNOTAVAIL"),
        ("nats-connections", native("nats"), "EADDRNOTAVAIL"),
        ("mqtt-connections", PAHO, "EADDRINUSE"),  # its library binds first
        ("mqtt-connections", native("mqtt"), "EADDRNOTAVAIL"),
    ],
    ids=["nats-py", "nats-native", "paho-mqtt", "mqtt-native"],
)
def test_a_client_without_a_local_port_is_not_refused(
    tmp_path: Path, command: str, implementation: tuple[str, ...], limit: str
) -> None:
    run = tmp_path / "run"
    words = [command, *SMALL, "--connect-within", "2", *implementation, "--clients", "20", "--out", str(run)]
    with host_with_few_ports() as within:
        done = subprocess.run([*within, *Hydra, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = table(run)
    failed = [int(row[name]) for name in ("connect_local", "connect_refused", "connect_timed_out")]
    assert 1 <= int(row["never_connected"]) <= failed[0]
    assert (failed[1:], row["connect_local_why"]) == ([0, 0], limit)
    assert "ip_local_port_range" in done.stdout
