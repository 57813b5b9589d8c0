"""The specification of MQTT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hydra.measure.column import SystemColumns, lost_by_silence, wire_bytes
from hydra.model import RESTART, Demand, Figure, Scenario, Settings, SetupPart
from hydra.mqtttest.settings import TABLE, MqttSettings, MqttSpec, spec_of
from hydra.system import (
    DeliveryRules,
    Footprint,
    Greeting,
    Identity,
    Implementation,
    OwnSettings,
    Published,
    Refusal,
    ReportColumn,
    ServerFootprint,
    ServerKind,
    ServerTimes,
    System,
    SystemEvent,
    SystemSpec,
    setup_part,
)
from hydra.system.restart_refusals import why_no_restart

_OF_SESSIONS: Final[Sequence[tuple[str, bool, Mapping[Figure, str]]]] = (
    ("retain", False, {True: "retained messages", False: "no retained messages"}),
    ("shared", False, {True: "shared subscription", False: "a subscription each"}),
    ("clean_session", True, {True: "clean sessions", False: "kept sessions"}),
)
"""Settings that are named unless they have their usual value, with the texts of their values."""


# Counted in /proc on one machine (method: docs/mqtt.md), and rounded up.
_IMPLEMENTATIONS: Final[Mapping[str, Implementation]] = {
    "paho-mqtt": Implementation(Footprint(threads=3, files=17, memory_bytes=10_500_000), shows_losses="always"),
    "native": Implementation(
        Footprint(3, 17, 800_000, further=Footprint(0, 3, 60_000)), program="native", shows_losses="always"
    ),
}
_SERVER: Final = ServerFootprint(
    processes=2,
    threads=2,
    files=20,
    connections=1,
    memory=lambda _: 64_000_000,
    own_ports=3,  # counted in a network namespace of its own
    times=ServerTimes(start_s=0.5, join_s=0.3, back_s=1.0),
)
_COLUMNS: Final = (
    wire_bytes("the head of its PUBLISH packet"),
    ReportColumn(
        name="lost_connections",
        unit="",
        help="number of subscribers whose connection to the server was lost in the step",
        role="subscriber",
        key="lost_connections",
    ),
    lost_by_silence(
        "number of subscribers whose connection was lost because they had sent nothing for longer than the `keepalive` "
        "allows"
    ),
)


def _make(scenario: Scenario, deploy: bool, is_local: bool) -> System:
    """See :class:`hydra.mqtttest.system.MqttSystem`."""
    from hydra.mqtttest.system import MqttSystem

    return MqttSystem(scenario, deploy=deploy, is_local=is_local)


def _check(scenario: Scenario) -> Iterator[Refusal]:
    """Checks addresses, logins, ports, and the number of servers."""
    from hydra.mqtttest.access import refusals  # a scenario of another system does without

    yield from refusals(scenario)
    if scenario.server.count != 1:
        what = f"one MQTT server is one broker, and server.count is {scenario.server.count}"
        yield ("server", "count"), what, "set it to 1; mosquitto forms no clusters"
    if scenario.server.demand.ports not in (0, 1):
        what = f"the number of ports must be 1 (for clients) or 0 (any free port), not {scenario.server.demand.ports}"
        yield ("server", "demand", "ports"), what, ""


def _delivery(scenario: Scenario, settings: Settings) -> DeliveryRules:  # noqa: ARG001  # it is the settings' alone
    """By the QoS, and what the server keeps of it."""
    mqtt = MqttSettings.of(settings)
    answers = "each message" if mqtt.qos else "nothing"
    kept = [
        *(["the messages of disconnected subscribers"] if not mqtt.clean_session else []),
        *(["the last message of each publisher"] if mqtt.retain else []),
    ]
    return DeliveryRules(
        queue="broker's queue (max_queued_messages)",
        guarantees=f"acknowledges {answers} and keeps {' and '.join(kept) or 'nothing'} (QoS {mqtt.qos})",
        traffic=("topics", "wildcard"),
        group="all" if mqtt.shared else "",
        # A server without shared subscriptions takes $share/… for the name of a topic.
        silent_group="no member of the group received a message: has the server shared subscriptions? (setting shared)",
    )


def _shown(scenario: Scenario) -> Sequence[SetupPart]:
    """The QoS and the version of MQTT, and what differs from a plain session."""
    qos = setup_part(MqttSettings, scenario, "qos", "QoS {}")
    parts = [qos, setup_part(MqttSettings, scenario, "protocol", "MQTT {}")]
    if any(qos.values):
        parts.append(setup_part(MqttSettings, scenario, "max_inflight", "max_inflight {}"))
    if spec_of(scenario).broker.startswith(("ws://", "wss://")):
        parts.append(SetupPart("websocket", (True,), "WebSocket"))
    for name, usual, words in _OF_SESSIONS:
        part = setup_part(MqttSettings, scenario, name, words=words)
        parts += [] if part.values == (usual,) else [part]
    return parts


def _logins(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The user names, and the password and the private key, if they can be read."""
    from hydra.mqtttest.access import secrets_of, users_of

    yield from ((user, "") for user in users_of(spec_of(scenario)))
    yield from (("", secret) for secret in secrets_of(spec_of(scenario)))


SPEC: Final = SystemSpec(
    identity=Identity("mqtt", "MQTT", _IMPLEMENTATIONS, _make),
    settings=OwnSettings(
        step=MqttSettings,
        tables={TABLE: MqttSpec},
        events={RESTART: SystemEvent(lambda scenario: why_no_restart(scenario, spec_of(scenario).broker))},
        check=_check,
        shown=_shown,
        logins=_logins,
        is_secret=lambda key: key == f"{TABLE}.password",
    ),
    delivery=_delivery,
    servers=ServerKind(
        footprint=_SERVER,
        demand=Demand(base_cpus=1.0, base_mem=256.0, ports=1),
        address_key=f"{TABLE}.broker",
        greeting=Greeting(
            "MQTT",
            "an MQTT server",
            rb"\x20\x02[\x00\x01][\x00-\x05]",
            b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x05\x00\x00",  # CONNECT of 3.1.1, without a client id
        ),
    ),
    published=Published(
        columns=SystemColumns(reported=_COLUMNS),
        cannot={"--topic": "Hydra measures with topics of its own, and cannot use an existing one"},
    ),
)
