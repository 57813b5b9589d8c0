"""The account of a consumer group, against a plain model that follows every message to its members."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import pytest

from hydra.measure.column import UnlistedMessages
from hydra.measure.message_accounting import is_complete, merge_members
from hydra.measure.observation import Observation
from hydra.measure.verdict import NOT_LIMITED
from hydra.model import Cohort, DrainEnd, LedgerCounts, PublisherReport, SequenceRange, Settings, SubscriberReport
from hydra.wire.compact_encoding import MAX_CHARACTERS, MAX_SEQUENCES, encode_bitmap
from hydra.wire.subscriber_table import table_of
from tests.measure.observations import observed
from tests.measure.reports import published, received
from tests.suite.bitmaps import decode_bitmap
from tests.suite.figures import figures

GROUP = {1, 2, 3}


def spread(ranges: Iterable[SequenceRange]) -> set[int]:
    return {n for low, high in ranges for n in range(low, high + 1)}


def bitmap(sequences: Collection[int]) -> str:
    one = sum(1 << n for n in sequences)
    return b64encode(one.to_bytes((one.bit_length() + 7) // 8, "little")).decode()


def ledger(
    sequences: Collection[int], sent: int, holes: Sequence[SequenceRange] = (), *,
    late: int = 0, duplicates: int = 0, publisher: int = 0,
) -> LedgerCounts:  # fmt: skip
    """The report of a member that got these; this many of them late."""
    expected = set(range(sent)) - spread(holes)
    got = len(expected & set(sequences))
    extra = len(set(sequences) - expected)
    return LedgerCounts(
        publisher, got, got - late, 0, duplicates=duplicates, extra=extra, received_bits=bitmap(sequences)
    )


def member(*ledgers: LedgerCounts, drain: DrainEnd = "quiet", undrained: int = 0) -> SubscriberReport:
    return received(sum(x.received for x in ledgers), ledgers=list(ledgers), drain=drain, undrained=undrained)


def shared(count: int = 1000, members: int = 3, without: Collection[int] = ()) -> dict[int, SubscriberReport]:
    """Messages of one publisher that went round; the members have the ids from 1 on."""
    return {
        m + 1: member(ledger([n for n in range(m, count, members) if n not in without], count)) for m in range(members)
    }


def of_group(reports: Mapping[int, SubscriberReport], sent: PublisherReport | None = None) -> Observation:
    return replace(
        observed(), plan=replace(observed().plan, clients=3), subscribers=GROUP, group="readers", direct=False,
        publisher_reports={0: sent or published(1000)}, subscriber_reports=table_of(reports),
    )  # fmt: skip


def of_two(one: LedgerCounts, two: LedgerCounts, sent: PublisherReport | None = None) -> Observation:
    return replace(of_group({1: member(one), 2: member(two)}, sent), subscribers={1, 2})


def test_members_that_received_little_have_the_rate_of_their_group_at_full_rate() -> None:
    reports = {m: replace(report, first_batch=1) for m, report in shared(150).items()}
    group = of_group(reports, published(150))
    plan = replace(group.plan, settings=Settings(rate="max", messages=150))
    found = figures(replace(group, plan=plan))
    # 50 messages each in 9 s, without the first of each, which arrived at the same time.
    assert (found["aggregate_pps"], found["avg_rx_rate_pps"]) == pytest.approx((147 / 9, 49 / 9))


@pytest.mark.parametrize("seed", range(12))
def test_a_spread_at_random_is_what_a_plain_model_says(seed: int) -> None:
    dice = random.Random(seed)
    publishers: dict[int, PublisherReport] = {}
    of_members: list[list[LedgerCounts]] = [[] for _ in range(dice.randrange(1, 6))]
    text: dict[int, tuple[int, int, int, int, set[int]]] = {}
    for publisher in range(dice.randrange(1, 4)):
        sent = dice.randrange(400)
        holes = [(low, low + dice.randrange(12)) for low in range(0, sent, 37) if dice.random() < 0.4]
        holes = [(low, min(high, sent - 1)) for low, high in holes]
        expected = set(range(sent)) - spread(holes)
        publishers[publisher] = published(sent, len(expected), unacknowledged=holes)
        took: list[list[int]] = [[] for _ in of_members]
        for n in range(sent + dice.randrange(10)):  # some that were not sent
            for _ in range(dice.choice([0, 1, 1, 1, 1, 1, 2, 3])):
                dice.choice(took).append(n)
        for ledgers, its in zip(of_members, took, strict=True):
            twice = len(its) - len(set(its))
            ledgers.append(ledger(set(its), sent, holes, duplicates=twice, publisher=publisher))
        everyone = [n for its in took for n in its]
        seen = set(everyone)
        missing = expected - seen
        text[publisher] = len(expected & seen), len(missing), len(everyone) - len(seen), len(seen - expected), missing
    members = [member(*ledgers) for ledgers in of_members]
    table = table_of(dict(enumerate(members)))
    found = merge_members(table, publishers)
    assert found.ids.tolist() == [0]
    assert {
        x.publisher: (x.received, x.missing, x.duplicates, x.extra, spread(x.missing_ranges)) for x in found.ledgers(0)
    } == text
    assert is_complete(table, publishers) == (not any(missing for _, missing, *_ in text.values()))


def test_a_group_that_has_everything_lost_nothing() -> None:
    f = figures(of_group(shared()))
    expected = {
        "group": "readers", "clients": 3, "total_tx": 1000, "total_rx": pytest.approx(1000 / 3),
        "client_loss_pct": 0.0, "loss_at_stop_pct": 0.0, "failed_clients": 0, "in_window": 1000, "lost": 0,
        "unknown": 0, "late": 0, "duplicates": 0, "aggregate_pps": 100.0, "rx_p1": 333, "rx_p99": 334,
        "fairness_jain": pytest.approx(1.0, abs=1e-5), "shortfall_pct": 0.0, "passed": True,
        "verdict": NOT_LIMITED,
    }  # fmt: skip
    assert {k: f[k] for k in expected} == expected
    # Without a group each subscriber receives everything.
    alone = figures(replace(of_group(shared()), group=""))
    assert "group" not in alone
    assert alone["client_loss_pct"] == pytest.approx(200 / 3)


LOST = range(500, 520)
"""The twenty messages that no member got."""


@pytest.mark.parametrize(
    ("changes", "figures_of"),
    [
        ({}, {"lost": 20, "unknown": 0, "undrained": 0, "client_loss_pct": 2.0, "shortfall_pct": 2.0}),
        # A member that had to stop draining may have received any of them later.
        ({"drain": "deadline"}, {"lost": 0, "unknown": 20, "client_loss_pct": 0.0, "unknown_pct": 2.0}),
        ({"undrained": 5}, {"lost": 15, "undrained": 5, "client_loss_pct": 1.5}),
        ({"undrained": 50}, {"lost": 0, "undrained": 20, "client_loss_pct": 0.0}),
    ],
)
def test_what_nobody_received(changes: dict[str, object], figures_of: dict[str, object]) -> None:
    reports = shared(without=LOST)
    reports[2] = replace(reports[2], **changes)  # type: ignore[arg-type]
    f = figures(of_group(reports))
    assert {k: f[k] for k in figures_of} == pytest.approx(figures_of)
    verdict = "undecided: server or high-water mark"
    assert (f["failed_lossy"], f["passed"], str(f["verdict"])) == (0, False, verdict)


@pytest.mark.parametrize(
    ("last_word", "unknown", "lost"), [(None, 0, 333), (0, 0, 333), (100, 100, 233), (333, 333, 0), (900, 333, 0)]
)
@pytest.mark.parametrize("how", ["dead", "silent"])
def test_what_a_member_without_a_report_had_is_unknown(
    how: str, last_word: int | None, unknown: int, lost: int
) -> None:
    reports = shared()
    del reports[2]
    words = {} if last_word is None else {2: last_word, 1: 7}
    o = replace(of_group(reports), last_words=words, **{how: frozenset({2})})  # type: ignore[arg-type]
    f = figures(o)
    assert (f["in_window"], f["unknown"], f["lost"]) == (667, unknown, lost)
    assert (f["failed_clients"], f[f"failed_{how}"], f["failed_lossy"]) == (1, 1, 0)
    assert f["total_rx"] == pytest.approx((667 + (last_word or 0)) / 3)
    # That it died is no evidence of a queue that was full.
    assert (f["passed"], str(f["verdict"])) == (False, "requested rate")
    assert f["shortfall_pct"] == pytest.approx(33.3)


def test_members_that_all_died_leave_a_loss() -> None:
    f = figures(replace(of_group({}), dead=frozenset(GROUP), last_words={1: 10, 2: 20}))
    assert (f["unknown"], f["lost"], f["client_loss_pct"]) == (30, 970, 97.0)
    assert f["shortfall_pct"] is None


def test_what_several_members_received_is_a_duplicate_and_the_late_copy_the_repetition() -> None:
    again = ledger([*range(30), *range(600, 1000)], 1000, late=50)
    f = figures(of_two(ledger(range(600), 1000, duplicates=4), again))
    assert (f["duplicates"], f["in_window"], f["late"], f["lost"], f["total_rx"]) == (34, 980, 20, 0, 515)


def test_what_was_never_acknowledged_is_extra() -> None:
    holes = [(10, 19), (990, 999)]
    one, two = (ledger(its, 1000, holes) for its in (range(15), range(15, 1000)))
    f = figures(of_two(one, two, published(1000, 980, unacknowledged=holes)))
    assert (f["extra"], f["lost"], f["in_window"], f["client_loss_pct"]) == (20, 0, 980, 0.0)


def test_a_cohort_has_no_loss_of_its_own() -> None:
    o = of_group(shared(without=LOST))
    f = figures(replace(o, plan=replace(o.plan, cohort=Cohort("slow", 0.3, 5.0)), cohort={3}))
    assert (f["client_loss_pct"], f["cohort_loss_pct"]) == (2.0, None)
    assert f["total_rx"] == pytest.approx(980 / 3, abs=1)


@pytest.mark.parametrize("truncated", [True, False])
def test_a_member_that_did_not_list_what_it_received_leaves_bounds(truncated: bool) -> None:
    reports = shared(without=LOST)
    (cut,) = reports[2].ledgers
    reports[2] = replace(reports[2], ledgers=[replace(cut, received_bits="", truncated=truncated)])
    f = figures(of_group(reports))
    assert (f["client_loss_pct"], f["lost"], f["total_rx"], f["shortfall_pct"]) == (None, None, None, None)
    bounds = (f["client_loss_low_pct"], f["client_loss_high_pct"])
    assert bounds == pytest.approx((2.0, 100 - 327 / 10), abs=0.2)
    assert f["client_loss_unlisted"] == UnlistedMessages(("members",))
    assert not is_complete(table_of(reports), {0: published(1000)})


def test_joined_ranges_of_a_publisher_leave_bounds() -> None:
    # 50 to 99 have no acknowledgement that arrived, and yet 30 of them were stored.
    holes = [(50, 99)]
    one, two = (ledger(its, 1000, holes) for its in (range(90), range(90, 1000)))
    sent = published(1000, 980, unacknowledged=holes, unacknowledged_joined=True)
    # The 20 that were not are 2 %, and the target allows them.
    f = figures(replace(of_two(one, two, sent), loss_target=0.021))
    # All 30 have arrived at an unknown time.
    assert (f["client_loss_low_pct"], f["client_loss_high_pct"], f["passed"]) == (0.0, 0.0, None)
    assert f["client_loss_unlisted"] == UnlistedMessages(("publisher",))


@pytest.mark.parametrize(
    ("size", "low", "high", "text"),
    [
        (0, [], [], ""),
        (1, [], [], "AQ=="),
        (8, [0], [6], "gA=="),
        (15, [10], [11], "/3M="),
        (10, [3, 7], [3, 8], "dwI="),
    ],
)
def test_a_set_as_text(size: int, low: list[int], high: list[int], text: str) -> None:
    assert encode_bitmap(size, low, high) == text
    number = int.from_bytes(decode_bitmap(text).tobytes(), "little")
    assert {n for n in range(size) if number >> n & 1} == set(range(size)) - spread(zip(low, high, strict=True))


def test_the_longest_set_that_fits() -> None:
    text = encode_bitmap(MAX_SEQUENCES, [0], [MAX_SEQUENCES - 2])
    assert (MAX_SEQUENCES, len(text)) == (1_572_864, MAX_CHARACTERS)
    one, small = (LedgerCounts(publisher, 1, 1, 0, received_bits=bits) for publisher, bits in enumerate((text, "AQ==")))
    assert len(table_of({1: member(one)})) == 1
    with pytest.raises(ValueError, match="bits of a client are longer than 196608 bytes"):
        table_of({1: member(one, small)})
