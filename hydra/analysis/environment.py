"""What else differs between runs: hosts, kernels, libraries, settings. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is not the same in all runs: its dotted key, and the value in each run as text, "" where unknown."""

    what: str
    values: tuple[str, ...]


def differences(facts: Sequence[Mapping[str, object]]) -> list[Difference]:
    """Every fact that differs, in the order of the runs' own.

    Args:
        facts: of each run, as JSON has them: tables in tables.
    """
    flat = [dict(_flat(of_run)) for of_run in facts]
    keys = dict.fromkeys(key for of_run in flat for key in of_run)
    values = {key: tuple(of_run.get(key, "") for of_run in flat) for key in keys}
    return [Difference(key, found) for key, found in values.items() if len(set(found)) > 1]


def _flat(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        if value and all(isinstance(each, Mapping) for each in value):
            for index, each in enumerate(value):
                yield from _flat(each, f"{key}.{index}")
        else:
            yield key, ", ".join(map(str, value))
    elif value is not None:
        yield key, str(value)
