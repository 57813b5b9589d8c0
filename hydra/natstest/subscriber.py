"""The receiving side of nats-py: a core subscription, or an ephemeral consumer of a stream, push or pull."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext, api

from hydra.client.transport import read_system
from hydra.control.client import ControlClient
from hydra.natstest import control_messages
from hydra.natstest.connection import ANSWER_TIMEOUT_S, CLOSE_TIMEOUT_S, Connection
from hydra.wire.messages import Configure, SystemObject

AT_HAND: Final = 2000
"""Messages taken from the library and not yet by the client; beyond, they wait in the subscription, whose pending
limits are what is measured."""
FETCH_FOR_S: Final = 5.0
"""How long a pull request waits at the server where there is nothing; then it is asked anew."""
_SHORT_REPLY: Final = 9
"""Parts of a message's reply subject, $JS.ACK.stream.consumer.deliveries.stream_sequence.…; newer servers put two more
in front of the stream."""

_Subscribed = Subscription | JetStreamContext.PushSubscription | JetStreamContext.PullSubscription


class Subscriber:
    """Takes messages as its loop runs.

    A slow reader does not run it while it waits: like an application that is busy, it leaves messages in the
    subscription and in the socket, until the library or the server calls it a slow consumer.
    """

    def __init__(self, client: int, control: ControlClient) -> None:
        self._connection = Connection(f"hydra-{client}", control)
        self._step: control_messages.Step | None = None
        self._subscribed: _Subscribed | None = None
        self._consumer = ""
        self._fetching: asyncio.Task[None] | None = None
        self._messages: list[bytes] = []
        self._room = asyncio.Event()
        self._position = 0
        self._failure = ""

    def configure(self, command: Configure) -> None:
        """See transport.py. A consumer that stands where the step begins is kept."""
        step = read_system(command.system, control_messages.Step)
        anew = self._connection.open(step.servers) or self._step is None or self._failure != ""
        same = self._step is not None and replace(self._step, first=step.first) == step
        if anew or not same or (step.stream and self._position + 1 != step.first):
            self._leave()
            self._step = None  # told again after a failure, it tries again
            self._position = step.first - 1
            self._messages.clear()
            self._failure = ""
            self._subscribe(step)
            self._step = step
        self._connection.begin_step()

    def _subscribe(self, step: control_messages.Step) -> None:
        client, do = self._connection.client, self._connection.do
        limits: dict[str, Any] = {
            "pending_msgs_limit": step.pending_messages,
            "pending_bytes_limit": step.pending_bytes,
        }
        if not step.stream:
            self._subscribed = do(client.subscribe(step.subject, cb=self._take, **limits), ANSWER_TIMEOUT_S)
            # The server has heard of it when it has answered this.
            do(client.flush(), ANSWER_TIMEOUT_S)
            return
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=step.first,
            ack_policy=api.AckPolicy.EXPLICIT if step.ack_policy == "explicit" else api.AckPolicy.NONE,
            max_ack_pending=step.max_ack_pending if step.ack_policy == "explicit" else None,
        )
        stream, limits = client.jetstream(timeout=ANSWER_TIMEOUT_S), limits | {"stream": step.stream, "config": config}
        try:
            if step.consumer == "push":
                pushed = do(stream.subscribe(step.subject, cb=self._take, **limits), ANSWER_TIMEOUT_S)
                self._subscribed, self._consumer = pushed, pushed._consumer
            else:
                pulled = do(stream.pull_subscribe(step.subject, **limits), ANSWER_TIMEOUT_S)
                self._subscribed, self._consumer = pulled, pulled._consumer or ""
                self._fetching = self._connection.task(self._fetch(pulled, step))
        except OSError as e:
            raise OSError(f"no consumer of the stream {step.stream}: {e}") from None

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

    def reconnect(self) -> tuple[int, int]:
        """See transport.py. A consumer goes on behind the last message that was taken."""
        began_ns, step = time.monotonic_ns(), self._step
        if step is None:
            raise OSError("the subscriber is not configured")
        self._leave()
        self._connection.close()
        self._connection.open(step.servers)
        self._subscribe(replace(step, first=self._position + 1))
        return began_ns, time.monotonic_ns()

    def undrained(self, system: SystemObject) -> int:
        """See transport.py. Core keeps nothing that could be known."""
        if system is None or self._step is None or not self._step.stream:
            return 0
        return max(0, read_system(system, control_messages.End).last - self._position)

    def report_system(self) -> dict[str, Any]:
        """See transport.py."""
        return msgspec.to_builtins(self._connection.trouble())  # type: ignore[no-any-return]

    def close(self) -> None:
        """See transport.py. The server forgets a consumer that nobody listens to by itself."""
        self._stop_fetching()
        self._connection.close()

    def _leave(self) -> None:
        """Ends the subscription, and its consumer with it."""
        subscribed, self._subscribed = self._subscribed, None
        consumer, self._consumer = self._consumer, ""
        self._stop_fetching()
        if subscribed is None or not self._connection.connected:
            return
        with contextlib.suppress(OSError):
            self._connection.do(subscribed.unsubscribe(), CLOSE_TIMEOUT_S)
            if consumer and self._step is not None:
                stream = self._connection.client.jsm(timeout=CLOSE_TIMEOUT_S)
                self._connection.do(stream.delete_consumer(self._step.stream, consumer), CLOSE_TIMEOUT_S)

    def _stop_fetching(self) -> None:
        fetching, self._fetching = self._fetching, None
        if fetching is not None:
            fetching.cancel()
            self._connection.turn()

    async def _take(self, message: Msg) -> None:
        """Called by the library for every message of a subscription; it waits where the client is behind."""
        while len(self._messages) >= AT_HAND:
            self._room.clear()
            await self._room.wait()
        self._keep(message)
        self._connection.caught_up()
        self._connection.stir()

    def _keep(self, message: Msg) -> None:
        self._messages.append(message.data)
        if message.reply:
            parts = message.reply.split(".")
            self._position = max(self._position, int(parts[5 if len(parts) == _SHORT_REPLY else 7]))

    async def _fetch(self, pulled: JetStreamContext.PullSubscription, step: control_messages.Step) -> None:
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
            self._connection.stir()
            while len(self._messages) >= AT_HAND:
                self._room.clear()
                await self._room.wait()
