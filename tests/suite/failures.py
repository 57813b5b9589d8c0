"""What is printed of a failed test: the command that repeats it, its seed, and where its logs are."""

from __future__ import annotations

import os
import random
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.suite.waiting import TEST_S

# On a shared machine the time of an example proves nothing about a test.
settings.register_profile("hydra", deadline=None, print_blob=True)
settings.load_profile("hydra")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """One seed for a whole session, in all of its workers; and what pytest-timeout does to those that hang."""
    os.environ.setdefault("PYTEST_TIMEOUT", str(TEST_S))
    if hasattr(config, "workerinput"):
        config.option.hypothesis_seed = config.workerinput["seed"]
    elif config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_configure_node(node: Any) -> None:
    """Called by pytest-xdist."""
    node.workerinput["seed"] = node.config.option.hypothesis_seed


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.option.hypothesis_seed}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.sections.append(("to repeat it", _repetition(item)))


def _repetition(item: pytest.Item) -> str:
    options = [f"--hypothesis-seed={item.config.option.hypothesis_seed}"]
    for name in ("zmq_client", "kafka_client"):
        options += [f"--{name.replace('_', '-')}={each}" for each in item.config.getoption(name) or ()]
    if item.config.pluginmanager.hasplugin("randomly"):
        options += ["-p", "randomly", "-p", f"randomly_seed={item.config.option.randomly_seed}"]
    arguments: dict[str, Any] = getattr(item, "funcargs", {})
    folders = {str(v) for name, v in arguments.items() if isinstance(v, Path) and v.is_dir() and name != "state_folder"}
    program = ".venv/bin/tox run -e tests -- pytest" if "TOX_ENV_NAME" in os.environ else f"{sys.executable} -m pytest"
    return f"{program} {shlex.join([*options, item.nodeid])}\nlogs: {' '.join(sorted(folders)) or 'it keeps none'}"
