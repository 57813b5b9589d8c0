"""The expressions of an experiment's file: what they compute, unknown figures, and what they cannot have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hydra.errors import ConfigError
from hydra.experiments.expression import combinations, parsed, text_of, value_of
from hydra.experiments.operations import OPERATIONS

SCOPE: dict[str, Any] = {
    **OPERATIONS,
    "size": 250,
    "unknown": None,
    "row": {"rate": 10.0, "late": None, "name": "x"},
    "clients": [{"rate": 1.0}, {"rate": 3}, {"other": 5.0}],
    "servers": {"1": {"in": 1.0, "copy": 2.0}, "2": {"in": 5.0}, "3": {}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * size // 100 + 1", 6),
        ("-row.rate / 4", -2.5),
        ("row.rate / 0", None),
        ("row.rate // 0", None),
        ("row.late * 2 - 1", None),
        ("row.missing.deeper", None),
        ("unknown < 3", None),
        ("size == 250 and not unknown", True),
        ("unknown or size", 250),
        ("'big' if size >= 100 else 'small'", "big"),
        ("row.name in ['x', 'y']", True),
        ("[size, 1][1]", 1),
        ("total(clients, 'rate')", 4.0),
        ("mean(clients, 'rate')", 2.0),
        ("total(clients, 'nothing')", None),
        ("least(clients, 'rate') + most(clients, 'rate')", 4.0),
        ("mean_of(servers, ['in', 'copy'])", 4.0),
        ("first(unknown, row.late, 7)", 7),
        ("time_for(1_000_000, 3)", 1560.0),
        ("time_for(1_000_000_000, 1)", 86_400.0),
    ],
)
def test_an_expression_has_a_value_unless_a_figure_is_unknown(text: str, value: object) -> None:
    assert parsed(text).value(SCOPE) == value


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1 +", "is no expression"),
        ("size = 3", "is no expression"),
        ("row.get('rate')", "has what no expression can have: row.get"),
        ("row.__class__", "row.__class__"),
        ("(lambda: 1)()", "has what no expression can have"),
        ("[each for each in clients]", "has what no expression can have"),
        ("1 < size < 3", "has what no expression can have"),
        ("round(number=1)", "has what no expression can have"),
        ("9**9**9", "has what no expression can have: 9 ** 9"),
        ("size % 2", "has what no expression can have: size % 2"),
        ("1+" * 5000 + "1", "has 10001 characters, and at most 500"),
        ("\0", "is no expression"),
    ],
)
def test_nothing_else_is_an_expression(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=re.escape(what)):
        parsed(text)


@pytest.mark.parametrize(
    "text", ["'a' + 1", "'a' * 99", "size('x')", "[1][2]", "-row.name", "row.name.format", "-" * 490 + "1"]
)
def test_values_that_do_not_fit_are_an_error_with_the_expression(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot compute "):
        parsed(text).value(SCOPE)


@pytest.mark.parametrize("template", ["{1.5:d}", "{clients:>3}", "{size / 'x'}"])
def test_a_text_whose_value_or_format_does_not_fit_is_an_error(template: str) -> None:
    with pytest.raises(ConfigError, match="cannot compute "):
        text_of(template, SCOPE)


def test_only_texts_with_an_equals_sign_are_expressions_in_values() -> None:
    written = {
        "rate": "max",
        "size": "=size",
        "list": [["=size", 1]],
        "late": "=unknown",
        "table": {"none": "=unknown"},
    }
    assert value_of(written, SCOPE) == {"rate": "max", "size": 250, "list": [[250, 1]]}


def test_texts_have_values_in_braces_with_their_format() -> None:
    assert text_of("{1000 * size:,} of {row.name}, {row.late:.1f} late", SCOPE) == "250,000 of x, – late"


def test_the_last_value_changes_first_and_can_depend_on_those_before() -> None:
    each = {"brokers": [1, 2], "replicas": "=range(1, brokers + 1)"}
    assert [tuple(found.values()) for found in combinations(each, SCOPE)] == [(1, 1), (2, 1), (2, 2)]


def test_every_function_is_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
    functions = page.partition("| function | value |")[2]
    assert [name for name in (*OPERATIONS, "records", "option") if not re.search(rf"\b{name}\b", functions)] == []
