"""The vectors that every implementation shares: the folders of ``KINDS`` in tests/golden."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from hydra.client.ack_ledger import AckLedger
from hydra.client.ledger import Ledger
from hydra.client.message_topics import MessageTopics
from hydra.client.pacing import Pacer
from hydra.client.payload import PayloadBlock
from hydra.client.subscriber_state import LagBins
from hydra.model import SharedSettings
from hydra.wire.clock import StepClock
from hydra.wire.data_message import DTYPE
from hydra.wire.histogram import LatencyRecorder
from hydra.wire.load_schedule import NEVER_NS, LoadSchedule
from hydra.wire.messages import HostClock, PublisherTotal, Traffic
from hydra.wire.traffic import KEY, TOPIC, MessageChoice, MessageSizes, size_choice, topics_of
from tests.golden_vectors import KINDS, text
from tests.golden_vectors.common import GOLDEN


def cases(kind: str) -> list[Any]:
    files = sorted((GOLDEN / kind).glob("*.json"))
    return [pytest.param(json.loads(file.read_text()), id=file.stem) for file in files]


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_are_what_the_script_makes(kind: str) -> None:
    made = {f"{name}.json": text(case) for name, case in KINDS[kind]().items()}
    assert {file.name: file.read_text() for file in (GOLDEN / kind).iterdir()} == made


@pytest.mark.parametrize("case", cases("clock"))
def test_clock(case: Any) -> None:
    clock = StepClock(HostClock(case["at_ns"], case["step_ns"], case["rate_ppb"]))
    for monotonic_ns, step_ns in case["times"]:
        assert clock.at_ns(monotonic_ns) == step_ns
        assert abs(clock.monotonic_ns_of(step_ns) - monotonic_ns) <= 1
    for step_ns, monotonic_ns in case["readings"]:
        assert clock.monotonic_ns_of(step_ns) == monotonic_ns
        assert abs(clock.at_ns(monotonic_ns) - step_ns) <= 1


@pytest.mark.parametrize("case", cases("load"))
def test_load(case: Any) -> None:
    load = LoadSchedule([(at_s, rate) for at_s, rate in case["points"]])
    for n, due_ns in case["due"]:
        expected = NEVER_NS if due_ns is None else due_ns
        assert load.due_ns(n) == expected
        assert load.times_ns(n, 3)[0] == expected
    for moment_ns, count in case["by"]:
        assert load.count_by(moment_ns) == count


@pytest.mark.parametrize("case", cases("pacer"))
def test_pacer(case: Any) -> None:
    pacer = Pacer(case["rate"], case["start_ns"], case["stop_ns"], case["burst"], case.get("messages"))
    for step in case["steps"]:
        if "advance" in step:
            pacer.advance(step["advance"])
        elif "stop_at_ns" in step:
            pacer.stop_at(step["stop_at_ns"])
        else:
            now_ns, times = step["at_ns"], step["times"]
            assert (pacer.done(now_ns), pacer.due(now_ns)) == (step["done"], step["due"])
            assert (pacer.next_due_ns, pacer.lag_ns(now_ns)) == (step["next_due_ns"], step["lag_ns"])
            assert pacer.times(len(times), now_ns).tolist() == times


@pytest.mark.parametrize("case", cases("ledger"))
def test_ledger(case: Any) -> None:
    traffic = msgspec.convert(case.get("traffic", {}), Traffic)
    topics = MessageTopics(traffic, case["client"], case["publishers"]) if "traffic" in case else None
    ledger = Ledger(case["epoch"], case["publishers"], topics)
    for batch in case["batches"]:
        rows = [
            (epoch, publisher, n, 0)
            for epoch, publisher, first, count in batch["runs"]
            for n in range(first, first + count)
        ]
        ledger.record(np.array(rows, DTYPE), batch["now_ns"], case["window_end_ns"])
    sent = msgspec.convert(case["sent"], list[PublisherTotal])
    assert (ledger.messages, ledger.stale) == (case["messages"], case["stale"])
    assert all(ledger.probes.get(p, -1) >= case["epoch"] for p in case["publishers"]) == case["proven"]
    assert (ledger.marked(sent), ledger.has_last(sent)) == (case["marked"], case["has_last"])
    found = json.loads(json.dumps([asdict(counts) for counts in ledger.close(sent, member=case["member"])]))
    assert found == case["ledgers"]
    if "hot" in case:
        assert ledger.hot(sent) == (case["hot"]["expected"], case["hot"]["missing"])


@pytest.mark.parametrize("case", cases("lag"))
def test_lag(case: Any) -> None:
    bins = LagBins(case["start_ns"], case["stop_ns"])
    for at in range(0, len(case["batches"]), 3):
        bins.add(*np.array(case["batches"][at : at + 3]).T)
    assert bins.means_us() == case["means_us"]


@pytest.mark.parametrize("case", cases("histogram"))
def test_histogram(case: Any) -> None:
    recorder = LatencyRecorder()
    for batch in case["batches"]:
        recorder.record(np.array(batch["times_ns"], np.uint64), batch["now_ns"])
    assert asdict(recorder.histogram()) == {name: case[name] for name in ("counts", "min_us", "max_us")}


@pytest.mark.parametrize("case", cases("acks"))
def test_acks(case: Any) -> None:
    ledger = AckLedger()
    for act, first, count in case["acts"]:
        if act == "accept":
            ledger.accept(count)
            continue
        sequences = np.arange(first, first + count * case["partitions"], case["partitions"], dtype=np.int64)
        (ledger.acknowledge if act == "acknowledge" else ledger.fail)(sequences)
    for name in ("acknowledged", "failed", "pending", "repeated"):
        assert getattr(ledger, name) == case[name], name
    assert [list(r) for r in ledger.unacknowledged()] == case["unacknowledged"]


@pytest.mark.parametrize("case", cases("payload"))
def test_payload(case: Any, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text(case["lines"])
    named = {name: case[name] for name in ("payload", "message_size", "message_size_min", "payload_seed")}
    traffic = msgspec.convert(case.get("traffic", {}), Traffic)
    sizes = size_choice(traffic, case["publisher"]) if traffic.sizes else None
    block = PayloadBlock(SharedSettings(**named, payload_file=str(lines)), case["share"], sizes)
    assert [payload.hex() for payload in block.of(0, len(case["messages"]))] == case["messages"]
    assert [block.total_bytes(n) for n in range(len(case["bytes"]))] == case["bytes"]


@pytest.mark.parametrize("case", cases("traffic"))
def test_traffic(case: Any) -> None:
    seed, publisher, keys = case["seed"], case["publisher"], case["keys"]
    topic = MessageChoice(seed, publisher, TOPIC, case["topics"], case["topic_table"])
    key = MessageChoice(seed, publisher, KEY, keys, case["key_table"])
    sizes = MessageSizes(seed, publisher, case["sizes"], case["size_table"])
    for n, *expected in case["messages"]:
        found = [topic.at(n), key.at(n) if keys else -1, sizes.of(n, 1)[0] if case["sizes"] else -1]
        assert found == expected
    ns = np.array([n for n, *_ in case["messages"]], np.uint64)
    assert topic.each(ns).tolist() == [expected for _, expected, *_ in case["messages"]]
    for chosen in (topic, *([key] if keys else [])):
        assert chosen.of(5, 4) == chosen.of(0, 40)[5:9]
    for client, topics in case["clients"]:
        assert topics_of(seed, client, case["topics"], case["topics_per_client"]) == topics
