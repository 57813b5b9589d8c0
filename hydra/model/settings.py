"""Settings that can change between two steps without a new process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

from hydra.model.base import HEADER_BYTES, LEAST_RATE, MOST_RATE, Figure, Need, Rate, require, setting

Payload = Literal["zeros", "random", "json", "lines"]
"""The content after a message's header: zeros, bytes that do not compress, JSON records, or lines of a file."""


@dataclass(frozen=True, slots=True)
class SharedSettings:
    """The settings that every system has.

    Attributes:
        rate: messages/s of each publisher, or ``"max"``: as fast as the library accepts them.
        burst: the most messages that a publisher behind its schedule sends back to back; unset: 100, unless its
            system has another default.
        messages: the most messages that each publisher sends; the step ends when all are sent and acknowledged, or
            after ``duration_s``.
        message_size: bytes of a message, its header of 24 bytes included, at most 64 MiB.
        message_size_min: if set, the size of each message is drawn evenly between this and ``message_size``, in bytes.
        payload: the bytes after the header: ``"zeros"``; ``"random"``, which does not compress; ``"json"``, records of
            events; or ``"lines"`` of a file.
        payload_ratio: how many times smaller a compressed batch of messages is, 1 to 1000.
        payload_file: the file of lines, on the host of every publisher; a relative path starts at the folder in which
            Hydra runs.
        payload_seed: the seed of bytes and sizes; the same seed gives the same ones.
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
        None, "Most messages that a late publisher sends back to back.", least=1, most=1_000_000
    )
    messages: int | None = setting(None, least=1, most=1e15)
    message_size: int = setting(
        HEADER_BYTES, f"Bytes of a message, including its header of {HEADER_BYTES} bytes.", metavar="BYTES"
    )
    message_size_min: int | None = None
    payload: Payload = setting(
        "zeros", "Content after the header: zeros, random bytes, JSON records, or lines of a file."
    )
    payload_ratio: float = setting(
        4.0,
        "Ratio of a batch's size to its compressed size.",
        metavar="RATIO",
        needs=(Need("settings.payload", ("json",)),),
    )
    payload_file: str = setting(
        "", "File on each publisher's host; each line is a payload.", needs=(Need("settings.payload", ("lines",)),)
    )
    payload_seed: int = setting(
        1, needs=(Need("settings.payload", ("random", "json"), Need("settings.message_size_min")),)
    )
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

    ``system`` has all of the system's own settings by name; they are the fields of ``SystemSpec.settings``, which
    checks them.
    """

    system: Mapping[str, Figure] = field(default_factory=dict, hash=False)


SHARED: Final = tuple(f.name for f in fields(SharedSettings))
"""The names of the settings that every system has."""


def with_values(settings: Settings, values: Mapping[str, object]) -> Settings:
    """The settings with some of them, shared or of the system, replaced by name.

    Raises:
        ValueError: a shared setting is invalid. The system's own settings are not checked here.
    """
    shared: dict[str, Any] = {name: value for name, value in values.items() if name in SHARED}
    own: dict[str, Any] = {name: value for name, value in values.items() if name not in SHARED}
    return replace(settings, **shared, system={**settings.system, **own})


def value_of(settings: Settings, name: str) -> Figure:
    """The value of a setting, shared or of the system; None if the system has no setting of this name."""
    value: Figure = getattr(settings, name) if name in SHARED else settings.system.get(name)
    return value


def shared_of(settings: Settings) -> SharedSettings:
    """The shared settings without the system's own."""
    return SharedSettings(**{name: getattr(settings, name) for name in SHARED})
