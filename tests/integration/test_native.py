"""The native clients behind the same commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hydra.events.clients import Present
from hydra.events.steps import PhasesTimed, StepStored
from hydra.results.store import RunStore
from tests.integration.command import assert_all_arrived, hydra, table

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--clients-per-process", 3),
        ("--transport", "ipc", "--io-threads", 2),
        ("--secure", "--sndbuf", 65536, "--rcvbuf", 65536),
        ("--pacing", "bursty"),
    ],
)
def test_zmqfixed_with_native_clients(tmp_path: Path, flags: tuple[object, ...]) -> None:
    run = tmp_path / "run"
    hydra("zmqfixed", "--client", "native", "--clients", "3,7", "--rate", 500, "--duration", 1, *flags, "--out", run)
    for row in table(run):
        assert_all_arrived(row, 500)
    packed = "3 subscribers to a process" if "--clients-per-process" in flags else "one process each"
    assert re.search(rf"Clients: native \(libzmq [\d.]+\), {packed}", (run / "table.md").read_text())


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--publishers", 3),
        ("--publishers", 3, "--subscriptions", "one", "--clients-per-process", 4),
        ("--transport", "ipc", "--io-threads", 2),
        ("--sndbuf", 65536, "--rcvbuf", 65536),
        ("--publisher", "pyzmq"),
    ],
)
def test_zmqfixed_with_subscribers_that_speak_zmtp(tmp_path: Path, flags: tuple[object, ...]) -> None:
    run = tmp_path / "run"
    hydra("zmqfixed", "--client", "zmtp", "--clients", "3,7", "--rate", 500, "--duration", 1, *flags, "--out", run)
    everyone = "one" not in flags
    for row in table(run):
        sent = float(row["total_tx"])
        heard = sent if everyone else sent / 3
        # Where one publisher sent less than the others on a busy machine, so did its listeners hear.
        assert float(row["total_rx"]) == pytest.approx(heard, rel=0.05)
        assert float(row["client_loss_pct"]) == 0.0
    said = (run / "table.md").read_text()
    packed = 4 if "--clients-per-process" in flags else 19_900 // (3 if "--publishers" in flags and everyone else 1)
    assert f"publishers {'pyzmq' if 'pyzmq' in flags else 'native'} (libzmq" in said
    assert f"subscribers zmtp (zmtp 3.0), {packed} subscribers to a process" in said


def test_each_subscriber_has_one_publisher_and_an_exact_account_of_it(tmp_path: Path) -> None:
    """With libzmq's subscribers too; the second row has more of both kinds of ids."""
    run = tmp_path / "run"
    flags = ("--publishers", 3, "--subscriptions", "one", "--rate", 200, "--duration", 1)
    hydra("zmqfixed", "--client", "native", "--clients", "4,11", *flags, "--out", run)
    with RunStore.open(run) as store:
        for step in store.results():
            rows = {c["client"]: c for c in store.clients(step.epoch)}
            for client in range(3, 3 + step.plan.clients):
                assert rows[client]["messages"] == rows[client % 3]["messages"] == 200
                assert rows[client]["missing"] == 0


def test_a_packed_process_spends_its_cpu_time_once(tmp_path: Path) -> None:
    """Its clients report equal shares of it, so that their sum is what the process used."""
    run = tmp_path / "run"
    packed = ("--clients", 20, "--clients-per-process", 20, "--rate", 20_000, "--duration", 1)
    hydra("zmqfixed", "--client", "native", *packed, "--out", run)
    with RunStore.open(run) as store:
        (step,) = store.results()
        shares = [c["cpu_user_s"] + c["cpu_system_s"] for c in store.clients(step.epoch) if c["role"] == "subscriber"]
    assert len(shares) == 20
    # The thread that reads and libzmq's own, during the window and a drain that nothing holds up.
    assert 0 < sum(shares) < 2 * 2.0


def test_a_run_tells_how_long_each_part_of_a_step_took(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra("zmqfixed", "--client", "native", "--clients", 3, "--rate", 100, "--duration", 1, "--out", run)
    with RunStore.open(run) as store:
        said = [(e.kind, e.text) for e in store.events() if e.kind in (Present.kind, PhasesTimed.kind, StepStored.kind)]
    assert [kind for kind, _ in said] == ["present", "phases", "phases", "stored"]
    assert said[0][1].startswith("4 clients after ")
    epoch, _, parts = said[2][1].partition(": ")
    assert epoch == "epoch 2"
    took = {name: float(s) for name, s in (part.removesuffix(" s").rsplit(" ", 1) for part in parts.split(", "))}
    assert list(took) == ["bind", "settings", "readiness", "lead and window", "reports"]
    assert took["lead and window"] >= 1.0


def test_kafka_fixed_with_native_clients(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra("kafka-fixed", "--client", "native", "--clients", "3", "--rate", 500, "--duration", 1, "--out", run)
    (row,) = table(run)
    assert_all_arrived(row, 500)


def test_zmqrate_at_several_high_water_marks_gives_the_originals_columns(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra(
        "zmqrate", "--client", "native", "--clients", "3", "--step-seconds", 0.2, "--start-rate", 4000, "--out", run,
        "--sndhwm", "1000,100000", "--loss-target", 50, "--search-width", 3, "--search-steps", 10,
        "--set", "sweep.search.max_doublings=2",
    )  # fmt: skip
    # Half of the traffic of three subscribers is lost at no rate up to 16,000/s: a search says so and gives no figure.
    (row,) = table(run)
    assert list(row)[1:6] == [
        "max_rate_with_drop_pps", "aggregate_max_pps", "max_rate_below_50pct_drop_sndhwm_1000_pps",
        "max_rate_sndhwm_100000_pps", "max_rate_nodrop_pps",
    ]  # fmt: skip
    assert all(float(row[name]) > 0 for name in ("max_rate_with_drop_pps", "aggregate_max_pps", "max_rate_nodrop_pps"))
    for name in ("loss_sndhwm_1000", "loss_sndhwm_100000"):
        assert int(row[f"{name}_steps"]) > 0
        assert row[f"{name}_low_pps"] or "the highest rate that is tried" in row[f"{name}_note"]


def test_options_of_the_native_clients_are_refused_for_others(tmp_path: Path) -> None:
    done = hydra("zmqfixed", "--client", "pyzmq", "--io-threads", 2, "--out", tmp_path / "run", expect=2)
    assert "use client native" in done.stderr
