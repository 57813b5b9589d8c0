"""Marathon's placement constraints as rules for Kubernetes' scheduler. Pure.

Every operator except UNLIKE refuses an agent without the attribute. Each rule that looks at other Pods therefore also
requires the label on the node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra.engine.placement import permits, value_of
from hydra.kubernetes.nodes import HOSTNAME, Json
from hydra.model import Agent, Constraint, Launch

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_PREFERENCE: Final = 100
"""The greatest weight that Kubernetes accepts."""

_KEY: Final = re.compile(r"(?:[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?")
_PLAIN: Final = re.compile(r"(?:[-_A-Za-z0-9]|\\[-_.])*")
_GROUP: Final = re.compile(r"\((?:\?:)?([^()]*)\)")


@dataclass(frozen=True, slots=True)
class AffinityRules:
    """The part of a Pod's ``spec`` that restricts where the Pod may run.

    Attributes:
        affinity: ``spec.affinity``.
        spread: ``spec.topologySpreadConstraints``.
    """

    affinity: Json
    spread: list[Json]


def uneven(launches: Sequence[Launch], nodes: Sequence[Agent]) -> set[str]:
    """The roles whose GROUP_BY is less even than the scheduler demands, so it would let some Pods wait for ever.

    The scheduler compares each value of the field with the emptiest value, even if other Pods fill that one's nodes.
    Placement fills the values with free nodes, so it must choose the value for these roles, and for each of their
    GROUP_BYs: if one field has a required value, the scheduler counts only those nodes for the other fields.

    Args:
        launches: all groups of the run that exist or are about to be created.
        nodes: the nodes over which the scheduler spreads Pods, with or without free resources.
    """
    found: set[str] = set()
    for role, constraints in dict.fromkeys((each.group.role, each.group.constraints) for each in launches):
        eligible = [node for node in nodes if all(permits(c, node, {}) for c in constraints)]
        on = Counter(each.agent.id for each in launches if each.group.role == role)
        for field, least in [(c.field, int(c.value or 0)) for c in constraints if c.operator == "GROUP_BY"]:
            per_value: Counter[str | None] = Counter()
            for node in eligible:
                per_value[value_of(node, field)] += on[node.id]
            fewest = min(per_value.values(), default=0) if len(per_value) >= least else 0
            if max(per_value.values(), default=0) > fewest + 1:
                found.add(role)
    return found


def rules(
    constraints: Sequence[Constraint], agent: Agent, match: Mapping[str, str], *, decided: bool = False
) -> AffinityRules:
    """The rules for one Pod.

    Args:
        constraints: the constraints of the Pod's group.
        agent: the node that placement chose: required if a constraint has no translation, otherwise preferred.
        match: labels of the Pods of the same role and run, this one among them.
        decided: whether each GROUP_BY requires the node's own value instead of the scheduler's choice.
    """
    translated = [
        _kept(constraint, agent) if decided and constraint.operator == "GROUP_BY" else _translated(constraint, match)
        for constraint in constraints
    ]
    known = [rule for rule in translated if rule is not None]
    spread = _distinct(rule.spread for rule in known)
    # The API server rejects two spreads over one label.
    if len(known) < len(translated) or len({s["topologyKey"] for s in spread}) < len(spread):
        return AffinityRules({"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [_named(agent.id)]}}}, [])
    node: Json = {_PREFERRED: [{"weight": _PREFERENCE, "preference": _named(agent.id)}]}
    if expressions := _distinct(rule.node for rule in known):
        node[_REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    affinity: Json = {"nodeAffinity": node}
    if together := _distinct(rule.together for rule in known):
        affinity["podAffinity"] = {_REQUIRED: together}
    if apart := _distinct(rule.apart for rule in known):
        affinity["podAntiAffinity"] = {_REQUIRED: apart}
    return AffinityRules(affinity, spread)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One constraint: what it requires of the node, and which Pods the node must have or must not have."""

    node: Json
    together: Json | None = None
    apart: Json | None = None
    spread: Json | None = None


def _key(constraint: Constraint) -> str:
    return HOSTNAME if constraint.field in ("hostname", "@hostname") else constraint.field


def _kept(constraint: Constraint, agent: Agent) -> _Rule | None:
    """The rule that requires the field's value on the agent that placement chose."""
    key, value = _key(constraint), value_of(agent, constraint.field)
    if value is None or not _KEY.fullmatch(key):
        return None
    return _Rule({"key": key, "operator": "In", "values": [value]})


def _translated(constraint: Constraint, match: Mapping[str, str]) -> _Rule | None:
    key = _key(constraint)
    if not _KEY.fullmatch(key):
        return None
    exists: Json = {"key": key, "operator": "Exists"}
    others: Json = {"topologyKey": key, "labelSelector": {"matchLabels": dict(match)}}
    match constraint.operator, constraint.value:
        case "CLUSTER", "":
            # The first Pod of a role may run anywhere: Kubernetes lets it pass if it matches its own rule.
            return _Rule(exists, together=others)
        case "CLUSTER", value:
            return _Rule({"key": key, "operator": "In", "values": [value]}) if _VALUE.fullmatch(value) else None
        case "LIKE", ".*":
            return _Rule(exists)
        case ("LIKE" | "UNLIKE") as operator, value:
            values = alternatives(value)
            # NotIn accepts a node without the label, as UNLIKE does.
            return (
                _Rule({"key": key, "operator": "In" if operator == "LIKE" else "NotIn", "values": values})
                if (values)
                else None
            )
        case ("UNIQUE", _) | ("MAX_PER", "1"):
            return _Rule(exists, apart=others)
        case "GROUP_BY", value:
            spread = {
                "maxSkew": 1,
                **others,
                "whenUnsatisfiable": "DoNotSchedule",
                # Tainted nodes that these Pods may not use do not count, or they would block the others.
                "nodeTaintsPolicy": "Honor",
            }
            return _Rule(exists, spread={**spread, "minDomains": int(value)} if value else spread)
    return None


def alternatives(expression: str) -> list[str]:
    """The values that a regular expression such as ``r1|r2`` or ``(r1|r2)`` stands for, sorted.

    Empty if the expression is more than alternatives, or if one of them cannot be a label's value.
    """
    grouped = _GROUP.fullmatch(expression)
    parts = (grouped[1] if grouped else expression).split("|")
    if not all(_PLAIN.fullmatch(part) for part in parts):
        return []
    values = {part.replace("\\", "") for part in parts}
    return sorted(values) if all(_VALUE.fullmatch(value) for value in values) else []


def _named(node: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


def _distinct(parts: Iterable[Json | None]) -> list[Json]:
    found: list[Json] = []
    for part in parts:
        if part is not None and part not in found:
            found.append(part)
    return found
