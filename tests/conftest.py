"""Options of the whole test suite: the programs that the conformance suite is run against."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "clients under test (default: the Python ones)")
    group.addoption(
        "--zmq-client",
        action="append",
        metavar="COMMAND",
        help="a program with the kinds zmq-pub and zmq-sub, as one command line; may be given several times",
    )
    group.addoption(
        "--kafka-client",
        action="append",
        metavar="COMMAND",
        help="a program with the kinds kafka-pub and kafka-sub, as one command line; may be given several times",
    )
