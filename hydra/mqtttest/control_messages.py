"""What a client is told of MQTT: the ``system`` object of ``configure``, and the topics that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from hydra.mqtttest.settings import MqttSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttStep(MqttSettings):
    """One step's settings and where its data goes.

    ``qos`` is that of data, probes and end markers alike, but only data are retained. Where the members of a group
    share a subscription, probes and end markers have a topic of their own beside the data's, since every member needs
    them.

    Attributes:
        host, port: of the server.
        topic: a publisher's messages go to ``topic/ID``, so that the server keeps their order.
        username, password: "": none is sent.
    """

    host: str
    port: Annotated[int, Meta(ge=1, le=65_535)]
    topic: str
    username: str = ""
    password: str = ""


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
