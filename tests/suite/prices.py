"""What the tests cost, by tier and folder, as tests/prices.toml keeps it; and the order in which files are handed out.

``--write-prices`` writes the file, ``--check-prices`` shows today's CPU seconds beside it and fails if a tier
costs twice as much.
"""

from __future__ import annotations

import os
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.suite.tiers import TIERS, tier_of

PRICES: Final = Path(__file__).parents[1] / "prices.toml"
LONG_FILE_S: Final = 2.0
"""The seconds of a file that takes longer are kept: such files are handed out first, the longest of all before them."""
SHARED: Final = "servers"
"""Stands among the folders for what tests share."""
LIMIT: Final = 2.0
"""A tier may cost this many times the file's figure: machines differ."""
_HEADING: Final = """\
# What the tests cost, written by `make prices`: CPU seconds by tier and folder, those of the processes that they start
# included. [seconds] has the duration of each long file: the longest is handed out first (tests/suite/prices.py).
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-prices", action="store_true", help="write tests/prices.toml")
    parser.addoption(
        "--check-prices",
        action="store_true",
        help="compare; in CI a tier that costs twice as much fails",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Meter(config), "prices-meter")
    # By their number of tests, which is xdist's own order, the longest files would come last.
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files come first, so that none of them is alone at the end; unless the order is random on purpose."""
    if not config.pluginmanager.hasplugin("randomly"):
        seconds = _kept().get("seconds", {})
        items.sort(key=lambda item: -seconds.get(_file(item), 0.0))


class Meter:
    """The prices of this session; those of a worker go to the process that shares out the tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cpu: defaultdict[str, float] = defaultdict(float)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._too_dear: list[str] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        cpu, began = _cpu_s(), time.monotonic()
        yield
        # What all tests of this process have shared, as servers, ends behind the last of them.
        key = f"{tier_of(item)} {_folder(item)}" if nextitem else f"{self._config.getoption('tier')} {SHARED}"
        self._cpu[key] += _cpu_s() - cpu
        self._seconds[_file(item)] += time.monotonic() - began

    def pytest_testnodedown(self, node: Any) -> None:
        """Called by pytest-xdist when a worker has ended."""
        reported = getattr(node, "workeroutput", {}).get("prices")
        if reported:
            for own, of_worker in ((self._cpu, reported["cpu"]), (self._seconds, reported["seconds"])):
                for key, figure in of_worker.items():
                    own[key] += figure

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["prices"] = {"cpu": dict(self._cpu), "seconds": dict(self._seconds)}
            return
        if self._config.getoption("write_prices"):
            self._write()
        if self._config.getoption("check_prices"):
            kept = _kept()
            for tier in TIERS:
                today, allowed = sum(self._of(tier).values()), LIMIT * sum(kept.get(tier, {}).values())
                if today > allowed:
                    self._too_dear.append(f"{tier}: {today:.0f} CPU seconds, more than {LIMIT:g} times what was kept")
            if self._too_dear and "CI" in os.environ and session.exitstatus == 0:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._config.getoption("check_prices"):
            return
        kept = _kept()
        terminalreporter.section("CPU seconds: today, and in tests/prices.toml")
        for tier in TIERS:
            today = self._of(tier)
            for folder, cpu_s in sorted(today.items()):
                terminalreporter.write_line(
                    f"{tier:6}{folder:24}{cpu_s:8.1f}{kept.get(tier, {}).get(folder, 0.0):8.1f}"
                )
            if today:
                in_file = sum(kept.get(tier, {}).values())
                terminalreporter.write_line(f"{tier:6}{'together':24}{sum(today.values()):8.1f}{in_file:8.1f}")
        for line in self._too_dear:
            terminalreporter.write_line(f"{line}; write it anew with make prices if that is right", red=True)

    def _of(self, tier: str) -> dict[str, float]:
        return {key.split()[1]: cpu_s for key, cpu_s in self._cpu.items() if key.split()[0] == tier}

    def _write(self) -> None:
        """Folders of which nothing ran in a tier keep what the file reports of them."""
        kept = _kept()
        text = _HEADING
        for tier in TIERS:
            text += _section(tier, {**kept.get(tier, {}), **self._of(tier)}, 0.1)
        text += _section("seconds", {**kept.get("seconds", {}), **self._seconds}, LONG_FILE_S)
        PRICES.write_text(text)


def _section(name: str, figures: Mapping[str, float], least: float) -> str:
    present = {key: figure for key, figure in figures.items() if key == SHARED or (PRICES.parents[1] / key).exists()}
    lines = [f'"{key}" = {figure:.1f}' for key, figure in sorted(present.items()) if figure >= least]
    return "\n".join(["", f"[{name}]", *lines, ""])


def _kept() -> dict[str, dict[str, float]]:
    return tomllib.loads(PRICES.read_text()) if PRICES.exists() else {}


def _cpu_s() -> float:
    """Of this process, and of those that it started and that have ended."""
    return sum(os.times()[:4])


def _file(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


def _folder(item: pytest.Item) -> str:
    return "/".join(_file(item).split("/")[:2]) if _file(item).count("/") > 1 else "tests"
