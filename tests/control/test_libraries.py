"""What a group's program imports: an agent gets these distributions, and nothing that only the controller needs."""

from __future__ import annotations

import pytest

from hydra.control import LIBRARIES
from tests.import_graph import imports, sources, third_parties

DISTRIBUTIONS = {"zmq": "pyzmq"}
"""Modules whose distribution has another name."""


@pytest.mark.parametrize("program", ["hydra.client.process_group", "hydra.client.server_group"])
def test_every_program_of_an_agent_gets_the_libraries_that_it_imports(program: str) -> None:
    known = sources()
    reached, to_see = set[str](), {program}
    while to_see:
        module = to_see.pop()
        reached.add(module)
        used = {name for _, name in imports(module, known[module], known) if name in known}
        # A package's own module is imported with everything in it.
        packages = {name.rpartition(".")[0] for name in used} & known.keys()
        to_see |= (used | packages) - reached
    found = {DISTRIBUTIONS.get(library, library) for module in reached for library in third_parties(known, module)}
    assert found <= set(LIBRARIES)
    assert "hydra.control.control_client" in reached
