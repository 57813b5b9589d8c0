"""The three tiers: which tests ``make quick``, ``make test`` and ``make test-all`` run.

A test belongs to ``quick`` unless it is marked: ``@pytest.mark.tier("test")`` or ``tier("all")`` on itself or in
its file's ``pytestmark`` (its own counts more), or by a fixture that starts something. Each tier has the tests of the
tiers before it. A quick test that starts a process or uses a socket fails.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import zmq

from tests.suite.fixtures import STARTING

TIERS: Final = ("quick", "test", "all")
"""From the quickest to the one with everything."""
_FORBIDDEN: Final = (
    "subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "socket.bind",
    "socket.connect", "socket.sendto", "zmq.Socket",
)  # fmt: skip
"""Audit events (https://docs.python.org/3/library/audit_events.html); the last is raised here."""
_OF_FILE: Final = re.compile(r"^pytestmark\s*=.*\btier\(\"(\w+)\"\)", re.MULTILINE)
_ANY: Final = re.compile(r"\btier\(\"(\w+)\"\)")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, default="all", help="run the tests up to this tier (default: all)")
    parser.addoption("--above", choices=TIERS, help="leave out the tests up to this tier")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "tier(name): the first tier that runs this test, quick if it says nothing")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of which no test runs, by the tiers that it names, is not even imported."""
    above, tier = config.getoption("above"), config.getoption("tier")
    if (tier == "all" and not above) or not re.match(r"test_\w+\.py$", collection_path.name):
        return None
    text = collection_path.read_text()
    is_later = _OF_FILE.search(text) and min(map(TIERS.index, _ANY.findall(text))) > TIERS.index(tier)
    return True if is_later or (above and _names_nothing_above(above, text)) else None


def _names_nothing_above(above: str, text: str) -> bool:
    named = _ANY.findall(text)
    # A fixture that starts something places a test in the tier "test" without its name.
    return len(named) == text.count("tier(") and max(map(TIERS.index, ["test", *named])) <= TIERS.index(above)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of other tiers.

    Raises:
        UsageError: a file has a test of the last tier, and does not name it: ``--above`` would leave out the file.
    """
    for path in {item.path for item in items if tier_of(item) == "all"}:
        if _names_nothing_above("test", path.read_text()):
            raise pytest.UsageError(f'{path}: a mark from another file places tests in tier("all"); name it here, too')
    above = config.getoption("above")
    wanted = TIERS[TIERS.index(above) + 1 if above else 0 : TIERS.index(config.getoption("tier")) + 1]
    left_out = [item for item in items if tier_of(item) not in wanted]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if tier_of(item) in wanted]


def tier_of(item: pytest.Item) -> str:
    """The first tier that runs a test."""
    marker = item.get_closest_marker("tier")
    if marker is not None:
        (name,) = marker.args
        if name not in TIERS:
            raise pytest.UsageError(f"{item.nodeid}: tier({name!r}) is none of {', '.join(TIERS)}")
        return str(name)
    return "test" if STARTING.intersection(getattr(item, "fixturenames", ())) else "quick"


class _Guard:
    """Whether a quick test runs now."""

    quick = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        __tracebackhide__ = True
        if self.quick and event in _FORBIDDEN:
            self.quick = False  # the report of the failure may use what it likes
            pytest.fail(f'a quick test uses {event} {arguments!r:.200}: mark it with @pytest.mark.tier("test")')


_guard = _Guard()


def pytest_sessionstart() -> None:
    platform.processor()  # the standard library starts a program for it once, and keeps the answer
    sys.addaudithook(_guard)
    init = zmq.Socket.__init__

    def audited(self: Any, *arguments: Any, **more: Any) -> None:
        __tracebackhide__ = True
        sys.audit("zmq.Socket", *arguments[1:])
        init(self, *arguments, **more)

    zmq.Socket.__init__ = audited  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def no_processes_in_quick_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forbids a quick test processes and sockets."""
    _guard.quick = tier_of(request.node) == "quick"
    yield
    _guard.quick = False


@pytest.fixture(autouse=True)
def usual_clients_in_quick_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick tests have the clients that scenarios name, whether the native program is built or not."""
    if tier_of(request.node) == "quick":
        monkeypatch.setattr("hydra.cli.chosen_clients.find", lambda: None)
