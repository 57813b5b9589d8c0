"""The suite's own data ends for NATS: a publisher that follows a script, and a reader that keeps everything."""

from __future__ import annotations

import contextlib
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import psutil
from nats.aio.msg import Msg
from nats.js import api

from hydra.natstest.connection import NatsConnection
from hydra.natstest.settings import NatsAccess
from hydra.natstest.streams import JetStreams
from hydra.wire.data_message import HEADER, pack
from hydra.wire.messages import PROBE_EPOCH
from tests.suite.waiting import SOON_S, wait_until


@dataclass(frozen=True)
class Record:
    """One message as it was published."""

    epoch: int
    publisher: int
    sequence: int
    time_ns: int
    size: int


def record_of(data: bytes) -> Record:
    epoch, publisher, sequence, time_ns = HEADER.unpack_from(data)
    return Record(epoch, publisher, sequence, time_ns, len(data))


class Ends(ABC):
    """Where a test's data goes."""

    acknowledged = True
    """Whether a publisher's account comes from the server."""

    def __init__(self, address: str, **settings: Any) -> None:
        self.address = address
        self.settings = settings
        self.subject = f"test.{uuid.uuid4().hex}"
        self.connection = NatsConnection("conformance")
        self.connection.open(NatsAccess(servers=[address]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.end()

    def leave(self) -> None:
        """Reads no more: a server slows a publisher down for the sake of a reader that is behind."""
        self.connection.close()

    def system(self) -> dict[str, Any]:
        """NATS' part of a ``configure`` that starts here."""
        return {"servers": [self.address], "subject": self.subject, **self.settings}

    @abstractmethod
    def end_of_data(self) -> dict[str, Any] | None:
        """NATS' part of a ``finish`` for all that is there."""

    @abstractmethod
    def read(self) -> list[Record]:
        """Everything that was published so far."""

    def write(self, epoch: int, sequences: Iterable[int], *, publisher: int, size: int = 24) -> None:
        """Publishes these sequences and waits until the server has them."""
        client = self.connection.client

        async def all_sequences() -> None:
            for sequence in sequences:
                await client.publish(self.subject, pack(epoch, publisher, sequence, time.time_ns(), size))
            await client.flush()

        self.connection.do(all_sequences(), SOON_S)

    def probe(self, epoch: int, *, publisher: int) -> None:
        """Publishes one probe of a publisher that was configured for this epoch."""
        self.write(PROBE_EPOCH, [epoch], publisher=publisher)


class Core(Ends):
    """A subject without a stream; the reader listens from the beginning."""

    acknowledged = False

    def __init__(self, address: str, **settings: Any) -> None:
        super().__init__(address, **settings)
        self._heard: list[bytes] = []
        self.connection.do(self.connection.client.subscribe(self.subject, cb=self._take), SOON_S)
        self.connection.do(self.connection.client.flush(), SOON_S)

    async def _take(self, message: Msg) -> None:
        self._heard.append(message.data)

    def end_of_data(self) -> None:
        return None

    def read(self) -> list[Record]:
        # What the server had before it answered is here before the answer.
        self.connection.do(self.connection.client.flush(), SOON_S)
        self.connection.turn()
        return [record_of(data) for data in self._heard]


class Stream(Ends):
    """A stream of one subject."""

    def __init__(self, address: str, *, storage: str = "memory", **settings: Any) -> None:
        super().__init__(address, **settings)
        self.acknowledged = bool(settings.get("publish_acks", True))
        self.name = uuid.uuid4().hex
        self.streams = JetStreams(NatsAccess(servers=[address]))
        self.streams.create(self.name, self.subject, storage)

    def close(self) -> None:
        super().close()
        self.streams.close()

    def last(self) -> int:
        return self.streams.last(self.name)

    def write(self, epoch: int, sequences: Iterable[int], *, publisher: int, size: int = 24) -> None:
        """As ever; the server answers before everything is in the stream."""
        numbers = list(sequences)
        last = self.last() + len(numbers)
        super().write(epoch, numbers, publisher=publisher, size=size)
        wait_until(lambda: self.last() >= last, f"{last} messages in the stream", saw=self.last)

    def system(self) -> dict[str, Any]:
        return {**super().system(), "stream": self.name, "first": self.last() + 1}

    def end_of_data(self) -> dict[str, Any]:
        return {"last": self.last()}

    def read(self) -> list[Record]:
        stream = self.connection.client.jetstream()

        async def everything() -> list[bytes]:
            last = (await stream.stream_info(self.name)).state.last_seq
            found = [await stream.get_msg(self.name, number) for number in range(1, last + 1)]
            return [message.data or b"" for message in found]

        return [record_of(data) for data in self.connection.do(everything(), SOON_S)]

    def consumers(self) -> int:
        """How many consumers the stream has."""
        return self.connection.do(
            self.connection.client.jetstream().stream_info(self.name), SOON_S
        ).state.consumer_count

    def expect_acks_within(self, ack_wait_s: float) -> None:
        """Has the one consumer send again, after this time, what was not acknowledged."""
        info = self._consumer()
        config = api.ConsumerConfig(**{**info.config.__dict__, "name": info.name, "ack_wait": ack_wait_s})
        self.connection.do(self.connection.client.jetstream().add_consumer(self.name, config), SOON_S)

    def sent_again(self) -> int:
        """How many messages the one consumer sent again that are not acknowledged yet."""
        return self._consumer().num_redelivered or 0

    def _consumer(self) -> api.ConsumerInfo:
        (info,) = self.connection.do(self.connection.client.jetstream().consumers_info(self.name), SOON_S)
        return info


@contextlib.contextmanager
def stopped(processes: Iterable[psutil.Process]) -> Iterator[None]:
    """Nothing of these runs."""
    held = list(processes)
    for process in held:
        process.suspend()
    try:
        yield
    finally:
        for process in held:
            process.resume()
