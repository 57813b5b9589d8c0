"""Checks a scenario's settings of brokers, topics and tools before anything starts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from hydra.kafkatest.jars import conf_folder
from hydra.kafkatest.nodes import DEFAULT_PORT
from hydra.kafkatest.presets import PRESETS
from hydra.kafkatest.settings import MOST_PARTITIONS, TABLE, TOOL, spec_of
from hydra.model import Figure, Scenario
from hydra.system import Refusal
from hydra.system.server_access import AddressError, AddressForm

_RESERVED: Final = frozenset(
    {
        *("advertised.listeners", "controller.listener.names", "inter.broker.listener.name", "listeners"),
        *("broker.id", "controller.quorum.bootstrap.servers", "controller.quorum.voters", "node.id", "process.roles"),
        *("log.dir", "log.dirs", "metadata.log.dir"),
        *("authorizer.class.name", "principal.builder.class", "super.users"),
    }
)
"""Settings by which brokers find each other and their clients find them."""
_RESERVED_BEGIN: Final = ("sasl.", "ssl.", "security.", "listener.", "early.start.")
_NO_SCHEME: Final = "write host:port, and the protocol with --kafka-prop security.protocol=…"
FORM: Final = AddressForm(
    ports={"": DEFAULT_PORT},
    refused={
        f"{sasl}{scheme}": (f"{sasl}{scheme}://: addresses of Kafka have no scheme", _NO_SCHEME)
        for sasl in ("", "sasl_")
        for scheme in ("plaintext", "ssl")
    },
)
_OTHERS: Final = "use another --implementation"
_NOT_OF_TOOL: Final[Mapping[str, Figure]] = {
    "burst": None,
    "receive_rate": None,
    "reconnect_rate": None,
    "payload_seed": 1,
}
"""The settings of all systems that Kafka's performance tools cannot obey, with the value that asks for nothing."""
Scope = Literal["broker", "topic"]
_WHOLE: Final = {"int", "long", "short"}
_TRUTH: Final = ("true", "false")


def refusals(scenario: Scenario) -> Iterator[Refusal]:
    """Every rejected setting: the key's path, what is wrong, what to try."""
    yield from _addresses(scenario)
    yield from _replicas(scenario)
    yield from _kill(scenario)
    yield from _topics(scenario)
    yield from _names(scenario)
    yield from _security(scenario)
    if scenario.client == TOOL:
        yield from _of_tool(scenario)


def _topics(scenario: Scenario) -> Iterator[Refusal]:
    """More partitions in all topics together than one command can name."""
    usual = spec_of(scenario).partitions
    topics = max(scenario.whole_values("topics"))
    partitions = max(scenario.whole_values("partitions", usual))
    if topics > 1 and topics * partitions > MOST_PARTITIONS:
        together = topics * partitions
        what = f"{topics} topics of {partitions} partitions are {together}, above the limit of {MOST_PARTITIONS}"
        others = [scenario.sweep.key_of("partitions"), (TABLE, "partitions")]
        yield scenario.sweep.key_of("topics"), what, "use fewer topics or partitions", others


def _addresses(scenario: Scenario) -> Iterator[Refusal]:
    """Addresses other than ``host`` or ``host:port``."""
    spec = spec_of(scenario)
    named = [("bootstrap", address) for address in spec.bootstrap.split(",") if spec.bootstrap]
    for key, address in [*named, *(("metrics", address) for address in spec.metrics if spec.bootstrap)]:
        try:
            FORM.read(address.strip())
        except AddressError as e:
            yield (TABLE, key), e.what, e.remedy


def _replicas(scenario: Scenario) -> Iterator[Refusal]:
    spec, brokers = spec_of(scenario), scenario.server.count
    if spec.bootstrap:
        return
    name = "replication_factor"
    copies: list[tuple[tuple[str, ...], Figure]] = [((TABLE, name), spec.replication_factor)]
    copies += [(scenario.sweep.key_of(name), replicas) for replicas in scenario.values_of(name)]
    for key, replicas in copies:
        if isinstance(replicas, int) and replicas > brokers:
            yield (
                key,
                f"{replicas} replicas need as many brokers, and server.count is {brokers}",
                "raise server.count, or name your own cluster with --servers",
                [("server", "count")],
            )
            return


def _kill(scenario: Scenario) -> Iterator[Refusal]:
    if all(moment is None for moment in scenario.values_of("kill_broker_at")):
        return
    key = scenario.sweep.key_of("kill_broker_at")
    if not spec_of(scenario).bootstrap and scenario.server.count < 2:
        what = f"needs at least 2 brokers, and server.count is {scenario.server.count}"
        yield key, what, "raise server.count", [("server", "count")]


def _security(scenario: Scenario) -> Iterator[Refusal]:
    """Properties of TLS and logins beside ``tls``, by which Hydra sets them."""
    if spec_of(scenario).tls:
        for name in spec_of(scenario).properties:
            if name.startswith(("sasl.", "ssl.", "security.")):
                yield (TABLE, "properties", name), "is Hydra's own to set with tls", "leave it out"


def _names(scenario: Scenario) -> Iterator[Refusal]:
    """Settings by name; the user's own cluster, which may have others, checks them when the topic is created."""
    spec = spec_of(scenario)
    if spec.bootstrap:
        # A preset recommends settings of brokers too, but users configure their own brokers.
        recommended = PRESETS[scenario.preset].values if scenario.preset else {}
        if any(f"{TABLE}.broker.{name}" not in recommended for name in spec.broker):
            yield (TABLE, "broker"), "Hydra changes no settings of your brokers", "leave out the table or --servers"
        return
    for name, value in spec.broker.items():
        if name in _RESERVED or name.startswith(_RESERVED_BEGIN):
            yield (TABLE, "broker", name), "is Hydra's own to set", "leave it out"
        elif any(wrong := _problem("broker", name, value)):
            yield (TABLE, "broker", name), *wrong
    for name, value in spec.topic.items():
        if any(wrong := _problem("topic", name, value)):
            yield (TABLE, "topic", name), *wrong


def _of_tool(scenario: Scenario) -> Iterator[Refusal]:
    """Settings that Kafka's own performance tools do not support."""
    settings = scenario.settings
    if scenario.sweep.decided:
        yield ("sweep", "search"), "a search needs the lost messages, but kafka-tool only counts messages", _OTHERS
    if None in scenario.values_of("messages"):
        what = "kafka-tool needs settings.messages"
        yield ("settings", "messages"), what, "set the number of records of each producer: messages = 1000000"
    for name, usual in _NOT_OF_TOOL.items():
        if any(value != usual for value in scenario.values_of(name)):
            yield scenario.sweep.key_of(name), "kafka-tool has no such setting", f"leave it out, or {_OTHERS}"
    if settings.message_size_min is not None:
        yield ("settings", "message_size_min"), "kafka-tool sends records of one size, or lines of a file", _OTHERS
    if "json" in (settings.payload, *scenario.values_of("payload")):
        yield ("settings", "payload"), "kafka-tool makes no JSON", "write records to a file and use payload lines"


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """A setting: its type by Kafka's name, and its possible values: ``least..most``, ``a|b|c``, "" for any."""

    type: str
    valid: str = ""

    def problem(self, value: str) -> str:
        """Why the value is wrong, "" if it may be right."""
        if self.type == "boolean":
            return "" if value.strip().lower() in _TRUTH else "must be true or false"
        if self.type in _WHOLE and not re.fullmatch(r"\s*[+-]?\d+\s*", value):
            return "must be a whole number"
        if self.type in _WHOLE or self.type == "double":
            try:
                number = float(value)
            except ValueError:
                return "must be a number"
            least, _, most = self.valid.partition("..")
            if (least and number < float(least)) or (most and number > float(most)):
                return f"must be at least {least}{f' and at most {most}' if most else ''}"
        elif self.valid and value not in self.valid.split("|"):
            return f"must be one of {', '.join(self.valid.split('|'))}"
        return ""


def _problem(scope: Scope, name: str, value: str) -> tuple[str, str]:
    """What is wrong with a setting of a broker or a topic, and what to try; two empty texts if nothing is."""
    known = _settings(conf_folder())[scope]
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        return f"Kafka has no setting of this name for a {scope}", f"did you mean {near[0]}?" if near else "remove it"
    what = known[name].problem(value)
    return (f"{what}, not {value!r}", "") if what else ("", "")


@cache
def _settings(conf: Path) -> dict[Scope, dict[str, KnownSetting]]:
    """All settings of brokers and of topics, by their names."""
    found: dict[Scope, dict[str, KnownSetting]] = {"broker": {}, "topic": {}}
    scope: Scope = "broker"
    for line in (conf / "settings.txt").read_text().splitlines():
        if line.startswith("["):
            scope = "topic" if line == "[topic]" else "broker"
        elif line and not line.startswith("#"):
            name, kind, *valid = line.split()
            found[scope][name] = KnownSetting(kind, *valid)
    return found
