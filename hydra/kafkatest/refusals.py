"""What is wrong with what a scenario asks of brokers and topics, as far as that is seen before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hydra.kafkatest.known import problem
from hydra.kafkatest.settings import TABLE, spec_of
from hydra.model import Figure, Scenario, value_of
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


def refusals(scenario: Scenario) -> Iterator[Refusal]:
    """Every refusal: the key's path, what is wrong, what to try."""
    yield from _replicas(scenario)
    yield from _kill(scenario)
    yield from _names(scenario)


def values(scenario: Scenario, setting: str) -> Iterator[tuple[tuple[str, ...], Figure]]:
    """The values that a setting takes in a scenario, each with the key where it stands."""
    sweep = scenario.sweep
    if setting in sweep.vary:
        yield from ((("sweep", "vary", setting), value) for value in sweep.vary[setting])
    else:
        yield ("settings", setting), value_of(scenario.settings, setting)
    for point in sweep.points:
        if setting in point.settings:
            yield ("sweep", "points", point.name, setting), point.settings[setting]


def _replicas(scenario: Scenario) -> Iterator[Refusal]:
    spec, brokers = spec_of(scenario), scenario.server.count
    if spec.bootstrap:
        return
    asked = [((TABLE, "replication_factor"), spec.replication_factor), *values(scenario, "replication_factor")]
    for key, replicas in asked:
        if isinstance(replicas, int) and replicas > brokers:
            yield (
                key,
                f"{replicas} replicas need as many brokers, and server.count is {brokers}",
                "raise server.count, or name a cluster of yours with --bootstrap",
            )
            return


def _kill(scenario: Scenario) -> Iterator[Refusal]:
    for key, moment in values(scenario, "kill_broker_at"):
        if moment is None:
            continue
        if spec_of(scenario).bootstrap:
            yield key, "brokers of yours are never killed", "leave --bootstrap out: Hydra kills brokers of its own"
            return
        if scenario.server.count < 2:
            what = f"needs at least 2 brokers, and server.count is {scenario.server.count}"
            yield key, what, "raise server.count"
            return


def _names(scenario: Scenario) -> Iterator[Refusal]:
    """A cluster of the user's is asked itself, when the topic is made: it may know others than ours does."""
    spec = spec_of(scenario)
    if spec.bootstrap:
        if spec.broker:
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
