"""What can change between two steps without a new process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

from hydra.model.base import HEADER_BYTES, LEAST_RATE, MOST_RATE, Figure, Rate, require, setting

Payload = Literal["zeros", "random", "json", "lines"]
"""What follows a message's header: zeros, bytes that do not compress, JSON records, or the lines of a file."""


@dataclass(frozen=True, slots=True)
class SharedSettings:
    """The settings that every system has.

    Sizes are in bytes, rates in messages (or reconnections) per second. ``burst`` is how many messages a publisher
    that is behind sends back to back at most; None leaves it to the system (``SystemSpec.burst``). ``messages`` is how
    many each publisher sends at most: the step ends when all have; None: as many as the window takes.
    ``message_size_min`` draws the size of each message evenly between it and ``message_size``, which is the largest.
    ``payload_ratio`` is how many times smaller a compressed batch of JSON records is; ``payload_file`` holds the lines,
    on every publisher's host. ``receive_rate`` and ``reconnect_rate`` are those of a cohort's subscribers.
    """

    rate: Rate = setting("max", "Messages per second, or max.", metavar="RATE|max", least=LEAST_RATE, most=MOST_RATE)
    burst: int | None = setting(
        None, "Messages sent back to back when the publisher is behind.", least=1, most=1_000_000
    )
    messages: int | None = setting(None, least=1, most=1e15)
    message_size: int = setting(
        HEADER_BYTES, f"Bytes of a message, its {HEADER_BYTES}-byte header included.", metavar="BYTES"
    )
    message_size_min: int | None = None
    payload: Payload = setting(
        "zeros", "What follows the header: zeros, random bytes, JSON records, or the lines of a file."
    )
    payload_ratio: float = setting(4.0, "json: how many times smaller a compressed batch is.", metavar="RATIO")
    payload_file: str = setting("", "lines: the file, on the publishers' hosts.")
    payload_seed: int = 1
    receive_rate: float | None = setting(None, least=LEAST_RATE, most=MOST_RATE)
    reconnect_rate: float | None = setting(None, least=0.001, most=100)

    def __post_init__(self) -> None:
        require(self.rate == "max" or self.rate > 0, f"rate must be above 0 or 'max', not {self.rate!r}")
        require(self.burst is None or self.burst >= 1, f"burst must be at least 1 message, not {self.burst}")
        require(
            1 <= self.message_size <= 64 * 1024 * 1024,
            f"message_size must be {HEADER_BYTES} (the header) to 67108864 bytes, not {self.message_size}",
        )
        require(
            self.message_size_min is None or HEADER_BYTES <= self.message_size_min <= self.message_size,
            f"message_size_min must be {HEADER_BYTES} (the header) to message_size, {self.message_size}, "
            f"not {self.message_size_min}",
        )
        require(
            1 <= self.payload_ratio <= 1000,
            f"payload_ratio must be 1 (does not compress) to 1000, not {self.payload_ratio:g}",
        )
        require(
            0 <= self.payload_seed < 2**63,
            f"payload_seed must be a whole number of 0 to 9223372036854775807, not {self.payload_seed}",
        )
        require(
            self.payload not in ("json", "lines") or self.message_size > HEADER_BYTES,
            f"payload {self.payload!r} has no room in messages of {HEADER_BYTES} bytes, which are the header; "
            "set message_size",
        )
        require(
            self.payload != "lines" or self.payload_file != "",
            "payload 'lines' needs payload_file, a file of lines on the publishers' hosts",
        )
        require(
            self.receive_rate is None or self.receive_rate > 0,
            f"receive_rate must be above 0 messages/s, not {self.receive_rate}",
        )
        require(
            self.reconnect_rate is None or 0 < self.reconnect_rate <= 100,
            f"reconnect_rate must be above 0 and at most 100 a second, not {self.reconnect_rate}",
        )


@dataclass(frozen=True, slots=True)
class Settings(SharedSettings):
    """All settings of a step.

    ``system`` are the system's own by name, complete with their defaults and checked by ``SystemSpec.settings``, whose
    fields they are.
    """

    system: Mapping[str, Figure] = field(default_factory=dict, hash=False)


SHARED: Final = tuple(f.name for f in fields(SharedSettings))
"""The names of the settings that every system has."""


def with_values(settings: Settings, values: Mapping[str, object]) -> Settings:
    """The settings with some of them replaced, shared ones and the system's own alike, by their names.

    Raises:
        ValueError: a shared one cannot be. The system's own are not checked here.
    """
    shared: dict[str, Any] = {name: value for name, value in values.items() if name in SHARED}
    own: dict[str, Any] = {name: value for name, value in values.items() if name not in SHARED}
    return replace(settings, **shared, system={**settings.system, **own})


def value_of(settings: Settings, name: str) -> Figure:
    """The value of a setting, shared or of the system's own; None where this system has none of that name."""
    value: Figure = getattr(settings, name) if name in SHARED else settings.system.get(name)
    return value


def shared_of(settings: Settings) -> SharedSettings:
    """The shared settings alone."""
    return SharedSettings(**{name: getattr(settings, name) for name in SHARED})
