"""What a client is told of MQTT: the ``system`` object of ``configure``, and the topics that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hydra.mqtttest.settings import MOST_IN_FLIGHT, Protocol


class MqttStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step's settings and where its data goes.

    Attributes:
        host, port: of the server.
        topic: a publisher's messages go to ``topic/ID``, so that the server keeps their order.
        qos: of data, probes and end markers alike.
        retain: whether the server keeps a publisher's last message for new subscribers. Probes and end markers are
            never kept.
        shared: whether the members of a group share a subscription. Probes and end markers then have a topic of their
            own beside the data's, since every member needs them.
        max_inflight: messages of a publisher that may wait for their answer.
        keepalive: seconds of silence after which a client pings; 0: never.
        clean_session: False: the server keeps a subscriber's session while it is away.
        protocol: the version of MQTT.
        username, password: "": none is sent.
    """

    host: str
    port: Annotated[int, Meta(ge=1, le=65_535)]
    topic: str
    qos: Literal[0, 1, 2]
    retain: bool
    shared: bool
    max_inflight: Annotated[int, Meta(ge=1, le=MOST_IN_FLIGHT)]
    keepalive: Annotated[int, Meta(ge=0, le=65_535)]
    clean_session: bool
    protocol: Protocol
    username: str = ""
    password: str = ""


def step_of(system: Mapping[str, Any] | None) -> MqttStep:
    """The object of a ``configure``, checked.

    Raises:
        ValueError: there is none, or it holds something that cannot be; the text names it.
    """
    try:
        return msgspec.convert(system or {}, MqttStep, strict=True)
    except msgspec.ValidationError as e:
        raise ValueError(f"in the system's part of the command: {e}") from None


def topic_of(step: MqttStep, publisher: int) -> str:
    """Where a publisher's messages go."""
    return f"{step.topic}/{publisher}"


def signals_of(step: MqttStep, publisher: int) -> str:
    """Where its probes and end markers go."""
    return topic_of(step, publisher) + ("/signals" if step.shared else "")


def filters(step: MqttStep, group: str, publishers: Sequence[int]) -> tuple[str, ...]:
    """What a subscriber subscribes to.

    Raises:
        ValueError: subscriptions are to be shared, and it is in no group.
    """
    if not step.shared:
        return tuple(topic_of(step, publisher) for publisher in publishers)
    if not group:
        raise ValueError("configure.group is empty, and subscriptions are to be shared in a group")
    shared = (f"$share/{group}/{topic_of(step, publisher)}" for publisher in publishers)
    return (*shared, *(signals_of(step, publisher) for publisher in publishers))


def client_id(step: MqttStep, client: int) -> str:
    """The name under which the server knows a client: the same after a reconnect, another in another run."""
    return f"{step.topic.replace('/', '-')}-{client}"
