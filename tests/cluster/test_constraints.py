"""Marathon's operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from hydra.cluster.constraints import describe, parse_constraint, permits, value_of
from hydra.model import Agent, Constraint, Resources


def agent(hostname: str, **attributes: str) -> Agent:
    return Agent(hostname, hostname, attributes, Resources())


A1, A2, B1, BARE = agent("a1", rack="a"), agent("a2", rack="a"), agent("b1", rack="b"), agent("bare")


@pytest.mark.parametrize(
    ("parts", "where", "running", "allowed"),
    [
        # Of the agent alone
        (("rack", "CLUSTER", "a"), A1, (), True),
        (("rack", "CLUSTER", "a"), B1, (), False),
        (("rack", "LIKE", "a|b"), B1, (), True),
        (("hostname", "LIKE", "a"), A1, (), False),  # the whole value has to match
        (("@hostname", "LIKE", "a."), A1, (), True),
        (("rack", "UNLIKE", "a"), A1, (), False),
        (("rack", "UNLIKE", "a"), B1, (), True),
        (("hostname", "UNLIKE", "a"), A1, (), True),
        # No such attribute: only UNLIKE accepts
        (("rack", "UNLIKE", "a"), BARE, (), True),
        (("rack", "LIKE", ".*"), BARE, (), False),
        (("rack", "UNIQUE"), BARE, (), False),
        (("rack", "CLUSTER"), BARE, (), False),
        (("rack", "GROUP_BY"), BARE, (), False),
        (("rack", "MAX_PER", "3"), BARE, (), False),
        # Beside what runs
        (("hostname", "UNIQUE"), A1, (A2, B1), True),
        (("hostname", "UNIQUE"), A1, (A1,), False),
        (("rack", "UNIQUE"), A1, (A2,), False),
        (("rack", "CLUSTER"), A1, (), True),
        (("rack", "CLUSTER"), A1, (A2,), True),
        (("rack", "CLUSTER"), B1, (A2,), False),
        (("hostname", "MAX_PER", "2"), A1, (A1, B1), True),
        (("hostname", "MAX_PER", "2"), A1, (A1, A1), False),
        (("rack", "MAX_PER", "2"), A1, (A1, A2), False),
        (("rack", "GROUP_BY"), A1, (A2,), True),  # no other rack is known yet
        (("rack", "GROUP_BY"), B1, (A2,), True),
        (("rack", "GROUP_BY"), A1, (A2, B1), True),
        (("rack", "GROUP_BY"), A1, (A1, A2, B1), False),
        (("rack", "GROUP_BY"), B1, (A1, A2, B1), True),
        (("rack", "GROUP_BY", "2"), A1, (A2,), False),  # a second rack is waited for
        (("rack", "GROUP_BY", "2"), B1, (A2,), True),
        (("rack", "GROUP_BY", "2"), A1, (A2, B1), True),
    ],
)
def test_an_operator_permits_what_marathon_does(
    parts: Sequence[str], where: Agent, running: Sequence[Agent], allowed: bool
) -> None:
    constraint = parse_constraint(parts)
    assert permits(constraint, where, Counter(value_of(a, constraint.field) for a in running)) is allowed


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (("group",), "a constraint is"),
        (("group", "CLUSTER", "a", "b"), "a constraint is"),
        (("group", "CLUSTER", 3), "a constraint is"),
        ("group:CLUSTER:a", "a constraint is"),
        (("group", "IS", "a"), "unknown operator 'IS': known are UNIQUE"),
        (("", "UNIQUE"), "field must be"),
        (("@region", "UNIQUE"), "field must be"),
        (("hostname", "UNIQUE", "x"), "takes no value"),
        (("hostname", "MAX_PER"), "needs a number"),
        (("hostname", "MAX_PER", "two"), "needs a number"),
        (("hostname", "MAX_PER", "0"), "needs a number"),
        (("rack", "GROUP_BY", "-1"), "number of groups"),
        (("rack", "LIKE"), "needs a regular expression"),
        (("rack", "UNLIKE", ""), "needs a regular expression"),
        (("rack", "LIKE", "a("), "not a regular expression"),
    ],
)
def test_a_value_that_its_operator_cannot_use_is_refused(parts: Sequence[str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_constraint(parts)


def test_a_constraint_is_described_as_it_was_written() -> None:
    assert describe(Constraint("group", "CLUSTER", "x")) == "group CLUSTER x"
    assert describe(Constraint("hostname", "UNIQUE")) == "hostname UNIQUE"
