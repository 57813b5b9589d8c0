"""What is recorded of a run before it begins: the scenario without its secrets, versions, host, limits."""

from __future__ import annotations

import os
import platform
import resource
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import psutil

from hydra.model import ClusterSpec, Scenario
from hydra.store.format_upgrade import as_stored
from hydra.store.redaction import Redactor


def redacted(scenario: Scenario, redactor: Redactor) -> Scenario:
    """The scenario as it may be written down: without secrets where a user wrote free text; its tables as JSON."""
    tables = {name: redactor.value(asdict(table), name) for name, table in scenario.tables.items()}
    return replace(scenario, description=redactor.text(scenario.description), tables=tables)


def asked(command_line: Sequence[str], overrides: Mapping[str, object], redactor: Redactor) -> dict[str, Any]:
    """How and when something was asked for; secrets are hidden.

    Args:
        command_line: the words of the command.
        overrides: what the command replaced in the scenario, by dotted key.
        redactor: knows the secrets.
    """
    return {
        "command_line": shlex.join(redactor.command_line(command_line)),
        "overrides": {key: redactor.value(value, key) for key, value in overrides.items()},
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def metadata(
    name: str,
    scenario: Scenario,
    cluster: ClusterSpec,
    master: str,
    command_line: Sequence[str],
    overrides: Mapping[str, object],
    redactor: Redactor,
) -> dict[str, Any]:
    """The metadata of a run by key, JSON values; secrets are hidden wherever they stand.

    ``versions`` are the controller's own; what is measured is told by the clients in their hello.

    Args:
        name: the run's.
        scenario: what is run.
        cluster: where, on the embedded cluster.
        master: where else.
        command_line: the words of the command.
        overrides: what the command replaced in the scenario, by dotted key.
        redactor: knows the secrets.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "name": redactor.text(name),
        "scenario": as_stored(redacted(scenario, redactor)),
        "cluster": cluster,
        "master": redactor.text(master),
        **asked(command_line, overrides, redactor),
        "versions": {
            "hydra": version("hydra-scale"),
            "python": platform.python_version(),
        },
        "host": {
            "name": platform.node(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "byte_order": sys.byteorder,
        },
        "limits": {"nofile_soft": soft, "nofile_hard": hard},
    }
