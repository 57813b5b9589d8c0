"""Ports that are kept for a server until it binds them."""

from __future__ import annotations

import socket

import pytest

from hydra.client.server_interface import kept_ports

pytestmark = pytest.mark.tier("test")

HOST = "127.0.0.1"


def port_of_a_server_that_hung_up() -> int:
    """A port whose connection was ended by the server: the kernel remembers that for a minute (TIME-WAIT)."""
    with socket.create_server((HOST, 0)) as server:
        port = int(server.getsockname()[1])
        with socket.create_connection((HOST, port)) as client:
            accepted, _ = server.accept()
            accepted.shutdown(socket.SHUT_RDWR)
            assert client.recv(1) == b""
        accepted.close()
    return port


def test_the_port_of_a_server_that_has_just_gone_is_kept_for_the_next() -> None:
    port = port_of_a_server_that_hung_up()
    with kept_ports(HOST, [port]) as ports:
        assert ports == [port]
    with socket.create_server((HOST, port)):
        pass


def test_a_port_that_is_kept_is_nobody_elses() -> None:
    with kept_ports(HOST, [0, 0]) as (one, other):
        assert one != other
        for port in (one, other):
            with pytest.raises(OSError, match=f"cannot bind {HOST}:{port}"), kept_ports(HOST, [port]):
                pass
            with pytest.raises(OSError, match="in use"):
                socket.create_server((HOST, port))


def test_a_port_that_somebody_listens_at_is_taken() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot bind {HOST}:{port}"), kept_ports(HOST, [port]):
            pass
