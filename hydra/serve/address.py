"""Which addresses the page may have, and under which names a browser may ask for it."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from hydra.errors import UsageError

_LOCAL: Final = "localhost"
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]]+))(?::\d{1,5})?")


def loopback(host: str) -> str:
    """The address that is bound for a host that the user named.

    Raises:
        UsageError: other machines could reach it.
    """
    address = "127.0.0.1" if host == _LOCAL else host
    if not _is_loopback(address):
        raise UsageError(
            f"--host {host} is no loopback address, and the page is for this machine alone",
            "use 127.0.0.1, or reach it from elsewhere with ssh -L",
        )
    return address


def names_this_machine(header: str) -> bool:
    """Whether the ``Host`` of a request names this machine.

    A page elsewhere may give its own name the address 127.0.0.1 (DNS rebinding) and would read what is shown; its name
    stands in this header. The port is not looked at: a tunnel has another one.
    """
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    name = found["six"] or found["name"]
    return name.lower() == _LOCAL or _is_loopback(name)


def url(address: str, port: int) -> str:
    """Where a browser finds the page."""
    return f"http://[{address}]:{port}/" if ":" in address else f"http://{address}:{port}/"


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False
