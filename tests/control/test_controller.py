"""The controller's socket against real peers: who gets in, what is counted, and that nobody keeps others waiting."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from itertools import count

import msgspec
import pytest
import zmq
from pyroaring import BitMap

from hydra.control import curve
from hydra.control.client import ControlClient, Here, Identity
from hydra.control.clocks import ClockLine
from hydra.control.controller import Controller
from hydra.errors import StepError
from hydra.model import SharedSettings
from hydra.wire.batch import MAX_BATCH_BYTES
from hydra.wire.clock import boot_id, time_namespace
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    Ack,
    Batch,
    Configure,
    Evict,
    Finish,
    FromController,
    Host,
    Ping,
    Quit,
    Ready,
    Sample,
    Watch,
    Welcome,
    decode_from_client,
    decode_from_controller,
    encode,
)
from tests.control.golden_messages import COUNTERS
from tests.control.rosters import batch, hello, joined

WITHIN_S = 10.0
OUR_HOST = {"boot_id": boot_id(), "time_namespace": time_namespace()}


@pytest.fixture
def controller() -> Iterator[Controller]:
    it = Controller("run", silence_s=12.5)
    it.roster.expect("g", [1, 2, 3])
    it.roster.expect("h", [4])
    it.roster.expect("other", [9])
    yield it
    it.close()


class Peer:
    """A DEALER that may do everything wrong."""

    def __init__(self, controller: Controller, **options: str | None) -> None:
        given: dict[str, str | None] = {**controller.environment, **options}
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.routing_id = os.urandom(8).hex().encode()
        self.socket.linger = 0
        server, public, secret = (given[k] for k in (curve.SERVER_KEY, curve.CLIENT_KEY, curve.CLIENT_SECRET))
        if server and public and secret:
            self.socket.curve_serverkey = server.encode()
            self.socket.curve_publickey = public.encode()
            self.socket.curve_secretkey = secret.encode()
        self.socket.connect(controller.endpoint)

    def send(self, *frames: bytes) -> None:
        self.socket.send_multipart(frames)

    def next(self, controller: Controller) -> FromController:
        assert controller.wait_until(lambda: bool(self.socket.poll(0)), WITHIN_S), "the controller says nothing"
        return decode_from_controller(self.socket.recv())

    def close(self) -> None:
        self.context.destroy(linger=0)


class Peers:
    """Makes peers of one controller, and closes them."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.made: list[Peer] = []

    def __call__(self, **options: str | None) -> Peer:
        self.made.append(Peer(self._controller, **options))
        return self.made[-1]


@pytest.fixture
def peers(controller: Controller) -> Iterator[Peers]:
    factory = Peers(controller)
    yield factory
    for peer in factory.made:
        peer.close()


def counted(controller: Controller, *reasons: str) -> None:
    assert controller.wait_until(lambda: any(controller.refused()[r] for r in reasons), WITHIN_S), controller.refused()


WELCOME = Welcome(run="run", silence_s=12.5)


def relay_of(controller: Controller, peers: Peers, ids: Sequence[int] = (1, 2, 3), **changes: object) -> Peer:
    """A relay, all of whose clients have joined."""
    relay = peers()
    relay.send(encode(hello(list(ids), **{**OUR_HOST, **changes})))
    assert relay.next(controller) == WELCOME
    relay.send(encode(joined(list(ids))))
    assert next_beside_pings(relay, controller) == msgspec.structs.replace(WELCOME, ids=list(ids))
    return relay


def next_beside_pings(relay: Peer, controller: Controller) -> FromController:
    """What it is told beside the pings that ask for its time."""
    while isinstance(message := relay.next(controller), Ping):
        pass
    return message


def serves(controller: Controller, peers: Peers, client: int = 9, group: str = "other") -> Peer:
    """A good relay says hello, is welcomed, told something and heard."""
    good = relay_of(controller, peers, [client], group=group)
    controller.tell([client], Quit())
    assert good.next(controller) == Quit()
    return good


def test_a_relay_and_its_clients_are_welcomed_and_told(controller: Controller, peers: Peers) -> None:
    serves(controller, peers)
    assert controller.roster.present() == BitMap([9])
    assert not controller.refused()


def test_those_that_nobody_expects_any_more_are_told_to_quit(controller: Controller, peers: Peers) -> None:
    controller.roster.forget([2])
    relay = peers()
    relay.send(encode(hello([1, 2, 3], **OUR_HOST)))
    assert relay.next(controller) == WELCOME
    relay.send(encode(joined([1, 2])))
    assert relay.next(controller) == msgspec.structs.replace(WELCOME, ids=[1])
    assert relay.next(controller) == Quit(ids=[2])
    relay.send(encode(joined([2], 3)))
    assert relay.next(controller) == Quit(ids=[2])
    assert controller.refused() == {"unexpected_hello": 2}


def test_a_batch_is_two_frames(controller: Controller, peers: Peers) -> None:
    relay = relay_of(controller, peers)
    controller.roster.begin(5)
    relay.send(*batch([1, 3], 3))
    reports = controller.roster.answers.subscriber_reports
    assert controller.wait_until(lambda: bool(reports.ids), WITHIN_S)
    assert reports.table().ids.tolist() == [1, 3]
    assert not controller.refused()


def test_a_command_that_clients_would_ignore_is_not_sent(controller: Controller, peers: Peers) -> None:
    serves(controller, peers)
    many = Finish(epoch=1, publishers=[], drain_max_s=1.0, system={"offsets": dict.fromkeys(range(30_000), 2**62)})
    with pytest.raises(StepError, match=f"longer than the {MAX_MESSAGE_BYTES} that clients take"):
        controller.tell([9], many)


def test_a_relay_that_says_hello_again_is_welcomed_again(controller: Controller, peers: Peers) -> None:
    good = peers()
    for seq in (1, 2):
        good.send(encode(hello([9], group="other", seq=seq, **OUR_HOST)))
        assert isinstance(good.next(controller), Welcome)
    assert not controller.refused()


@pytest.mark.parametrize(
    "wrong",
    [
        {curve.CLIENT_KEY: "other", curve.CLIENT_SECRET: "other"},
        {curve.SERVER_KEY: "other"},
        {curve.SERVER_KEY: None},
    ],
    ids=["wrong client key", "wrong server key", "no CURVE"],
)
def test_without_the_runs_keys_nobody_gets_a_word_in(
    controller: Controller, peers: Peers, wrong: dict[str, str | None]
) -> None:
    public, secret = (key.decode() for key in zmq.curve_keypair())
    keys = {curve.CLIENT_KEY: public, curve.CLIENT_SECRET: secret, curve.SERVER_KEY: public}
    stranger = peers(**{name: value and keys[name] for name, value in wrong.items()})
    # Where the handshake has been refused by now there is nothing left to send on: a send that waits would never end.
    with contextlib.suppress(zmq.Again):
        stranger.socket.send(encode(hello([1])), zmq.NOBLOCK)
    counted(controller, "wrong_key", "handshake")
    serves(controller, peers)
    assert not stranger.socket.poll(0)
    assert controller.roster.present() == BitMap([9])
    assert set(controller.refused()) <= {"wrong_key", "handshake"}
    if curve.CLIENT_KEY in wrong:
        assert controller.refused()["wrong_key"] >= 1


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([b"garbage"], "malformed"),
        ([b""], "malformed"),
        ([b'{"type":"ready"}', b"and more"], "malformed"),
        ([encode(Ready(ids=[1], seq=5, epoch=0)), b"and more"], "malformed"),
        ([encode(Batch(ids=[1], seq=5, epoch=0, columns=[]))], "malformed"),
        ([encode(Batch(ids=[1], seq=5, epoch=0, columns=[])), b"", b""], "malformed"),
        ([encode(Batch(ids=[1], seq=5, epoch=0, columns=[])), bytes(MAX_BATCH_BYTES + 1)], "oversized"),
        ([b"x" * (MAX_MESSAGE_BYTES + 1)], "oversized"),
        ([encode(Ready(ids=[1], seq=5, epoch=0))], "unannounced"),
        ([encode(hello([77]))], "unexpected_hello"),
    ],
)
def test_bad_frames_are_counted(controller: Controller, peers: Peers, frames: list[bytes], reason: str) -> None:
    bad = peers()
    bad.send(*frames)
    counted(controller, reason)
    assert controller.refused() == {reason: 1}
    serves(controller, peers)
    assert controller.refused() == {reason: 1}


def test_a_frame_far_too_long_ends_the_connection(controller: Controller, peers: Peers) -> None:
    bad = peers()
    bad.send(encode(hello([4], group="h", **OUR_HOST)))
    assert isinstance(bad.next(controller), Welcome)
    bad.send(b"x" * (2 * MAX_BATCH_BYTES + 1))
    serves(controller, peers)
    assert controller.refused()["oversized"] == 0


def test_a_flood_of_garbage_keeps_nobody_waiting(controller: Controller, peers: Peers) -> None:
    flood = peers()
    flood.socket.sndhwm = 0
    for _ in range(20_000):
        flood.send(b"garbage")
    counted(controller, "malformed")
    good = peers()
    good.send(encode(hello([9], group="other", **OUR_HOST)))

    def both() -> bool:
        for _ in range(200):
            flood.send(b"garbage")
        return bool(good.socket.poll(0))

    assert controller.wait_until(both, 5.0)
    assert isinstance(decode_from_controller(good.socket.recv()), Welcome)
    assert set(controller.refused()) == {"malformed"}


def test_what_takes_long_to_read_is_read_in_parts(
    controller: Controller, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = relay_of(controller, peers)
    for seq in range(3, 63):
        slow.send(encode(Ready(ids=[1], seq=seq, epoch=1)))
    # Every look at the clock takes 50 ms.
    clock_ns = count(time.monotonic_ns(), 50_000_000)
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(clock_ns))
    at_once, before = 0, 0

    def all_read() -> bool:
        nonlocal at_once, before
        read = controller.refused()["out_of_epoch"]
        at_once, before = max(at_once, read - before), read
        return read == 60

    assert controller.wait_until(all_read, WITHIN_S)
    assert at_once <= 4


def test_a_relay_is_told_which_of_its_clients_are_meant(controller: Controller, peers: Peers) -> None:
    many, one = relay_of(controller, peers), relay_of(controller, peers, [4], group="h")
    command = Configure(epoch=1, settings=SharedSettings(burst=100), publishers=[], probe=False)
    controller.tell([1, 2, 4], command)
    assert many.next(controller).ids == [1, 2]
    assert one.next(controller).ids == []
    controller.tell(BitMap([1, 2, 3]), command)
    assert many.next(controller).ids == []
    controller.tell([9], command)
    assert not one.socket.poll(0)


def test_who_has_not_joined_yet_is_told_nothing_but_to_quit(controller: Controller, peers: Peers) -> None:
    relay = peers()
    relay.send(encode(hello([1, 2, 3], **OUR_HOST)))
    assert relay.next(controller) == WELCOME
    relay.send(encode(joined([1])))
    assert relay.next(controller) == msgspec.structs.replace(WELCOME, ids=[1])
    controller.tell([1, 2], Ping(time_ns=5))
    assert relay.next(controller) == Ping(ids=[1], time_ns=5)
    controller.quit([1, 2])
    assert relay.next(controller) == Quit(ids=[1, 2])


def test_eviction_goes_to_the_groups_relay(controller: Controller, peers: Peers) -> None:
    relay, other = relay_of(controller, peers), relay_of(controller, peers, [4], group="h")
    controller.evict("g", [2], 0)
    controller.evict("nobody", [2], 0)
    controller.evict("g", BitMap([1, 2, 3]), 4)
    assert relay.next(controller) == Evict(ids=[2], incarnation=0)
    assert relay.next(controller) == Evict(ids=[1, 2, 3], incarnation=4)
    assert not other.socket.poll(0)


def test_what_cannot_be_delivered_is_counted_and_harms_nobody(controller: Controller, peers: Peers) -> None:
    gone = relay_of(controller, peers)
    gone.close()

    def undeliverable() -> bool:
        controller.tell([1], Quit())
        return controller.undeliverable > 0

    assert controller.wait_until(undeliverable, WITHIN_S)
    serves(controller, peers)


def test_a_relay_is_told_again_which_clients_have_to_quit_until_it_hangs_up(
    controller: Controller, peers: Peers
) -> None:
    good, other = relay_of(controller, peers), serves(controller, peers)
    controller.quit([1, 2])
    controller.roster.forget([1, 2])
    for _ in range(2):
        assert good.next(controller) == Quit(ids=[1, 2])
        controller._next_quit_ns = 0
    assert good.next(controller) == Quit(ids=[1, 2])
    good.close()

    def let_go() -> bool:
        controller._next_quit_ns = 0
        controller._quits_left = 5
        return not controller._leaving

    assert controller.wait_until(let_go, WITHIN_S)
    assert not other.socket.poll(0)
    assert not controller.undeliverable


def test_pings_come_by_themselves(controller: Controller, peers: Peers) -> None:
    good = serves(controller, peers)
    controller._next_ping_ns = 0
    assert isinstance(good.next(controller), Ping)


def test_the_clock_of_another_host_is_asked_for_in_bursts(controller: Controller, peers: Peers) -> None:
    ahead_ns = 77_000_000_000_000
    relay = relay_of(controller, peers, boot_id="another")
    elsewhere = controller.roster.host(1)
    asked: list[int] = []

    def known() -> bool:
        while relay.socket.poll(0):
            message = decode_from_controller(relay.socket.recv())
            if isinstance(message, Ping) and message.reply:
                asked.append(message.time_ns)
                shown_ns = time.monotonic_ns() + ahead_ns
                pong = Ack(ids=[1], seq=2 + len(asked), epoch=0, command="ping", time_ns=shown_ns, echo=message.time_ns)
                relay.send(encode(pong))
        return controller.roster.timekeeper.bursts(elsewhere) >= 2

    assert controller.wait_until(known, WITHIN_S)
    # (The first may have come before its clients' welcome, and is lost then.)
    assert 15 <= len(set(asked)) == len(asked) <= 16
    line = controller.roster.clock(elsewhere, time.monotonic_ns())
    assert line is not None
    assert abs(line.offset_ns - ahead_ns) <= line.error_ns < 1_000_000_000


def test_the_clock_of_this_host_is_our_own(controller: Controller, peers: Peers) -> None:
    relay_of(controller, peers)
    now_ns = time.monotonic_ns()
    assert controller.roster.clock(controller.roster.host(1), now_ns) == ClockLine(0, now_ns, 0, 0)


def test_the_relays_of_other_hosts_are_told_to_watch_and_when_to_end(controller: Controller, peers: Peers) -> None:
    relay = relay_of(controller, peers, boot_id="another")
    controller.watch_hosts(7, 0.25)
    assert next_beside_pings(relay, controller) == Watch(epoch=7, every_s=0.25, host=True)
    relay.send(encode(Host(ids=[1], seq=50, epoch=7, samples=[Sample(5, COUNTERS)])))
    assert controller.wait_until(lambda: bool(controller.roster.watch.samples()), WITHIN_S)
    controller.end_watch()
    assert next_beside_pings(relay, controller) == Watch(epoch=7, every_s=0.0, host=False)
    assert not controller.roster.watch.answered()
    relay.send(encode(Host(ids=[1], seq=60, epoch=7, samples=[])))
    assert controller.wait_until(controller.roster.watch.answered, WITHIN_S)
    assert not controller.refused()


def test_a_python_relays_end_and_the_controller_understand_each_other(controller: Controller) -> None:
    identity = Identity([1, 2], "subscriber", "g", 0, "pyzmq", {}, Here.read())
    relay = ControlClient(curve.credentials(controller.environment), identity)
    try:
        assert controller.wait_until(lambda: controller.roster.relays() == {"g"}, WITHIN_S)
        assert relay.receive(WITHIN_S) == WELCOME
        assert not relay.gone()
        relay.send(joined([1, 2]))
        assert controller.wait_until(lambda: controller.roster.present() == BitMap([1, 2]), WITHIN_S)
        assert relay.receive(WITHIN_S) == msgspec.structs.replace(WELCOME, ids=[1, 2])
        controller.broadcast(Ping(time_ns=41, reply=True))
        assert isinstance(relay.receive(WITHIN_S), Ping)
        assert controller.wait_until(lambda: controller.roster.answered_ping(41) == BitMap([1, 2]), WITHIN_S)
        controller.roster.begin(5)
        head, payload = batch([1, 2], 1)
        relay.send(decode_from_client(head), payload)
        assert controller.wait_until(lambda: bool(controller.roster.answers.subscriber_reports.ids), WITHIN_S)
        controller.tell([1], Quit())
        assert relay.receive(WITHIN_S) == Quit(ids=[1])
        assert not controller.refused()
    finally:
        relay.close()


def test_a_context_that_was_given_outlives_its_connections(controller: Controller) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    credentials = curve.credentials(controller.environment)
    with context:
        one, other = (
            ControlClient(credentials, Identity([n], "subscriber", group, 0, "pyzmq", {}, Here.read()), context)
            for n, group in ((1, "g"), (4, "h"))
        )
        one.close()
        assert controller.wait_until(lambda: "h" in controller.roster.relays(), WITHIN_S)
        assert other.receive(WITHIN_S) == WELCOME
        other.close()
        assert not context.closed


def test_closing_twice_is_fine() -> None:
    controller = Controller("run")
    controller.close()
    controller.close()
