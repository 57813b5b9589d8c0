"""Which addresses can be advertised."""

from __future__ import annotations

import pytest

from hydra.client.network_interfaces import resolved
from hydra.errors import UsageError

pytestmark = pytest.mark.tier("test")


@pytest.mark.parametrize("advertise", ["127.0.0.1", "127.3.2.1", "localhost"])
def test_a_loopback_address_serves_only_those_on_this_machine(advertise: str) -> None:
    assert resolved(advertise).startswith("127.")
    with pytest.raises(UsageError, match=f"--advertise {advertise} leads every host to itself; name one that agents"):
        resolved(advertise, loopback=False)


@pytest.mark.parametrize(
    ("advertise", "expected"),
    [
        ("0.0.0.0", "is where to listen, and no place to dial"),  # it is refused
        ("192.0.2.1", "is no address of this machine"),
        ("nobody.invalid", "cannot be resolved"),
        ("::1", "cannot be resolved"),
    ],
)
def test_what_nobody_can_dial_is_refused(advertise: str, expected: str) -> None:
    with pytest.raises(UsageError, match=f"--advertise {advertise} {expected}"):
        resolved(advertise)
