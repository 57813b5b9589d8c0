"""Every command as a user types it, with small numbers and real parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zmq
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from hydra.events.run_events import PhasesTimed
from hydra.events.value_formatting import MARK
from hydra.store.database import RunStore
from tests.integration.command import UNKNOWN, assert_all_arrived, events, hydra, measured, steps, table
from tests.suite.waiting import SOON_S

pytestmark = pytest.mark.tier("test")
everything = pytest.mark.tier("all")

COLUMNS = ["clients", "avg_tx_rate_pps", "avg_rx_rate_pps", "client_loss_pct", "failed_clients", "total_tx", "total_rx"]
OWN_SCENARIO = """
system = "zmq"
client = "pyzmq"
table = "fixed"
[settings]
rate = 100.0
[sweep]
clients = [2]
duration_s = 0.5
[sweep.vary]
message_size = [24, 1000]
"""


def test_zmqfixed_gives_a_row_for_each_client_count_with_the_published_columns(run: Path) -> None:
    done = hydra("zmqfixed", "--client", "pyzmq", "--clients", "2,4", "--rate", 500, "--duration", 0.5, "--out", run)
    rows = table(run)
    assert list(rows[0])[:7] == COLUMNS
    assert [r["clients"] for r in rows] == ["2", "4"]
    for row in rows:
        # Loopback loses nothing at this rate, and every subscriber counted for itself.
        assert_all_arrived(row, 250)
        assert row["rate_held"] in ("True", "False")
    assert "Tx rate (msg/s)" in done.stdout
    assert (run / "table.md").read_text() in done.stdout
    # The library that the clients report.
    assert f"128 B · pyzmq (libzmq {zmq.zmq_version()}, pyzmq {zmq.__version__}," in done.stdout
    with RunStore.open(run) as store:
        assert [client["role"] for client in store.meta("clients")] == ["publisher", "subscriber"]
        assert set(store.meta("versions")) == {"hydra", "python"}


def test_overload_is_marked_with_its_reason_wherever_it_is_shown(run: Path) -> None:
    words = ("--clients", "2", "--sndhwm", "1", "--rcvhwm", "1", "--rate", "max", "--duration", 0.5)
    done = hydra("zmqfixed", *words, "--set", "warmup_s=0.1", "--json", "--strict", "--out", run, expect=3)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["clean"] is False
    assert "% lost" in row["why"]
    assert f"{MARK} not clean: " in done.stderr  # the line of the step
    assert f"--strict: row 1 (2 subscribers) is not clean: {row['why']}" in done.stderr
    assert f"2 {MARK}" in (run / "table.md").read_text()
    assert table(run)[0]["clean"] == "False"
    assert f"{MARK} finished" in hydra("runs", run.parent).stdout


def test_a_client_count_that_does_not_fit_is_skipped_with_its_reason_and_a_run_is_never_overwritten(
    run: Path,
) -> None:
    command = ("zmqfixed", "--clients", "2,50000", "--rate", 100, "--duration", 0.2, "--out", run)
    errors = hydra(*command, expect=3).stderr
    assert "2 rows (2 and 50,000 subscribers), about" in errors
    assert "; 50,000 subscribers do not fit (" in errors
    assert "the largest count that fits is" in errors
    small, large = table(run)
    assert (small["status"], large["status"]) == ("ok", "skipped")
    # The machine or the cluster: whichever is short is named with what would be needed.
    assert "needs" in large["reason"]
    before = (run / "table.csv").read_bytes()
    assert "already holds a run" in hydra(*command, expect=2).stderr
    assert (run / "table.csv").read_bytes() == before


def test_zmqrate_fills_all_five_figures_or_says_why_not(run: Path) -> None:
    search = (
        "--published",
        "--interval",
        "--duration",
        0.2,
        "--start-rate",
        4000,
        "--search-width",
        3,
        "--search-steps",
        8,
    )
    (row,) = measured(run, "zmqrate", "--clients", "3", *search, "--set", "warmup_s=0", expect=UNKNOWN)
    figures = list(row)[1:6]
    assert [name.split("_")[0] for name in figures] == ["max", "aggregate", "max", "max", "max"]
    assert all(float(row[name]) > 0 for name in figures[:2])
    for figure, series in zip(figures[2:], ("loss", "slow", "reconnecting"), strict=True):
        # Few, short steps may show too little: then there is no figure.
        if row[f"{series}_answer"] == "figure":
            assert float(row[f"{series}_low_pps"]) < float(row[figure]) < float(row[f"{series}_high_pps"])
        else:
            assert (row[figure], row[f"{series}_why"] != "") == ("", row[f"{series}_answer"] == "unknown")
            assert row[f"{series}_note"]
        assert int(row[f"{series}_steps"]) > 0
    assert "steps of 0.2 s: max_rate" in (run / "table.md").read_text()


@everything
def test_nodrop_loses_nothing_at_the_highest_rate(run: Path) -> None:
    (row,) = measured(run, "zmqfixed", "--clients", "3", "--rate", "max", "--nodrop", "--duration", 0.5)
    assert float(row["client_loss_pct"]) == 0
    assert float(row["total_rx"]) == float(row["total_tx"]) > 1000
    assert "latency_from_send_p50_us" in row
    assert "latency_p50_us" not in row


@pytest.mark.parametrize("client", [pytest.param("kafka-python", marks=everything), "confluent-kafka"])
def test_kafka_batch_measures_through_a_real_broker(run: Path, client: str) -> None:
    batches = ("--msg-batch", "100,500", "--rate", 500, "--duration", 1, "--set", "warmup_s=0")
    rows = measured(run, "kafka-batch", "--clients", "2", *batches, "--client", client)
    assert [r["msg_batch"] for r in rows] == ["100", "500"]
    for row in rows:
        assert_all_arrived(row, 500)
    # The bytes that the producer got follow from the batch in messages.
    assert int(rows[1]["batch_bytes"]) > 4 * int(rows[0]["batch_bytes"])
    assert not list(run.glob("server*/")), "the broker's data is thrown away"


@everything
@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "native"])
def test_without_acknowledgements_tx_is_what_was_sent_and_no_probe(run: Path, client: str) -> None:
    """The first step has probes, which are in the log as well; nothing warms up before it."""
    small = ("--clients", "4", "--msg-batch", "50", "--rate", 400, "--duration", 0.5, "--partitions", 3)
    none = ("--set", 'settings.acks="0"', "--set", "warmup_s=0")
    (row,) = measured(run, "kafka-batch", *small, *none, "--client", client)
    assert int(row["total_tx"]) == int(row["sent"])
    assert_all_arrived(row, 200)
    (phases,) = events(run, PhasesTimed)
    assert "end of probes" in phases


def test_the_users_own_cluster_keeps_its_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hydra("broker", "status", expect=1)
    up = hydra("broker", "up").stdout
    try:
        bootstrap = up.split(" at ")[1].split()[0]
        assert bootstrap in hydra("broker", "status").stdout
        hydra("broker", "up", expect=1)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("theirs", 1, 1)])["theirs"].result(SOON_S)
        small = ("--clients", "2", "--rate", 200, "--duration", 0.5, "--set", "warmup_s=0", "--out", tmp_path / "run")
        users = ("--bootstrap", bootstrap, "--kafka-prop", "queued.min.messages=1000")
        hydra("kafka-fixed", *small, *users, "--client", "confluent-kafka")
        assert {t for t in admin.list_topics(timeout=SOON_S).topics if not t.startswith("__")} == {"theirs"}
    finally:
        assert "down" in hydra("broker", "down").stdout
    hydra("broker", "status", expect=1)


def test_run_takes_a_file_and_replaced_keys(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.toml"
    scenario.write_text(OWN_SCENARIO)
    done = hydra("run", scenario, "--set", "settings.rate=200.0", "--json", "--out", tmp_path / "run")
    rows = json.loads(done.stdout)["rows"]
    assert [r["message_size"] for r in rows] == [24, 1000]
    for row in rows:
        assert_all_arrived(row, 100)
    listed = json.loads(hydra("runs", tmp_path, "--json").stdout)
    assert [(r["scenario"], r["steps"], r["ended"]) for r in listed] == [("mine", 2, "finished")]


def test_without_java_the_zmq_half_still_works(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    done = hydra("kafka-batch", "--out", tmp_path / "k", expect=2, PATH=str(empty))
    assert "openjdk" in done.stderr
    assert not (tmp_path / "k").exists()
    hydra("zmqfixed", "--clients", "2", "--rate", 100, "--duration", 0.2, "--out", tmp_path / "z", PATH=str(empty))
    assert steps(tmp_path / "z")
