"""Settings that can change between two steps without a new process."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, NamedTuple, get_args

from hydra.amounts import BYTES, whole_number
from hydra.model.base import (
    HEADER_BYTES,
    LEAST_RATE,
    MOST_RATE,
    Bounded,
    Need,
    Rate,
    SettingValue,
    require,
    setting,
    types_of,
)
from hydra.model.system_part import NoSystemSettings, SystemSettings

MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_RANGES: Final = 64
_SIZE: Final = rf"(\d{{1,9}}(?:\.\d{{1,9}})?(?:{'|'.join(BYTES)})?)"
_RANGE: Final = re.compile(rf"{_SIZE}-{_SIZE}:(\d{{1,9}}(?:\.\d{{1,9}})?)")


class SizeRange(NamedTuple):
    """Sizes from ``low`` to ``high`` bytes, both included; each range gets its share of all weights."""

    low: int
    high: int
    weight: float


def size_ranges(text: str) -> list[SizeRange]:
    """The ranges in a text such as ``24-256:70,256-4096:30``.

    Raises:
        ValueError: the text is invalid.
    """
    found = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        require(match is not None, f"message_sizes must be like 24-256:70,256-4096:30, not {text!r}")
        if match is not None:
            low, high = (whole_number(size, BYTES) for size in match.groups()[:2])
            found.append(SizeRange(low, high, float(match[3])))
    require(len(found) <= _MOST_RANGES, f"message_sizes has {len(found)} ranges, above the limit of {_MOST_RANGES}")
    for low, high, weight in found:
        require(
            HEADER_BYTES <= low <= high <= MOST_BYTES,
            f"a range of message_sizes must rise within {HEADER_BYTES} (the header) to {MOST_BYTES} bytes, "
            f"not {low} to {high}",
        )
        require(weight > 0, f"a weight in message_sizes must be above 0, not {weight:g}")
    return found


def without_units(text: str) -> str:
    """The text of ranges as clients read it, with sizes in bytes; the text itself if it is invalid."""
    try:
        ranges = size_ranges(text)
    except ValueError:
        return text
    # A weight stays as it was written.
    weights = (part.rpartition(":")[2].strip() for part in text.split(","))
    return ",".join(f"{low}-{high}:{weight}" for (low, high, _), weight in zip(ranges, weights, strict=True))


def sizes_text(ranges: Sequence[object]) -> str:
    """The text of ranges that a file lists as ``[from, to, weight]``.

    Raises:
        ValueError: the ranges are invalid.
    """
    parts = []
    for each in ranges:
        numbers = [n for n in each if type(n) in (int, float) and math.isfinite(n)] if isinstance(each, list) else []
        require(
            isinstance(each, list) and len(each) == len(numbers) == 3 and {*map(type, numbers[:2])} == {int},
            f"message_sizes must be a list like [[24, 256, 70], [256, 4096, 30]], not {list(ranges)}",
        )
        low, high, weight = numbers
        parts.append(f"{low}-{high}:{weight:g}")
    return ",".join(parts)


Payload = Literal["zeros", "random", "json", "lines"]
"""The content after a message's header: zeros, bytes that do not compress, JSON records, or lines of a file."""
PUBLISHERS: Final = "publishers"
"""The key of the number of publishers, which a sweep can vary like a setting."""
MOST_TOPICS: Final = 10_000
MOST_KEYS: Final = 10_000
"""An alias table of this size fits into a control message (512 KiB), also beside one of topics."""
_TOPICS: Final = Need("settings.topics", least=2)
_KEYS: Final = Need("settings.keys", least=1)
_DRAWN: Final = replace(_TOPICS, other=replace(_KEYS, other=Need("settings.message_sizes")))


@dataclass(frozen=True, slots=True)
class SharedSettings(Bounded):
    """The settings that every system has and that every client gets.

    Attributes:
        rate: messages/s of each publisher, or ``"max"``: as fast as the library accepts them.
        burst: the most messages that a publisher behind its schedule sends back to back; unset: 100, unless its
            system has another default.
        messages: the most messages that each publisher sends; the step ends when all are sent and acknowledged, or
            after ``duration_s``.
        message_size: bytes of a message, its header of 24 bytes included.
        message_size_min: if set, the size of each message is drawn evenly between this and ``message_size``, in bytes.
        payload: the bytes after the header: ``"zeros"``; ``"random"``, which does not compress; ``"json"``, records of
            events; or ``"lines"`` of a file.
        payload_ratio: how many times smaller a compressed batch of messages is.
        payload_file: the file of lines, on the host of every publisher; a relative path starts at the folder in which
            Hydra runs.
        payload_seed: the seed of bytes, sizes, topics and keys; the same seed gives the same ones.
        receive_rate: the most messages/s that each subscriber reads. A search sets it for its cohort only.
        reconnect_rate: reconnections per second of each subscriber. A search sets it for its cohort only.
    """

    rate: Rate = setting(
        "max",
        "Messages/s of each publisher, or max.",
        metavar="RATE|max",
        least=LEAST_RATE,
        most=MOST_RATE,
        needs=(Need("sweep.search", (None,)),),
    )
    burst: int | None = setting(
        None, "Most messages that a late publisher sends back to back.", least=1, most=1_000_000, of_publishers=True
    )
    messages: int | None = setting(None, least=1, most=1e15)
    message_size: int = setting(
        HEADER_BYTES,
        f"Bytes of a message, including its header of {HEADER_BYTES} bytes.",
        metavar="BYTES",
        least=1,
        most=MOST_BYTES,
    )
    message_size_min: int | None = None
    payload: Payload = setting(
        "zeros", "Content after the header: zeros, random bytes, JSON records, or lines of a file."
    )
    payload_ratio: float = setting(
        4.0,
        "Ratio of a batch's size to its compressed size.",
        metavar="RATIO",
        least=1,
        most=1000,
        needs=(Need("settings.payload", ("json",)),),
    )
    payload_file: str = setting(
        "", "File on each publisher's host; each line is a payload.", needs=(Need("settings.payload", ("lines",)),)
    )
    payload_seed: int = setting(
        1,
        least=0,
        most=2**63 - 1,
        needs=(Need("settings.payload", ("random", "json"), Need("settings.message_size_min", other=_DRAWN)),),
    )
    receive_rate: float | None = setting(None, least=LEAST_RATE, most=MOST_RATE)
    reconnect_rate: float | None = setting(None, least=0.001, most=100)

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        require(
            self.message_size_min is None or HEADER_BYTES <= self.message_size_min <= self.message_size,
            f"message_size_min must be {HEADER_BYTES} (the header) to message_size, {self.message_size}, "
            f"not {self.message_size_min}",
            *("message_size_min", "message_size"),
        )
        require(
            self.payload not in ("json", "lines") or self.message_size > HEADER_BYTES,
            f"payload {self.payload!r} has no room in messages of {HEADER_BYTES} bytes, which are the header; "
            "set message_size",
            *("payload", "message_size"),
        )
        require(
            self.payload != "lines" or self.payload_file != "",
            "payload 'lines' needs payload_file, a file of lines on the publishers' hosts",
            *("payload", "payload_file"),
        )


@dataclass(frozen=True, slots=True)
class Settings(SharedSettings):
    """All settings of a step.

    ``system`` has all of the system's own settings: an object of ``OwnSettings.step``. Clients get topics, keys and
    sizes in another form (:class:`hydra.wire.messages.Traffic`).

    Attributes:
        topics: the number of topics of every publisher's messages (docs/topics.md has what a topic is on each system).
            Each message has one, drawn from ``payload_seed``.
        topic_skew: the exponent of Zipf's law, by which topic k gets a share of 1 / kᵉˣᵖᵒⁿᵉⁿᵗ of the messages; 0: equal
            shares.
        topics_per_client: the number of topics of each subscriber, drawn from ``payload_seed``; 0: all topics, as in
            rows with at most this number.
        wildcard: whether each subscriber has all topics by one pattern.
        keys: the number of keys of messages, which choose the partition; 0: messages have no key. Only systems with
            partitions have keys.
        key_skew: the exponent of Zipf's law for keys; 0: equal shares.
        message_sizes: sizes of messages in place of ``message_size``: lists of smallest size, largest size (bytes,
            headers included) and weight, such as ``[[24, 256, 70], [256, 4096, 30]]``. A flag has them as
            ``24-256:70,256-4096:30``.
        connect_rate: all subscribers open new connections before the step, and this many of them are due per second;
            ``"max"``: all are due at once. Unset: subscribers keep their connections, and no column is about
            connecting.
        connect_within_s: a subscriber that is not ready this many seconds after it was due to connect is not let in.
    """

    topics: int = setting(
        1, "Number of topics, over which each publisher's messages are spread.", least=1, most=MOST_TOPICS
    )
    topic_skew: float = setting(
        0.0, "Exponent of Zipf's law for the shares of topics; 0 is even.", least=0, most=10, needs=(_TOPICS,)
    )
    topics_per_client: int = setting(
        0,
        "Number of topics of each subscriber, drawn at random; 0 is all.",
        least=0,
        most=MOST_TOPICS,
        needs=(_TOPICS,),
    )
    wildcard: bool = setting(False, "Make each subscriber take all topics by one pattern.", needs=(_TOPICS,))
    keys: int = setting(0, "Number of keys, which choose the partition; 0 is no keys.", least=0, most=MOST_KEYS)
    key_skew: float = setting(
        0.0, "Exponent of Zipf's law for the shares of keys; 0 is even.", least=0, most=10, needs=(_KEYS,)
    )
    message_sizes: str = setting(
        "", "Ranges of message sizes and their weights, such as 24-256:70,256-4096:30.", metavar="FROM-TO:WEIGHT,…"
    )
    connect_rate: Rate | None = setting(
        None,
        "Before each step all subscribers open new connections: this many a second, or max.",
        metavar="CLIENTS|max",
        least=0.001,
        most=1e6,
    )
    connect_within_s: float = setting(10.0, least=0.1, most=3600, needs=(Need("settings.connect_rate"),))
    system: SystemSettings = field(default_factory=NoSystemSettings)

    def __post_init__(self) -> None:
        SharedSettings.__post_init__(self)
        if not self.message_sizes:
            return
        size_ranges(self.message_sizes)
        require(
            self.message_size == HEADER_BYTES and self.message_size_min is None,
            "message_sizes stands in place of message_size and message_size_min: remove these",
            *("message_sizes", "message_size", "message_size_min"),
        )
        require(
            self.payload in ("zeros", "random"),
            f"message_sizes needs payload 'zeros' or 'random', not {self.payload!r}, whose content would be cut",
            *("message_sizes", "payload"),
        )

    @property
    def chosen_topics(self) -> int:
        """The number of topics of a subscriber; with fewer topics than it may have, it has all."""
        return min(self.topics_per_client or self.topics, self.topics)

    @property
    def largest_bytes(self) -> int:
        """The size of the largest message."""
        return max(high for _, high, _ in size_ranges(self.message_sizes)) if self.message_sizes else self.message_size

    @property
    def mean_bytes(self) -> float:
        """The expected size of a message; without ``message_sizes`` it is ``message_size``."""
        if not self.message_sizes:
            return self.message_size
        ranges = size_ranges(self.message_sizes)
        return sum((low + high) / 2 * weight for low, high, weight in ranges) / sum(weight for _, _, weight in ranges)


SHARED: Final = tuple(f.name for f in fields(Settings) if f.name != "system")
"""The names of the settings that every system has."""


def names_of(settings: Settings) -> tuple[str, ...]:
    """The names of all settings: those of every system, and the system's own."""
    return (*SHARED, *settings.system.values())


def with_values(settings: Settings, values: Mapping[str, object]) -> Settings:
    """The settings with some of them, shared or of the system, replaced by name; the number of publishers is none.

    Raises:
        ValueError: a setting cannot have its value.
    """
    shared = {name: value for name, value in values.items() if name in SHARED}
    own = {name: value for name, value in values.items() if name not in (*SHARED, PUBLISHERS)}
    system = replace(settings.system, **_with_floats(type(settings.system), own))
    return replace(settings, **_with_floats(Settings, shared), system=system)


def _with_floats(kind: type, values: Mapping[str, object]) -> dict[str, Any]:
    """The values, in which the whole number of a field of floats is a float, as it is when read from a database."""
    of_floats = {name for name, hint in types_of(kind).items() if {float, int} & {hint, *get_args(hint)} == {float}}
    return {name: float(v) if isinstance(v, int) and name in of_floats else v for name, v in values.items()}


def value_of(settings: Settings, name: str) -> SettingValue:
    """The value of a setting, shared or of the system; None if the system has no setting of this name."""
    value: SettingValue = getattr(settings, name) if name in SHARED else settings.system.values().get(name)
    return value


def shared_of(settings: Settings) -> SharedSettings:
    """The settings that all clients get as they are."""
    return SharedSettings(**{f.name: getattr(settings, f.name) for f in fields(SharedSettings)})
