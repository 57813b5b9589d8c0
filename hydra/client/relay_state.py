"""A relay's decisions: what clients get a command, and when their answers go to the controller, gathered or merged.

Pure: :mod:`hydra.client.relay` has the sockets, time is passed in, and messages to send are calls of the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import msgspec

from hydra.client.relayed_replies import (
    BATCHED_WITHIN_NS,
    RESEND_EVERY_NS,
    CommandReplies,
    Kind,
    PendingRegistrations,
    ReplyAggregator,
    ReportBatch,
    ReportBatches,
)
from hydra.model import GroupRole
from hydra.wire.compact_encoding import encode_ids
from hydra.wire.messages import (
    ACKNOWLEDGED,
    VERSION,
    Ack,
    Batch,
    ChildExit,
    Configure,
    EpochCommand,
    EpochReply,
    Error,
    Evict,
    Finish,
    FromClient,
    FromController,
    Hello,
    Joined,
    Quit,
    Ready,
    Report,
    Stop,
    TimeSeries,
    Welcome,
    encode,
    name_of,
)
from hydra.wire.report_batch import BatchPart
from hydra.wire.time_series import TimeSeriesSum, parts

ANY_INCARNATION: Final = 2**32 - 1
_JOINED_AT_ONCE: Final = 10_000
"""Most clients in one ``joined``: many more would not fit into a message."""
TIME_SERIES_WITHIN_NS: Final = 500_000_000
"""How long the first time series of a client waits for those of others, ns."""
_QUIT: Final = encode(Quit())
_REFUSABLE: Final[tuple[Kind, ...]] = (Configure, Finish)
"""The commands that a client may answer with an error."""


class AckKey(NamedTuple):
    """The fields of an ``ack`` that gathered clients share; without their clocks."""

    number: int
    command: str


class ReadyKey(NamedTuple):
    """The fields of a ``ready`` that gathered clients share."""

    number: int
    endpoint: str


class ErrorKey(NamedTuple):
    """The fields of an ``error`` that gathered clients share."""

    epoch: int
    number: int
    message: str
    fatal: bool


@dataclass(slots=True)
class ClientConnection:
    """One client process; ``living`` until its end is known or a later process with its ids sends ``hello``."""

    name: bytes
    ids: Sequence[int]
    incarnation: int
    pid: int
    living: bool = True


class RelayOutputs(Protocol):
    """What a relay's decisions call."""

    def to_controller(self, message: FromClient, payload: bytes | None = None) -> None:
        """Sends a message to the controller and sets its ``seq``. The payload is a batch's second frame."""

    def to_client(self, name: bytes, frame: bytes) -> None:
        """Sends a frame to the client with this connection."""

    def kill(self, client: int, most: int) -> None:
        """Kills the client, unless its incarnation is above ``most``."""


class RelayState:
    """The state of one group's relay.

    Args:
        ids: all clients of the group.
        role: the role of all of them.
        ends: performs the outputs.
    """

    def __init__(self, ids: Sequence[int], role: GroupRole, ends: RelayOutputs) -> None:
        self._ids = list(ids)
        self._role = role
        self._ends = ends
        self._connections: dict[bytes, ClientConnection] = {}
        self._connection_of: dict[int, ClientConnection] = {}
        self._welcome: bytes | None = None
        self._joined = PendingRegistrations()
        self._leaving: dict[bytes, int] = {}  # connections that have to quit, and when ``quit`` is resent
        self.dismissed = False
        """Whether all clients have to quit, including those that join later."""
        self._final_exits: dict[int, ChildExit] = {}
        self._commands = CommandReplies(role)
        self._unready: set[int] = set()
        self._acknowledged: ReplyAggregator[AckKey] = ReplyAggregator()
        self._is_ready: ReplyAggregator[ReadyKey] = ReplyAggregator()
        self._failed: ReplyAggregator[ErrorKey] = ReplyAggregator()
        self._failed_before: set[ErrorKey] = set()
        self._batching = ReportBatches()
        self._cohort: set[int] = set()
        # The clients' time series of the step: outside the cohort, and in the cohort.
        self._time_series = (TimeSeriesSum(), TimeSeriesSum())
        self._time_series_ns: int | None = None
        # Answers in this epoch, by client, for a controller that asks again.
        self._endpoints: dict[int, str] = {}
        self._failures: dict[tuple[int, int], ErrorKey] = {}  # by the command's number and client
        self._reports: dict[int, Report] = {}

    # --- from the controller ---------------------------------------------------------------------------------------

    def obey(self, message: FromController, now_ns: int) -> None:
        """Obeys a message from the controller."""
        match message:
            case Welcome():
                self._welcomed(message, now_ns)
            case EpochCommand():
                self._pass_on(message, now_ns)
            case Quit():
                self._dismiss(message, now_ns)
            case Evict():
                self._evict(message)
            case _:
                pass  # the others are not for clients

    def _welcomed(self, welcome: Welcome, now_ns: int) -> None:
        self._joined.named(welcome.ids)
        if self._welcome is None:
            # A client ends with its parent, so it needs no limit for silence.
            self._welcome = encode(Welcome(v=VERSION, run=welcome.run, silence_s=0.0))
            for connection in self._connections.values():
                self._receive(connection, now_ns)

    def _pass_on(self, command: EpochCommand, now_ns: int) -> None:
        epoch = self._commands.epoch
        # A process that replaced a dead client and is not yet known to the controller must not get this command.
        living = [client for client in self._living(command.ids) if self._joined.is_named(client)]
        given = self._commands.give(command, living, now_ns)
        if self._commands.epoch != epoch:
            self._forget_epoch(now_ns)
        if isinstance(command, Configure) and command.epoch == self._commands.epoch:
            self._configured(command, given.fresh)
        self._send_command(command, given.recipients)
        self._repeat(command, given.answered, now_ns)

    def _configured(self, command: Configure, clients: Iterable[int]) -> None:
        """Prepares for a configuration that these clients have not had before."""
        proves = command.probe or self._role == "publisher"
        for client in clients:
            self._endpoints.pop(client, None)
        (self._unready.update if proves else self._unready.difference_update)(clients)
        (self._cohort.update if command.cohort else self._cohort.difference_update)(clients)

    def _forget_epoch(self, now_ns: int) -> None:
        # Errors are sent nevertheless: an error may be the reason why a client is about to end.
        self._send_failures(now_ns, at_once=True)
        for waiting in (self._acknowledged, self._is_ready, self._batching):
            waiting.clear()
        self._time_series = (TimeSeriesSum(), TimeSeriesSum())
        self._time_series_ns = None
        for some in (self._cohort, self._unready, self._failed_before):
            some.clear()
        for kept in (self._endpoints, self._failures, self._reports):
            kept.clear()

    def _repeat(self, command: EpochCommand, clients: Sequence[int], now_ns: int) -> None:
        """Sends the answers again, for a command that the controller repeated to clients that had answered it."""
        kind, number = type(command), command.number
        failed = {client: self._failures[number, client] for client in clients if (number, client) in self._failures}
        for client, failure in failed.items():
            self._failed.add(failure, [client], now_ns)
        answered = [client for client in clients if client not in failed]
        if kind is Finish:
            self._send_batches(self._batching.of(answered))
            return
        for client in answered:
            if kind is Stop and client in self._reports:
                self._ends.to_controller(self._reports[client])
            elif kind is Configure and client in self._endpoints:
                self._is_ready.add(ReadyKey(number, self._endpoints[client]), [client], now_ns)
        acknowledged = [client for client in answered if kind is not Stop or client not in self._reports]
        if acknowledged:
            self._acknowledged.add(AckKey(number, name_of(kind)), acknowledged, now_ns)

    def _dismiss(self, message: Quit, now_ns: int) -> None:
        if not message.ids:
            self.dismissed = True
        for name in {self._connection_of[client].name for client in self._living(message.ids)}:
            self._leaving[name] = now_ns

    def _evict(self, message: Evict) -> None:
        ids = message.ids or self._ids
        # The controller that evicts a client that is dead for good has not received its end.
        for exit_ in {id(self._final_exits[c]): self._final_exits[c] for c in ids if c in self._final_exits}.values():
            self._ends.to_controller(exit_)
        for client in ids:
            self._ends.kill(client, ANY_INCARNATION if message.incarnation is None else message.incarnation)

    # --- from clients ----------------------------------------------------------------------------------------------

    def take_message(self, name: bytes, message: FromClient, now_ns: int, payload: bytes | None = None) -> None:
        """Handles a message from the client process with the connection ``name``.

        Args:
            name: the name of the connection.
            message: the content of the first frame.
            now_ns: the present time.
            payload: the second frame; None: there is none.

        Raises:
            ValueError: the columns of a batch do not fit together; nothing has changed.
        """
        if isinstance(message, Batch) == (payload is None):
            return
        if isinstance(message, Hello):
            self._introduced(name, message, now_ns)
            return
        connection = self._connections.get(name)
        if connection is None or not set(message.ids) <= set(connection.ids):
            return
        match message:
            case Error():
                self._complained(message, now_ns, living=connection.living)
            case TimeSeries():
                self._take_time_series(message, now_ns)
            case Report():
                self._reported(message, living=connection.living)
            case Batch() if payload is not None:
                part = BatchPart(message.ids, message.columns, payload)
                self._take_batch(message, part, now_ns, living=connection.living)
            case _ if not connection.living:
                pass  # its commands now concern the process that replaced it
            case Ack():
                self._answered(message, now_ns)
            case Ready():
                self._proven(message, now_ns)
            case EpochReply(relay="pass"):
                self._ends.to_controller(message)
            case _:
                pass

    def _introduced(self, name: bytes, hello: Hello, now_ns: int) -> None:
        if not set(hello.ids) <= set(self._ids):
            return
        connection = self._connections.get(name)
        if connection is None:
            if any(self._incarnation(client) >= hello.incarnation for client in hello.ids):
                return
            for before in [self._connection_of[client] for client in hello.ids if client in self._connection_of]:
                self._left(before)
            connection = ClientConnection(name, list(hello.ids), hello.incarnation, hello.pid)
            self._connections[name] = connection
            self._connection_of.update(dict.fromkeys(hello.ids, connection))
        if self._welcome is not None or self.dismissed:
            self._receive(connection, now_ns)

    def _incarnation(self, client: int) -> int:
        """The client's latest incarnation that has sent ``hello``; −1 if none has."""
        known = self._connection_of.get(client)
        return -1 if known is None else known.incarnation

    def _receive(self, connection: ClientConnection, now_ns: int) -> None:
        """Welcomes a client, or makes it quit."""
        if not connection.living:
            return
        if self.dismissed:
            self._leaving[connection.name] = now_ns
        elif self._welcome is not None:
            self._ends.to_client(connection.name, self._welcome)
            self._joined.add(connection.ids, now_ns)

    def take_exit(self, exit_: ChildExit) -> None:
        """Records that the process of these clients has ended."""
        if not exit_.replaced:
            self._final_exits.update(dict.fromkeys(exit_.ids, exit_))
        for connection in {id(c): c for i in exit_.ids if (c := self._connection_of.get(i))}.values():
            if connection.incarnation <= exit_.incarnation:
                self._left(connection)
        self._ends.to_controller(exit_)

    def _left(self, connection: ClientConnection) -> None:
        connection.living = False
        for client in connection.ids:
            del self._connection_of[client]
            self._endpoints.pop(client, None)
        self._commands.left(connection.ids)
        if self._failures:
            ended = set(connection.ids)
            self._failures = {of: failed for of, failed in self._failures.items() if of[1] not in ended}
        self._unready.difference_update(connection.ids)
        self._joined.left(connection.ids)
        self._leaving.pop(connection.name, None)

    def _answered(self, ack: Ack, now_ns: int) -> None:
        kind = ACKNOWLEDGED.get(ack.command)
        if kind is None or ack.epoch != self._commands.epoch:
            return
        if ids := self._commands.answered(kind, ack.number, ack.ids):
            self._acknowledged.add(AckKey(ack.number, ack.command), ids, now_ns)

    def _proven(self, ready: Ready, now_ns: int) -> None:
        if ready.epoch != self._commands.epoch:
            return
        ids = [client for client in ready.ids if not self._commands.is_late(Configure, ready.number, client)]
        self._endpoints.update(dict.fromkeys(ids, ready.endpoint))
        self._unready.difference_update(ids)
        if ids:
            self._is_ready.add(ReadyKey(ready.number, ready.endpoint), ids, now_ns)

    def _complained(self, error: Error, now_ns: int, *, living: bool) -> None:
        """Passes on an error; it may answer a ``configure`` or a ``finish``, and one to an earlier command is late."""
        failed = ErrorKey(error.epoch, error.number, error.message, error.fatal)
        ids = error.ids
        if living and error.number and error.epoch == self._commands.epoch:
            ids = [c for kind in _REFUSABLE for c in self._commands.answered(kind, error.number, ids)]
            self._failures.update(dict.fromkeys([(error.number, client) for client in ids], failed))
            self._unready.difference_update(ids)
        if not ids:
            return
        if failed in self._failed_before:
            self._failed.add(failed, ids, now_ns)
        else:
            self._failed_before.add(failed)
            self._ends.to_controller(msgspec.structs.replace(error, ids=ids))

    def _reported(self, report: Report, *, living: bool) -> None:
        if report.epoch != self._commands.epoch or len(report.ids) != 1:
            return
        if living and not self._commands.answered(Stop, report.number, report.ids):
            return  # a late answer
        self._reports[report.ids[0]] = report
        self._send_time_series()
        self._ends.to_controller(report)

    def _take_batch(self, batch: Batch, part: BatchPart, now_ns: int, *, living: bool) -> None:
        """Takes all reports of a batch or none, because the sums of their histograms cannot be divided.

        None is taken if one of the clients has reported before, or if its last ``finish`` is not the one of this
        answer: the clients without a report report once more when the command is resent.
        """
        if batch.epoch != self._commands.epoch or not batch.ids:
            return
        number = 0 if isinstance(batch.number, msgspec.UnsetType) else batch.number
        known = [client for client in batch.ids if self._batching.holds(client)]
        late = living and any(self._commands.is_late(Finish, number, client) for client in batch.ids)
        awaited = {client for client in known if living and self._commands.waits(Finish, client)}
        answered = known if known or late else batch.ids
        if living:
            answered = self._commands.answered(Finish, number, answered)
        for client in answered:
            # The client failed at first and has reported since: the report counts.
            self._failures.pop((number, client), None)
        if known or late:
            self._send_batches(self._batching.of(awaited.intersection(answered)))
        else:
            self._send_batches(self._batching.add(batch.epoch, part, now_ns))

    def _take_time_series(self, message: TimeSeries, now_ns: int) -> None:
        if message.epoch == self._commands.epoch:
            self._time_series[message.ids[0] in self._cohort].add(message.seconds)
            if self._time_series_ns is None:
                self._time_series_ns = now_ns + TIME_SERIES_WITHIN_NS

    def _send_time_series(self) -> None:
        """Sends the sums of the time series that arrived since the last time."""
        self._time_series_ns = None
        for in_cohort, message in enumerate(self._time_series):
            for part in parts(message.take()):
                others, cohort = ([], part) if in_cohort else (part, [])
                epoch = self._commands.epoch
                self._ends.to_controller(TimeSeries(ids=self._ids, seq=1, epoch=epoch, seconds=others, cohort=cohort))

    # --- in time ---------------------------------------------------------------------------------------------------

    def work(self, now_ns: int) -> int | None:
        """Sends what is due; returns when something will be due next, None if nothing is planned."""
        epoch = self._commands.epoch
        if joining := self._joined.take(now_ns, complete=len(self._connection_of) == len(self._ids)):
            self._send_joined(joining)
        self._send_gathered(now_ns)
        if self._time_series_ns is not None and now_ns >= self._time_series_ns:
            self._send_time_series()
        batch_ns = self._batching.next_ns()
        if batch_ns is not None and (now_ns >= batch_ns or not self._commands.awaited(Finish)):
            self._send_batches(self._batching.flush(epoch))
        for again, clients in self._commands.resends(now_ns):
            self._send_command(again, clients)
        for name, due_ns in self._leaving.items():
            if now_ns >= due_ns:
                self._leaving[name] = now_ns + RESEND_EVERY_NS
                self._ends.to_client(name, _QUIT)
        gathered = (self._acknowledged.next_ns(), self._is_ready.next_ns(), self._failed.next_ns())
        others = (self._joined.next_ns(), self._batching.next_ns(), self._commands.next_ns(), *self._leaving.values())
        others = (self._time_series_ns, *others)
        return min((due_ns for due_ns in (*gathered, *others) if due_ns is not None), default=None)

    def _send_gathered(self, now_ns: int) -> None:
        """Sends the answers that have waited long enough or are complete."""
        epoch = self._commands.epoch
        for (number, command), ids in self._acknowledged.take(now_ns, self._all_acknowledged):
            self._ends.to_controller(Ack(ids=ids, seq=1, epoch=epoch, number=number, command=command, time_ns=now_ns))
        for (number, endpoint), ids in self._is_ready.take(now_ns, lambda _: not self._unready):
            self._ends.to_controller(Ready(ids=ids, seq=1, epoch=epoch, number=number, endpoint=endpoint))
        self._send_failures(now_ns)

    def _send_failures(self, now_ns: int, *, at_once: bool = False) -> None:
        for (epoch, number, text, fatal), ids in self._failed.take(now_ns, lambda _: at_once):
            self._ends.to_controller(Error(ids=ids, seq=1, epoch=epoch, number=number, message=text, fatal=fatal))

    def end(self, now_ns: int) -> None:
        """Sends all that waits; all clients have ended."""
        self.work(now_ns + BATCHED_WITHIN_NS)

    def _all_acknowledged(self, key: AckKey) -> bool:
        kind = ACKNOWLEDGED.get(key.command)
        return kind is not None and not self._commands.awaited(kind)

    def _send_joined(self, clients: Sequence[int]) -> None:
        for at in range(0, len(clients), _JOINED_AT_ONCE):
            ids = clients[at : at + _JOINED_AT_ONCE]
            processes = [self._connection_of[client] for client in ids]
            incarnations, pids = [p.incarnation for p in processes], [p.pid for p in processes]
            self._ends.to_controller(Joined(ids=list(ids), seq=1, incarnations=incarnations, pids=pids))

    def _send_batches(self, batches: Iterable[ReportBatch]) -> None:
        for made in batches:
            # A controller that has the reports must also have the time series that belong to them.
            self._send_time_series()
            self._ends.to_controller(made.head, made.payload)

    # --- to clients ------------------------------------------------------------------------------------------------

    def _living(self, ids: Sequence[int]) -> list[int]:
        """The clients among these that are connected; an empty list stands for all."""
        return [client for client in ids or self._ids if client in self._connection_of]

    def _send_command(self, command: EpochCommand, clients: Iterable[int]) -> None:
        carried: dict[bytes, list[int]] = {}
        for client in clients:
            carried.setdefault(self._connection_of[client].name, []).append(client)
        to_all = encode(command, [])
        for name, ids in carried.items():
            is_for_all = len(ids) == len(self._connections[name].ids)
            self._ends.to_client(name, to_all if is_for_all else encode(command, encode_ids(ids)))
