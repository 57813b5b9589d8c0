"""The native clients behind the same commands."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hydra.events.group_events import ClientsConnected
from hydra.events.run_events import PhasesTimed, StepStored
from hydra.store.database import RunStore
from tests.integration.command import UNKNOWN, assert_all_arrived, events, hydra, measured, refusal

pytestmark = pytest.mark.tier("all")

NATIVE = ("zmqfixed", "--client", "native", "--set", "warmup_s=0")


def took_s(run: Path) -> dict[str, float]:
    """How long each part of a run's last step took."""
    parts = events(run, PhasesTimed)[-1].partition(": ")[2].split(", ")
    return {name: float(s) for name, s in (part.removesuffix(" s").rsplit(" ", 1) for part in parts)}


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), marks=pytest.mark.tier("test")),
        ("--clients-per-process", 3, "--transport", "ipc", "--io-threads", 2),
        ("--secure", "--sndbuf", 65536, "--rcvbuf", 65536, "--pacing", "bursty"),
    ],
)
def test_zmqfixed_with_native_clients(run: Path, flags: tuple[object, ...]) -> None:
    for row in measured(run, *NATIVE, "--clients", "3,7", "--rate", 500, "--duration", 1, *flags):
        assert_all_arrived(row, 500)
    packed = " · 3 subscribers to a process" if "--clients-per-process" in flags else ""
    own = {"--transport": " · ipc · 2 I/O threads", "--secure": " · CURVE · sndbuf 65,536 B · rcvbuf 65,536 B"}
    parts = next((text for flag, text in own.items() if flag in flags), "")
    line = rf"1 publisher → 3, 7 subscribers · 128 B · native \(libzmq [\d.]+\){packed}{parts} · on this machine, "
    assert re.search(line, (run / "table.md").read_text())


@pytest.mark.parametrize(
    "flags",
    [
        ("--sndbuf", 65536, "--rcvbuf", 65536),
        ("--publishers", 3, "--transport", "ipc", "--io-threads", 2),
        ("--publishers", 3, "--subscriptions", "one", "--clients-per-process", 4),
        ("--publisher", "pyzmq"),
    ],
)
def test_zmqfixed_with_subscribers_that_speak_zmtp(run: Path, flags: tuple[object, ...]) -> None:
    everyone = "one" not in flags
    for row in measured(
        run, "zmqfixed", "--client", "zmtp", "--clients", "3,7", "--rate", 500, "--duration", 1, *flags
    ):
        sent = float(row["total_tx"])
        # Where one publisher sent less than the others on a busy machine, so did its listeners hear.
        assert float(row["total_rx"]) == pytest.approx(sent if everyone else sent / 3, rel=0.05)
        assert float(row["client_loss_pct"]) == 0.0
    output = (run / "table.md").read_text()
    packed = 4 if "--clients-per-process" in flags else 19_900 // (3 if "--publishers" in flags and everyone else 1)
    assert f"publishers {'pyzmq' if 'pyzmq' in flags else 'native'} (libzmq" in output
    assert f"subscribers zmtp (zmtp 3.0) · {packed:,} subscribers to a process" in output


def test_each_subscriber_has_one_publisher_and_an_exact_account_of_it(run: Path) -> None:
    """With libzmq's subscribers too; the second row has more of both kinds of ids."""
    flags = ("--publishers", 3, "--subscriptions", "one", "--rate", 200, "--duration", 1)
    hydra(*NATIVE, "--clients", "4,11", *flags, "--out", run)
    with RunStore.open(run) as store:
        for step in store.results():
            rows = {c["client"]: c for c in store.clients(step.epoch)}
            for client in range(3, 3 + step.plan.clients):
                assert rows[client]["messages"] == rows[client % 3]["messages"] > 0
                assert rows[client]["missing"] == 0


def test_a_packed_process_spends_its_cpu_time_once(run: Path) -> None:
    """Its clients report equal shares of it: their sum is no more than all cores can give in the time of the step."""
    packed = ("--clients", 20, "--clients-per-process", 20, "--rate", 20_000, "--duration", 1)
    hydra(*NATIVE, *packed, "--out", run)
    with RunStore.open(run) as store:
        (step,) = store.results()
        shares = [c["cpu_user_s"] + c["cpu_system_s"] for c in store.clients(step.epoch) if c["role"] == "subscriber"]
    assert len(shares) == 20
    assert 0 < sum(shares) <= (os.cpu_count() or 1) * sum(took_s(run).values())


def test_a_run_tells_how_long_each_part_of_a_step_took(run: Path) -> None:
    hydra("zmqfixed", "--client", "native", "--clients", 3, "--rate", 100, "--duration", 0.5, "--out", run)
    with RunStore.open(run) as store:
        texts = [
            (e.kind, e.text)
            for e in store.events()
            if e.kind in (ClientsConnected.kind, PhasesTimed.kind, StepStored.kind)
        ]
    assert [kind for kind, _ in texts] == ["present", "phases", "phases", "stored"]
    assert texts[0][1].startswith("4 clients after ")
    assert texts[2][1].startswith("epoch 2: ")
    took = took_s(run)
    assert list(took) == ["bind", "settings", "readiness", "lead and window", "reports"]
    assert took["lead and window"] >= 0.5


@pytest.mark.tier("test")
def test_kafka_fixed_with_native_clients(run: Path) -> None:
    (row,) = measured(run, "kafka-fixed", *NATIVE[1:], "--clients", "3", "--rate", 500, "--duration", 1)
    assert_all_arrived(row, 500)


def test_zmqrate_at_several_high_water_marks_gives_the_originals_columns(run: Path) -> None:
    search = ("--published", "--duration", 0.2, "--start-rate", 4000, "--loss-target", 50, "--search-width", 3)
    short = ("--interval", "--search-steps", 10, "--set", "sweep.search.max_doublings=2", "--sndhwm", "1000,100000")
    # Half of the traffic of three subscribers is lost at no rate up to 16,000/s: a search has no figure.
    (row,) = measured(run, "zmqrate", "--client", "native", "--clients", "3", *search, *short, expect=UNKNOWN)
    assert list(row)[1:6] == [
        "max_rate_with_drop_pps", "aggregate_max_pps", "max_rate_below_50pct_drop_sndhwm_1000_pps",
        "max_rate_sndhwm_100000_pps", "max_rate_nodrop_pps",
    ]  # fmt: skip
    assert all(float(row[name]) > 0 for name in ("max_rate_with_drop_pps", "aggregate_max_pps", "max_rate_nodrop_pps"))
    for name in ("loss_sndhwm_1000", "loss_sndhwm_100000"):
        assert int(row[f"{name}_steps"]) > 0
        assert row[f"{name}_low_pps"] or "the highest rate that is tried" in row[f"{name}_note"]


@pytest.mark.tier("quick")
def test_options_of_the_native_clients_are_refused_for_others(run: Path) -> None:
    text = refusal("zmqfixed", "--client", "pyzmq", "--io-threads", 2, "--out", run)
    assert "use client native" in text
