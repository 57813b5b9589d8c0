"""What is recorded of a run before it begins: the scenario without its secrets, versions, host, limits."""

from __future__ import annotations

import os
import platform
import resource
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import psutil

from hydra.kafkatest.properties import redact
from hydra.model import ClusterSpec, Scenario


def redacted(scenario: Scenario) -> Scenario:
    """The scenario as it may be written down: the values of secret properties are replaced."""
    return replace(scenario, kafka=replace(scenario.kafka, properties=redact(scenario.kafka.properties)))


def _without_secrets(words: Sequence[str]) -> str:
    """The command line as it may be written down: properties are given as key=value."""
    hidden = []
    for word in words:
        key, equals, value = word.partition("=")
        name = key.removeprefix("--kafka-prop").removeprefix("kafka.properties.").strip("'\"")
        hidden.append(f"{key}={redact({name: value})[name]}" if equals else word)
    return shlex.join(hidden)


def _redacted_overrides(overrides: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in overrides.items():
        if key.startswith("kafka.properties.") and isinstance(value, str):
            yield key, redact({key: value})[key]
        elif key == "kafka.properties" and isinstance(value, dict):
            yield key, redact({name: str(text) for name, text in value.items()})
        else:
            yield key, value


def facts(
    name: str,
    scenario: Scenario,
    cluster: ClusterSpec,
    master: str,
    command_line: Sequence[str],
    overrides: Mapping[str, object],
) -> dict[str, Any]:
    """The facts of a run by key, JSON values; secrets are hidden wherever they stand.

    ``versions`` are the controller's own; what is measured is told by the clients in their hello.

    Args:
        name: the run's.
        scenario: what is run.
        cluster: where, on the embedded cluster.
        master: where else.
        command_line: the words of the command.
        overrides: what the command replaced in the scenario, by dotted key.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "name": name,
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "scenario": redacted(scenario),
        "cluster": cluster,
        "master": master,
        "command_line": _without_secrets(command_line),
        "overrides": {
            k: redact(v) if isinstance(v, dict) and k == "kafka.properties" else v for k, v in overrides.items()
        },
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
