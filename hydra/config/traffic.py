"""Topics, keys and ranges of sizes: their forms in a file, and what the system, or its clients, cannot have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hydra.config.layers import Layers
from hydra.config.toml import Toml
from hydra.errors import Key, RefusedError
from hydra.model import HEADER_BYTES, Scenario, Settings, SettingValue, with_values
from hydra.model.size_ranges import sizes_text, without_units
from hydra.sweep import kind_of
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
    if scenario.client in spec.tools:
        for name, usual in _USUAL.items():
            if any(value != usual for value in scenario.values_of(name)):
                what = f"{scenario.client} sends to one topic, without keys, in one size"
                yield scenario.sweep.key_of(name), what, "leave it out, or choose another client"
    if not spec.has_topics and any(value != 1 for value in scenario.values_of("topics")):
        yield scenario.sweep.key_of("topics"), f"clients of system {spec.name} have one topic", "leave it out"
    if not spec.has_keys and any(scenario.values_of("keys")):
        yield scenario.sweep.key_of("keys"), f"messages of system {spec.name} have no keys", "leave it out"
    if not spec.has_patterns and any(scenario.values_of("wildcard")):
        what = f"subscribers of system {spec.name} have no patterns that leave the order of topics known"
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
    if spec.group(settings):
        what = "members of a consumer group would need all topics to share the messages"
        yield key, what, "use topics = 1, or leave out the group"
    if spec.stored(settings):
        yield key, "subscribers that read stored messages read one topic", "use topics = 1, or read live"
    if settings.chosen_topics < settings.topics and spec.log_acknowledges(settings):
        what = "only the growth of the log acknowledges messages, which does not show their topics"
        key = scenario.sweep.key_of("topics_per_client")
        yield key, what, "leave it out, or let the servers acknowledge each message"


def _rows(scenario: Scenario) -> Iterable[Settings]:
    """The settings of rows: those of the scenario, with what each row changes."""
    yield scenario.settings
    for given in kind_of(scenario).given():
        try:
            yield with_values(scenario.settings, given.settings)
        except ValueError:
            continue  # only possible together with other values of its row, which are checked elsewhere
