"""``hydra mqtt-rate`` and ``hydra mqtt-fixed``."""

from __future__ import annotations

from typing import Any, Final

import click

from hydra.options import (
    PATH,
    WORD,
    Concerning,
    duration_flag,
    flags,
    implementation_flag,
    keyed,
    native_flags,
    rate_flag,
    scenario_command,
    search_flags,
)

IMPLEMENTATIONS: Final = ("paho-mqtt", "native")

_mqtt_flags = flags(
    keyed(
        "--broker",
        key="mqtt.broker",
        type=WORD,
        metavar="HOST:PORT",
        help="Your own server (default: a mosquitto comes along).",
    ),
    keyed("--username", key="mqtt.username", type=WORD, help="For your own server."),
    click.option(
        "--password-file",
        cls=Concerning,
        key="mqtt.password_file",
        type=PATH,
        help="A file whose first line is the password for it.",
    ),
    keyed("--qos", key="settings.qos", type=click.IntRange(0, 2), help="0: at most once, 1: at least, 2: exactly."),
    keyed(
        "--retain",
        key="settings.retain",
        is_flag=True,
        default=None,
        help="The server keeps each publisher's last message.",
    ),
    keyed(
        "--shared",
        key="settings.shared",
        is_flag=True,
        default=None,
        help="All subscribers share one subscription: each message goes to one of them.",
    ),
    keyed(
        "--max-inflight",
        key="settings.max_inflight",
        type=int,
        help="Messages of QoS 1 and 2 that may wait for their answer.",
    ),
    keyed("--protocol", key="settings.protocol", type=click.Choice(["3.1.1", "5"]), help="Version of MQTT."),
    implementation_flag(IMPLEMENTATIONS),
    duration_flag,
    native_flags,
)


@scenario_command(
    "mqtt-rate",
    "mqtt-rate",
    _mqtt_flags,
    search_flags,
    examples=("hydra mqtt-rate --clients 10,30 --duration 2 --qos 1",),
)
def mqtt_rate(**values: Any) -> dict[str, object]:
    """The highest rate that MQTT carries without loss, by client count."""
    return _password(**values)


@scenario_command(
    "mqtt-fixed",
    "mqtt-fixed",
    _mqtt_flags,
    rate_flag,
    examples=(
        "hydra mqtt-fixed --clients 10,30 --rate 20 --duration 2",
        "hydra mqtt-fixed --clients 10 --broker 10.0.0.5:1883 --username me --password-file ./password",
    ),
)
def mqtt_fixed(**values: Any) -> dict[str, object]:
    """MQTT at a fixed rate, by client count."""
    return _password(**values)


def _password(password_file: object, **_: Any) -> dict[str, object]:
    return {"mqtt.password_file": str(password_file)} if password_file is not None else {}
