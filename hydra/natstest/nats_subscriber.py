"""The subscriber of nats-py clients."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import sub
from typing import Any, Final

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext, api

from hydra.client.subscriber_connection import ConnectPhases
from hydra.client.transport import read_system
from hydra.control.control_client import ControlClient
from hydra.model.system_reports import LOST_WHY, Disconnection, reported
from hydra.natstest.connection import ANSWER_TIMEOUT_S, CLOSE_TIMEOUT_S, SERVED_EVERY_S, NatsConnection
from hydra.natstest.settings import NatsEnd, NatsStep, subjects_of
from hydra.wire.messages import Configure, SystemObject, Traffic
from hydra.wire.traffic import client_topics

SUBSCRIBE_TIMEOUT_S: Final = 30.0
"""Time limit in seconds for the subscriptions of a client, which may be thousands."""
AT_HAND: Final = 2000
"""The maximum number of messages that wait here for the client; others wait in the subscription, whose pending limits
are measured."""
KEPT_FOR_S: Final = 120.0
"""How long the server keeps the consumer of a subscriber that connects again; the default of 5 s is less than thousands
of clients need."""
FETCH_FOR_S: Final = 5.0
"""How long a pull request without messages waits at the server; then a new request is sent."""
_SHORT_REPLY: Final = 9
"""The number of parts of a message's reply subject, $JS.ACK.stream.consumer.deliveries.stream_sequence.…; newer servers
have two more parts before the stream."""

_Subscribed = Subscription | JetStreamContext.PushSubscription | JetStreamContext.PullSubscription


class NatsSubscriber:
    """Receives messages while its loop runs.

    A slow reader does not run the loop while it waits: like a busy application, it leaves messages in the subscription
    and in the socket, until the library or the server treats it as a slow consumer.
    """

    def __init__(self, client: int, control: ControlClient) -> None:
        self._client = client
        self._connection = NatsConnection(f"hydra-{client}", control)
        self._step: NatsStep | None = None
        self._subjects: tuple[str, ...] = ()
        self._subscribed: Sequence[_Subscribed] = ()
        self._others: dict[int, Subscription] = {}
        """The subscriptions beside the first one, if there are several subjects, by the library's number."""
        self._first: Subscription | None = None
        self._consumer = ""
        self._fetching: asyncio.Task[None] | None = None
        self._messages: list[bytes] = []
        self._room = asyncio.Event()
        self._marks: list[tuple[int, int]] | None = None
        """While messages are streamed: when each batch was read, and its first message's place in ``_messages``."""
        self._in_batch = False
        self._position = 0
        self._delivered = 0  # the highest sequence among the deliveries of the consumer
        self._failure = ""
        self._kept_for_s: float | None = None  # without a connection; None: the server's default

    def configure(self, command: Configure) -> None:
        """See transport.py. A consumer whose position is the step's begin is kept."""
        step = read_system(command.system, NatsStep)
        self._kept_for_s = None if command.connect is msgspec.UNSET else KEPT_FOR_S
        is_new = self._connection.open(step.access) or self._step is None or self._failure != ""
        subjects = subscribed_by(step, command.drawn, self._client)
        same = self._step is not None and replace(self._step, first=step.first) == step and subjects == self._subjects
        if is_new or not same or (step.stream and self._position + 1 != step.first):
            self._leave()
            self._step = None  # after a failure, the next configure tries again
            self._position = step.first - 1
            self._messages.clear()
            self._failure = ""
            self._subjects = subjects
            self._subscribe(step)
            self._step = step
        self._connection.begin_step()

    def _subscribe(self, step: NatsStep) -> None:
        client, do = self._connection.client, self._connection.do
        self._delivered = 0
        limits: dict[str, Any] = {
            "pending_msgs_limit": step.pending_messages,
            "pending_bytes_limit": step.pending_bytes,
        }
        if not step.stream:
            self._subscribed = do(self._subscribe_to(self._subjects, limits), SUBSCRIBE_TIMEOUT_S)
            # The reply to this shows that the server has the subscription.
            self._connection.confirm(ANSWER_TIMEOUT_S)
            return
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=step.first,
            ack_policy=api.AckPolicy.EXPLICIT if step.ack_policy == "explicit" else api.AckPolicy.NONE,
            max_ack_pending=step.max_ack_pending if step.ack_policy == "explicit" else None,
            inactive_threshold=self._kept_for_s,
        )
        self._others = {}
        stream = client.jetstream(timeout=ANSWER_TIMEOUT_S)
        try:
            if self._has_some(step):
                do(self._consume_some(stream, step, config, limits), ANSWER_TIMEOUT_S)
                return
            (subject,), limits = self._subjects, limits | {"stream": step.stream, "config": config}
            if step.consumer == "push":
                pushed = do(stream.subscribe(subject, cb=self._take, **limits), ANSWER_TIMEOUT_S)
                self._subscribed, self._consumer = [pushed], pushed._consumer
            else:
                pulled = do(stream.pull_subscribe(subject, **limits), ANSWER_TIMEOUT_S)
                self._subscribed, self._consumer = [pulled], pulled._consumer or ""
                self._fetching = self._connection.task(self._fetch(pulled, step))
        except OSError as e:
            raise OSError(f"no consumer of the stream {step.stream}: {e}") from None

    async def _consume_some(
        self, stream: JetStreamContext, step: NatsStep, config: api.ConsumerConfig, limits: Mapping[str, Any]
    ) -> None:
        """Makes a consumer of the subscriber's subjects, and subscribes to it.

        Raises:
            OSError: the server is too old for several subjects.
        """
        manager = self._connection.client.jsm(timeout=ANSWER_TIMEOUT_S)
        # Servers before 2.10 know the first name only, and ignore the second one.
        if len(self._subjects) == 1:
            config.filter_subject = self._subjects[0]
        else:
            config.filter_subjects = [*self._subjects]
        if step.consumer == "push":
            config.deliver_subject = self._connection.client.new_inbox()
        made = await manager.add_consumer(step.stream, config)
        self._consumer = made.name
        if len(self._subjects) > 1 and not made.config.filter_subjects:
            await manager.delete_consumer(step.stream, made.name)
            raise OSError("several subjects need nats-server 2.10 or newer, or mode core")
        if step.consumer == "push":
            self._subscribed = [await stream.subscribe_bind(step.stream, config, made.name, cb=self._take, **limits)]
        else:
            pulled = await stream.pull_subscribe_bind(made.name, step.stream, **limits)
            self._subscribed = [pulled]
            self._fetching = self._connection.task(self._fetch(pulled, step))

    def _has_some(self, step: NatsStep) -> bool:
        """Whether it has a consumer of some subjects of its stream, whose end then does not show what is missing."""
        return step.stream != "" and self._subjects[0] not in (step.subject, f"{step.subject}.*")

    async def _subscribe_to(self, subjects: Sequence[str], limits: Mapping[str, Any]) -> list[_Subscribed]:
        """Subscribes to each subject; all messages arrive in the order in which the server sent them."""
        client = self._connection.client
        first = self._first = await client.subscribe(subjects[0], cb=self._take, **limits)
        self._others = {}
        for subject in subjects[1:]:
            other = await client.subscribe(subject, **limits)
            # The library has a queue and a task for each subscription: messages, and the end marker, would overtake
            # each other. With the queue of the first, the limit of messages is that of all subjects together.
            early, other._pending_queue = other._pending_queue, first._pending_queue
            self._others[other._id] = other
            while not early.empty():
                first._pending_queue.put_nowait(early.get_nowait())
        return [first, *self._others.values()]

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """See transport.py."""
        if self._step is None:
            return ()
        if not self._messages:
            if timeout_s > 0:
                self._connection.wait(timeout_s)
            else:
                self._connection.turn()
        taken, self._messages = self._messages[:limit], self._messages[limit:]
        if len(self._messages) < AT_HAND:
            self._room.set()
        if self._failure:
            raise OSError(self._failure)
        return taken

    def stream(self, until_ns: int, limit: int) -> tuple[list[bytes], list[tuple[int, int]]]:
        """See transport.py. A batch is what the library takes from its socket at once."""
        if self._step is None:
            return [], []
        now_ns = time.monotonic_ns()
        self._marks, self._in_batch = [(now_ns, 0)] if self._messages else [], False
        if len(self._messages) < AT_HAND:
            self._connection.wait(max(until_ns - now_ns, 0) / 1e9)
        marks, self._marks = self._marks, None
        taken, self._messages = self._messages[:limit], self._messages[limit:]
        self._room.set()
        if self._failure:
            raise OSError(self._failure)
        begins = [begin for _, begin in marks if begin < len(taken)]
        counts = map(sub, [*begins[1:], len(taken)], begins)
        return taken, [(read_ns, count) for (read_ns, _), count in zip(marks, counts, strict=False)]

    def tend(self) -> float:
        """See transport.py: also a slow reader, which does not run the loop while it waits, answers pings."""
        self._connection.keep_alive()
        return SERVED_EVERY_S

    def connect(self, command: Configure, limit_s: float) -> ConnectPhases:
        """See transport.py. The client does not ask for the server's greeting before it connects."""
        self.close()
        self._subscribed, self._consumer = (), ""
        with self._connection.single_attempt(limit_s):
            self.configure(command)
        return self._connection.phases

    def lost(self) -> bool:
        """See transport.py: the library opens another connection."""
        return False

    def disconnections(self) -> list[Disconnection]:
        """See transport.py: the library reconnects, and subscribes again."""
        return self._connection.disconnections()

    def reconnect(self) -> tuple[int, int]:
        """See transport.py. A consumer continues after the last received message."""
        began_ns, step = time.monotonic_ns(), self._step
        if step is None:
            raise OSError("the subscriber is not configured")
        self._leave()
        self._connection.close()
        self._connection.open(step.access)
        self._subscribe(replace(step, first=self._position + 1))
        return began_ns, time.monotonic_ns()

    def undrained(self, system: SystemObject) -> int:
        """See transport.py. In core mode the server stores nothing, so the result is 0."""
        if system is None or self._step is None or not self._step.stream:
            return 0
        last = read_system(system, NatsEnd).last
        return self._waiting(self._step.stream) if self._has_some(self._step) else max(0, last - self._position)

    def _waiting(self, stream: str) -> int:
        """The number of messages of its consumer that have not arrived."""
        manager = self._connection.client.jsm(timeout=ANSWER_TIMEOUT_S)
        try:
            info = self._connection.do(manager.consumer_info(stream, self._consumer), ANSWER_TIMEOUT_S)
        except OSError:
            return 1  # it is not known that none waits
        delivered = info.delivered.consumer_seq if info.delivered else 0
        return (info.num_pending or 0) + max(delivered - self._delivered, 0) + len(self._messages)

    def report_system(self) -> dict[str, Any]:
        """See transport.py."""
        lost, why = self._connection.losses()
        return {**msgspec.to_builtins(self._connection.trouble()), **({LOST_WHY: reported(why)} if lost else {})}

    def close(self) -> None:
        """See transport.py. The server deletes a consumer without a subscriber by itself."""
        self._stop_fetching()
        self._connection.close()

    def _leave(self) -> None:
        """Ends the subscription and its consumer."""
        subscribed, self._subscribed = self._subscribed, ()
        consumer, self._consumer = self._consumer, ""
        self._stop_fetching()
        if not subscribed or not self._connection.connected:
            return
        with contextlib.suppress(OSError):
            for each in subscribed:
                self._connection.do(each.unsubscribe(), CLOSE_TIMEOUT_S)
            if consumer and self._step is not None:
                stream = self._connection.client.jsm(timeout=CLOSE_TIMEOUT_S)
                self._connection.do(stream.delete_consumer(self._step.stream, consumer), CLOSE_TIMEOUT_S)

    def _stop_fetching(self) -> None:
        fetching, self._fetching = self._fetching, None
        if fetching is not None:
            fetching.cancel()
            self._connection.turn()

    async def _take(self, message: Msg) -> None:
        """Called by the library for each message of a subscription; waits if too many messages wait for the client."""
        while len(self._messages) >= AT_HAND:
            self._room.clear()
            await self._room.wait()
        self._keep(message)
        if self._others and (other := self._others.get(message.sid)) is not None and self._first is not None:
            # The library takes the bytes of every message from the first subscription's account.
            self._first._pending_size += len(message.data)
            other._pending_size -= len(message.data)
        self._connection.caught_up()
        self._wake()

    def _wake(self) -> None:
        """Lets the client have the messages, unless it streams and there are few."""
        if self._marks is None or len(self._messages) >= AT_HAND:
            self._connection.stir()

    def _end_batch(self) -> None:
        self._in_batch = False

    def _keep(self, message: Msg) -> None:
        if self._marks is not None and not self._in_batch:
            self._in_batch = True
            self._marks.append((time.monotonic_ns(), len(self._messages)))
            self._connection.soon(self._end_batch)
        self._messages.append(message.data)
        if message.reply:
            parts = message.reply.split(".")
            at = 5 if len(parts) == _SHORT_REPLY else 7
            self._position = max(self._position, int(parts[at]))
            self._delivered = max(self._delivered, int(parts[at + 1]))

    async def _fetch(self, pulled: JetStreamContext.PullSubscription, step: NatsStep) -> None:
        while True:
            try:
                messages = await pulled.fetch(step.fetch_batch, timeout=FETCH_FOR_S)
            except (TimeoutError, nats.errors.TimeoutError):
                continue
            except nats.errors.ConnectionClosedError:
                return
            except (nats.errors.Error, nats.js.errors.Error) as e:
                self._failure = f"NATS refuses a batch of {step.stream}: {e}"
                self._connection.stir()
                return
            for message in messages:
                self._keep(message)
                if step.ack_policy == "explicit":
                    await message.ack()
            self._wake()
            while len(self._messages) >= AT_HAND:
                self._room.clear()
                await self._room.wait()


def subscribed_by(step: NatsStep, traffic: Traffic, client: int) -> tuple[str, ...]:
    """The subjects of a subscriber: a stream's consumer has one, which is a pattern if there are several topics."""
    if not traffic.several:
        return (step.subject,)
    if traffic.wildcard or (step.stream and traffic.chosen == traffic.topics):
        return (f"{step.subject}.*",)
    return tuple(subjects_of(step, client_topics(traffic, client)))
