"""Ports that are kept for a server."""

from __future__ import annotations

import socket
import struct

import pytest

from hydra.client.server_interface import kept_ports

pytestmark = pytest.mark.tier("test")

HOST = "127.0.0.1"
IP_LOCAL_PORT_RANGE = 51
"""The option of Linux 6.3 and later with the ports that the kernel may choose for a socket."""


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


def test_a_server_listens_at_ports_that_are_kept_for_it_and_keeps_them_for_itself() -> None:
    with kept_ports(HOST, [0, 0]) as (one, other):
        assert one != other
        for port in (one, other):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((HOST, port))
            with socket.create_server((HOST, port)):
                with pytest.raises(OSError, match=f"cannot bind {HOST}:{port}"), kept_ports(HOST, [port]):
                    pass
                with pytest.raises(OSError, match="in use"):
                    socket.create_server((HOST, port))


def offered_only(port: int) -> socket.socket:
    """A socket for which the kernel may choose only this port."""
    asking = socket.socket()
    try:
        asking.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("I", port << 16 | port))
    except OSError:
        asking.close()
        pytest.skip("this kernel has no IP_LOCAL_PORT_RANGE")
    return asking


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_kernel_gives_a_kept_port_to_no_process_that_asks_for_any(is_shared: bool) -> None:
    with kept_ports(HOST, [0]) as (port,), socket.create_server((HOST, 0)) as server:
        with offered_only(port) as asking:
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, is_shared)
            with pytest.raises(OSError, match="in use"):
                asking.bind((HOST, 0))
        with offered_only(port) as asking, pytest.raises(OSError, match="assign"):
            asking.connect(server.getsockname())


def test_a_port_that_somebody_listens_at_is_taken() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot bind {HOST}:{port}"), kept_ports(HOST, [port]):
            pass
