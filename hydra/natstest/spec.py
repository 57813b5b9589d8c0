"""The specification of NATS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hydra.measure.column import LOST_BY_SILENCE, MESSAGES, ReportColumn, wire_bytes
from hydra.model import RESTART, Demand, Figure, Scenario, ServerSpec, Settings, SetupPart
from hydra.natstest.settings import TABLE, NatsSettings, NatsSpec, spec_of
from hydra.options.setting_flags import setting_flag
from hydra.system import Footprint, Greeting, Refusal, ServerFootprint, System, SystemSpec
from hydra.system.restart_refusals import why_no_restart

IMPLEMENTATIONS: Final = {
    "nats-py": Footprint(threads=3, files=20, memory_bytes=12_000_000),
    "native": Footprint(10, 16, 2_500_000, further=Footprint(4, 2, 700_000)),
}
SERVER: Final = ServerFootprint(
    processes=2,  # nats-server, and its supervisor
    threads=40,
    files=50,
    connections=1,
    memory_bytes=200_000_000,
    record_bytes=30,
    steps_kept=2,  # the current step and the previous one; see system.py
    late_s=1.0,
    start_s=0.5,
    join_s=0.6,
    back_s=2.0,
)


_SURVIVING: Final = 3
"""The fewest replicas of which a majority is left when one server ends, so the stream keeps all messages."""


def _why_no_restart(scenario: Scenario) -> str:
    """Why the server of this scenario cannot be restarted, or ""."""
    in_memory = "jetstream" in scenario.values_of("mode") and "memory" in scenario.values_of("storage")
    if in_memory and spec_of(scenario).replicas < _SURVIVING:
        return f"the server keeps the stream in memory, and could lose it; use storage file, or {_SURVIVING} replicas"
    return why_no_restart(scenario, spec_of(scenario).servers)


class NatsSystemSpec(SystemSpec):
    """NATS: servers started by Hydra or the user's, with or without JetStream."""

    name = "nats"
    title = "NATS"
    queue = "pending messages"
    settings = NatsSettings
    has_topics = True
    shows_disconnections = tuple(IMPLEMENTATIONS)
    tables = {TABLE: NatsSpec}
    implementations = IMPLEMENTATIONS
    servers = SERVER
    address_key = f"{TABLE}.servers"
    greeting = Greeting("NATS", "a NATS server", rb"INFO \{")
    own_ports = 6  # counted in a network namespace of its own
    server_spec = ServerSpec(demand=Demand(base_cpus=1.0, base_mem=512.0, ports=2))
    elsewhere = (setting_flag(f"{TABLE}.servers", of=NatsSpec),)
    columns = (
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
        ReportColumn(
            name=LOST_BY_SILENCE,
            unit="",
            help="how often a server ended the connection of a subscriber that had not answered its pings (stale "
            "connection). Empty if there was none",
            role="subscriber",
            key=LOST_BY_SILENCE,
        ),
    )
    events = {RESTART: _why_no_restart}
    cannot = {
        "--subject": "Hydra measures with a subject of its own, and cannot use an existing one",
        "--stream": "Hydra measures with a stream of its own, and cannot use an existing one",
    }

    def make(self, scenario: Scenario, deploy: bool, is_local: bool) -> System:
        """See :class:`hydra.natstest.system.NatsSystem`."""
        from hydra.natstest.system import NatsSystem

        return NatsSystem(scenario, deploy=deploy, is_local=is_local)

    def check(self, scenario: Scenario) -> Iterator[Refusal]:
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

    def guarantees(self, scenario: Scenario, settings: Settings) -> str:
        """By the mode, and the stream's settings."""
        nats = NatsSettings.of(settings)
        if nats.mode == "core":
            return "acknowledges nothing and keeps nothing"
        answers = "each message" if nats.publish_acks else "nothing to publishers"
        return f"acknowledges {answers} and keeps {_copies(self.copies_of(scenario))} in {nats.storage}"

    def setup_parts(self, scenario: Scenario) -> Sequence[SetupPart]:
        """The mode, and the properties of streams if some row has one."""
        mode = self.setup_part(scenario, "mode", words={"core": "core NATS", "jetstream": "JetStream"})
        if "jetstream" not in mode.values:
            return [mode]
        answers: Mapping[Figure, str] = {True: "publishes acknowledged", False: "publishes not acknowledged"}
        return [
            mode,
            self.setup_part(scenario, "storage", "{} storage"),
            SetupPart("replicas", (spec_of(scenario).replicas,), "replicas {}"),
            self.setup_part(scenario, "publish_acks", words=answers),
            self.setup_part(scenario, "consumer", "{} consumers"),
            self.setup_part(scenario, "ack_policy", "ack policy {}"),
        ]

    def secrets(self, scenario: Scenario) -> Iterator[str]:
        """Passwords, tokens, keys and credentials that can be read."""
        from hydra.natstest.access import secrets_of

        return secrets_of(spec_of(scenario))

    def users(self, scenario: Scenario) -> Iterator[str]:
        """The value of ``nats.username``, if set."""
        return filter(None, [spec_of(scenario).username])

    def is_secret(self, key: str) -> bool:
        """Whether a key is that of the password or of the token."""
        return key in (f"{TABLE}.password", f"{TABLE}.token")

    def copies_of(self, scenario: Scenario) -> int:
        """The value of ``nats.replicas``."""
        return spec_of(scenario).replicas

    def log_acknowledges(self, settings: Settings) -> bool:
        """Whether publishers request no acknowledgements."""
        return not NatsSettings.of(settings).publish_acks


def _copies(number: int) -> str:
    return "one copy" if number == 1 else f"{number} copies"


SPEC: Final = NatsSystemSpec()
