"""The controller's socket against real peers: who gets in, what is counted, and that no peer keeps others waiting."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import pytest
import zmq
from pyroaring import BitMap

from hydra.control import curve_security
from hydra.control.clock_offset import ClockLine
from hydra.control.control_client import ClientIdentity, ControlClient, ProcessLocation
from hydra.control.controller import Controller
from hydra.errors import StepError
from hydra.model import SharedSettings
from hydra.wire import messages as wire
from hydra.wire.clock import boot_id, time_namespace
from hydra.wire.report_batch import MAX_BATCH_BYTES
from tests.control.golden_messages import COUNTERS
from tests.control.rosters import batch, hello, joined
from tests.suite.waiting import SOON_S, wait_until

pytestmark = pytest.mark.tier("test")

OUR_HOST = {"boot_id": boot_id(), "time_namespace": time_namespace()}


def welcome(*ids: int) -> wire.Welcome:
    return wire.Welcome(v=wire.VERSION, ids=list(ids), run="run", silence_s=12.5)


@pytest.fixture
def controller() -> Iterator[Controller]:
    it = Controller("run", silence_s=12.5)
    it.roster.expect("g", [1, 2, 3])
    it.roster.expect("h", [4])
    it.roster.expect("other", [9])
    yield it
    it.close()
    it.close()  # twice is fine


def serve_until(controller: Controller, condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what, between=lambda: controller.poll(0.01), saw=controller.refused)


class Peer:
    """A DEALER that may do everything wrong."""

    def __init__(self, controller: Controller, **options: str | None) -> None:
        given: dict[str, str | None] = {**controller.environment, **options}
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.routing_id = os.urandom(8).hex().encode()
        self.socket.linger = 0
        server, public, secret = (
            given[k] for k in (curve_security.SERVER_KEY, curve_security.CLIENT_KEY, curve_security.CLIENT_SECRET)
        )
        if server and public and secret:
            self.socket.curve_serverkey = server.encode()
            self.socket.curve_publickey = public.encode()
            self.socket.curve_secretkey = secret.encode()
        self.socket.connect(controller.endpoint)

    def send(self, *frames: wire.FromClient | bytes) -> None:
        self.socket.send_multipart([each if isinstance(each, bytes) else wire.encode(each) for each in frames])

    def next(self, controller: Controller) -> wire.FromController:
        serve_until(controller, lambda: self.socket.poll(0), "a word of the controller")
        return wire.decode_from_controller(self.socket.recv())

    def close(self) -> None:
        self.context.destroy(linger=0)


Peers = Callable[..., Peer]


@pytest.fixture
def peers(controller: Controller) -> Iterator[Peers]:
    """Makes peers of the controller, and closes them."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(contextlib.closing(Peer(controller, **options)))


def counted(controller: Controller, *reasons: str) -> None:
    serve_until(controller, lambda: any(controller.refused()[r] for r in reasons), f"any of {reasons}")


def relay_of(
    controller: Controller, peers: Peers, ids: Sequence[int] = (1, 2, 3), *, come: int = 3, **changes: object
) -> Peer:
    """A relay; this number of its clients have joined."""
    relay = peers()
    relay.send(hello(list(ids), **{**OUR_HOST, **changes}))
    assert relay.next(controller) == welcome()
    relay.send(joined(list(ids[:come])))
    assert next_except_pings(relay, controller) == welcome(*ids[:come])
    return relay


def next_except_pings(relay: Peer, controller: Controller) -> wire.FromController:
    """Its messages except the pings that ask for its time."""
    while isinstance(message := relay.next(controller), wire.Ping):
        pass
    return message


def serves(controller: Controller, peers: Peers) -> Peer:
    """A good relay sends ``hello``, is welcomed, gets a command and answers."""
    good = relay_of(controller, peers, [9], group="other")
    controller.send_to([9], wire.Quit())
    assert good.next(controller) == wire.Quit()
    return good


def test_those_that_nobody_expects_any_more_are_told_to_quit(controller: Controller, peers: Peers) -> None:
    controller.roster.forget([2])
    relay = peers()
    relay.send(hello([1, 2, 3], **OUR_HOST))
    assert relay.next(controller) == welcome()
    relay.send(joined([1, 2]))
    assert relay.next(controller) == welcome(1)
    assert relay.next(controller) == wire.Quit(ids=[2])
    relay.send(joined([2], 3))
    assert relay.next(controller) == wire.Quit(ids=[2])
    assert controller.refused() == {"unexpected_hello": 2}


def test_a_batch_is_two_frames(controller: Controller, peers: Peers) -> None:
    relay = relay_of(controller, peers)
    controller.roster.begin(5)
    relay.send(*batch([1, 3], 3))
    reports = controller.roster.answers.subscriber_reports
    serve_until(controller, lambda: reports.ids, "a batch")
    assert reports.table().ids.tolist() == [1, 3]
    assert not controller.refused()


def test_a_command_that_clients_would_ignore_is_not_sent(controller: Controller, peers: Peers) -> None:
    serves(controller, peers)
    many = wire.Finish(
        epoch=1, number=4, publishers=[], drain_max_s=1.0, system={"offsets": dict.fromkeys(range(30_000), 2**62)}
    )
    with pytest.raises(StepError, match=f"longer than the {wire.MAX_MESSAGE_BYTES} bytes that clients accept"):
        controller.send_to([9], many)


@pytest.mark.parametrize(
    "wrong",
    [
        {curve_security.CLIENT_KEY: "other", curve_security.CLIENT_SECRET: "other"},
        {curve_security.SERVER_KEY: "other"},
        {curve_security.SERVER_KEY: None},
    ],
    ids=["wrong client key", "wrong server key", "no CURVE"],
)
def test_without_the_runs_keys_nobody_gets_a_word_in(
    controller: Controller, peers: Peers, wrong: dict[str, str | None]
) -> None:
    public, secret = (key.decode() for key in zmq.curve_keypair())
    keys = {curve_security.CLIENT_KEY: public, curve_security.CLIENT_SECRET: secret, curve_security.SERVER_KEY: public}
    stranger = peers(**{name: value and keys[name] for name, value in wrong.items()})
    # Where the handshake has been refused by now there is nothing left to send on: a send that waits would never end.
    with contextlib.suppress(zmq.Again):
        stranger.socket.send(wire.encode(hello([1])), zmq.NOBLOCK)
    counted(controller, "wrong_key", "handshake")
    serves(controller, peers)
    assert not stranger.socket.poll(0)
    assert controller.roster.present() == BitMap([9])
    assert set(controller.refused()) <= {"wrong_key", "handshake"}
    if curve_security.CLIENT_KEY in wrong:
        assert controller.refused()["wrong_key"] >= 1


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([b"garbage"], "malformed"),
        ([b'{"type":"ready"}', b"and more"], "malformed"),
        ([wire.Ready(ids=[1], seq=5, epoch=0), b"and more"], "malformed"),
        ([wire.Batch(ids=[1], seq=5, epoch=0, columns=[]), b"", b""], "malformed"),
        ([wire.Batch(ids=[1], seq=5, epoch=0, columns=[]), bytes(MAX_BATCH_BYTES + 1)], "oversized"),
        ([b"x" * (wire.MAX_MESSAGE_BYTES + 1)], "oversized"),
        ([hello([77])], "unexpected_hello"),
    ],
)
def test_bad_frames_are_counted(
    controller: Controller, peers: Peers, frames: list[wire.FromClient | bytes], reason: str
) -> None:
    bad = peers()
    bad.send(*frames)
    counted(controller, reason)
    assert controller.refused() == {reason: 1}
    serves(controller, peers)
    assert controller.refused() == {reason: 1}


def test_a_frame_far_too_long_ends_the_connection(controller: Controller, peers: Peers) -> None:
    bad = peers()
    bad.send(hello([4], group="h", **OUR_HOST))
    assert isinstance(bad.next(controller), wire.Welcome)
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
    good.send(hello([9], group="other", **OUR_HOST))

    def both() -> bool:
        for _ in range(200):
            flood.send(b"garbage")
        return bool(good.socket.poll(0))

    serve_until(controller, both, "a welcome beside the flood")
    assert isinstance(wire.decode_from_controller(good.socket.recv()), wire.Welcome)
    assert set(controller.refused()) == {"malformed"}


def test_what_takes_long_to_read_is_read_in_parts(
    controller: Controller, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = relay_of(controller, peers)
    for seq in range(3, 63):
        slow.send(wire.Ready(ids=[1], seq=seq, epoch=1))
    # Every look at the clock takes 50 ms.
    clock_ns = count(time.monotonic_ns(), 50_000_000)
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(clock_ns))
    at_once, before = 0, 0

    def all_read() -> bool:
        nonlocal at_once, before
        read = controller.refused()["out_of_epoch"]
        at_once, before = max(at_once, read - before), read
        return read == 60

    serve_until(controller, all_read, "all 60")
    assert at_once <= 4


def test_a_relay_is_told_which_of_its_clients_are_meant(controller: Controller, peers: Peers) -> None:
    many, one = relay_of(controller, peers), relay_of(controller, peers, [4], group="h")
    command = wire.Configure(epoch=1, number=1, settings=SharedSettings(burst=100), publishers=[], probe=False)
    controller.send_to([1, 2, 4], command)
    assert many.next(controller).ids == [1, 2]
    assert one.next(controller).ids == []
    controller.send_to(BitMap([1, 2, 3]), command)
    assert many.next(controller).ids == []
    controller.send_to([9], command)
    assert not one.socket.poll(0)


def test_who_has_not_joined_yet_is_told_nothing_but_to_quit(controller: Controller, peers: Peers) -> None:
    relay = relay_of(controller, peers, come=1)
    controller.send_to([1, 2], wire.Ping(time_ns=5))
    assert relay.next(controller) == wire.Ping(ids=[1], time_ns=5)
    controller.quit([1, 2])
    assert relay.next(controller) == wire.Quit(ids=[1, 2])


def test_eviction_goes_to_the_groups_relay(controller: Controller, peers: Peers) -> None:
    relay, other = relay_of(controller, peers), relay_of(controller, peers, [4], group="h")
    controller.evict("g", [2], 0)
    controller.evict("nobody", [2], 0)
    controller.evict("g", BitMap([1, 2, 3]), 4)
    assert relay.next(controller) == wire.Evict(ids=[2], incarnation=0)
    assert relay.next(controller) == wire.Evict(ids=[1, 2, 3], incarnation=4)
    assert not other.socket.poll(0)


def test_what_cannot_be_delivered_is_counted_and_harms_nobody(controller: Controller, peers: Peers) -> None:
    ended = relay_of(controller, peers)
    ended.close()

    def undeliverable() -> bool:
        controller.send_to([1], wire.Quit())
        return controller.undeliverable > 0

    serve_until(controller, undeliverable, "a command that cannot be delivered")
    serves(controller, peers)


def test_a_relay_is_told_again_which_clients_have_to_quit_until_it_hangs_up(
    controller: Controller, peers: Peers
) -> None:
    good, other = relay_of(controller, peers), serves(controller, peers)
    controller.quit([1, 2])
    controller.roster.forget([1, 2])
    for _ in range(2):
        assert good.next(controller) == wire.Quit(ids=[1, 2])
        controller._next_quit_ns = 0
    assert good.next(controller) == wire.Quit(ids=[1, 2])
    good.close()

    def let_go() -> bool:
        controller._next_quit_ns = 0
        controller._quits_left = 5
        return not controller._leaving

    serve_until(controller, let_go, "the end of the relay to be noticed")
    assert not other.socket.poll(0)
    assert not controller.undeliverable


def test_pings_come_by_themselves(controller: Controller, peers: Peers) -> None:
    good = serves(controller, peers)
    controller._next_ping_ns = 0
    assert isinstance(good.next(controller), wire.Ping)


def test_the_clock_of_another_host_is_asked_for_in_bursts(controller: Controller, peers: Peers) -> None:
    ahead_ns = 77_000_000_000_000
    relay = relay_of(controller, peers, boot_id="another")
    elsewhere = controller.roster.host(1)
    requests: list[int] = []

    def known() -> bool:
        while relay.socket.poll(0):
            message = wire.decode_from_controller(relay.socket.recv())
            if isinstance(message, wire.Ping) and message.reply:
                requests.append(message.time_ns)
                shown_ns = time.monotonic_ns() + ahead_ns
                pong = wire.Ack(
                    ids=[1], seq=len(requests) + 2, epoch=0, command="ping", time_ns=shown_ns, echo=requests[-1]
                )
                relay.send(pong)
        return controller.roster.timekeeper.bursts(elsewhere) >= 2

    serve_until(controller, known, "two bursts")
    # (The first may have come before its clients' welcome, and is lost then.)
    assert 15 <= len(set(requests)) == len(requests) <= 16
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
    assert next_except_pings(relay, controller) == wire.Watch(epoch=7, every_s=0.25, host=True)
    relay.send(wire.HostReadings(ids=[1], seq=50, epoch=7, samples=[wire.Sample(5, COUNTERS)]))
    serve_until(controller, controller.roster.watch.samples, "a sample")
    controller.end_watch()
    assert next_except_pings(relay, controller) == wire.Watch(epoch=7, every_s=0.0, host=False)
    assert not controller.roster.watch.answered()
    relay.send(wire.HostReadings(ids=[1], seq=60, epoch=7, samples=[]))
    serve_until(controller, controller.roster.watch.answered, "the answer")
    assert not controller.refused()


def test_a_python_relays_end_and_the_controller_understand_each_other(controller: Controller) -> None:
    identity = ClientIdentity([1, 2], "subscriber", "g", 0, "pyzmq", {}, ProcessLocation.read())
    with contextlib.closing(ControlClient(curve_security.credentials(controller.environment), identity)) as relay:
        serve_until(controller, controller.roster.relays, "hello")
        assert relay.receive(SOON_S) == welcome()
        assert not relay.end_reason()
        relay.send(joined([1, 2]))
        serve_until(controller, lambda: controller.roster.present() == BitMap([1, 2]), "both")
        assert relay.receive(SOON_S) == welcome(1, 2)
        command = wire.Stop(epoch=5, number=3, stop_at_ns=1)
        relay.acknowledge(command)
        controller.roster.begin(5)
        serve_until(controller, lambda: controller.roster.answers.acked(3) == BitMap([1, 2]), "acks of both")
        head, payload = batch([1, 2], 1)
        relay.send(wire.decode_from_client(head), payload)
        serve_until(controller, lambda: controller.roster.answers.subscriber_reports.ids, "reports")
        controller.send_to([1], wire.Quit())
        assert relay.receive(SOON_S) == wire.Quit(ids=[1])
        assert not controller.refused()


def test_a_context_that_was_given_outlives_its_connections(controller: Controller) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    credentials = curve_security.credentials(controller.environment)
    with context:
        one, other = (
            ControlClient(
                credentials, ClientIdentity([n], "subscriber", group, 0, "pyzmq", {}, ProcessLocation.read()), context
            )
            for n, group in ((1, "g"), (4, "h"))
        )
        one.close()
        serve_until(controller, lambda: "h" in controller.roster.relays(), "hello of the other")
        assert other.receive(SOON_S) == welcome()
        other.close()
        assert not context.closed
