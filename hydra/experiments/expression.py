"""The expressions of an experiment's file: arithmetic, comparisons, and calls of the functions in scope. Pure.

A figure that is unknown makes the result unknown: None and anything is None, and so is a division by zero. ``a.b`` is
the figure ``b`` of ``a``. Nothing but this can be written: no assignment, no loop, no method.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Final

from hydra.errors import ConfigError

Scope = Mapping[str, object]
"""The values and functions that an expression can name."""

_BINARY: Final[Mapping[type[ast.AST], Callable[..., object]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: lambda one, other: _number(one) * _number(other),
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_COMPARED: Final[Mapping[type[ast.AST], Callable[..., object]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.In: lambda one, several: one in several,
}
_ITEM: Final[Callable[..., object]] = operator.getitem
_ALLOWED: Final = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Subscript, ast.BinOp),
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.USub, ast.Not, ast.IfExp, ast.List, *_BINARY, *_COMPARED),
)
_MOST_CHARACTERS: Final = 500
"""The length of an expression; the parts of a longer one could be nested deeper than Python can follow."""
_ERRORS: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


def _not_computed(text: str, error: Exception) -> ConfigError:
    return ConfigError(f"cannot compute {text}: {error}", "correct the experiment's file")


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that is written correctly; ``names`` are those that its scope must have."""

    text: str
    tree: ast.expr
    names: frozenset[str]

    def value(self, scope: Scope) -> object:
        """Its value.

        Raises:
            ConfigError: the values in scope do not fit it, such as a text in place of a number.
        """
        try:
            return _value(self.tree, scope)
        except _ERRORS as error:
            raise _not_computed(self.text, error) from error


def _is_allowed(node: ast.AST) -> bool:
    match node:
        case ast.Call():
            return isinstance(node.func, ast.Name) and not node.keywords
        case ast.Attribute():
            return not node.attr.startswith("_")
        case ast.Compare():
            return len(node.ops) == 1
    return isinstance(node, _ALLOWED)


@cache
def parsed(text: str) -> Expression:
    """The expression of a text.

    Raises:
        ValueError: it is no expression.
    """
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"is no expression: it has {len(text)} characters, and at most {_MOST_CHARACTERS} are allowed")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:  # ValueError: a null character, or a number of too many digits
        raise ValueError(f"is no expression: {getattr(error, 'msg', error)} in {text}") from error
    for node in ast.walk(tree):
        refused = [each for each in ast.iter_child_nodes(node) if not _is_allowed(each)]
        if refused:
            # An operator has no text of its own.
            raise ValueError(f"has what no expression can have: {ast.unparse(refused[0]) or ast.unparse(node)}")
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return Expression(text, tree.body, names)


def value_of(written: object, scope: Scope) -> object:
    """A value of a file: that of the expression if it begins with ``=``, also within lists and tables.

    Keys whose values are unknown are left out of tables, and tables without keys with them.
    """
    if isinstance(written, str) and written.startswith("="):
        return parsed(written[1:]).value(scope)
    if isinstance(written, Mapping):
        found = {name: value_of(value, scope) for name, value in written.items()}
        return {name: value for name, value in found.items() if value is not None and value != {}}
    return [value_of(value, scope) for value in written] if isinstance(written, list) else written


def text_of(template: str, scope: Scope) -> str:
    """A text with the values of the expressions in its braces, which may have a format behind a colon.

    ``–`` stands for an unknown figure.

    Raises:
        ConfigError: a value cannot be computed, or does not have the format.
    """
    return "".join(
        before + ("" if expression is None else _formatted(parsed(expression).value(scope), form or ""))
        for before, expression, form, _ in Formatter().parse(template)
    )


def _formatted(value: object, form: str) -> str:
    try:
        return "–" if value is None else format(value, form)
    except _ERRORS as error:
        raise _not_computed(f"the format {form} of {value}", error) from error


def in_text(template: str) -> list[str]:
    """The expressions in the braces of a text.

    Raises:
        ValueError: a brace has no other one.
    """
    return [expression for _, expression, _, _ in Formatter().parse(template) if expression is not None]


def combinations(each: Mapping[str, object], scope: Scope) -> Iterator[dict[str, object]]:
    """Every combination of values by name, the last of which changes first; later lists can depend on earlier values.

    Args:
        each: lists of values, or expressions of them, by name.
        scope: what the expressions can name.
    """
    if not each:
        yield {}
        return
    (name, written), *others = each.items()
    found = value_of(written, scope)
    for value in found if isinstance(found, Sequence | Mapping) else (found,):
        for rest in combinations(dict(others), {**scope, name: value}):
            yield {name: value, **rest}


def _value(node: ast.expr, scope: Scope) -> object:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return scope[node.id]
        case ast.List():
            return [_value(each, scope) for each in node.elts]
        case ast.IfExp():
            return _value(node.body if _value(node.test, scope) else node.orelse, scope)
        case ast.Call(func=ast.Name(id=name)):
            function = scope[name]
            if not callable(function):
                raise TypeError(f"{name} is no function")
            return function(*(_value(each, scope) for each in node.args))
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, scope)
        case ast.BoolOp():
            return _either(node, scope)
    return _of_known(node, scope)


def _either(node: ast.BoolOp, scope: Scope) -> object:
    """``a or b``, ``a and b``: the first value that decides."""
    decides = isinstance(node.op, ast.Or)
    found: object = None
    for each in node.values:
        found = _value(each, scope)
        if bool(found) is decides:
            return found
    return found


def _of_known(node: ast.expr, scope: Scope) -> object:
    """The operations whose result is unknown if a value is."""
    match node:
        case ast.Attribute():
            of = _value(node.value, scope)
            return None if of is None else of.get(node.attr) if isinstance(of, Mapping) else _attribute(of, node.attr)
        case ast.Subscript():
            of, index = _value(node.value, scope), _value(node.slice, scope)
            return None if of is None else _ITEM(of, index)
        case ast.UnaryOp():
            negated = _value(node.operand, scope)
            return None if negated is None else operator.neg(_number(negated))
        case ast.Compare(ops=[ast.Eq()]):
            return _value(node.left, scope) == _value(node.comparators[0], scope)
        case ast.Compare(ops=[how], comparators=[other]):
            left, right = _value(node.left, scope), _value(other, scope)
            return None if left is None or right is None else _COMPARED[type(how)](left, right)
        case ast.BinOp():
            left, right = _value(node.left, scope), _value(node.right, scope)
            if left is None or right is None or (isinstance(node.op, ast.Div | ast.FloorDiv) and not right):
                return None
            return _BINARY[type(node.op)](left, right)
    raise TypeError(f"no value of {ast.unparse(node)}")


def _attribute(of: object, name: str) -> object:
    found: object = getattr(of, name)
    if callable(found):
        raise TypeError(f"{name} is no figure")
    return found


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value
