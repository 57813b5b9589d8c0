"""``hydra mqtt-rate``, ``hydra mqtt-fixed`` and ``hydra mqtt-connections``."""

from __future__ import annotations

from typing import Any

from hydra.options.scenario_commands import scenario_command
from hydra.options.setting_flags import system_flags
from hydra.options.shared_flags import connections_flags, fixed_flags, held_flag, search_flags

_mqtt_flags = system_flags("mqtt")


@scenario_command(
    "mqtt-rate",
    "mqtt-rate",
    _mqtt_flags,
    held_flag,
    search_flags,
    examples=("hydra mqtt-rate --subscribers 10,30 --duration 2 --qos 1",),
)
def mqtt_rate(**_: Any) -> None:
    """Find the highest rate that MQTT held, by subscriber count."""


@scenario_command(
    "mqtt-fixed",
    "mqtt-fixed",
    _mqtt_flags,
    fixed_flags,
    examples=(
        "hydra mqtt-fixed --subscribers 10,30 --rate 20 --duration 2",
        "hydra mqtt-fixed --subscribers 10 --servers 10.0.0.5:1883 --username me --password-file ./password",
    ),
)
def mqtt_fixed(**_: Any) -> None:
    """Measure MQTT at a fixed rate."""


@scenario_command(
    "mqtt-connections",
    "mqtt-connections",
    _mqtt_flags,
    connections_flags,
    examples=(
        "hydra mqtt-connections --subscribers 100 --connect-rate 100,max",
        "hydra mqtt-connections --client native --clients-per-process 100 --subscribers 5000 --connect-rate 500",
    ),
)
def mqtt_connections(**_: Any) -> None:
    """Measure how fast MQTT lets clients in."""
