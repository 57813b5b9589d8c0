"""Every command as a user types it, with small numbers and real parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zmq
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from hydra.events.steps import PhasesTimed
from hydra.results.store import RunStore
from tests.integration.command import assert_all_arrived, hydra, steps, table

pytestmark = pytest.mark.processes


def test_zmqfixed_gives_a_row_for_each_client_count_with_the_published_columns(tmp_path: Path) -> None:
    for run in (tmp_path / f"run-{n}" for n in range(5)):
        done = hydra("zmqfixed", "--clients", "3,6", "--rate", 500, "--duration", 1, "--out", run)
        rows = table(run)
        # That of the time between the first and the last: on a busy machine a run may begin late, and catch up.
        if held := all(475 <= float(row["avg_tx_rate_pps"]) <= 525 for row in rows):
            break
    assert held
    assert list(rows[0])[:7] == [
        "clients", "avg_tx_rate_pps", "avg_rx_rate_pps", "client_loss_pct", "failed_clients", "total_tx", "total_rx",
    ]  # fmt: skip
    assert [r["clients"] for r in rows] == ["3", "6"]
    for row in rows:
        # Loopback loses nothing at this rate, and every subscriber counted for itself.
        assert_all_arrived(row, 500)
    assert "Avrg Tx Rate" in done.stdout
    assert (run / "table.md").read_text() in done.stdout
    # The library that the clients use, as they say themselves.
    assert f"Clients: pyzmq (libzmq {zmq.zmq_version()}, pyzmq {zmq.__version__}," in done.stdout
    with RunStore.open(run) as store:
        assert [client["role"] for client in store.meta("clients")] == ["publisher", "subscriber"]
        assert set(store.meta("versions")) == {"hydra", "python"}


def test_zmqrate_fills_all_five_figures_or_says_why_not(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra(
        "zmqrate", "--clients", "3", "--step-seconds", 0.3, "--start-rate", 4000, "--out", run,
        "--search-width", 3, "--search-steps", 12,
    )  # fmt: skip
    (row,) = table(run)
    figures = list(row)[1:6]
    assert [name.split("_")[0] for name in figures] == ["max", "aggregate", "max", "max", "max"]
    assert all(float(row[name]) > 0 for name in figures[:2])
    for figure, series in zip(figures[2:], ("loss", "slow", "reconnecting"), strict=True):
        low, high = float(row[f"{series}_low_pps"]), float(row[f"{series}_high_pps"])
        # So few and short steps may tell too little: then there is no figure.
        assert low < float(row[figure]) < high if row[figure] else "it may be anywhere" in row[f"{series}_note"]
        assert 8 <= int(row[f"{series}_steps"]) <= 12 + 6 * (1 if series != "loss" else 2)
    assert "steps of 0.3 s: max_rate" in (run / "table.md").read_text()


def test_nodrop_loses_nothing_at_the_highest_rate(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra("zmqfixed", "--clients", "3", "--rate", "max", "--nodrop", "--duration", 0.5, "--out", run)
    (row,) = table(run)
    assert float(row["client_loss_pct"]) == 0
    assert float(row["total_rx"]) == float(row["total_tx"]) > 1000
    assert "latency_from_send_p50_us" in row
    assert "latency_p50_us" not in row


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_kafka_batch_measures_through_a_real_broker(tmp_path: Path, client: str) -> None:
    run = tmp_path / "run"
    hydra(
        "kafka-batch", "--clients", "2", "--msg-batch", "100,500", "--rate", 500, "--duration", 1,
        "--client", client, "--out", run,
    )  # fmt: skip
    rows = table(run)
    assert [r["msg_batch"] for r in rows] == ["100", "500"]
    for row in rows:
        assert_all_arrived(row, 500)
    # The bytes that the producer got follow from the batch in messages.
    assert int(rows[1]["batch_bytes"]) > 4 * int(rows[0]["batch_bytes"])
    assert not list(run.glob("broker*/")), "the broker's data is thrown away"


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "native"])
def test_without_acknowledgements_tx_is_what_was_sent_and_no_probe(tmp_path: Path, client: str) -> None:
    """The first step has probes, which are in the log as well; nothing warms up before it."""
    run = tmp_path / "run"
    hydra(
        "kafka-batch", "--clients", "4", "--msg-batch", "50", "--rate", 400, "--duration", 1, "--partitions", 3,
        "--client", client, "--set", 'settings.acks="0"', "--set", "warmup_s=0.0", "--out", run,
    )  # fmt: skip
    (row,) = table(run)
    assert int(row["total_tx"]) == int(row["sent"]) > 0
    with RunStore.open(run) as store:
        (phases,) = [event.text for event in store.events() if event.kind == PhasesTimed.kind]
    assert "end of probes" in phases


def test_several_partitions_and_every_acks_setting(tmp_path: Path) -> None:
    for acks in ("0", "all"):
        run = tmp_path / acks
        hydra(
            "kafka-batch", "--clients", "2", "--msg-batch", "50", "--rate", 400, "--duration", 1, "--partitions", 3,
            "--client", "confluent-kafka", "--set", f'settings.acks="{acks}"', "--out", run,
        )  # fmt: skip
        (row,) = table(run)
        assert_all_arrived(row, 400)


def test_the_users_own_cluster_keeps_its_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hydra("broker", "status", expect=1)
    up = hydra("broker", "up").stdout
    try:
        bootstrap = up.split(" at ")[1].split()[0]
        assert bootstrap in hydra("broker", "status").stdout
        hydra("broker", "up", expect=1)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("theirs", 1, 1)])["theirs"].result(10)
        hydra(
            "kafka-batch", "--clients", "2", "--msg-batch", "100", "--rate", 200, "--duration", 0.5,
            "--bootstrap", bootstrap, "--client", "confluent-kafka", "--out", tmp_path / "run",
            "--kafka-prop", "queued.min.messages=1000",
        )  # fmt: skip
        assert {t for t in admin.list_topics(timeout=10).topics if not t.startswith("__")} == {"theirs"}
    finally:
        assert "down" in hydra("broker", "down").stdout
    hydra("broker", "status", expect=1)


def test_run_takes_a_file_and_replaced_keys(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.toml"
    scenario.write_text(
        'system = "zmq"\nclient = "pyzmq"\ntable = "fixed"\n[settings]\nrate = 100.0\n'
        "[sweep]\nclients = [2]\nduration_s = 0.5\n[sweep.vary]\nmessage_size = [24, 1000]\n"
    )
    done = hydra("run", scenario, "--set", "settings.rate=200.0", "--json", "--out", tmp_path / "run")
    rows = json.loads(done.stdout)["rows"]
    assert [r["message_size"] for r in rows] == [24, 1000]
    for row in rows:
        assert_all_arrived(row, 100)
    listed = json.loads(hydra("runs", tmp_path, "--json").stdout)
    assert [(r["scenario"], r["steps"], r["ended"]) for r in listed] == [("mine", 2, "finished")]


def test_a_client_count_that_does_not_fit_is_skipped_with_its_reason(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra(
        "zmqfixed", "--clients", "2,50000", "--rate", 100, "--duration", 0.3, "--out", run, expect=3,
    )  # fmt: skip
    small, large = table(run)
    assert small["status"] == "ok"
    assert large["status"] == "skipped"
    # The machine or the cluster: whichever is short is named with what would be needed.
    assert "needs" in large["reason"]


def test_agents_lists_what_is_declared() -> None:
    agents = json.loads(hydra("agents", "--json").stdout)
    assert [a["agent"] for a in agents] == ["agent-pub", "agent-sub-1", "agent-sub-2", "agent-sub-3"]
    assert agents[0]["attributes"] == "group:cpu4-mem16"


def test_a_run_directory_is_never_overwritten(tmp_path: Path) -> None:
    small = ("zmqfixed", "--clients", "2", "--rate", 100, "--duration", 0.2, "--out", tmp_path / "run")
    hydra(*small)
    before = (tmp_path / "run" / "table.csv").read_bytes()
    assert "already holds a run" in hydra(*small, expect=2).stderr
    assert (tmp_path / "run" / "table.csv").read_bytes() == before


def test_without_java_the_zmq_half_still_works(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    done = hydra("kafka-batch", "--out", tmp_path / "k", expect=2, PATH=str(empty))
    assert "openjdk" in done.stderr
    assert not (tmp_path / "k").exists()
    hydra("zmqfixed", "--clients", "2", "--rate", 100, "--duration", 0.2, "--out", tmp_path / "z", PATH=str(empty))
    assert steps(tmp_path / "z")
