"""What can happen in the middle of a step, beside what can happen to every system."""

from __future__ import annotations

from typing import Final

from hydra.kafkatest.settings import spec_of
from hydra.model import EventSpec, Scenario, Settings, with_values

KILL: Final = "kill_server"
"""The broker that leads the first partition is killed."""
MOVE: Final = "move_partition"
"""The first partition is moved to other brokers: the next ones in the order of their ids."""
_AT_ONCE: Final = 1e-9
_SETTING: Final = {KILL: "kill_broker_at", MOVE: "move_partition_at"}


def no_kill(scenario: Scenario) -> str:
    """Why no broker of this scenario can be killed, or ""."""
    if spec_of(scenario).bootstrap:
        return "brokers of yours are never killed; leave --bootstrap out: Hydra kills brokers of its own"
    if scenario.server.count < 2:
        return f"it needs at least 2 brokers, and server.count is {scenario.server.count}; raise it"
    return _once(scenario, KILL)


def no_move(scenario: Scenario) -> str:
    """Why no partition of this scenario can be moved, or ""."""
    if spec_of(scenario).bootstrap:
        return "topics on brokers of yours stay where they are; leave --bootstrap out"
    usual = spec_of(scenario).replication_factor
    replicas = max(int(str(value or usual)) for value in scenario.values_of("replication_factor"))
    if scenario.server.count <= replicas:
        return f"it needs more brokers than replicas, {replicas}, and server.count is {scenario.server.count}; raise it"
    return _once(scenario, MOVE)


def _once(scenario: Scenario, kind: str) -> str:
    return "a step has one such event at most" if sum(e.kind == kind for e in scenario.events) > 1 else ""


def disturbed(settings: Settings, event: EventSpec, duration_s: float) -> Settings:
    """The settings of a step with that event."""
    return with_values(settings, {_SETTING[event.kind]: max(event.at_s / duration_s, _AT_ONCE)})
