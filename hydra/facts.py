"""What is recorded of a run before it begins: the scenario without its secrets, versions, host, limits."""

from __future__ import annotations

import os
import platform
import resource
import sys
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


def facts(name: str, scenario: Scenario, cluster: ClusterSpec, master: str, command_line: str) -> dict[str, Any]:
    """The facts of a run by key, JSON values."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "name": name,
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "scenario": redacted(scenario),
        "cluster": cluster,
        "master": master,
        "command_line": command_line,
        "versions": {
            "hydra": version("hydra-scale"),
            "python": platform.python_version(),
            "pyzmq": version("pyzmq"),
            "kafka-python": version("kafka-python"),
            "confluent-kafka": version("confluent-kafka"),
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
