"""The sending side of nats-py: core publish, or JetStream with the acknowledgements of the stream."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from hydra.client.transport import Answers, Delivery, read_system
from hydra.control.client import ControlClient
from hydra.natstest import control_messages
from hydra.natstest.connection import ANSWER_TIMEOUT_S, Connection
from hydra.wire.messages import Configure

UNWRITTEN_BYTES: Final = 2 * 1024 * 1024
"""What may wait to be written before no more is accepted: nats-py's own default."""
FULL_WAIT_S: Final = 0.005
HAND_OVER_S: Final = 0.01
_PROBE: Final = -1


class Publisher:
    """Publishes on one subject.

    Every message to a stream names a reply subject that ends with its sequence; what the server answers there is the
    account. That is what the library's ``publish_async`` does, without a future for each message: 28,000 messages a
    second instead of 16,000.
    """

    def __init__(self, client: int, control: ControlClient) -> None:
        self._connection = Connection(f"hydra-{client}", control)
        self._step: control_messages.Step | None = None
        self._replies: Subscription | None = None
        self._inbox = ""
        self._prefix = ""
        self._epoch = 0
        self._answers = Answers()
        self._probes = 0

    @property
    def marks_end(self) -> bool:
        """Core: a connection keeps the order. A stream's last sequence says more than a marker."""
        return self._step is not None and not self._step.stream

    def configure(self, command: Configure) -> str:
        """See transport.py. The connection is kept unless the servers changed."""
        step = read_system(command.system, control_messages.Step)
        if self._connection.open(step.servers):
            self._replies = None
        if step.stream and self._replies is None:
            client = self._connection.client
            self._inbox = client.new_inbox()
            self._replies = self._connection.do(
                client.subscribe(f"{self._inbox}.*.*", cb=self._on_reply, pending_bytes_limit=0), ANSWER_TIMEOUT_S
            )
        if command.settings.message_size > self._connection.client.max_payload:
            raise ValueError(
                f"the NATS server takes messages of at most {self._connection.client.max_payload} bytes (max_payload)"
            )
        # Its answer says that the server has everything of before, and lets us publish.
        self._connection.do(self._connection.client.flush(), ANSWER_TIMEOUT_S)
        self._connection.begin_step()
        self._step, self._epoch = step, command.epoch
        self._prefix = f"{self._inbox}.{command.epoch}."
        self._answers = Answers()
        self._probes = 0
        return ""

    def probe(self, message: bytes) -> None:
        """See transport.py."""
        step = self._configured()
        reply = f"{self._prefix}{_PROBE}" if step.stream else ""
        # One that is not answered yet says that the server is slow; more of them would make it slower.
        if (step.stream and self._probes > 0) or not self._room():
            self._connection.turn()
            return
        self._publish([message], [reply])
        self._probes += bool(reply)
        self._hand_over()

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """See transport.py. Full are the window of unacknowledged messages, or what waits to be written."""
        step = self._configured()
        acknowledged = bool(step.stream) and step.publish_acks
        room = step.publish_window - self._outstanding() if acknowledged else len(messages)
        taken = messages[: max(room, 0)] if self._room() else ()
        if not taken:
            self._connection.wait(FULL_WAIT_S)
            self._answers.take()
            return 0
        prefix = self._prefix
        replies = (
            [f"{prefix}{n}" for n in range(first_sequence, first_sequence + len(taken))]
            if acknowledged
            else [""] * len(taken)
        )
        self._publish(taken, replies)
        self._answers.ledger.accept(len(taken))
        self._hand_over()
        self._answers.take()
        return len(taken)

    def poll(self) -> None:
        """See transport.py."""
        self._connection.turn()
        self._answers.take()

    def framed_bytes(self, message_size: int) -> int | None:
        """``PUB SUBJECT  SIZE``, the message, and the two ends of lines; with a reply subject its length varies."""
        step = self._configured()
        if step.stream and step.publish_acks:
            return None
        return len(f"PUB {step.subject}  {message_size}\r\n\r\n".encode()) + message_size

    def flush(self, timeout_s: float) -> bool:
        """See transport.py. Core has no answers but that of a ping, which comes after everything before it."""
        step, deadline = self._configured(), time.monotonic() + timeout_s
        try:
            self._connection.do(self._connection.client.flush(round(max(timeout_s, 1))), timeout_s)
        except OSError:
            return False
        if not step.stream:
            return True
        left_s = max(deadline - time.monotonic(), 0)
        done = self._connection.run_while(lambda: self._outstanding() > 0 or self._probes > 0, left_s)
        self._answers.take()
        return done

    def delivery(self) -> Delivery | None:
        """See transport.py."""
        step = self._configured()
        if not step.stream or not step.publish_acks:
            return None
        return Delivery.of(self._answers.ledger, self._answers.last_ns)

    def report_system(self) -> dict[str, Any]:
        """See transport.py."""
        return msgspec.to_builtins(self._connection.trouble())  # type: ignore[no-any-return]

    def close(self) -> None:
        """See transport.py."""
        self._connection.close()

    def _configured(self) -> control_messages.Step:
        if self._step is None:
            raise OSError("the publisher is not configured")
        return self._step

    def _room(self) -> bool:
        return self._connection.connected and self._connection.client.pending_data_size < UNWRITTEN_BYTES

    def _outstanding(self) -> int:
        if self._step is None or not self._step.publish_acks:
            return 0
        return self._answers.ledger.pending - len(self._answers.good) - len(self._answers.bad)

    def _publish(self, messages: Sequence[bytes], replies: Sequence[str]) -> None:
        publish, subject = self._connection.client.publish, self._configured().subject

        async def all_of_them() -> None:
            for message, reply in zip(messages, replies, strict=True):
                await publish(subject, message, reply)

        try:
            self._connection.do(all_of_them(), ANSWER_TIMEOUT_S)
        except OSError as e:
            raise OSError(f"NATS refuses a message for {subject}: {e}") from None

    def _hand_over(self) -> None:
        """Lets the library write what it was given, before the client waits for something else."""
        client = self._connection.client
        self._connection.run_while(lambda: client.is_connected and client.pending_data_size > 0, HAND_OVER_S)

    async def _on_reply(self, message: Msg) -> None:
        _, epoch, sequence = message.subject.rsplit(".", 2)
        if int(epoch) != self._epoch:
            return
        # The answer to a message that no stream takes has a status and no data.
        refused = b'"error"' in message.data or not message.data
        if int(sequence) == _PROBE:
            self._probes -= 1
        elif refused:
            self._answers.bad.append(int(sequence))
        else:
            self._answers.good.append(int(sequence))
        if not self._outstanding():
            self._connection.stir()
