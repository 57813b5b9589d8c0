"""Marathon's placement constraints. Pure.

Semantics: docs/docs/constraints.md of https://github.com/d2iq-archive/marathon. An agent without the attribute is
refused by every operator except UNLIKE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast, get_args

from hydra.model import Agent, Constraint, Operator

OPERATORS: Final[tuple[str, ...]] = get_args(Operator)

STILL_OPEN: Final[frozenset[Operator]] = frozenset({"GROUP_BY"})
"""Operators that may accept later what they refuse now; any other refuses for good while groups only get more."""

_COUNT: Final = re.compile(r"[1-9]\d*")


def parse_constraint(parts: Sequence[str]) -> Constraint:
    """The constraint written as ``["group", "CLUSTER", "cpu4-mem16"]``; the value may be absent.

    Raises:
        ValueError: it is malformed, or its operator cannot use its value.
    """
    if isinstance(parts, str) or not 2 <= len(parts) <= 3 or not all(isinstance(part, str) for part in parts):
        raise ValueError(f'a constraint is ["field", "OPERATOR", "value"], all of them strings, not {parts!r}')
    if parts[1] not in OPERATORS:
        raise ValueError(f"unknown operator {parts[1]!r}: known are {', '.join(OPERATORS)}")
    constraint = Constraint(parts[0], cast("Operator", parts[1]), *parts[2:])
    check(constraint)
    return constraint


def check(constraint: Constraint) -> None:
    """Refuses a constraint whose operator cannot use its value.

    Raises:
        ValueError: the text says what the operator needs.
    """
    name, value = describe(constraint), constraint.value
    if not constraint.field or (constraint.field.startswith("@") and constraint.field != "@hostname"):
        raise ValueError(f"{name}: the field must be hostname, @hostname or an attribute, not {constraint.field!r}")
    match constraint.operator:
        case "UNIQUE":
            if value:
                raise ValueError(f"{name}: UNIQUE takes no value")
        case "GROUP_BY":
            if value and not _COUNT.fullmatch(value):
                raise ValueError(f"{name}: GROUP_BY takes no value, or the number of groups to expect, not {value!r}")
        case "MAX_PER":
            if not _COUNT.fullmatch(value):
                raise ValueError(f"{name}: MAX_PER needs a number of at least 1, not {value!r}")
        case "LIKE" | "UNLIKE":
            if not value:
                raise ValueError(f"{name}: {constraint.operator} needs a regular expression")
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"{name}: {value!r} is not a regular expression: {error}") from error
        case "CLUSTER":
            pass


def describe(constraint: Constraint) -> str:
    """The constraint as its author wrote it, without brackets."""
    return " ".join(part for part in (constraint.field, constraint.operator, constraint.value) if part)


def value_of(agent: Agent, field: str) -> str | None:
    """What a constraint on ``field`` sees of the agent; None where the agent has no such attribute."""
    if field in ("hostname", "@hostname"):
        return agent.hostname
    return agent.attributes.get(field)


def permits(constraint: Constraint, agent: Agent, running: Mapping[str | None, int]) -> bool:
    """Whether one more group of a role may run on the agent.

    Args:
        constraint: one that ``check`` accepts.
        agent: where it would run.
        running: groups of the same role that run already, per value of the constraint's field. Empty
            leaves what the constraint demands of the agent itself.
    """
    value = value_of(agent, constraint.field)
    if value is None:
        return constraint.operator == "UNLIKE"
    match constraint.operator:
        case "LIKE":
            return re.fullmatch(constraint.value, value) is not None
        case "UNLIKE":
            return re.fullmatch(constraint.value, value) is None
        case "UNIQUE":
            return running.get(value, 0) == 0
        case "MAX_PER":
            return running.get(value, 0) < int(constraint.value)
        case "CLUSTER":
            # Without a value the first group decides it.
            return constraint.value in ("", value) and all(other == value for other in running)
        case "GROUP_BY":
            if value not in running:
                return True
            enough = len(running) >= int(constraint.value or 0)
            return enough and running[value] == min(running.values())
