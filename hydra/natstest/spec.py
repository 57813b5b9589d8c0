"""The specification of NATS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hydra.measure.column import MESSAGES, ReportColumn, SystemColumns, lost_by_silence, wire_bytes
from hydra.model import RESTART, Demand, Figure, Scenario, Settings, SetupPart
from hydra.natstest.settings import SERVER_PACKAGES, TABLE, NatsSettings, NatsSpec, spec_of
from hydra.system import (
    DeliveryRules,
    Footprint,
    Greeting,
    Identity,
    Implementation,
    LogFootprint,
    OwnSettings,
    Published,
    Refusal,
    ScenarioResources,
    ServerFootprint,
    ServerKind,
    ServerTimes,
    System,
    SystemEvent,
    SystemSpec,
    setup_part,
)
from hydra.system.restart_refusals import why_no_restart

IMPLEMENTATIONS: Final = {
    "nats-py": Implementation(Footprint(threads=3, files=20, memory_bytes=12_000_000), shows_losses="always"),
    "native": Implementation(
        Footprint(10, 16, 2_500_000, further=Footprint(4, 2, 700_000)), program="native", shows_losses="always"
    ),
}
SERVER: Final = ServerFootprint(
    processes=2,  # nats-server, and its supervisor
    threads=40,
    files=50,
    connections=1,
    memory=lambda _: 200_000_000,
    own_ports=6,  # counted in a network namespace of its own
    log=LogFootprint(record_bytes=30, steps_kept=2, late_s=1.0),  # the current step and the previous one: system.py
    times=ServerTimes(start_s=0.5, join_s=0.6, back_s=2.0),
)


_SURVIVING: Final = 3
"""The fewest replicas of which a majority is left when one server ends, so the stream keeps all messages."""


def _why_no_restart(scenario: Scenario) -> str:
    """Why the server of this scenario cannot be restarted, or ""."""
    in_memory = "jetstream" in scenario.values_of("mode") and "memory" in scenario.values_of("storage")
    if in_memory and spec_of(scenario).replicas < _SURVIVING:
        return f"the server keeps the stream in memory, and could lose it; use storage file, or {_SURVIVING} replicas"
    return why_no_restart(scenario, spec_of(scenario).servers)


_COLUMNS: Final = (
    wire_bytes("its `PUB` line and the end of a line. Empty if publishers request the stream's acknowledgements"),
    ReportColumn(
        "slow_consumers",
        "",
        "how often a subscriber exceeded the pending limits of its library, see [nats.md](nats.md)",
        role="subscriber",
        key="slow_consumers",
    ),
    ReportColumn(
        "dropped",
        MESSAGES,
        "messages that subscribers' libraries dropped because they exceeded the libraries' pending limits",
        role="subscriber",
        key="dropped",
    ),
    ReportColumn(
        "disconnects",
        "",
        "how often a subscriber lost its connection; a server disconnects subscribers that are too slow",
        role="subscriber",
        key="disconnects",
    ),
    lost_by_silence(
        "how often a server ended the connection of a subscriber that had not answered its pings (stale connection)"
    ),
)


def _make(scenario: Scenario, deploy: bool, is_local: bool) -> System:
    """See :class:`hydra.natstest.system.NatsSystem`."""
    from hydra.natstest.system import NatsSystem

    return NatsSystem(scenario, deploy=deploy, is_local=is_local)


def _check(scenario: Scenario) -> Iterator[Refusal]:
    """Checks addresses, logins, ports and replicas."""
    from hydra.natstest.access import refusals  # it imports the library

    spec, servers = spec_of(scenario), scenario.server
    yield from refusals(spec)
    if servers.demand.ports not in (0, 2):
        what = (
            "the number of ports must be 2 (for clients, for other servers) or 0 (any free "
            f"ports), not {servers.demand.ports}"
        )
        yield ("server", "demand", "ports"), what, ""
    if not spec.servers and spec.replicas > servers.count:
        yield (
            (TABLE, "replicas"),
            f"{spec.replicas} replicas need as many servers, and server.count is {servers.count}",
            "raise server.count, or name your servers with --servers",
        )


def _delivery(scenario: Scenario, settings: Settings) -> DeliveryRules:
    """By the mode, and the stream's settings."""
    nats, replicas = NatsSettings.of(settings), spec_of(scenario).replicas
    answers = "each message" if nats.publish_acks else "nothing to publishers"
    copies = "one copy" if replicas == 1 else f"{replicas} copies"
    return DeliveryRules(
        queue="pending messages",
        guarantees="acknowledges nothing and keeps nothing"
        if nats.mode == "core"
        else f"acknowledges {answers} and keeps {copies} in {nats.storage}",
        traffic=("topics", "wildcard"),
        log_acknowledges=not nats.publish_acks,
    )


def _shown(scenario: Scenario) -> Sequence[SetupPart]:
    """The mode, and the properties of streams if some row has one."""
    mode = setup_part(NatsSettings, scenario, "mode", words={"core": "core NATS", "jetstream": "JetStream"})
    if "jetstream" not in mode.values:
        return [mode]
    answers: Mapping[Figure, str] = {True: "publishes acknowledged", False: "publishes not acknowledged"}
    return [
        mode,
        setup_part(NatsSettings, scenario, "storage", "{} storage"),
        SetupPart("replicas", (spec_of(scenario).replicas,), "replicas {}"),
        setup_part(NatsSettings, scenario, "publish_acks", words=answers),
        setup_part(NatsSettings, scenario, "consumer", "{} consumers"),
        setup_part(NatsSettings, scenario, "ack_policy", "ack policy {}"),
    ]


def _logins(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The value of ``nats.username``; passwords, tokens, keys and credentials that can be read."""
    from hydra.natstest.access import secrets_of

    yield spec_of(scenario).username, ""
    yield from (("", secret) for secret in secrets_of(spec_of(scenario)))


SPEC: Final = SystemSpec(
    identity=Identity("nats", "NATS", IMPLEMENTATIONS, _make),
    settings=OwnSettings(
        step=NatsSettings,
        tables={TABLE: NatsSpec},
        events={RESTART: SystemEvent(_why_no_restart)},
        check=_check,
        shown=_shown,
        logins=_logins,
        is_secret=lambda key: key in (f"{TABLE}.password", f"{TABLE}.token"),
    ),
    delivery=_delivery,
    servers=ServerKind(
        footprint=SERVER,
        demand=Demand(base_cpus=1.0, base_mem=512.0, ports=2),
        address_key=f"{TABLE}.servers",
        greeting=Greeting("NATS", "a NATS server", rb"INFO \{"),
        packages=SERVER_PACKAGES,
    ),
    resources=ScenarioResources(copies=lambda scenario: spec_of(scenario).replicas),
    published=Published(
        columns=SystemColumns(reported=_COLUMNS),
        cannot={
            "--subject": "Hydra measures with a subject of its own, and cannot use an existing one",
            "--stream": "Hydra measures with a stream of its own, and cannot use an existing one",
        },
    ),
)
