"""Real hosts for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ssh.daemons import Daemons, needs_sshd
from tests.suite.fixtures import starts

starts("daemons", "two_hosts")


@pytest.fixture
def daemons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemons]:
    """No host yet; the ssh of this process knows those that a test adds."""
    needs_sshd()
    made = Daemons(tmp_path / "hosts")
    monkeypatch.setenv("PATH", made.path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def two_hosts(daemons: Daemons) -> Daemons:
    """The hosts a and b."""
    for name in ("a", "b"):
        daemons.add(name)
    return daemons
