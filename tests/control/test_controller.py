"""The controller's socket against real peers: who gets in, what is counted, and that nobody keeps others waiting."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import pytest
import zmq

from hydra.control import curve
from hydra.control.client import ControlClient, Identity
from hydra.control.clocks import ClockLine
from hydra.control.controller import Controller
from hydra.errors import StepError
from hydra.model import SharedSettings
from hydra.wire.clock import boot_id, time_namespace
from hydra.wire.messages import (
    MAX_MESSAGE_BYTES,
    Ack,
    Configure,
    Finish,
    FromController,
    Host,
    Ping,
    Quit,
    Ready,
    Sample,
    Watch,
    Welcome,
    decode_from_controller,
    encode,
)
from tests.control.golden_messages import COUNTERS
from tests.control.test_roster import hello

WITHIN_S = 10.0
OUR_HOST = {"boot_id": boot_id(), "time_namespace": time_namespace()}


@pytest.fixture
def controller() -> Iterator[Controller]:
    it = Controller("run", silence_s=12.5)
    it.roster.expect("g", [1, 2, 3])
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


def serves(controller: Controller, peers: Peers, client: int = 1) -> Peer:
    """A good client says hello, is welcomed, told something and heard."""
    good = peers()
    good.send(encode(hello([client])))
    assert good.next(controller) == Welcome(ids=[client], run="run", silence_s=12.5)
    controller.tell([client], Quit())
    assert good.next(controller) == Quit()
    return good


def test_a_client_is_welcomed_and_told(controller: Controller, peers: Peers) -> None:
    serves(controller, peers)
    assert controller.roster.present() == {1}
    assert not controller.refused()


def test_a_command_that_clients_would_ignore_is_not_sent(controller: Controller, peers: Peers) -> None:
    serves(controller, peers)
    many = Finish(epoch=1, publishers=[], drain_max_s=1.0, system={"offsets": dict.fromkeys(range(30_000), 2**62)})
    with pytest.raises(StepError, match=f"longer than the {MAX_MESSAGE_BYTES} that clients take"):
        controller.tell([1], many)


def test_a_client_that_says_hello_again_is_welcomed_again(controller: Controller, peers: Peers) -> None:
    good = peers()
    for seq in (1, 2):
        good.send(encode(hello([1], seq=seq)))
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
    assert controller.roster.present() == {1}
    assert set(controller.refused()) <= {"wrong_key", "handshake"}
    if curve.CLIENT_KEY in wrong:
        assert controller.refused()["wrong_key"] >= 1


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([b"garbage"], "malformed"),
        ([b""], "malformed"),
        ([b'{"type":"ready"}', b"and more"], "malformed"),
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
    bad.send(encode(hello([1])))
    assert isinstance(bad.next(controller), Welcome)
    bad.send(b"x" * (2 * MAX_MESSAGE_BYTES + 1))
    serves(controller, peers, 2)
    assert controller.refused()["oversized"] == 0


def test_a_flood_of_garbage_keeps_nobody_waiting(controller: Controller, peers: Peers) -> None:
    flood = peers()
    flood.socket.sndhwm = 0
    for _ in range(20_000):
        flood.send(b"garbage")
    counted(controller, "malformed")
    good = peers()
    good.send(encode(hello([1])))

    def both() -> bool:
        for _ in range(200):
            flood.send(b"garbage")
        return bool(good.socket.poll(0))

    assert controller.wait_until(both, 5.0)
    assert isinstance(decode_from_controller(good.socket.recv()), Welcome)
    assert set(controller.refused()) == {"malformed"}


def test_a_packed_connection_is_told_which_of_its_clients_are_meant(controller: Controller, peers: Peers) -> None:
    packed, single = peers(), peers()
    packed.send(encode(hello([1, 2])))
    single.send(encode(hello([3])))
    assert isinstance(packed.next(controller), Welcome)
    assert isinstance(single.next(controller), Welcome)
    command = Configure(epoch=1, settings=SharedSettings(burst=100), publishers=[], probe=False)
    controller.tell([1, 3], command)
    assert packed.next(controller).ids == [1]
    assert single.next(controller).ids == []
    controller.tell([1, 2], command)
    assert packed.next(controller).ids == []


def test_eviction_goes_to_the_groups_warden(controller: Controller, peers: Peers) -> None:
    warden, client = peers(), peers()
    warden.send(encode(hello([1, 2, 3], warden=True, **OUR_HOST)))
    client.send(encode(hello([2])))
    assert isinstance(warden.next(controller), Welcome)
    assert isinstance(client.next(controller), Welcome)
    controller.evict("g", [2], 0)
    controller.evict("nobody", [2], 0)
    assert warden.next(controller) == Quit(ids=[2], incarnation=0)
    assert not client.socket.poll(0)


def test_what_cannot_be_delivered_is_counted_and_harms_nobody(controller: Controller, peers: Peers) -> None:
    gone = peers()
    gone.send(encode(hello([1])))
    assert isinstance(gone.next(controller), Welcome)
    gone.close()

    def undeliverable() -> bool:
        controller.tell([1], Quit())
        return controller.undeliverable > 0

    assert controller.wait_until(undeliverable, WITHIN_S)
    serves(controller, peers, 2)


def test_who_is_told_to_quit_is_told_again_until_it_hangs_up(controller: Controller, peers: Peers) -> None:
    good, other = serves(controller, peers), serves(controller, peers, 2)
    controller.quit([1])
    controller.roster.forget([1])
    for _ in range(2):
        assert good.next(controller) == Quit()
        controller._next_quit_ns = 0
    assert good.next(controller) == Quit()
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
    warden, client = peers(), peers()
    warden.send(encode(hello([1], warden=True)))
    client.send(encode(hello([1])))
    assert isinstance(client.next(controller), Welcome)
    elsewhere = controller.roster.host(1)
    asked: list[int] = []

    def known() -> bool:
        while warden.socket.poll(0):
            message = decode_from_controller(warden.socket.recv())
            if isinstance(message, Ping) and message.reply:
                asked.append(message.time_ns)
                shown_ns = time.monotonic_ns() + ahead_ns
                pong = Ack(ids=[1], seq=1 + len(asked), epoch=0, command="ping", time_ns=shown_ns, echo=message.time_ns)
                warden.send(encode(pong))
        return controller.roster.timekeeper.bursts(elsewhere) >= 2

    assert controller.wait_until(known, WITHIN_S)
    assert len(set(asked)) == len(asked) == 16
    line = controller.roster.clock(elsewhere, time.monotonic_ns())
    assert line is not None
    assert abs(line.offset_ns - ahead_ns) <= line.error_ns < 1_000_000_000
    assert not client.socket.poll(0)


def test_the_clock_of_this_host_is_our_own(controller: Controller, peers: Peers) -> None:
    for warden in (True, False):
        peer = peers()
        peer.send(encode(hello([1], warden=warden, **OUR_HOST)))
        assert isinstance(peer.next(controller), Welcome)
    now_ns = time.monotonic_ns()
    assert controller.roster.clock(controller.roster.host(1), now_ns) == ClockLine(0, now_ns, 0, 0)


def next_watch(warden: Peer, controller: Controller) -> FromController:
    """What it is told beside the pings that ask for its time."""
    while isinstance(message := warden.next(controller), Ping):
        pass
    return message


def test_the_wardens_of_other_hosts_are_told_to_watch_and_when_to_end(controller: Controller, peers: Peers) -> None:
    warden = peers()
    warden.send(encode(hello([1], warden=True, boot_id="another")))
    assert isinstance(warden.next(controller), Welcome)
    controller.watch_hosts(7, 0.25)
    assert next_watch(warden, controller) == Watch(epoch=7, every_s=0.25, host=True)
    warden.send(encode(Host(ids=[1], seq=50, epoch=7, samples=[Sample(5, COUNTERS)])))
    assert controller.wait_until(lambda: bool(controller.roster.watch.samples()), WITHIN_S)
    controller.end_watch()
    assert next_watch(warden, controller) == Watch(epoch=7, every_s=0.0, host=False)
    assert not controller.roster.watch.answered()
    warden.send(encode(Host(ids=[1], seq=60, epoch=7, samples=[])))
    assert controller.wait_until(controller.roster.watch.answered, WITHIN_S)
    assert not controller.refused()


def test_the_python_client_and_the_controller_understand_each_other(controller: Controller) -> None:
    identity = Identity([1], "subscriber", "g", False, 0, "pyzmq", {}, "agent")
    client = ControlClient(curve.credentials(controller.environment), identity)
    try:
        assert controller.wait_until(lambda: 1 in controller.roster.present(), WITHIN_S)
        assert isinstance(client.receive(WITHIN_S), Welcome)
        assert not client.silent()
        controller.broadcast(Ping(time_ns=41, reply=True))
        assert isinstance(client.receive(WITHIN_S), Ping)
        assert controller.wait_until(lambda: bool(controller.roster.pongs), WITHIN_S)
        assert controller.roster.pongs[1][0] == 41
        controller.tell([1], Quit(ids=[2]))
        controller.tell([1], Quit())
        assert client.receive(WITHIN_S) is None
        assert client.receive(WITHIN_S) == Quit()
    finally:
        client.close()


def test_closing_twice_is_fine() -> None:
    controller = Controller("run")
    controller.close()
    controller.close()
