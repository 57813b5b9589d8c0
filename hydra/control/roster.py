"""Which clients are connected and what each has answered in the current epoch. No sockets, no clock.

Every frame passes :meth:`Roster.receive`; one that breaks a rule is refused, counted by its reason and dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Final

import msgspec

from hydra.control.clocks import ClockLine, HostKey
from hydra.control.hosts import HostWatch, post_of
from hydra.control.timekeeper import Timekeeper
from hydra.model import PublisherReport, SubscriberReport
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    Ack,
    ChildExit,
    Error,
    FromClient,
    Hello,
    Host,
    Progress,
    ProtocolError,
    Ready,
    Report,
    Reports,
    decode_from_client,
)

_IDS_AT_LEAST: Final = 1000


@dataclass(slots=True)
class Connection:
    """One peer of the channel: its routing identity and the clients that it may speak for."""

    identity: bytes
    hello: Hello
    ids: frozenset[int]
    last_seq: int


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a process: the clients in it, and its exit status (None: not known).

    ``replaced``: whether a new process takes its place. ``present``: whether its clients counted as connected until
    then; those of a process that we were ending, or that had not said hello yet, did not.
    """

    ids: list[int]
    pid: int
    status: int | None
    replaced: bool
    present: bool


@dataclass(slots=True)
class EpochAnswers:
    """What has been received about one epoch."""

    epoch: int
    acks: dict[str, set[int]] = field(default_factory=dict)
    ready: dict[int, str] = field(default_factory=dict)
    publisher_reports: dict[int, PublisherReport] = field(default_factory=dict)
    subscriber_reports: dict[int, SubscriberReport] = field(default_factory=dict)
    progress: dict[int, Progress] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)

    def acked(self, command: str) -> Set[int]:
        """The clients that acknowledged this command."""
        return self.acks.get(command, set())

    def configured(self) -> Set[int]:
        """The publishers that took their settings and named their endpoints."""
        return self.acked("configure") & self.ready.keys()

    def forget(self, command: str, clients: Iterable[int]) -> None:
        """Drops these clients' acknowledgements: they get the command once more and have to acknowledge it again."""
        self.acks.get(command, set()).difference_update(clients)


class Roster:
    """The controller's knowledge of its clients.

    Attributes:
        answers: of the current epoch; :meth:`begin` starts a new one.
        refused: frames that changed nothing, by reason.
        pongs: a client's last answer to a ping: what it echoed and its clock (ns).
        own: the host of the controller.
        timekeeper: asks the wardens and servers of other hosts for their time.
        watch: has them watch what these hosts do.

    Arguments:
        own: as above.
        network: the network namespace of the controller.
    """

    def __init__(self, own: HostKey = ("", ""), network: str = "") -> None:
        self.answers = EpochAnswers(0)
        self.refused: Counter[str] = Counter()
        self.pongs: dict[int, tuple[int, int]] = {}
        self.own = own
        self.timekeeper = Timekeeper(own)
        self.watch = HostWatch((*own, network))
        self._expected: dict[int, str] = {}
        # A few bytes can name a million ids. Nobody carries more than were ever expected at once.
        self._most_ids = _IDS_AT_LEAST
        self._connections: dict[bytes, Connection] = {}
        self._clients: dict[int, Connection] = {}
        self._wardens: dict[str, Connection] = {}
        self._exits: list[Exit] = []
        # The pid of each client's last process that has ended, and whether its exit status is known.
        self._last_exits: dict[int, tuple[int, bool]] = {}
        # That of each client's next process, where one has ended.
        self._next_incarnations: dict[int, int] = {}

    # --- commands of the runner --------------------------------------------------------------------------------------

    def expect(self, group: str, ids: Iterable[int]) -> None:
        """Admits clients with these ids; a hello of any other id, or from another group, is refused."""
        for client in ids:
            self._expected[client] = group
        self._most_ids = max(self._most_ids, len(self._expected))

    def disconnect(self, ids: Iterable[int]) -> None:
        """The processes of these clients are being ended; new ones with the same ids may connect."""
        for client in ids:
            connection = self._clients.pop(client, None)
            if connection is not None and not any(self._clients.get(c) is connection for c in connection.ids):
                self._drop(connection)

    def forget(self, ids: Collection[int]) -> None:
        """These clients will not come back; nothing is sent to their connections any more."""
        self.disconnect(ids)
        for client in ids:
            self._last_exits.pop(client, None)
            self._next_incarnations.pop(client, None)
        touched = {self._expected.pop(client, "") for client in ids}
        for group in touched - set(self._expected.values()):
            warden = self._wardens.pop(group, None)
            if warden is not None:
                self._drop(warden)

    def begin(self, epoch: int) -> None:
        """Starts a new epoch; answers about older ones are ignored from now on."""
        self.answers = EpochAnswers(epoch)

    def take_exits(self) -> list[Exit]:
        """The deaths that have become known since the last call."""
        exits, self._exits = self._exits, []
        return exits

    # --- questions of the runner -------------------------------------------------------------------------------------

    def present(self) -> Set[int]:
        """Clients that have said hello and are not known to be dead."""
        return self._clients.keys()

    def wardens(self) -> Set[str]:
        """Groups whose warden has said hello."""
        return self._wardens.keys()

    def warden(self, group: str) -> bytes | None:
        """The identity of this group's warden, None before its hello."""
        connection = self._wardens.get(group)
        return None if connection is None else connection.identity

    def hello(self, client: int) -> Hello:
        """The client's hello; KeyError if there was none."""
        return self._clients[client].hello

    def host(self, client: int) -> HostKey:
        """The host that the client said hello from; KeyError if there was no hello."""
        return _host(self._clients[client].hello)

    def clock(self, host: HostKey, now_ns: int) -> ClockLine | None:
        """A host's clock against the controller's, whose own is exact; None where nothing has been heard of it."""
        if host == self.own:
            return ClockLine(offset_ns=0, at_ns=now_ns, rate_ppb=0, error_ns=0)
        estimate = self.timekeeper.estimate(host)
        return None if estimate is None else estimate.line(now_ns)

    def incarnation(self, client: int) -> int:
        """Of the process that carries this client, or will: 0 for one of which nothing is known."""
        connection = self._clients.get(client)
        return self._next_incarnations.get(client, 0) if connection is None else connection.hello.incarnation

    def identities(self, ids: Iterable[int]) -> Iterator[tuple[bytes, list[int]]]:
        """Each connection that carries some of these clients, with those that it carries."""
        carried: dict[bytes, list[int]] = {}
        for client in ids:
            connection = self._clients.get(client)
            if connection is not None:
                carried.setdefault(connection.identity, []).append(client)
        yield from carried.items()

    def carries_only(self, identity: bytes, ids: list[int]) -> bool:
        """Whether these are all clients of that connection."""
        return len(self._connections[identity].ids) == len(ids)

    def everyone(self) -> list[bytes]:
        """The identity of every connection, wardens included."""
        return list(self._connections)

    # --- frames from peers -------------------------------------------------------------------------------------------

    def receive(self, identity: bytes, frame: bytes, received_ns: int = 0) -> Hello | None:
        """Takes one frame from a peer; returns a hello that is to be welcomed: a new one, or one said again.

        ``received_ns`` is when the frame came, on CLOCK_MONOTONIC.
        """
        if len(frame) > MAX_MESSAGE_BYTES:
            self.refused["oversized"] += 1
            return None
        try:
            message = decode_from_client(frame, self._most_ids)
        except ProtocolError:
            self.refused["malformed"] += 1
            return None
        if isinstance(message, Hello):
            return self._hello(identity, message, received_ns)
        connection = self._connections.get(identity)
        if connection is None:
            self.refused["unannounced"] += 1
        elif message.seq <= connection.last_seq:
            self.refused["replayed"] += 1
        elif not message.ids or not connection.ids.issuperset(message.ids):
            self.refused["foreign_id"] += 1
        else:
            connection.last_seq = message.seq
            self._take(connection, message, received_ns)
        return None

    def _hello(self, identity: bytes, hello: Hello, received_ns: int) -> Hello | None:
        if not hello.ids or any(self._expected.get(c) != hello.group for c in hello.ids):
            self.refused["unexpected_hello"] += 1
            return None
        known = self._connections.get(identity)
        if known is not None:
            return self._hello_again(known, hello)
        connection = Connection(identity, hello, frozenset(hello.ids), hello.seq)
        if hello.warden:
            if hello.group in self._wardens:
                self.refused["duplicate_hello"] += 1
                return None
            self._wardens[hello.group] = connection
        else:
            holders = [self._clients[c] for c in hello.ids if c in self._clients]
            if any(h.hello.incarnation >= hello.incarnation for h in holders):
                self.refused["duplicate_hello"] += 1
                return None
            for holder in holders:
                # The old process is gone with all its clients; the warden's message about that may have been lost.
                self._drop(holder)
                carried = sorted(client for client in holder.ids if self._clients.get(client) is holder)
                for client in carried:
                    del self._clients[client]
                self._ended(Exit(carried, holder.hello.pid, None, replaced=True, present=True))
            for client in hello.ids:
                self._clients[client] = connection
        self._connections[identity] = connection
        if _is_post(hello):
            self.timekeeper.joined(identity, _host(hello), received_ns)
            self.watch.joined(identity, post_of(hello))
        return hello

    def _hello_again(self, known: Connection, hello: Hello) -> Hello | None:
        """A peer that has not received its welcome repeats its hello."""
        if msgspec.structs.replace(hello, seq=known.hello.seq) != known.hello:
            self.refused["repeated_hello"] += 1
        elif hello.seq <= known.last_seq:
            self.refused["replayed"] += 1
        else:
            known.last_seq = hello.seq
            return hello
        return None

    def _drop(self, connection: Connection) -> None:
        """Forgets a connection: nothing is sent to it or taken from it any more."""
        self._connections.pop(connection.identity, None)
        self.timekeeper.left(connection.identity)
        self.watch.left(connection.identity)

    def _take(self, connection: Connection, message: FromClient, received_ns: int) -> None:
        if isinstance(message, ChildExit):
            self._child_exit(connection, message)
        elif isinstance(message, Ack) and message.command == "ping":
            if _is_post(connection.hello):
                self.timekeeper.heard(connection.identity, message.echo, message.time_ns, received_ns)
            else:
                self.pongs.update(dict.fromkeys(message.ids, (message.echo, message.time_ns)))
        elif isinstance(message, Host):
            if not self.watch.heard(connection.identity, message, received_ns):
                self.refused["not_a_warden"] += 1
        elif connection.hello.warden and not isinstance(message, Error):
            self.refused["not_for_a_warden"] += 1
        elif isinstance(message, Error) and message.epoch == 0:
            # It belongs to no epoch; it is kept for the user.
            self.answers.errors.update(dict.fromkeys(message.ids, message.message))
        elif message.epoch > self.answers.epoch:  # type: ignore[union-attr]  # a Hello never comes here
            self.refused["out_of_epoch"] += 1
        elif message.epoch < self.answers.epoch:  # type: ignore[union-attr]
            pass  # it is late, or a repetition
        else:
            self._answer(message)

    def _answer(self, message: FromClient) -> None:
        answers = self.answers
        match message:
            case Ack():
                answers.acks.setdefault(message.command, set()).update(message.ids)
            case Ready():
                answers.ready.update(dict.fromkeys(message.ids, message.endpoint))
            case Progress():
                answers.progress.update(dict.fromkeys(message.ids, message))
            case Error():
                answers.errors.update(dict.fromkeys(message.ids, message.message))
            case Report():
                self._report(message)
            case Reports():
                for report in message.each():
                    self._report(report)

    def _report(self, message: Report) -> None:
        answers, client = self.answers, message.ids[0]
        known = answers.publisher_reports.get(client) or answers.subscriber_reports.get(client)
        if len(message.ids) != 1 or known not in (None, message.publisher or message.subscriber):
            self.refused["repeated_report"] += 1
        elif message.publisher is not None:
            answers.publisher_reports[client] = message.publisher
        elif message.subscriber is not None:
            answers.subscriber_reports[client] = message.subscriber

    def _child_exit(self, connection: Connection, message: ChildExit) -> None:
        if not connection.hello.warden:
            self.refused["not_a_warden"] += 1
            return
        # Ids that now belong to another group are new clients: the end of their old process does not matter any more.
        ids = [client for client in message.ids if self._expected.get(client) == connection.hello.group]
        present = False
        for client in ids:
            after = message.incarnation + 1
            self._next_incarnations[client] = max(after, self._next_incarnations.get(client, 0))
            holder = self._clients.get(client)
            # The replacement may have said hello before the message about its predecessor's death came.
            if holder is not None and holder.hello.pid == message.pid:
                present = True
                self.disconnect([client])
        self._ended(Exit(ids, message.pid, message.status, message.replaced, present))

    def _ended(self, exit_: Exit) -> None:
        """Records a death once, however often the message about it comes.

        A death that is known from the replacement's hello is recorded a second time when its cause arrives.
        """
        known = (exit_.pid, True), (exit_.pid, exit_.status is not None)
        if any(self._last_exits.get(client) not in known for client in exit_.ids):
            self._last_exits.update(dict.fromkeys(exit_.ids, known[1]))
            self._exits.append(exit_)


def _is_post(hello: Hello) -> bool:
    """Whether it is asked what goes on at its host; a client has a step to attend to."""
    return hello.warden or hello.role == "server"


def _host(hello: Hello) -> HostKey:
    return hello.boot_id, hello.time_namespace
