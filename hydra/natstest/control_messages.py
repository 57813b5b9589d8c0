"""What NATS says in the ``system`` objects of the control channel, which the controller only carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from hydra.natstest.settings import NatsSettings

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(NatsSettings):
    """Of ``configure``: the settings but for the stream's own (``NatsSystem.configure``), and where a step's data goes.

    ``stream`` is "" in core mode; ``first`` is the stream sequence that the step's first message gets.
    """

    servers: list[str]
    subject: str
    stream: str = ""
    first: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of ``finish``: the stream's last sequence when every publisher had reported."""

    last: Count


class Trouble(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of the reports: what a connection went through in a step.

    ``slow_consumers`` is how often a subscription became too slow for its pending limits, ``dropped`` how many messages
    the library threw away because of it, ``disconnects`` how often the connection was lost.
    """

    slow_consumers: Count = 0
    dropped: Count = 0
    disconnects: Count = 0
