"""What is wrong with what a scenario asks of brokers, topics and tools, as far as it is seen before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hydra.kafkatest.presets import PRESETS
from hydra.kafkatest.setting_catalog import problem
from hydra.kafkatest.settings import TABLE, TOOL, spec_of
from hydra.model import Figure, Scenario
from hydra.system import Refusal

_OURS: Final = frozenset(
    {
        *("advertised.listeners", "controller.listener.names", "inter.broker.listener.name", "listeners"),
        *("broker.id", "controller.quorum.bootstrap.servers", "controller.quorum.voters", "node.id", "process.roles"),
        *("log.dir", "log.dirs", "metadata.log.dir"),
        *("authorizer.class.name", "principal.builder.class", "super.users"),
    }
)
"""Settings by which brokers find each other and their clients find them."""
_OURS_BEGIN: Final = ("sasl.", "ssl.", "security.", "listener.", "early.start.")
_OTHERS: Final = "use another --implementation"


def refusals(scenario: Scenario) -> Iterator[Refusal]:
    """Every refusal: the key's path, what is wrong, what to try."""
    yield from _replicas(scenario)
    yield from _kill(scenario)
    yield from _names(scenario)
    if scenario.client == TOOL:
        yield from _of_tool(scenario)


def _key(scenario: Scenario, setting: str) -> tuple[str, ...]:
    """Where a setting's values stand."""
    if any(setting in point.settings for point in scenario.sweep.points):
        return "sweep", "points", setting
    return ("sweep", "vary", setting) if setting in scenario.sweep.vary else ("settings", setting)


def _replicas(scenario: Scenario) -> Iterator[Refusal]:
    spec, brokers = spec_of(scenario), scenario.server.count
    if spec.bootstrap:
        return
    name = "replication_factor"
    asked: list[tuple[tuple[str, ...], Figure]] = [((TABLE, name), spec.replication_factor)]
    asked += [(_key(scenario, name), replicas) for replicas in scenario.values_of(name)]
    for key, replicas in asked:
        if isinstance(replicas, int) and replicas > brokers:
            yield (
                key,
                f"{replicas} replicas need as many brokers, and server.count is {brokers}",
                "raise server.count, or name a cluster of yours with --bootstrap",
            )
            return


def _kill(scenario: Scenario) -> Iterator[Refusal]:
    if all(moment is None for moment in scenario.values_of("kill_broker_at")):
        return
    key = _key(scenario, "kill_broker_at")
    if spec_of(scenario).bootstrap:
        yield key, "brokers of yours are never killed", "leave --bootstrap out: Hydra kills brokers of its own"
    elif scenario.server.count < 2:
        yield key, f"needs at least 2 brokers, and server.count is {scenario.server.count}", "raise server.count"


def _names(scenario: Scenario) -> Iterator[Refusal]:
    """A cluster of the user's is asked itself, when the topic is made: it may know others than ours does."""
    spec = spec_of(scenario)
    if spec.bootstrap:
        # A preset recommends settings of brokers, too: with a cluster of the user's these are theirs to make.
        recommended = PRESETS[scenario.preset].values if scenario.preset else {}
        if any(f"{TABLE}.broker.{name}" not in recommended for name in spec.broker):
            yield (TABLE, "broker"), "brokers of yours keep their settings", "leave the table or --bootstrap out"
        return
    for name, value in spec.broker.items():
        if name in _OURS or name.startswith(_OURS_BEGIN):
            yield (TABLE, "broker", name), "is Hydra's own to set", "leave it out"
        elif any(wrong := problem("broker", name, value)):
            yield (TABLE, "broker", name), *wrong
    for name, value in spec.topic.items():
        if any(wrong := problem("topic", name, value)):
            yield (TABLE, "topic", name), *wrong


def _of_tool(scenario: Scenario) -> Iterator[Refusal]:
    """What Kafka's own performance tools cannot do."""
    settings, sweep = scenario.settings, scenario.sweep
    if sweep.search is not None:
        yield ("sweep", "search"), "a search needs to know what was lost, and kafka-tool only counts", _OTHERS
    messages = [settings.messages, *sweep.vary.get("messages", ())]
    if sweep.points:
        messages = [point.settings.get("messages", settings.messages) for point in sweep.points]
    elif "messages" in sweep.vary:
        messages = messages[1:]
    if None in messages:
        what = "kafka-tool needs settings.messages"
        yield ("settings", "messages"), what, "say how many records each producer sends: messages = 1000000"
    if settings.message_size_min is not None:
        yield ("settings", "message_size_min"), "records of kafka-tool are all of one size, or lines of a file", _OTHERS
    payloads = {settings.payload, *sweep.vary.get("payload", ())}
    payloads |= {point.settings["payload"] for point in sweep.points if "payload" in point.settings}
    if "json" in payloads:
        yield ("settings", "payload"), "kafka-tool makes no JSON", "write records to a file and use payload lines"
