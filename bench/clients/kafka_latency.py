"""Latency of Kafka at a fixed rate: Hydra's native clients beside bare loops of librdkafka."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from shutil import which
from typing import Any, Final

from bench import programs
from bench.clients.channel import OWN, SharedServer, Sides, Workload, words
from hydra.kafkatest.broker import LocalBroker

SIZE: Final = 100


def workload(subscribers: int, rate: float, seconds: float) -> Workload:
    """What both sides carry, with the settings of the scenario."""
    return Workload("kafka-fixed", "native", subscribers, SIZE, rate, seconds)


def _command(client: str, values: Mapping[str, Any]) -> Sequence[str]:  # noqa: ARG001  # there is one
    system = {name: value for name, value in values.items() if name not in OWN}
    return words(programs.bare("kafka/bare-latency"), {"system": json.dumps(system), **{n: values[n] for n in OWN}})


def _lacks() -> str:
    return programs.lacks() or ("" if which("java") else "java")


SIDES: Final = Sides(_command, SharedServer(LocalBroker, "kafka.bootstrap"), _lacks)
