"""What a group's program imports: an agent gets these distributions, and nothing that only the controller needs."""

from __future__ import annotations

import pytest

from hydra.control import LIBRARIES
from tests.import_graph import reached, sources, third_parties

DISTRIBUTIONS = {"zmq": "pyzmq"}
"""Modules whose distribution has another name."""


@pytest.mark.parametrize("program", ["hydra.client.process_group", "hydra.client.server_group"])
def test_every_program_of_an_agent_gets_the_libraries_that_it_imports(program: str) -> None:
    known = sources()
    modules = reached(program, known)
    found = {DISTRIBUTIONS.get(library, library) for module in modules for library in third_parties(known, module)}
    assert found <= set(LIBRARIES)
    assert "hydra.control.control_client" in modules
