"""The processes behind the addresses of the user's servers on this host."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hydra.system.server_listener import listeners

pytestmark = pytest.mark.tier("test")
_LISTENER = """import socket, sys
s = socket.create_server((sys.argv[1], 0)); print(s.getsockname()[1], flush=True); sys.stdin.read()"""


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
def test_the_process_is_found_by_an_address_of_this_host_only_and_as_long_as_it_runs(bound: str) -> None:
    command = [sys.executable, "-c", _LISTENER, bound]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        port = int(listener.stdout.readline())
        others = ("192.0.2.1", "no-such-host.invalid", "127.0.0.2" if bound == "127.0.0.1" else "[::1]")
        for host in others:
            assert listeners(f"{host}:{port}") == ()
        addresses = f"192.0.2.1:{port},localhost:{port},127.0.0.1:{port}"
        assert listeners(addresses) == (listener.pid,)
        listener.communicate()
    assert (listeners(addresses), listeners("")) == ((), ())
