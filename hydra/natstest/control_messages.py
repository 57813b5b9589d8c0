"""What NATS says in the ``system`` objects of the control channel, which the controller only carries."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of ``configure``: where a step's data goes, and the settings of NATS (settings.py says what each means).

    ``stream`` is "" in core mode; ``first`` is the stream sequence that the step's first message gets.
    """

    servers: list[str]
    subject: str
    stream: str = ""
    first: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1
    consumer: Literal["push", "pull"] = "push"
    publish_acks: bool = True
    ack_policy: Literal["none", "explicit"] = "explicit"
    pending_messages: Limit = 65_536
    pending_bytes: Limit = 64 * 1024 * 1024
    max_ack_pending: Limit = 1000
    fetch_batch: Limit = 100
    publish_window: Limit = 4000


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
