"""Loopback only, and asked for by its own name only."""

from __future__ import annotations

import pytest

from hydra.errors import UsageError
from hydra.serve.routing import loopback, names_this_machine, url


@pytest.mark.parametrize(
    ("host", "address"),
    [("localhost", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("127.8.9.10", "127.8.9.10"), ("::1", "::1")],
)
def test_a_loopback_address_is_bound(host: str, address: str) -> None:
    assert loopback(host) == address


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.7", "10.0.0.1", "example.org", "127.1", "", "localhost:80"]
)
def test_any_other_address_is_refused_in_one_line(host: str) -> None:
    with pytest.raises(UsageError, match="for this machine only") as raised:
        loopback(host)
    assert "\n" not in str(raised.value)


GOOD = ("localhost", "LOCALHOST:8000", "127.0.0.1:43121", "127.0.0.2:1", "[::1]:8000", "[::1]")
BAD = (
    *("evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.7:8000", "[2001:db8::1]:80"),
    *("::1", "localhost:", "localhost:80:80", "user@localhost", "0.0.0.0:8000", "", " localhost"),
)


@pytest.mark.parametrize("header", [*GOOD, *BAD])
def test_a_name_of_another_machine_is_no_name_of_this_one(header: str) -> None:
    assert names_this_machine(header) is (header in GOOD)


@pytest.mark.parametrize(("address", "shown"), [("127.0.0.1", "http://127.0.0.1:5/"), ("::1", "http://[::1]:5/")])
def test_the_address_is_printed_as_browsers_take_it(address: str, shown: str) -> None:
    assert url(address, 5) == shown
