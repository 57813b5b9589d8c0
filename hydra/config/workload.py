"""What a scenario's messages, topics, load, events and connections can be together."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import Final

from hydra.client.linux_process import opened
from hydra.config.layers import Layers, Toml
from hydra.errors import Key, RefusedError
from hydra.model import (
    EVENT_KINDS,
    HEADER_BYTES,
    IMPAIRMENTS,
    MAX_IMPAIRMENTS,
    MAX_POINTS,
    Scenario,
    Settings,
    SettingValue,
    with_values,
)
from hydra.model.base import MOST_RATE
from hydra.model.settings import sizes_text, without_units
from hydra.sweep import plan_of
from hydra.system import Refusal, SystemSpec

MOST_ORDERED: Final = 4_000_000
"""The most keys of all topics together, of which a subscriber keeps the last sequence: 32 MB for each publisher."""
_SIZES = "message_sizes"
_USUAL: Mapping[str, SettingValue] = {"topics": 1, "keys": 0, _SIZES: ""}
_WITH_SIZES = ("zeros", "random")


def without_replaced_size(layers: Layers) -> None:
    """Removes the size of a file's messages if the user gives ranges of sizes, which stand in its place."""
    is_replaced = layers.is_replaced("settings", _SIZES) or layers.is_replaced("sweep", "vary", _SIZES)
    if is_replaced and not layers.is_replaced("settings", "message_size"):
        layers.remove("settings", "message_size")


def with_texts(data: Toml) -> None:
    """Converts ranges of sizes, which are lists or have units, to the texts of the model, in place."""
    settings, sweep = data.get("settings"), data.get("sweep")
    if isinstance(settings, dict) and isinstance(settings.get(_SIZES), list | str):
        data["settings"] = {**settings, _SIZES: _text(("settings", _SIZES), settings[_SIZES])}
    vary = sweep.get("vary") if isinstance(sweep, dict) else None
    if isinstance(vary, dict) and isinstance(vary.get(_SIZES), list):
        key: Key = ("sweep", "vary", _SIZES)
        texts = [
            _text((*key, n), each) if isinstance(each, list | str) else each for n, each in enumerate(vary[_SIZES])
        ]
        data["sweep"] = {**data["sweep"], "vary": {**vary, _SIZES: texts}}


def _text(key: Key, ranges: list[object] | str) -> str:
    if isinstance(ranges, str):
        return without_units(ranges)
    try:
        return sizes_text(ranges)
    except ValueError as e:
        raise RefusedError(key, str(e)) from e


def refused_traffic(spec: SystemSpec, scenario: Scenario) -> Iterator[Refusal]:
    """Topics, keys and sizes that the scenario's system or clients cannot have."""
    if spec.identity.implementations[scenario.client].program == "tool":
        for name, usual in _USUAL.items():
            if any(value != usual for value in scenario.values_of(name)):
                what = f"{scenario.client} sends to one topic, without keys, in one size"
                yield scenario.sweep.key_of(name), what, "leave it out, or choose another client"
    obeyed = spec.delivery(scenario, scenario.settings).traffic
    if "topics" not in obeyed and any(value != 1 for value in scenario.values_of("topics")):
        yield scenario.sweep.key_of("topics"), f"clients of system {spec.identity.name} have one topic", "leave it out"
    if "keys" not in obeyed and any(scenario.values_of("keys")):
        yield scenario.sweep.key_of("keys"), f"messages of system {spec.identity.name} have no keys", "leave it out"
    if "topics" in obeyed and "wildcard" not in obeyed and any(scenario.values_of("wildcard")):
        what = f"subscribers of system {spec.identity.name} have no patterns that leave the order of topics known"
        yield scenario.sweep.key_of("wildcard"), what, "leave it out: without topics_per_client they have all topics"
    chosen = max(scenario.whole_values("topics_per_client"))
    if chosen > max(scenario.whole_values("topics")):
        what = f"{chosen} topics of a subscriber are more than topics, {max(scenario.whole_values('topics'))}"
        yield scenario.sweep.key_of("topics_per_client"), what, "raise topics, or lower it"
    if chosen and any(scenario.values_of("wildcard")):
        what = "wildcard stands for all topics, and topics_per_client for some"
        yield scenario.sweep.key_of("wildcard"), what, "remove one of the two"
    if any(scenario.values_of(_SIZES)):
        yield from _of_sizes(scenario)
    ordered = max(scenario.whole_values("topics")) * max(scenario.whole_values("keys"))
    if ordered > MOST_ORDERED:
        what = f"topics × keys are {ordered}, and a subscriber can check the order of {MOST_ORDERED} for each publisher"
        yield scenario.sweep.key_of("keys"), what, "use fewer topics or keys"
    for settings in _rows(scenario):
        if settings.topics > 1:
            yield from _of_topics(spec, scenario, settings)


def _of_sizes(scenario: Scenario) -> Iterator[Refusal]:
    for name, usual in (("message_size", (HEADER_BYTES,)), ("message_size_min", (None,)), ("payload", _WITH_SIZES)):
        if any(value not in usual for value in scenario.values_of(name)):
            yield scenario.sweep.key_of(name), f"message_sizes allows no other {name}", "remove one of the two"


def _of_topics(spec: SystemSpec, scenario: Scenario, settings: Settings) -> Iterator[Refusal]:
    key = scenario.sweep.key_of("topics")
    delivery = spec.delivery(scenario, settings)
    if delivery.group:
        what = "members of a consumer group would need all topics to share the messages"
        yield key, what, "use topics = 1, or leave out the group"
    if delivery.log is not None and delivery.log.read_after:
        yield key, "subscribers that read stored messages read one topic", "use topics = 1, or read live"
    if settings.chosen_topics < settings.topics and delivery.log_acknowledges:
        what = "only the growth of the log acknowledges messages, which does not show their topics"
        key = scenario.sweep.key_of("topics_per_client")
        yield key, what, "leave it out, or let the servers acknowledge each message"


def _rows(scenario: Scenario) -> Iterable[Settings]:
    """The settings of rows: those of the scenario, with what each row changes."""
    yield scenario.settings
    for given in plan_of(scenario).given():
        try:
            yield with_values(scenario.settings, given.settings)
        except ValueError:
            continue  # only possible together with other values of its row, which are checked elsewhere


_BINS: Final = MAX_POINTS // 2
"""The maximum number of bins of recorded times; each bin becomes two points."""


_CLIENT: Final[Key] = ("client",)
_READ: Final[Key] = ("settings", "read")
_LINE: Final = 1000
"""More characters than a line of two numbers has."""


def with_recorded(scenario: Scenario) -> Scenario:
    """The scenario with the points of its recorded load."""
    load = scenario.load
    if load.shape != "recorded" or load.points:
        return scenario
    points = recorded(Path(load.file), scenario.sweep.longest_s)
    try:
        return replace(scenario, load=replace(load, points=points))
    except ValueError as e:
        raise RefusedError(("load", "file"), f"{load.file}: {e}", "times are seconds, rates messages/s") from e


def recorded(path: Path, duration_s: float) -> tuple[tuple[float, float], ...]:
    """The points (s, messages/s) of a recorded load.

    A file with one column has the time (s) of a message in each line. A file with two columns has times and rates
    (messages/s), between which the rate changes linearly. Times count from the first one. A first line without numbers
    is ignored.

    Raises:
        RefusedError: the file cannot be read, or has no recorded load.
    """
    key = ("load", "file")
    try:
        with TextIOWrapper(opened(path), encoding="utf-8", newline="") as file:
            # A line is read in parts, because a file that is no CSV may have no end of a line.
            parts = iter(lambda: file.readline(_LINE), "")
            lines = [line for line in csv.reader(map(_whole, parts)) if line]
    except (OSError, ValueError, csv.Error) as e:
        what = e.strerror if isinstance(e, OSError) else "is no CSV in UTF-8"
        raise RefusedError(key, f"{path}: {what}", "name a file of times, or of times and rates") from e
    if lines and not _numbers(lines[0]):
        lines = lines[1:]
    rows = [_numbers(line) for line in lines]
    width = len(rows[0]) if rows else 0
    for number, row in enumerate(rows, 1):
        if len(row) != width or width not in (1, 2):
            raise RefusedError(
                key,
                f"{path}: line {number} must have as many numbers as the first line: one or two",
                "write t or t,rate",
            )
    if not rows:
        raise RefusedError(key, f"{path} has no line with numbers", "write t or t,rate")
    rows = sorted(rows) if width == 1 else rows
    begin = rows[0][0]
    if width == 2:
        points = tuple((row[0] - begin, row[1]) for row in rows)
        if any(b[0] < a[0] for a, b in pairwise(points)):
            raise RefusedError(key, f"{path}: the times do not rise", "sort the lines by their time")
        if len(points) > MAX_POINTS:
            raise RefusedError(
                key, f"{path} has {len(points)} lines, above the limit of {MAX_POINTS}", "use fewer lines"
            )
        if any(not 0 <= rate <= MOST_RATE for _, rate in points) or not any(rate for _, rate in points):
            raise RefusedError(key, f"{path} has a rate below 0 or above 1e9, or none above 0", "rates are messages/s")
        return points
    # The times are counted in bins of at least 1 s, at most as many as a load may have.
    length = max(1.0, math.ceil(min(rows[-1][0] - begin, duration_s) / _BINS))
    counts: dict[int, int] = {}
    for (at,) in rows:
        counts[int((at - begin) // length)] = counts.get(int((at - begin) // length), 0) + 1
    bins = min(max(counts) + 1, _BINS)
    return tuple((k * length + half * length, counts.get(k, 0) / length) for k in range(bins) for half in (0, 1))


def _whole(line: str) -> str:
    """The line; rejects one that is too long for two numbers.

    Raises:
        ValueError: it is too long.
    """
    if len(line) >= _LINE:
        raise ValueError(f"a line has {_LINE} characters or more")
    return line


def _numbers(line: list[str]) -> list[float]:
    try:
        found = [float(cell) for cell in line]
    except ValueError:
        return []
    return found if all(map(math.isfinite, found)) else []


def check_connections(spec: SystemSpec, scenario: Scenario) -> None:
    """Rejects a connect rate that this scenario cannot have.

    Raises:
        RefusedError: the scenario is rejected; the text gives the reason.
    """
    rates = scenario.values_of("connect_rate")
    if rates == (None,):
        if scenario.table == "connections":
            raise RefusedError(("settings", "connect_rate"), "is missing", "give --connect-rate", [("table",)])
        return
    place = scenario.sweep.key_of("connect_rate")
    if spec.identity.implementations[scenario.client].program == "tool":
        raise RefusedError(
            place, f"client {scenario.client} does not report how it connects", "use another client", [_CLIENT]
        )
    if any(value == "stored" for value in scenario.values_of("read")):
        raise RefusedError(place, "is of subscribers that connect before the step", "use read = 'live'", [_READ])


def check_workload(spec: SystemSpec, scenario: Scenario) -> None:
    """Rejects a load, event or objective that this scenario cannot have.

    Raises:
        RefusedError: the scenario is rejected; the text gives the reason.
    """
    if not scenario.has_time_series:
        return
    place = _place(scenario)
    if spec.identity.implementations[scenario.client].program == "tool":
        raise RefusedError(place, f"client {scenario.client} does not report each second", "use another", [_CLIENT])
    if scenario.sweep.decided:
        what = "is of steps at a given rate, and this scenario searches"
        raise RefusedError(place, what, f"remove [sweep.{scenario.sweep.key}]")
    if any(value == "stored" for value in scenario.values_of("read")):
        raise RefusedError(place, "is of messages in flight, and read is 'stored'", "use read = 'live'", [_READ])
    if scenario.settings.messages is not None:
        raise RefusedError(
            ("settings", "messages"), "the step would end before the load does", "leave out settings.messages", [place]
        )
    rates = scenario.values_of("rate")
    shaped = scenario.load.shape not in ("constant", "recorded") or any(e.kind == "burst" for e in scenario.events)
    if shaped and "max" in rates:
        raise RefusedError(("settings", "rate"), "a load cannot have parts of the rate 'max'", "set a number", [place])
    if (shaped or scenario.load.shape == "recorded") and scenario.native.pacing == "bursty":
        raise RefusedError(("native", "pacing"), "is of a rate that does not change", "use 'smooth'", [place])
    _check_events(spec, scenario)
    if scenario.slo.objectives() and "max" in rates and scenario.load.shape != "recorded":
        raise RefusedError(
            ("settings", "rate"),
            "with rate 'max' messages have no due times from which latency could be counted",
            "give --rate",
            [("slo",)],
        )


def _place(scenario: Scenario) -> tuple[str, ...]:
    """The first key of the scenario that needs a time series."""
    if scenario.load.shape != "constant":
        return ("load",)
    return ("events",) if scenario.events else ("slo",) if scenario.slo.objectives() else ("sweep", "seconds")


def _check_events(spec: SystemSpec, scenario: Scenario) -> None:
    shortest_s = scenario.sweep.shortest_s
    for index, event in enumerate(scenario.events):
        key = ("events", index)
        if event.kind not in (*EVENT_KINDS, *spec.settings.events):
            what = f"{event.kind!r} is no event of system {spec.identity.name}"
            raise RefusedError((*key, "kind"), what, f"use {', '.join((*EVENT_KINDS, *spec.settings.events))}")
        if event.at_s >= shortest_s:
            what = f"{event.at_s:g} is after the end of the step, which is {shortest_s:g} s long"
            raise RefusedError((*key, "at_s"), what, "let the event happen earlier, or raise sweep.duration_s")
        if event.kind in spec.settings.events and (why := spec.settings.events[event.kind].why_not(scenario)):
            raise RefusedError((*key, "kind"), f"{event.kind!r} cannot be made: {why}")
        if event.kind in IMPAIRMENTS and min(clients for _, clients in scenario.sizes) < 2:
            raise RefusedError(
                (*key, "kind"), f"{event.kind!r} is of a part of the subscribers", "use 2 clients or more"
            )
    if len([event for event in scenario.events if event.kind in IMPAIRMENTS]) > MAX_IMPAIRMENTS:
        raise RefusedError(
            ("events",), f"there are more than {MAX_IMPAIRMENTS} in which subscribers change", "leave out some"
        )
    if len({event.fraction for event in scenario.events if event.kind in IMPAIRMENTS}) > 1:
        what = "differs between events, but all events affect the same subscribers"
        raise RefusedError(("events",), f"fraction {what}", "give all events the same fraction")
