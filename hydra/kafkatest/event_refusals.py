"""Why a scenario cannot have an event that ends a broker, restarts it, or moves a partition."""

from __future__ import annotations

from hydra.kafkatest.settings import KILL, MOVE, ends_a_broker, spec_of
from hydra.model import Scenario
from hydra.system.restart_refusals import why_no_restart


def why_no_kill(scenario: Scenario) -> str:
    """Why no broker of this scenario can be killed, or ""."""
    if spec_of(scenario).bootstrap:
        return "Hydra never kills your own brokers; leave out --servers: Hydra kills only brokers that it started"
    if scenario.server.count < 2:
        return f"the event needs at least 2 brokers, and server.count is {scenario.server.count}; raise server.count"
    return _once(scenario, KILL)


def why_no_move(scenario: Scenario) -> str:
    """Why no partition of this scenario can be moved, or ""."""
    if spec_of(scenario).bootstrap:
        return "Hydra moves no partitions on your own brokers; leave out --servers"
    usual = spec_of(scenario).replication_factor
    replicas = max(scenario.whole_values("replication_factor", usual))
    if scenario.server.count <= replicas:
        return (
            f"the event needs more brokers than replicas ({replicas}), "
            f"and server.count is {scenario.server.count}; raise server.count"
        )
    return _once(scenario, MOVE)


def why_no_return(scenario: Scenario) -> str:
    """Why no broker of this scenario can be restarted, or ""."""
    if ends_a_broker(scenario):
        return f"{KILL!r} and kill_broker_at end a broker for good, and all would have to return; leave them out"
    return why_no_restart(scenario, spec_of(scenario).bootstrap)


def _once(scenario: Scenario, kind: str) -> str:
    return "a step has one such event at most" if sum(e.kind == kind for e in scenario.events) > 1 else ""
