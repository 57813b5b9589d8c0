"""Clients without a system, measured over the real control channel."""

from __future__ import annotations

import pytest

from hydra.cli.ceiling_measurement import measure
from hydra.model import Role
from hydra.native import build

pytestmark = pytest.mark.tier("test")


@pytest.mark.parametrize("language", ["python", "native"])
@pytest.mark.parametrize(("role", "clients"), [("publisher", 1), ("subscriber", 2)])
def test_clients_without_a_system_do_what_their_code_can(language: str, role: Role, clients: int) -> None:
    if language == "native" and build.find() is None:
        pytest.skip("the native client is not built")
    found = measure(language, role, clients, 100, 0.3)
    assert (found.language, found.role, found.clients, found.message_size) == (language, role, clients, 100)
    # Even on a busy machine, and far more than there would be if anything were sent.
    assert found.pps > 5_000
