"""The implementations whose figures are held against what is seen from outside."""

from __future__ import annotations

import pytest

from hydra.native import build
from tests.conformance.conftest import PYTHON


@pytest.fixture(params=["pyzmq", "native"])
def zmq_implementation(request: pytest.FixtureRequest) -> str:
    """Its name; skips the test where it is not there."""
    name = str(request.param)
    require(name)
    return name


@pytest.fixture
def zmq_command(zmq_implementation: str) -> str:
    """The command line of a ZMQ client."""
    if zmq_implementation == "native":
        return str(build.find())
    return f"{PYTHON} hydra.zmqtest.pyzmq"


def require(implementation: str) -> None:
    """Skips the test where the implementation is not there."""
    if implementation == "native" and build.find() is None:
        pytest.skip("the native client is not built")
