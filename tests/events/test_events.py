"""The texts of all events and warnings, and what is known of stored ones by their kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.events import group_events, run_events, warnings
from hydra.events.event import Event, EventData, Level, StoredEvent
from hydra.events.warnings import HydraWarning, Journal
from hydra.measure.column import Unsteadiness
from hydra.model import Agent, Demand, Group, Launch, Resources, Settings, StepPlan
from hydra.report.connection_warnings import (
    LostBySilence,
    NeverBack,
    NotLetIn,
    PartialRepeats,
    RowFailed,
    RowSkipped,
    StepRetried,
    SubscribersWithoutReport,
)
from hydra.report.host_warnings import GeneratorLimited, HostBusy, HostShared
from hydra.report.loss_warnings import BacklogAtEnd, LossInterval, MessagesLost, OutcomeUnknown, Undrained
from hydra.report.row_context import RowWarning
from hydra.report.row_warnings import OF_FIGURES, OF_STATUS
from hydra.report.send_warnings import BatchNotFilled, RateMissed, SendsRefused, StoppedEarly
from hydra.report.slow_client_warnings import SlowClientsWithoutEffect, UnsteadyRow
from hydra.sweep import held_warnings as held
from hydra.sweep import search_warnings as searches
from hydra.wire import EXIT_STRANDED

PLAN = StepPlan(clients=3, settings=Settings(rate=100.0), duration_s=1.0)


def launch(role: str, host: str) -> Launch:
    group = Group(id="g", role=role, first_client=5, count=2, command=(), environment={}, demand=Demand())
    return Launch(group, Agent("a", host, {}, Resources(cpus=1, mem=1)))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            run_events.RunBegan("fixed", "runs/x", 2, (10, 1000), 45.0, 600.0),
            "fixed into runs/x: 2 rows (10 and 1,000 subscribers), about 45 s if nothing is backlogged, 10 min at most",
        ),
        (
            run_events.RunBegan(
                *("all", "runs/x", 7, range(1, 8), 45.0, 60.0, "1 toy server"),
                unfit=(6, 7),
                lack="memory: 1.0 GB available, needs 2.0 GB",
                largest=5,
            ),
            "all into runs/x: 7 rows (1 to 7 subscribers, 7 counts), about 45 s if nothing is backlogged, "
            "60 s at most; the start of 1 toy server is not included; "
            "6 and 7 subscribers do not fit (memory: 1.0 GB available, needs 2.0 GB): the largest count that fits is 5",
        ),
        (
            run_events.RunBegan("rate", "runs/x", 1, (1,), 200.0, sharp_s=70.0, three_s=600.0, unfit=(1,), lack="x"),
            "rate into runs/x: 1 row (1 subscriber), about 3 min, or 70 s if losses begin at one rate; "
            "three counts, such as --subscribers 10,30,100, take about 10 min; 1 subscriber does not fit (x): "
            "no count fits",
        ),
        (
            run_events.RunBegan("rate", "runs/x", 1, (2,), 37.2, sharp_s=36.9),
            "rate into runs/x: 1 row (2 subscribers), about 37 s",
        ),
        (
            run_events.ServersStarting("3 toy servers", "1 of 3 answer", 7.2),
            "starting 3 toy servers: 1 of 3 answer (for 7 s)",
        ),
        (run_events.ServersStarting("1 toy server", "", 100.0), "starting 1 toy server (for 2 min)"),
        (run_events.ServersStarted("3 toy servers", 12.0), "started 3 toy servers in 12 s"),
        (run_events.EngineWaits("waiting for a node"), "waiting for a node"),
        (
            run_events.RolesPinned({"publisher": "0", "subscriber": "1-3"}),
            "publishers run on CPUs 0; subscribers run on CPUs 1-3",
        ),
        (
            run_events.ConstraintsLeftOut(("group", "rack")),
            "no agent has the attribute group or rack: the scenario's default constraints on it do not apply, and "
            "roles may share hosts",
        ),
        (run_events.RunDone(12_000.0, "runs/x"), "done in 3 h 20 min: runs/x"),
        (run_events.RunFailed("no space left"), "no space left"),
        (run_events.RunResumed(5, 2), "after 5 steps, of which 2 failed ones are measured again"),
        (run_events.SystemFact("version", "4.3"), "version: 4.3"),
        (run_events.FramesRejected("wrong key", 3), "3 × wrong key"),
        (run_events.SystemRestarted("it went away"), "it went away"),
        (group_events.Launched.of(launch("subscriber", "a")), "g: 2 subscribers from id 5 on a"),
        (group_events.Launched.of(launch("server", "host-a")), "g: a server on a (host-a)"),
        (group_events.ClientsConnected(4, 0.25), "4 clients after 0.250 s"),
        (group_events.ClientsConnected(1, 0.25), "1 client after 0.250 s"),
        (group_events.Evicted("g", {1, 2, 3, 7}, "did not answer"), "g: ids 1–3, 7 did not answer"),
        (
            group_events.GroupRelaunched({7}),
            "ids 7: their process groups did not replace them, so they were started in other groups",
        ),
        (group_events.ClientExit(1, 99, -9, replaced=True), "client 1: pid 99 was killed by SIGKILL, replaced"),
        (group_events.ClientExit(1, 99, 3, replaced=False), "client 1: pid 99 exited with 3"),
        (group_events.ClientExit(1, 99, None, replaced=False), "client 1: pid 99 ended"),
        (
            group_events.ClientExit(1, 99, EXIT_STRANDED, replaced=False),
            "client 1: pid 99 exited with 4, because the process received nothing from the controller for too long",
        ),
        (group_events.GroupExit("g", "failed", "a", "exit status 1"), "g on a failed: exit status 1"),
        (group_events.ClientError(7, "no route"), "client 7: no route"),
        (run_events.ServersUp(2, "h:1,i:1", 1.5), "2 at h:1,i:1 after 1.500 s"),
        (run_events.ServersRestarted("g was lost"), "g was lost"),
        (run_events.ServerExit("g failed"), "g failed"),
        (
            run_events.StartUnacknowledged(3, set(range(0, 40, 2))),
            "epoch 3: not acknowledged in time by ids 0, 2, 4, 6, 8, 10, 12, 14, …",
        ),
        (run_events.WindowOpened(3), "epoch 3 runs"),
        (run_events.PhasesTimed(3, [("bind", 0.1), ("reports", 2.0)]), "epoch 3: bind 0.100 s, reports 2.000 s"),
        (run_events.StepStored(3, 0.0126), "epoch 3: 0.013 s"),
        (
            run_events.StepMeasured(
                "step 1 of 2: 3 subscribers", PLAN, {"avg_tx_rate_pps": 1234.5678, "client_loss_pct": 21.1473}
            ),
            "step 1 of 2: 3 subscribers: Tx 1,235/s, Rx –/s, aggregate –/s, loss 21.1 %",
        ),
        (
            run_events.StepMeasured(
                "step 1 of 2: 3 subscribers, max",
                replace(PLAN, settings=Settings(rate="max")),
                {"avg_tx_rate_pps": 900.0, "avg_rx_rate_pps": 450.0, "aggregate_pps": 1350.0, "client_loss_pct": 0.0},
            ),
            "step 1 of 2: 3 subscribers, max: Rx 450/s, aggregate 1,350/s, loss 0 %, Tx 900/s",
        ),
        (
            run_events.SearchStepMeasured("step 9", 0.5, 0.1234, [(0.1234, "lost")], 900.0, 1700.0),
            "step 9: passed, shortfall 0.123 % (target 0.5 %); the answer is between 900 and 1,700/s so far",
        ),
        (
            run_events.SearchStepMeasured("step 9", 0.5, 41.0, [(38.0, "backlog"), (3.0, "lost")], None, 1700.0),
            "step 9: short, shortfall 41 % (target 0.5 %): 38 % backlog, 3 % lost; the answer is below 1,700/s so far",
        ),
        (
            run_events.SearchStepMeasured("step 1", 0.5, None, [], 900.0, None),
            "step 1: shortfall not known (target 0.5 %); the answer is above 900/s so far",
        ),
        (
            run_events.LadderStepMeasured("step 2", 10.0, "1.1 % lost", [], 8000.0, 10_000.0),
            "step 2 for 10 s: not clean, 1.1 % lost; the answer is between 8,000 and 10,000/s so far",
        ),
        (run_events.LadderStepMeasured("step 1", 2.0, "", [], None, None), "step 1 for 2 s: clean"),
        (
            run_events.LadderStepMeasured("step 3", 2.0, "", [(0.38, "lost"), (0.85, "late")], 8000.0, None),
            "step 3 for 2 s: clean (0.38 % lost, 0.85 % late); the answer is above 8,000/s so far",
        ),
        (warnings.StepNotMeasured("step 2: 3 subscribers", "failed", "why"), "step 2: 3 subscribers: FAILED: why"),
        (
            warnings.StepNotMeasured("step 2: 3 subscribers", "failed", "why", again=True),
            "step 2: 3 subscribers: FAILED, is measured again: why",
        ),
        (
            warnings.SubscribersFailed([(1, 6, "1 died"), (3, 8, "2 never answered")]),
            "subscribers died or fell silent by themselves, so the exit code is 3: row 1 (6 subscribers): 1 died; "
            "row 3 (8 subscribers): 2 never answered",
        ),
        (warnings.Interrupted(), "interrupted before the first step ended: nothing was measured"),
        (
            warnings.Interrupted("runs/x"),
            "interrupted before the first step ended: nothing was measured; continue with --resume runs/x",
        ),
        (warnings.Interrupted("runs/x", 2), "interrupted: what was measured is kept; continue with --resume runs/x"),
        (
            warnings.Interrupted("runs/x", by_key=True),
            "ended after this step, because the user pressed a key: what was measured is kept; "
            "continue with --resume runs/x",
        ),
        (
            run_events.RunResumeSummary("runs/x", ["2 subscribers", "4 subscribers"], 6, ["8 subscribers"], 4, 75.0),
            "runs/x continues: 2 of 6 rows there (2 subscribers; 4 subscribers); "
            "1 failed and is measured again (8 subscribers); 4 steps to go, about 75 s",
        ),
        (
            run_events.RunResumeSummary("runs/x", [f"{n} subscribers" for n in range(8)], 9, [], None, 600.0),
            "runs/x continues: 8 of 9 rows there (0 subscribers; 1 subscribers; 2 subscribers; 3 subscribers; "
            "4 subscribers; 5 subscribers; 2 more); the results decide how many steps are to go, about 10 min",
        ),
        (
            run_events.RunResumeSummary("runs/x", [], 1, ["8 subscribers", "9 subscribers"], 1, 5.0),
            "runs/x continues: 0 of 1 row there; 2 failed and are measured again (8 subscribers; 9 subscribers); "
            "1 step to go, about 5 s",
        ),
        (run_events.RunComplete("runs/x"), "runs/x is complete: nothing is left to measure, and nothing is started"),
        (warnings.CleanupFailed("t-1", "h:1", "x removes it"), "t-1 may be left at h:1; x removes it"),
        (
            warnings.SettingsSkipped(["num.a", "num.b"], "h:1"),
            "the servers at h:1 keep their own settings: Hydra did not set num.a, num.b of the preset",
        ),
        (
            warnings.EarlierCleanup("a category", "t-1: removed"),
            "an earlier part of this run left a category behind: t-1: removed",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else "",
)
def test_what_happened_is_said_in_one_line(event: Event, text: str) -> None:
    assert str(event) == text


SLOW = (
    "slow: the buffers of the slow subscribers never filled, so the slow subscribers affected neither the publisher "
    "nor other subscribers"
)


@pytest.mark.parametrize(
    ("warning", "text"),
    [
        (
            warnings.RunIncomplete("failed", "x", "60 more"),
            "the run could not continue: x; the next step would be 60 more",
        ),
        (warnings.RunIncomplete("finished", "", "60 subscribers"), "the next step would be 60 subscribers"),
        (warnings.RunEndedBadly("interrupted", ""), "the run was interrupted, after the last step of the run"),
        (warnings.RunEndedBadly("strange", ""), "the run ended as 'strange', after the last step of the run"),
        (RowSkipped("needs 9 GB"), "SKIPPED: needs 9 GB"),
        (RowFailed("the broker died"), "FAILED: the broker died"),
        (StepRetried("one repeat failed"), "one repeat failed"),
        (
            PartialRepeats(3, [(2, "abcdef"), (1, "g")]),
            "only 2 of 3 repeats have a figure for a, b, c, d and 2 other columns; 1 of 3 repeats have a figure for g",
        ),
        (MessagesLost(12.5), "LOSS: 12.5 % of the messages were lost"),
        (Undrained(1e4), "10,000 messages were still waiting in a server when the drain ended: counted as undrained, not as lost"),  # noqa: E501
        (
            SubscribersWithoutReport(1, 2, "SIGKILL"),
            "subscribers that sent no report: 1 died (SIGKILL), 2 never answered; "
            "what they received after their last progress message is unknown",
        ),
        (LostBySilence("2 connections"), "keep-alive: 2 connections of subscribers ended, because the subscribers sent nothing for longer than the server waits: their processes did not run in time"),  # noqa: E501
        (NotLetIn(1, 2, 0), "1 subscriber was not let in before the window: 2 attempts were refused, 0 timed out"),
        (NotLetIn(20, 60, 3), "20 subscribers were not let in before the window: 60 attempts were refused, 3 timed out"),  # noqa: E501
        (
            NotLetIn(20, 60, 0, 5, "full", "EMFILE"),
            "20 subscribers were not let in before the window: 60 attempts were refused (full), 0 timed out, 5 failed "
            "because the subscribers' host had too few open files for a process (EMFILE)",
        ),
        (NeverBack(2), "2 of the subscribers that were disconnected never came back"),
        (RateMissed(9e4, 8.5e4), "a publisher did not reach the requested rate of 90,000/s; the mean rate was 85,000/s"),  # noqa: E501
        (RateMissed(9e4, 8.5e4, 3), "in at least one of 3 repeats a publisher did not reach the requested rate of 90,000/s; the mean rate over all repeats was 85,000/s"),  # noqa: E501
        (RateMissed(9e4, None, 3), "in at least one of 3 repeats a publisher did not reach the requested rate of 90,000/s"),  # noqa: E501
        (BatchNotFilled(1000, 216.4, "msg_batch"), "a batch had 216 messages on average, and msg_batch asks for 1,000"),
        (StoppedEarly("no memory"), "a publisher stopped before the end of the window: no memory"),
        (UnsteadyRow([Unsteadiness("change", 4, -0.1)]), "not steady: 10 % less was received from second 4 on than before"),  # noqa: E501
        (UnsteadyRow([Unsteadiness("first", 0, -0.2)]), "not steady: 20 % less was received in the first repeat than in the others"),  # noqa: E501
        (
            UnsteadyRow([Unsteadiness("second", at, by) for at, by in [(3, 0.1), (5, -0.3), (7, 0.2), (9, 0.4), (11, 0.1)]]),  # noqa: E501
            "not steady: 30 % less was received in second 5 than in the median second, "
            "20 % more was received in second 7 than in the median second, "
            "40 % more was received in second 9 than in the median second, and 2 other differences",
        ),
        (
            UnsteadyRow([Unsteadiness("stop", 3, -1.0, 4.0), Unsteadiness("short", 2, -0.5)]),
            "not steady: nothing was received for about 4 s from second 3 on, "
            "50 % less was received in second 2 than was due",
        ),
        (UnsteadyRow([]), "not steady in at least one of its repeats"),
        (SendsRefused(7), "7 messages were rejected by a server or the library"),
        (GeneratorLimited(["max_rate", "loss"]), "full speed, held rate: generator-limited: the clients limited the measured rate, not the system"),  # noqa: E501
        (HostBusy(99.6), "a host had no CPU left: 100 % of the time of all cores was used"),
        (HostBusy(99.6, 77.0, named=True), "a host had no CPU left: 100 % of the time of all cores was used"),
        (HostShared(12.3), "other processes used about 12 % of a host's CPU"),
        (searches.SearchText("slow", "still rising"), "slow: still rising"),
        (
            held.HeldAtLeast("loss", 25_000.0, "publisher reached 23,100/s", True),
            "the clients or their hosts were the limit, not the system: 25,000/s was not held (publisher reached 23,100/s)",  # noqa: E501
        ),
        (
            held.HeldAtLeast("loss", 25_000.0, "late 16.4 %", False, 99.6, 28.0),
            "what the system alone can do is unknown, because clients, any server there and other processes shared the "
            "full CPU of a host: 25,000/s was not held (late 16.4 %), 100 % of the CPU used, of which others 28 %",
        ),
        (held.NotConfirmed("slow", (8e3, 1e4)), "with slow subscribers: between 8,000 and 10,000/s, not confirmed: the time was over"),  # noqa: E501
        (held.NextRateUnknown("loss"), "no higher rate was found that is not held: the time was over"),
        (held.HeldInPart("loss", 1, 2, 10.0), "held in 1 of 2 steps of 10 s"),
        (
            held.FailedBelowHeld("loss", (6300.0, 8000.0)),
            "6,300, 8,000/s was not held in two steps, although a step at a higher rate was clean",
        ),
        (searches.NoRateHolds("loss", 2.0, (1.8, 2.25)), "loss: no rate holds: 2 % [1.8 – 2.25] of the messages are lost at every rate tried"),  # noqa: E501
        (searches.NoRateHolds("loss", 2.0, (None, None)), "loss: no rate holds: 2 % of the messages are lost at every rate tried"),  # noqa: E501
        (
            searches.SearchTooShort("loss", 580.0, 5.0, (100.4, 900.0)),
            "loss: no answer: too few seconds were measured, and the rate may be anywhere from 100 to 900/s",
        ),
        (searches.RateDrifted("slow"), "slow: no answer: the rate that holds changed during the search"),
        (searches.LossyBetween("loss", [(3e3, 6e3), (8e3, 9e3)]), "loss: more than the target is lost between 3,000 and 6,000/s and between 8,000 and 9,000/s, but not at higher rates"),  # noqa: E501
        (searches.SubscriberLosesAlone("loss", 17, 5.0), "loss: subscriber 17 loses 5 % of its messages at every rate"),
        (
            searches.SubscriberLosesAlone("loss", 17, 5.0, 2e4, (1.9e4, 2.1e4)),
            "loss: subscriber 17 loses 5 % of its messages at every rate; the other subscribers carry 20,000/s [19,000 – 21,000]",  # noqa: E501
        ),
        (searches.LossAtStart("loss", 2.0), "loss: 2 ms of traffic are lost at the start of each step"),
        (SlowClientsWithoutEffect(), SLOW),
        (SlowClientsWithoutEffect(9e3, 1e4, 1.0), f"{SLOW}: each slow subscriber reads 10,000/s, and at most 9,000/s was sent to it"),  # noqa: E501
        (SlowClientsWithoutEffect(9e3, 8e3, 2.0), f"{SLOW}: the backlog of each slow subscriber grows by 2,000 messages in a step"),  # noqa: E501
        (
            SlowClientsWithoutEffect(9e3, 8e3, 2.0, 2000.0, "sndhwm and rcvhwm", 40_329.8),
            f"{SLOW}: the backlog of each slow subscriber grows by 2,000 messages in a step; sndhwm and rcvhwm hold "
            "2,000 messages, and the kernel's buffers up to 40,000 more",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else "",
)  # fmt: skip
def test_what_has_to_be_known_of_a_run_or_a_row(warning: HydraWarning, text: str) -> None:
    assert warning.text == text
    assert str(warning) == (f"{text}; {warning.remedy}" if warning.remedy else text)


@pytest.mark.parametrize(
    ("warning", "remedy"),
    [
        (RowSkipped("x", by_user=True), "measure the row in another run"),
        (RowSkipped("needs 9 GB"), "use fewer clients or more agents; hydra check reports what fits"),
        (
            searches.SearchTooShort("loss", 301.0, 5.0),
            "use --search-steps 61 or more in a new run (at least 305 s of measuring, about 7 min)",
        ),
        (searches.SearchTooShort("loss", 30_000.0, 1.0), "use steps of 3 s or more (--duration)"),
        (
            searches.SearchTooShort("loss", 30_000.0, 1.0, disturbed=True),
            "measure while no other processes use the hosts; if there is no answer again, use steps of 3 s or more (--duration)",  # noqa: E501
        ),
        (
            searches.AnswerContradicted("loss", None, 5.0, steps=60),
            "use --search-steps 120 or more in a new run (at least 600 s of measuring, about 13 min)",
        ),
        (searches.AnswerContradicted("loss"), "use more steps (--search-steps) or longer steps (--duration)"),
        (searches.AnswerAboveHighest("loss"), "raise --start-rate"),
        (
            searches.AnswerAboveHighest("loss", None, 5.0, (64_000.0, None)),
            "use --start-rate 64000, which searches above that rate",
        ),
        (searches.SearchText("loss", "a stored text"), ""),
        (SlowClientsWithoutEffect(), "use longer steps, or a lower sweep.search.slow_share"),
        (SlowClientsWithoutEffect(9e3, 1e4, 1.0), "lower sweep.search.slow_share"),
        (SlowClientsWithoutEffect(9e3, 8e3, 2.0, None, "marks above 0"), "set a limit: marks above 0"),
        # Behind by 1,000/s, and 2,000 + 8,000 messages can wait.
        (
            SlowClientsWithoutEffect(9e3, 8e3, 2.0, 2e3, "marks", 8e3),
            "to see an effect, use steps of at least 10 s, a rate of at least 13,000/s",
        ),
        # 10,000 in a step, of which 9,000 wait elsewhere.
        (
            SlowClientsWithoutEffect(9e3, 8e3, 10.0, 2e3, "marks", 9e3),
            "to see an effect, use steps of at least 11 s, a rate of at least 9,100/s, or marks of 1,000 messages in all",  # noqa: E501
        ),
    ],
)
def test_a_warning_says_what_would_change_it(warning: HydraWarning, remedy: str) -> None:
    assert warning.remedy == remedy


BASES = {HydraWarning, RowWarning, searches.SearchWarning, held.HeldWarning}
OF_ROWS = {*OF_STATUS, *OF_FIGURES}


def defined(*modules: object) -> set[type[Event]]:
    """The events that these modules define, as they are registered."""
    return {c for c in Event.kinds.values() if c.__module__ in {m.__name__ for m in modules}} - BASES  # type: ignore[attr-defined]  # modules


def test_every_warning_of_a_row_says_what_would_change_it() -> None:
    silent = {w for w in OF_ROWS | defined(searches, held) if w.remedy is Event.remedy}
    assert silent == set()


OF_DATABASES = """
    began client_error client_exit complete constraints_left_out done engine_waits evict fact failed
    goes_on group_exit launch phases present read_ahead_limited
    refused resumed revive roles_pinned server_exit server_killed server_restarted servers servers_again servers_started
    servers_starting slowed_by_machine start step stored warning window
"""
OF_PROGRAMS = """
    above_highest above_undisturbed addresses_silent advertised_silent
    batch_not_filled below_lowest by_form cannot_tell changing connections_lost
    contradicted failed_below_held fate_of_gone fate_unknown fewer_figures generator_limited held_at_least held_in_part
    highest_unknown host_busy host_shared
    interrupted lagged late_messages left_behind left_earlier loses_alone loses_at_start loss loss_between
    lossy_between lost_by_silence metrics_refused never_back next_rate_unknown no_rate_holds none_held not_confirmed
    not_judged not_let_in not_steady
    nothing_received publisher_stalled publisher_throttled rate_missed row_disturbed row_failed row_partial row_skipped
    run_ended_badly run_incomplete search_interrupted search_note second_try sends_refused sends_unanswered
    settings_skipped slow_not_felt
    step_not_measured still_rising stopped_early subscribers_failed subscribers_gone too_few_clients too_short
    undrained
"""


def test_the_names_that_databases_and_programs_know_stay_when_a_class_gets_another() -> None:
    assert {event.category for event in defined(group_events, run_events, warnings)} == set(OF_DATABASES.split())
    assert {warning.kind for warning in OF_ROWS | defined(warnings, searches, held)} == set(OF_PROGRAMS.split())
    assert {kind for kind in Event.kinds.values() if issubclass(kind, RowWarning)} == {RowWarning, *OF_ROWS}
    # Every one that a report shows has its label.
    categories = {Event.kinds[event.category] for event in defined(group_events, run_events, warnings)}
    assert [e.kind for e in categories if e.level != Level.ROUTINE and e.summary == Event.summary] == []


def test_every_warning_matters() -> None:
    every = OF_ROWS | defined(warnings, searches, held)
    assert all(warning.level != Level.ROUTINE for warning in every)
    gravest: dict[Level, set[type[HydraWarning]]] = {
        Level.FAIL: {warnings.RunIncomplete, warnings.RunEndedBadly, RowSkipped, RowFailed},
        Level.LOSS: {
            MessagesLost,
            LossInterval,
            RateMissed,
            OutcomeUnknown,
            BacklogAtEnd,
            held.NoneHeld,
            held.NotConfirmed,
            searches.NoRateHolds,
            searches.SearchTooShort,
            searches.SubscriberLosesAlone,
        },
    }
    for level, expected in gravest.items():
        assert all(warning.level == level for warning in expected)


def test_an_event_of_a_package_that_is_not_imported_is_told_by_its_text() -> None:
    event = StoredEvent(1, None, EventData("toy_exit", Level.NOTE, "why", "", {}))
    assert (event.category, event.text, event.summary) == ("toy_exit", "why", "see the details")


def test_a_journal_keeps_everything_with_its_step_and_shows_warnings() -> None:
    kept: list[tuple[Event, int | None]] = []
    shown: list[Event] = []
    journal = Journal(lambda event, epoch: kept.append((event, epoch)), shown.append)
    fact, warning = run_events.SystemFact("version", "4.3"), warnings.EarlierCleanup("a category", "removed")
    journal.note(fact)
    journal.epoch = 3
    journal.note(warning)
    assert kept == [(fact, None), (warning, 3)]
    assert shown == [warning]
