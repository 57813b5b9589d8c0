"""The settings of MQTT, the table [mqtt] of a scenario, and the ``system`` object that clients get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from msgspec import Meta

from hydra.client.tls import ClientTls
from hydra.model import OWN_SERVERS, AccessTable, Need, Scenario, SystemSettings, setting
from hydra.model.base import require

TABLE: Final = "mqtt"
Protocol = Literal["3.1.1", "5"]
MOST_IN_FLIGHT: Final = 65_535
"""The largest ``max_inflight``, because MQTT's message ids have 16 bits."""
_LEAST_KEEPALIVE_S: Final = 5
"""The shortest keepalive that libmosquitto accepts, in seconds."""


@dataclass(frozen=True, slots=True)
class MqttSettings(SystemSettings):
    """The settings that can change between two steps.

    Attributes:
        qos: 0: at most once, without acknowledgement. 1: at least once (PUBACK). 2: exactly once (PUBCOMP).
        retain: whether the server keeps the last data message of each publisher and sends it to new subscribers.
        shared: whether all subscribers form one group (``$share/…``), in which each message goes to one of them.
        max_inflight: the most messages that wait for their acknowledgement, in either direction.
        keepalive: seconds without traffic after which a client pings: 0 (never), or at least 5.
        clean_session: false: the server keeps the subscription and the messages of a disconnected subscriber.
        protocol: the version of MQTT.
    """

    qos: Literal[0, 1, 2] = setting(
        0, "Delivery of each message: 0 at most once, 1 at least once, 2 exactly once.", compared=True
    )
    retain: bool = setting(False, "Make the server keep each publisher's last message.", compared=True)
    shared: bool = setting(
        False, "Make all subscribers share one subscription: each message goes to one subscriber.", compared=True
    )
    max_inflight: int = setting(
        20,
        "Highest number of messages that wait for an acknowledgement.",
        least=1,
        most=MOST_IN_FLIGHT,
        needs=(Need("settings.qos", (1, 2)),),
        compared=True,
    )
    keepalive: int = setting(60, least=0, most=MOST_IN_FLIGHT)
    clean_session: bool = setting(True, compared=True)
    protocol: Protocol = setting("3.1.1", "Version of the MQTT protocol.", compared=True)

    def __post_init__(self) -> None:
        SystemSettings.__post_init__(self)
        require(
            not 0 < self.keepalive < _LEAST_KEEPALIVE_S,
            f"must be 0 (no pings), or {_LEAST_KEEPALIVE_S} seconds or more, not {self.keepalive}",
            "keepalive",
        )


@dataclass(frozen=True, slots=True)
class MqttSpec(AccessTable):
    """The table [mqtt] of a scenario.

    Attributes:
        broker: your own server, ``HOST:PORT`` or ``mqtt://USER:PASSWORD@HOST:PORT``; ``mqtts://`` is TLS, ``ws://`` is
            WebSocket, ``wss://`` is both. ``""``: Hydra starts a mosquitto.
        tls: whether a mosquitto started by Hydra uses TLS, with a CA and a certificate for the run.
        ca_file: the certificates of the CAs that clients trust; ``""``: those that their machines trust.
        cert_file, key_file: the certificate of the clients and its private key, which has no password; one file may
            have both.
        username: the user name.
        password: the password; Hydra never stores it.
        password_file: a file whose first line is the password.
        max_queued_messages: the most messages that the server queues for one client; beyond, it drops messages.
            0: no limit.
    """

    broker: str = setting(
        "",
        "Address of your server (default: a mosquitto started by Hydra).",
        flag=("--servers",),
        metavar="[mqtts://]HOST:PORT",
    )
    max_queued_messages: int = setting(1000, least=0, most=2**31 - 1, needs=(OWN_SERVERS,))


def spec_of(scenario: Scenario) -> MqttSpec:
    """The table [mqtt] of a scenario."""
    spec: MqttSpec = scenario.tables.get(TABLE, MqttSpec())
    return spec


def most_in_flight(scenario: Scenario) -> int:
    """The largest ``max_inflight`` of a scenario's steps, which its server has to allow."""
    return max(MqttSettings.of(scenario.settings).max_inflight, *scenario.whole_values("max_inflight"))


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttAccess:
    """How a client reaches the server; the fields of :class:`MqttStep` with the same names."""

    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)
    tls: ClientTls | None = None
    websocket: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttStep(MqttSettings):
    """The settings of one step, the server, and the topics of its data.

    ``qos`` applies to data, probes and end markers, but only data are retained. If the members of a group share a
    subscription, probes and end markers have a separate topic, because every member needs them.

    Attributes:
        host, port: address of the server.
        topic: prefix of topics; a publisher sends to ``topic/ID``, so the server keeps the order of its messages. If
            there are several topics, all publishers send to ``topic/NUMBER``.
        username, password: credentials; "": none is sent.
        tls: certificates; None: the connection has no TLS.
        websocket: the path of a WebSocket; "": the connection is plain MQTT.
    """

    host: str
    port: Annotated[int, Meta(ge=1, le=65_535)]
    topic: str
    username: str = ""
    password: str = field(default="", repr=False)
    tls: ClientTls | None = None
    websocket: str = ""


def topic_of(step: MqttStep, publisher: int) -> str:
    """The topic of a publisher's messages."""
    return f"{step.topic}/{publisher}"


def topic_filters(step: MqttStep, topics: Iterable[int]) -> list[str]:
    """The names of these topics, if there are several, which all publishers share."""
    return [f"{step.topic}/{topic}" for topic in topics]


def signals_of(step: MqttStep, publisher: int) -> str:
    """The topic of a publisher's probes and end markers."""
    return topic_of(step, publisher) + ("/signals" if step.shared else "")


def filters(step: MqttStep, group: str, publishers: Sequence[int]) -> tuple[str, ...]:
    """The topic filters to which a subscriber subscribes.

    Raises:
        ValueError: the subscription is shared, but the subscriber is in no group.
    """
    if not step.shared:
        return tuple(topic_of(step, publisher) for publisher in publishers)
    if not group:
        raise ValueError("configure.group is empty, and subscriptions are to be shared in a group")
    shared = (f"$share/{group}/{topic_of(step, publisher)}" for publisher in publishers)
    return (*shared, *(signals_of(step, publisher) for publisher in publishers))


def client_id(step: MqttStep, client: int) -> str:
    """The MQTT client id of a client; it is the same after a reconnect, and differs in every run."""
    return f"{step.topic.replace('/', '-')}-{client}"
