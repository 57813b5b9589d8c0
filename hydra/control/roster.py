"""The connected clients, and their replies in the current epoch. No sockets, no clock.

Relays send messages for whole groups: a client is a bit in bitmaps and an item in arrays, but no Python object. Every
message passes :meth:`Roster.receive`; one that breaks a rule is rejected, counted by its reason and dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from typing import Any, Final, NamedTuple

import msgspec
from pyroaring import BitMap

from hydra.control import id_bitmaps as id_sets
from hydra.control.clock_offset import ClockLine, ClockPings, HostKey
from hydra.control.connection import ProcessExit, RelayConnection
from hydra.control.epoch_replies import EpochReplies
from hydra.control.id_bitmaps import bitmap
from hydra.control.watch_assignment import HostWatch, KernelTextRequests, source_of
from hydra.model import PublisherReport
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    Ack,
    Batch,
    ChildExit,
    EpochReply,
    Error,
    FromClient,
    Hello,
    HostReadings,
    Joined,
    KernelTexts,
    Progress,
    ProtocolError,
    Ready,
    Report,
    TimeSeries,
    decode_from_client,
)
from hydra.wire.report_batch import MAX_BATCH_BYTES

__all__ = ["EpochReplies", "PeerWelcome", "ProcessExit", "Roster"]

_IDS_AT_LEAST: Final = 1000


class PeerWelcome(NamedTuple):
    """The immediate answer to a peer.

    ``welcome``: the clients in the welcome; empty: the welcome is for the connection itself; None: no welcome.
    ``dismissed``: clients that belong to no group or to another one, and have to end.
    """

    welcome: BitMap | None
    dismissed: BitMap


class Roster:
    """The controller's record of its clients.

    Attributes:
        answers: the replies of the current epoch; :meth:`begin` starts a new one.
        refused: the number of rejected messages by reason.
        own: the host of the controller.
        timekeeper: the schedule of pings to other hosts.
        watch: the watch of other hosts by relays and servers.
        looks: the readings of kernel files on other hosts.

    Arguments:
        own: the host of the controller.
        network: the network namespace of the controller.
    """

    def __init__(self, own: HostKey = ("", ""), network: str = "") -> None:
        self.answers = EpochReplies(0)
        self.refused: Counter[str] = Counter()
        self.own = own
        self.timekeeper = ClockPings(own)
        self.watch = HostWatch((*own, network))
        self.looks = KernelTextRequests(own)
        # The clients of each group: those that it was launched with, and those that still belong to it.
        self._launched: dict[str, BitMap] = {}
        self._expected: dict[str, BitMap] = {}
        self._all_expected = BitMap()
        # The runs of ids of the groups, by rising first id; None: to be computed again.
        self._homes: list[tuple[int, int, str]] | None = None
        # A few bytes can name a million ids, but no message has more than were ever expected at once.
        self._most_ids = _IDS_AT_LEAST
        self._connections: dict[bytes, RelayConnection] = {}
        self._by_group: dict[str, RelayConnection] = {}
        # Connections whose groups have no clients any more: their last messages are ignored, not rejected.
        self._ended: set[bytes] = set()
        self._present = BitMap()
        self._exits: list[ProcessExit] = []

    # --- commands of the runner --------------------------------------------------------------------------------------

    def expect(self, group: str, ids: Iterable[int]) -> None:
        """Accepts clients with these ids in this group; others are rejected."""
        clients = bitmap(ids)
        if self._all_expected.intersect(clients):
            self.forget(self._all_expected & clients)
        self._launched[group] = self._launched.get(group, BitMap()) | clients
        self._expected[group] = self._expected.get(group, BitMap()) | clients
        self._all_expected |= clients
        self._homes = None
        self._most_ids = max(self._most_ids, len(self._all_expected))

    def disconnect(self, ids: Iterable[int]) -> None:
        """Counts these clients, whose processes are being ended, as disconnected; new ones with their ids may join."""
        clients = bitmap(ids) & self._present
        if not clients:
            return
        self._present -= clients
        for connection in self._by_group.values():
            connection.present -= clients

    def forget(self, ids: Iterable[int]) -> None:
        """Removes these clients for good; a relay without clients is disconnected."""
        clients = bitmap(ids) & self._all_expected
        self.disconnect(clients)
        self._all_expected -= clients
        self._homes = None
        for group, expected in list(self._expected.items()):
            if not expected.intersect(clients):
                continue
            expected -= clients
            if not expected:
                del self._expected[group], self._launched[group]
                self._drop(self._by_group.pop(group, None))

    def begin(self, epoch: int) -> None:
        """Starts a new epoch; replies to older ones are ignored."""
        self.answers = EpochReplies(epoch)

    def take_exits(self) -> list[ProcessExit]:
        """The deaths reported since the last call."""
        exits, self._exits = self._exits, []
        return exits

    # --- questions of the runner -------------------------------------------------------------------------------------

    def present(self) -> BitMap:
        """Clients that have joined and are not known to be dead, as a bitmap that changes later."""
        return self._present

    def relays(self) -> Set[str]:
        """The groups whose relay, or server, has sent its hello."""
        return self._by_group.keys()

    def relay(self, group: str) -> bytes | None:
        """The identity of this group's relay; None before its hello."""
        connection = self._by_group.get(group)
        return None if connection is None else connection.identity

    def hello(self, client: int) -> Hello:
        """The hello of the client's relay, or of the server itself; KeyError if the client is not connected."""
        return self._carrier(client).hello

    def hellos(self) -> list[Hello]:
        """The hello of every relay and server."""
        return [connection.hello for connection in self._by_group.values()]

    def host(self, client: int) -> HostKey:
        """The host of the client; KeyError if it is not connected."""
        return _host(self.hello(client))

    def process(self, client: int) -> BitMap:
        """All clients of this client's process; only the client itself if it is not connected."""
        return self._carrier(client).process(client) if client in self._present else BitMap([client])

    def incarnation(self, client: int) -> int:
        """The incarnation of this client's present or next process; 0 for an unknown client."""
        connection = self._by_group.get(self._home(client))
        return 0 if connection is None or client not in connection.ids else connection.incarnation(client)

    def clock(self, host: HostKey, now_ns: int) -> ClockLine | None:
        """A host's clock relative to the controller's, whose own is exact; None for an unknown clock."""
        if host == self.own:
            return ClockLine(offset_ns=0, at_ns=now_ns, rate_ppb=0, error_ns=0)
        estimate = self.timekeeper.estimate(host)
        return None if estimate is None else estimate.line(now_ns)

    def identities(self, ids: Iterable[int]) -> Iterator[tuple[bytes, BitMap]]:
        """Each connection of some of these clients, with those of them that are connected."""
        clients = bitmap(ids)
        for connection in self._by_group.values():
            if connection.present.intersect(clients):
                yield connection.identity, connection.present & clients

    def responsible(self, ids: Iterable[int]) -> Iterator[tuple[bytes, BitMap]]:
        """Each connection whose group has some of these clients, with those, connected or not."""
        clients = bitmap(ids)
        for group, connection in self._by_group.items():
            if self._expected[group].intersect(clients):
                yield connection.identity, self._expected[group] & clients & connection.ids

    def carries_only(self, identity: bytes, ids: BitMap) -> bool:
        """Whether ``ids`` are all clients of that connection."""
        return len(self._connections[identity].ids) == len(ids)

    def everyone(self) -> list[bytes]:
        """The identity of every connection."""
        return list(self._connections)

    # --- messages from peers -----------------------------------------------------------------------------------------

    def receive(
        self, identity: bytes, frame: bytes, received_ns: int = 0, payload: bytes | None = None
    ) -> PeerWelcome | None:
        """Handles one message from a peer; returns the answer to a ``hello`` or ``joined``.

        ``received_ns`` is its time of arrival on CLOCK_MONOTONIC; ``payload`` its second frame, if it has one.
        """
        if identity in self._ended:
            return None
        if len(frame) > MAX_MESSAGE_BYTES or len(payload or b"") > MAX_BATCH_BYTES:
            self.refused["oversized"] += 1
            return None
        try:
            message = decode_from_client(frame, self._most_ids, id_sets.decode_ids)
        except ProtocolError:
            self.refused["malformed"] += 1
            return None
        ids: Any = message.ids
        if isinstance(message, Batch) == (payload is None):
            self.refused["malformed"] += 1
            return None
        if isinstance(message, Hello):
            return self._hello(identity, message, ids, received_ns)
        connection = self._connections.get(identity)
        if connection is None:
            self.refused["unannounced"] += 1
        elif message.seq <= connection.last_seq:
            self.refused["replayed"] += 1
        elif not ids or not ids <= connection.ids:
            self.refused["foreign_id"] += 1
        else:
            connection.last_seq = message.seq
            if isinstance(message, Joined):
                return self._joined(connection, message, ids)
            self._take(connection, message, ids, payload or b"", received_ns)
        return None

    def _hello(self, identity: bytes, hello: Hello, ids: BitMap, received_ns: int) -> PeerWelcome | None:
        if not ids or hello.group not in self._expected or not ids <= self._launched[hello.group]:
            self.refused["unexpected_hello"] += 1
            return None
        known = self._connections.get(identity)
        if known is not None:
            return self._hello_again(known, hello)
        if hello.group in self._by_group:
            self.refused["duplicate_hello"] += 1
            return None
        connection = RelayConnection(identity, hello, ids)
        self._connections[identity] = self._by_group[hello.group] = connection
        self.timekeeper.joined(identity, _host(hello), received_ns)
        self.watch.joined(identity, source_of(hello))
        self.looks.joined(identity, _host(hello))
        if hello.role == "server":
            # A server is its own and only client.
            itself = Joined(ids=hello.ids, seq=1, incarnations=[0] * len(ids), pids=[hello.pid] * len(ids))
            self._joined(connection, itself, ids)
        return PeerWelcome(BitMap(), BitMap())

    def _hello_again(self, known: RelayConnection, hello: Hello) -> PeerWelcome | None:
        """Handles a resent hello, of a peer that has not received its welcome."""
        if msgspec.structs.replace(hello, seq=known.hello.seq) != known.hello:
            self.refused["repeated_hello"] += 1
        elif hello.seq <= known.last_seq:
            self.refused["replayed"] += 1
        else:
            known.last_seq = hello.seq
            return PeerWelcome(BitMap(), BitMap())
        return None

    def _joined(self, connection: RelayConnection, message: Joined, ids: BitMap) -> PeerWelcome:
        expected = self._expected[connection.hello.group]
        arrivals = connection.join(message, ids, expected)
        dismissed = ids - expected
        if dismissed:
            self.refused["unexpected_hello"] += 1
        if arrivals.doubtful:
            self.refused["duplicate_hello"] += 1
        self._present -= BitMap().union(*(BitMap(exit_.ids) for exit_ in arrivals.ended))
        self._present |= connection.present
        self._exits += arrivals.ended
        return PeerWelcome(arrivals.welcome or None, dismissed)

    def _drop(self, connection: RelayConnection | None) -> None:
        """Removes a connection: nothing is sent to it or accepted from it any more."""
        if connection is not None:
            del self._connections[connection.identity]
            self._ended.add(connection.identity)
            self.timekeeper.left(connection.identity)
            self.watch.left(connection.identity)
            self.looks.left(connection.identity)

    def _take(
        self, connection: RelayConnection, message: FromClient, ids: BitMap, payload: bytes, received_ns: int
    ) -> None:
        match message:
            case ChildExit():
                self._child_exit(connection, message, ids)
            case Ack(command="ping"):
                self.timekeeper.heard(connection.identity, message.echo, message.time_ns, received_ns)
            case HostReadings():
                self.watch.heard(connection.identity, message, received_ns)
            case KernelTexts():
                self.looks.heard(connection.identity, message)
            case Error(epoch=0):
                # The error belongs to no epoch, and is shown in the current one.
                self.answers.errors.update(dict.fromkeys(ids, message.message))
            case EpochReply():
                if message.epoch > self.answers.epoch:
                    self.refused["out_of_epoch"] += 1
                elif message.epoch == self.answers.epoch:  # older ones are late, or resent
                    self._answer(connection, message, ids, payload)

    def _answer(self, connection: RelayConnection, message: EpochReply, ids: BitMap, payload: bytes) -> None:
        answers = self.answers
        match message:
            case Ack():
                answers.acknowledge(message.number, ids)
            case Ready():
                answers.ready |= ids
                if connection.hello.role != "subscriber":
                    answers.endpoints.update(dict.fromkeys(ids, message.endpoint))
            case Progress():
                answers.progress.update(dict.fromkeys(ids, message))
            case TimeSeries() if connection.hello.role == "publisher":
                answers.sent.add(message.seconds)
            case TimeSeries():
                answers.received.add(message.seconds)
                answers.cohort_received.add(message.cohort)
            case Error():
                answers.errors.update(dict.fromkeys(ids, message.message))
            case Report() if connection.hello.role == "publisher":
                self._report(message.publisher, ids)
            case Batch() if connection.hello.role == "subscriber":
                self._batch(message, ids, payload)
            case _:
                self.refused["malformed"] += 1

    def _report(self, report: PublisherReport, ids: BitMap) -> None:
        known = self.answers.publisher_reports
        if len(ids) != 1 or known.get(ids.min()) not in (None, report):
            self.refused["repeated_report"] += 1
        else:
            known[ids.min()] = report

    def _batch(self, message: Batch, ids: BitMap, payload: bytes) -> None:
        try:
            as_before = self.answers.subscriber_reports.add(ids, message.columns, payload)
        except ValueError:
            self.refused["malformed"] += 1
            return
        if not as_before:
            self.refused["repeated_report"] += 1

    def _child_exit(self, connection: RelayConnection, message: ChildExit, ids: BitMap) -> None:
        # Ids that now belong to another group are new clients, to which the end of the old process does not apply.
        left, exit_ = connection.end(message, ids & self._expected[connection.hello.group])
        self._present -= left
        if exit_ is not None:
            self._exits.append(exit_)

    # --- the group of a client ---------------------------------------------------------------------------------------

    def _carrier(self, client: int) -> RelayConnection:
        if client not in self._present:
            raise KeyError(client)
        return self._by_group[self._home(client)]

    def _home(self, client: int) -> str:
        """The group that expects this client; "" if none does."""
        if self._homes is None:
            self._homes = sorted((*run, group) for group, ids in self._expected.items() for run in id_sets.runs(ids))
        at = bisect_right(self._homes, (client, 2**32)) - 1
        if at < 0:
            return ""
        _, last, group = self._homes[at]
        return group if client <= last else ""


def _host(hello: Hello) -> HostKey:
    return hello.boot_id, hello.time_namespace
