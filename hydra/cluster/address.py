"""At which address agents reach this machine."""

from __future__ import annotations

import socket

from hydra.errors import UsageError


def resolved(advertise: str) -> str:
    """The address that ``--advertise`` names.

    Raises:
        UsageError: it cannot be resolved, or is no address of this machine.
    """
    try:
        address = socket.gethostbyname(advertise)
    except OSError as e:
        raise UsageError(f"--advertise {advertise} cannot be resolved: {e}", "name an address of this machine") from e
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as e:
            raise UsageError(
                f"--advertise {advertise} is no address of this machine: {e.strerror}",
                "name one that agents can reach; ip addr lists them",
            ) from e
    return address


def route_to(host: str, port: int = 1) -> str:
    """The address of this machine from which packets to a host leave: what that host can probably reach.

    Raises:
        OSError: its name cannot be resolved, or there is no route.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))  # sends nothing
        return str(probe.getsockname()[0])
