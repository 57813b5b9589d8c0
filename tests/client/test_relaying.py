"""What a relay decides, without sockets; tests/conformance/test_relays.py sees it from outside."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import pytest

from hydra.client.relay_state import ANY_INCARNATION, TIME_SERIES_WITHIN_NS, RelayState
from hydra.client.relayed_replies import BATCHED_WITHIN_NS, GATHERED_WITHIN_NS, RESEND_EVERY_NS
from hydra.model import GroupRole, Histogram, ProcessUsage, PublisherReport, SharedSettings, SubscriberReport
from hydra.wire import messages as wire
from hydra.wire.report_batch import encode as encode_columns
from tests.control import rosters

SOON = GATHERED_WITHIN_NS


class Reported(NamedTuple):
    """Both frames of the reports of a process of clients."""

    head: wire.Batch
    payload: bytes


class Group:
    """A relay of four clients that records its messages, with a clock that stands."""

    def __init__(self, role: GroupRole = "subscriber") -> None:
        self.up: list[wire.FromClient] = []
        self.payloads: list[bytes] = []
        self.down: list[tuple[str, wire.FromController]] = []
        self.killed: list[tuple[int, int]] = []
        self.now_ns = 0
        self.relaying = RelayState([1, 2, 3, 4], role, self)

    def to_controller(self, message: wire.FromClient, payload: bytes | None = None) -> None:
        assert isinstance(message, wire.Batch) == (payload is not None)
        self.up.append(message)
        self.payloads += [] if payload is None else [payload]

    def to_client(self, name: bytes, frame: bytes) -> None:
        self.down.append((name.decode(), wire.decode_from_controller(frame)))

    def kill(self, client: int, most: int) -> None:
        self.killed.append((client, most))

    def obey(self, message: wire.FromController) -> None:
        self.relaying.obey(message, self.now_ns)

    def take_message(self, name: str, *messages: wire.FromClient | Reported) -> None:
        for message in messages:
            frames = message if isinstance(message, Reported) else (message, None)
            self.relaying.take_message(name.encode(), frames[0], self.now_ns, frames[1])

    def hear_each(self, *messages: wire.FromClient | Reported) -> None:
        """Every client, on its own connection."""
        for message in messages:
            first = message.head if isinstance(message, Reported) else message
            self.take_message(str(first.ids[0]), message)

    def ends(self, client: int, status: int, *, replaced: bool = False) -> wire.ChildExit:
        """The first process of the client does."""
        dead = wire.ChildExit(ids=[client], seq=1, incarnation=0, pid=1000 + client, status=status, replaced=replaced)
        self.relaying.take_exit(dead)
        return dead

    def work(self, after_ns: int = 0) -> list[wire.FromClient]:
        """Lets time pass; what has been reported to the controller since the last time."""
        self.now_ns += after_ns
        self.relaying.work(self.now_ns)
        text, self.up = self.up, []
        return text

    def data(self) -> list[tuple[str, wire.FromController]]:
        """What clients have been sent since the last time."""
        text, self.down = self.down, []
        return text


def hello(*ids: int, incarnation: int = 0) -> wire.Hello:
    return rosters.hello(list(ids), incarnation=incarnation, pid=1000 * (incarnation + 1) + ids[0])


def arrived(*commands: wire.FromController, role: GroupRole = "subscriber", names: Sequence[str] = "123") -> Group:
    """Clients 1, 2 and 3, which the controller knows, in processes that are called by whom they carry; 4 may come."""
    group = Group(role)
    group.obey(wire.Welcome(v=wire.VERSION, run="run", silence_s=30.0))
    for name in names:
        group.take_message(name, hello(*map(int, name)))
    group.work(SOON)
    group.obey(wire.Welcome(v=wire.VERSION, ids=[1, 2, 3], run="run", silence_s=30.0))
    group.data()
    for command in commands:
        group.obey(command)
    return group


def kinds(messages: list[wire.FromClient]) -> list[tuple[str, list[int]]]:
    """What they are, and whom they are of."""
    return [(type(message).__name__, message.ids) for message in messages]


def configure(*ids: int, probe: bool = False, cohort: bool = False, epoch: int = 1, number: int = 1) -> wire.Configure:
    settings = SharedSettings(burst=1)
    return wire.Configure(
        ids=list(ids), epoch=epoch, number=number, settings=settings, publishers=[], probe=probe, cohort=cohort
    )


def ack(*ids: int, command: str = "configure", number: int = 1) -> wire.Ack:
    return wire.Ack(ids=list(ids), seq=1, epoch=1, number=number, command=command)


def report(*ids: int, number: int = 4, epoch: int = 1) -> Reported:
    """The reports of these clients in one message: each has read as many batches as its id."""
    columns, payload = encode_columns([(client, body(client)) for client in ids])
    return Reported(wire.Batch(ids=list(ids), seq=1, epoch=epoch, number=number, columns=columns), payload)


def body(batches: int) -> SubscriberReport:
    return SubscriberReport([], *(batches, 0, 0, 0, 0, 0), latency=Histogram([7, 1], 7, 7), usage=ProcessUsage())


def time_series(client: int, *seconds: wire.SecondCounts, epoch: int = 1) -> wire.TimeSeries:
    return wire.TimeSeries(ids=[client], seq=1, epoch=epoch, seconds=list(seconds))


def error(client: int, message: str, epoch: int = 1, number: int = 1) -> wire.Error:
    return wire.Error(ids=[client], seq=1, epoch=epoch, number=number if epoch else 0, message=message, fatal=not epoch)


def ready(client: int, endpoint: str = "", number: int = 1) -> wire.Ready:
    return wire.Ready(ids=[client], seq=1, epoch=1, number=number, endpoint=endpoint)


START = wire.Start(epoch=1, number=2, start_at_ns=1, stop_at_ns=2, clock=wire.HostClock(0, 0))
FINISH = wire.Finish(epoch=1, number=4, publishers=[], drain_max_s=1.0)


# --- who is there ----------------------------------------------------------------------------------------------------


def test_clients_are_welcomed_when_the_relay_has_been_and_without_a_silence() -> None:
    group = Group()
    group.take_message("a", hello(1))
    assert (group.work(SOON), group.data()) == ([], [])
    group.obey(wire.Welcome(v=wire.VERSION, run="run", silence_s=30.0))
    group.take_message("b", hello(2))
    welcome = wire.Welcome(v=wire.VERSION, run="run", silence_s=0.0)
    assert group.data() == [("a", welcome), ("b", welcome)]
    assert group.work() == []
    (joined,) = group.work(SOON)
    assert joined == wire.Joined(ids=[1, 2], seq=1, incarnations=[0, 0], pids=[1001, 1002])


def test_the_last_one_to_come_is_told_of_at_once() -> None:
    group = arrived()
    group.take_message("4", hello(4))
    assert [m.ids for m in group.work() if isinstance(m, wire.Joined)] == [[4]]


def test_who_says_hello_again_has_not_heard_the_welcome() -> None:
    group = arrived()
    group.take_message("2", hello(2))
    assert [name for name, _ in group.data()] == ["2"]


def test_who_is_not_of_the_group_or_no_newcomer_is_not_heard() -> None:
    group = arrived()
    group.take_message("x", hello(9))
    group.take_message("y", hello(2))
    group.take_message("z", ack(1))
    group.take_message("1", ack(2))
    assert (group.work(SOON), group.data()) == ([], [])


def test_a_replacement_takes_over_with_its_hello() -> None:
    group = arrived(configure())
    group.take_message("again", hello(2, incarnation=1))
    group.hear_each(ack(2), ack(1), ack(3))
    acks = [m for m in group.work() if isinstance(m, wire.Ack)]
    # The replaced process is not waited for, and its messages do not count.
    assert [m.ids for m in acks] == [[1, 3]]
    group.data()
    assert group.work(RESEND_EVERY_NS) != []
    assert "again" not in {name for name, _ in group.data()}


def test_an_end_is_told_and_told_again_to_who_asks_for_it() -> None:
    group = arrived()
    dead = group.ends(2, 0)
    group.obey(wire.Evict(ids=[2, 3], incarnation=4))
    group.obey(wire.Evict(ids=[1]))
    assert group.work() == [dead, dead]
    assert group.killed == [(2, 4), (3, 4), (1, ANY_INCARNATION)]


def test_the_end_of_an_earlier_process_is_not_its_successors() -> None:
    group = arrived()
    group.take_message("again", hello(2, incarnation=1))
    group.ends(2, -9, replaced=True)
    group.obey(configure(2))
    assert [name for name, _ in group.data() if name != "2"][-1] == "again"


# --- commands --------------------------------------------------------------------------------------------------------


def test_each_connection_gets_the_ids_that_it_carries() -> None:
    group = arrived(names=["12", "3"])
    group.obey(configure(2, 3))
    assert group.data() == [("12", configure(2)), ("3", configure())]
    group.obey(configure(1, 2, epoch=2))
    assert group.data() == [("12", configure(epoch=2))]


def test_acks_wait_for_each_other_and_not_for_long() -> None:
    group = arrived(configure())
    group.hear_each(ack(1), ack(2))
    assert group.work() == []
    (first,) = group.work(SOON)
    assert (first.ids, isinstance(first, wire.Ack)) == ([1, 2], True)
    group.take_message("3", ack(3))
    assert [m.ids for m in group.work()] == [[3]]


def test_what_is_not_answered_is_said_again_until_the_client_is_gone() -> None:
    group = arrived(configure())
    group.take_message("1", ack(1))
    group.data()
    group.work(RESEND_EVERY_NS)
    assert [name for name, _ in group.data()] == ["2", "3"]
    group.ends(2, -9, replaced=True)
    group.work(RESEND_EVERY_NS)
    assert [name for name, _ in group.data()] == ["3"]


def test_a_late_answer_is_none_to_the_command_that_came_after() -> None:
    group = arrived(configure())
    group.data()
    group.obey(configure(number=5, probe=True))
    assert [message for name, message in group.data() if name == "1"] == [configure(number=5, probe=True)]
    group.take_message("1", ack(1), ready(1), error(1, "to the first one"))
    assert group.work(SOON) == []
    group.take_message("1", ack(1, number=5))
    assert kinds(group.work(SOON)) == [("Ack", [1])]
    group.obey(FINISH)
    group.obey(msgspec.structs.replace(FINISH, number=6))
    group.take_message("1", report(1))
    assert group.work(BATCHED_WITHIN_NS) == []
    group.take_message("1", report(1, number=6))
    assert kinds(group.work(BATCHED_WITHIN_NS)) == [("Batch", [1])]


def test_an_answer_with_another_number_or_none_answers_nothing() -> None:
    group = arrived(configure(probe=True), FINISH)
    for number in (0, FINISH.number, 99):
        group.take_message("1", ack(1, number=number), ready(1, number=number))
    for number in (0, 1, 99):
        group.take_message("1", report(1, number=number))
    assert group.work(BATCHED_WITHIN_NS) == []
    group.data()
    group.work(RESEND_EVERY_NS)
    assert [message for name, message in group.data() if name == "1"] == [configure(probe=True), FINISH]


def test_the_error_of_a_process_that_has_ended_is_not_its_successors() -> None:
    group = arrived(configure(1))
    group.ends(1, 1, replaced=True)
    group.take_message("again", hello(1, incarnation=1))
    group.work(SOON)
    group.obey(wire.Welcome(v=wire.VERSION, ids=[1], run="run", silence_s=30.0))
    group.obey(configure(1))
    group.take_message("1", error(1, "no topic"))
    assert kinds(group.work()) == [("Error", [1])]
    group.take_message("again", ack(1))
    assert kinds(group.work(SOON)) == [("Ack", [1])]
    group.obey(configure(1))
    assert kinds(group.work(SOON)) == [("Ack", [1])]


def test_readiness_of_those_that_prove_it_is_waited_for_together() -> None:
    group = arrived(configure(1, 2, probe=True), configure(3))
    group.work(SOON)
    group.take_message("1", ready(1))
    assert group.work() == []
    group.take_message("2", ready(2))
    assert kinds(group.work()) == [("Ready", [1, 2])]


def test_publishers_are_told_apart_by_their_endpoints() -> None:
    group = arrived(configure(), role="publisher")
    for client in (1, 2, 3):
        group.hear_each(ack(client), ready(client, f"tcp://h:{client}"))
    assert kinds(group.work()) == [("Ack", [1, 2, 3]), ("Ready", [1]), ("Ready", [2]), ("Ready", [3])]
    group.obey(configure(2))
    again = group.work()
    assert kinds(again) == [("Ack", [2]), ("Ready", [2])]
    assert [m.endpoint for m in again if isinstance(m, wire.Ready)] == ["tcp://h:2"]


def test_progress_is_passed_on_and_a_publishers_report_kept_as_well() -> None:
    group = arrived(configure(), START, wire.Stop(epoch=1, number=3, stop_at_ns=5), role="publisher")
    body = PublisherReport(*(3, 3, 0, 1, 2, 72), Histogram(), ProcessUsage())
    reported = wire.Report(ids=[1], seq=1, epoch=1, number=3, publisher=body)
    progress = wire.Progress(ids=[1], seq=1, epoch=1, messages=5, time_ns=7)
    group.take_message("1", progress, reported)
    assert group.work() == [progress, reported]
    group.data()
    group.obey(wire.Stop(epoch=1, number=3, stop_at_ns=5))
    assert group.work() == [reported]
    assert [name for name, _ in group.data()] == ["2", "3"]


def test_a_report_of_several_publishers_is_ignored() -> None:
    stop = wire.Stop(epoch=1, number=3, stop_at_ns=5)
    group = arrived(configure(), START, stop, role="publisher", names=["12", "3"])
    body = PublisherReport(*(3, 3, 0, 1, 2, 72), Histogram(), ProcessUsage())
    group.take_message("12", wire.Report(ids=[1, 2], seq=1, epoch=1, number=3, publisher=body))
    assert group.work() == []


def test_what_clients_tell_of_their_seconds_is_added_up_and_the_cohorts_apart() -> None:
    group = arrived(configure(1, 2), configure(3, cohort=True))
    group.hear_each(
        *(time_series(client, wire.SecondCounts(0, client), wire.SecondCounts(5, 1)) for client in (1, 2, 3))
    )
    group.take_message("1", time_series(1, wire.SecondCounts(0, 100), epoch=9))
    assert group.work() == []
    others, cohort = (m for m in group.work(TIME_SERIES_WITHIN_NS) if isinstance(m, wire.TimeSeries))
    assert (others.ids, others.seconds, others.cohort) == (
        [1, 2, 3, 4],
        [wire.SecondCounts(0, 3), wire.SecondCounts(5, 2)],
        [],
    )
    assert (cohort.seconds, cohort.cohort) == ([], [wire.SecondCounts(0, 3), wire.SecondCounts(5, 1)])
    assert group.work(TIME_SERIES_WITHIN_NS) == []


def test_the_course_goes_out_before_the_reports_that_it_belongs_to() -> None:
    group = arrived(configure(), START, FINISH)
    for client in (1, 2, 3):
        group.hear_each(time_series(client, wire.SecondCounts(0, 1)), report(client))
    texts = [type(message) for message in group.work(BATCHED_WITHIN_NS)]
    assert texts.index(wire.TimeSeries) < texts.index(wire.Batch)


# --- errors ----------------------------------------------------------------------------------------------------------


def test_the_first_of_its_kind_is_told_at_once() -> None:
    group = arrived(configure())
    first, second, other = (error(n, t) for n, t in ((1, "a"), (2, "a"), (3, "b")))
    group.hear_each(first, second, other)
    assert group.work() == [first, other]
    assert group.work(SOON) == [second]
    group.data()
    # They are answers: neither the relay nor the controller makes it send the command again.
    group.obey(configure())
    assert [(m.ids, m.message) for m in group.work(SOON) if isinstance(m, wire.Error)] == [([1, 2], "a"), ([3], "b")]
    assert (group.work(RESEND_EVERY_NS), group.data()) == ([], [])


def test_what_went_wrong_in_an_epoch_is_told_when_the_next_one_begins() -> None:
    group = arrived()
    errors = [error(n, "boom", 0) for n in (1, 2)]
    group.hear_each(*errors)
    group.obey(configure())
    assert group.up == errors


def test_the_last_words_of_a_process_that_has_ended_are_heard() -> None:
    group = arrived()
    group.ends(2, 1, replaced=True)
    last = error(2, "boom", 0)
    group.take_message("2", last)
    assert last in group.work()


# --- reports ---------------------------------------------------------------------------------------------------------


def test_reports_are_a_batch_when_all_have_reported() -> None:
    group = arrived(configure(), FINISH)
    group.work(SOON)
    group.hear_each(report(1), report(2))
    assert group.work() == []
    group.take_message("3", error(3, "it cannot", number=4))
    assert kinds(group.work()) == [("Error", [3]), ("Batch", [1, 2])]


def test_reports_do_not_wait_for_longer_than_half_a_second() -> None:
    group = arrived(configure(), FINISH)
    group.take_message("1", report(1))
    assert group.work(BATCHED_WITHIN_NS - 1) == []
    assert kinds(group.work(1)) == [("Batch", [1])]
    group.ends(2, -9, replaced=True)
    group.take_message("3", report(3))
    assert kinds(group.work()) == [("ChildExit", [2]), ("Batch", [3])]
    group.data()
    group.obey(wire.Finish(ids=[1, 3], epoch=1, number=4, publishers=[], drain_max_s=1.0))
    assert kinds(group.work()) == [("Batch", [1]), ("Batch", [3])]
    assert group.data() == []


def test_reports_of_several_in_one_message_are_one_batch() -> None:
    group = arrived(configure(), FINISH, names=["1234"])
    group.work(SOON)
    group.take_message("1234", report(1, 2, 3))
    assert kinds(group.work()) == [("Batch", [1, 2, 3])]


def test_reports_of_several_are_taken_together_or_not_at_all() -> None:
    group = arrived(configure(), FINISH, names=["123"])
    group.take_message("123", report(1, 3))
    # The sums of their histograms cannot be divided, and the second client has not reported yet.
    group.take_message("123", report(1, 2))
    assert kinds(group.work(BATCHED_WITHIN_NS)) == [("Batch", [1, 3])]
    group.data()
    group.work(RESEND_EVERY_NS)
    assert msgspec.structs.replace(FINISH, ids=[2]) in [message for _, message in group.data()]
    group.take_message("123", report(2))
    assert kinds(group.work()) == [("Batch", [2])]


def test_reports_of_several_of_which_one_is_late_are_not_taken() -> None:
    group = arrived(configure(), FINISH, names=["123"])
    group.obey(msgspec.structs.replace(FINISH, ids=[2], number=6))
    group.take_message("123", report(1, 2, 3))
    assert group.work(BATCHED_WITHIN_NS) == []
    group.take_message("123", report(1, 3), report(2, number=6))
    assert kinds(group.work()) == [("Batch", [1, 2, 3])]


def test_a_batch_whose_columns_do_not_fit_together_changes_nothing() -> None:
    group = arrived(configure(), FINISH)
    good = report(1)
    for head, payload in (
        (good.head, good.payload[8:]),
        (msgspec.structs.replace(good.head, columns=good.head.columns[1:]), good.payload),
        (msgspec.structs.replace(good.head, columns=[]), b""),
    ):
        with pytest.raises(ValueError, match="column"):
            group.take_message("1", Reported(head, payload))
    columns, payload = encode_columns([(1, dataclasses.replace(body(1), batches=-1))])
    with pytest.raises(ValueError, match="batches"):
        group.take_message("1", Reported(msgspec.structs.replace(good.head, columns=columns), payload))
    group.take_message("1", good.head)  # without its second frame
    assert group.work(BATCHED_WITHIN_NS) == []
    group.hear_each(good, report(2), report(3))
    assert kinds(group.work()) == [("Batch", [1, 2, 3])]


def test_the_joined_batch_is_the_one_of_all_reports() -> None:
    group = arrived(configure(), FINISH, names=["12", "3"])
    group.take_message("3", report(3))
    group.take_message("12", report(1, 2))
    group.work()
    assert group.payloads == [encode_columns([(client, body(client)) for client in (1, 2, 3)])[1]]


def test_the_next_epoch_makes_everything_forgotten() -> None:
    group = arrived(configure(), FINISH)
    group.take_message("1", ack(1), report(1))
    group.obey(configure(epoch=2))
    assert group.work(BATCHED_WITHIN_NS) == []
    group.take_message("2", report(2))
    assert group.work(BATCHED_WITHIN_NS) == []


def test_what_waits_is_said_at_the_end() -> None:
    group = arrived(configure(), FINISH)
    group.take_message("1", ack(1), report(1))
    for client in (1, 2, 3):
        group.ends(client, 0)
    group.up.clear()
    group.relaying.end(group.now_ns)
    assert kinds(group.up) == [("Ack", [1]), ("Batch", [1])]


# --- quit ------------------------------------------------------------------------------------------------------------


def test_quit_is_said_again_to_those_that_are_still_there() -> None:
    group = arrived(wire.Quit(ids=[1, 2]))
    group.work()
    assert sorted(name for name, _ in group.data()) == ["1", "2"]
    group.ends(1, 0)
    group.work(RESEND_EVERY_NS)
    assert group.data() == [("2", wire.Quit())]


def test_quit_without_ids_is_for_those_that_come_later_as_well() -> None:
    group = arrived(wire.Quit())
    group.work()
    assert sorted(name for name, _ in group.data()) == ["1", "2", "3"]
    group.take_message("4", hello(4))
    assert group.work() == []
    assert group.data() == [("4", wire.Quit())]


# --- what the controller does not know, or has heard before ----------------------------------------------------------


def test_a_command_is_not_for_a_successor_that_the_controller_does_not_know() -> None:
    group = arrived()
    group.take_message("2b", hello(2, incarnation=1))
    group.work(SOON)
    group.data()
    group.obey(configure())
    assert {name for name, _ in group.data()} == {"1", "3"}
    group.obey(wire.Welcome(v=wire.VERSION, ids=[2], run="run", silence_s=30.0))
    group.obey(configure())
    assert "2b" in {name for name, _ in group.data()}


def test_a_report_that_comes_twice_is_sent_once() -> None:
    group = arrived(configure(), FINISH)
    group.hear_each(report(1), report(2), report(3))
    (batch,) = [text for text in group.work() if isinstance(text, wire.Batch)]
    group.take_message("1", report(1))
    assert group.work(BATCHED_WITHIN_NS) == []
    group.obey(FINISH)
    assert group.work() == [batch]


def test_a_report_counts_more_than_the_error_before_it() -> None:
    group = arrived(configure())
    group.hear_each(ack(1), ack(2), ack(3))
    group.obey(FINISH)
    group.take_message("1", error(1, "the tool failed", number=4))
    group.hear_each(report(1), report(2), report(3))
    assert wire.Batch in map(type, group.work(SOON))
    group.obey(FINISH)
    assert [message.ids for message in group.work(SOON) if isinstance(message, wire.Batch)] == [[1, 2, 3]]
