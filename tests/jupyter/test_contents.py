"""The contents of a report: warnings, tables, plots. No browser, no kernel."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import plotly.graph_objects as go
import pytest

from hydra import model
from hydra.errors import EXIT_USAGE, RunDirectoryError
from hydra.events.group_events import ClientError, ClientExit
from hydra.events.run_events import FramesRejected, SystemFact
from hydra.events.value_formatting import known_digits
from hydra.jupyter import line_plots, markup, run_data, summary
from hydra.jupyter.drawing import PUBLISHED
from hydra.jupyter.loss_plot import loss
from hydra.jupyter.markup import warnings_of
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import StepPlan
from hydra.store.database import RunStore
from hydra.sweep.search_spec import SearchSpec
from tests.jupyter.conftest import Loaded
from tests.jupyter.runs import BATCH, FEW, FIXED, FOR_LOSS, KINDS, SEARCH, found_one, make, observe
from tests.measure.reports import SECOND, START


def lost_figure(run: run_data.RunData) -> go.Figure | None:
    found = loss(run)
    return found and found.figure


def test_a_good_run_has_no_warning(loaded: Loaded) -> None:
    assert warnings_of(loaded("fixed")) == []
    assert "None: every row was measured" in markup.warnings(loaded("fixed")).text
    assert "None: every rate that was searched for was found." in markup.warnings(loaded("rate")).text


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        ("interrupted", "the run was interrupted; the next step would be 60 subscribers, Batch 100"),
        (None, "the run was killed, or is still running; the next step would be 60 subscribers, Batch 100"),
        ("failed", "the run could not continue; the next step"),
    ],
)
def test_a_run_that_is_not_complete_says_so_first(tmp_path: Path, ended: str | None, text: str) -> None:
    run = run_data.load(make(tmp_path / "r", BATCH, steps=2, ended=ended))
    assert warnings_of(run)[0].text.startswith(text)
    assert len(run.rows) == 2


def test_a_run_without_any_row_still_has_a_report(tmp_path: Path) -> None:
    run = run_data.load(make(tmp_path / "r", FIXED, steps=0, ended="failed"))
    assert "No row was measured" in markup.table(run).text
    assert [draw(run) for draw in (line_plots.rates, lost_figure, line_plots.latency, line_plots.batches)] == [None] * 4
    assert markup.comparison(run) is None
    assert "no row was finished" in summary.summary(run).text


def test_warnings_come_by_gravity_and_events_are_summed_up(tmp_path: Path) -> None:
    def status(plan: StepPlan) -> tuple[str, str]:
        return {30: ("ok", ""), 60: ("failed", "the broker died"), 120: ("skipped", "needs 9 GB")}[plan.clients]

    directory = make(tmp_path / "r", replace(FIXED, settings=replace(FIXED.settings, rate=90_000.0)), status)
    with RunStore.open(directory, writable=True) as store:
        for client in range(25):
            store.add_event(ClientExit(client, 1000 + client, -9, replaced=True), 1)
        store.add_event(FramesRejected("wrong key", 3))
    run = run_data.load(directory)
    found = warnings_of(run)
    about = [
        "fail: 60 subscribers",
        "fail: 120 subscribers",
        "loss: 30 subscribers",
        "note: 25 × client_exit",
        "note: 1 × refused",
    ]
    assert [f"{c.level}: {c.about}" for c in found] == about
    assert "the broker died" in found[0].text
    shown = markup.warnings(run).text
    assert "the broker died; continue with --resume" in shown
    assert '<code title="docs/warnings.md#row_failed">row_failed</code></li>' in shown
    assert found[3].details[0] == "step 1: client 0: pid 1000 was killed by SIGKILL, replaced"
    assert found[3].details[-1].startswith("… and 5 more")


def test_what_a_run_says_is_never_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    directory = make(tmp_path / "r", replace(FIXED, name=evil, description=evil), lambda _: ("failed", evil))
    with RunStore.open(directory, writable=True) as store:
        store.add_event(ClientError(1, evil), 1)
        store.add_event(SystemFact("version", evil))
        store.set_meta("command_line", evil)
    run = run_data.load(directory)
    for part in (markup.title, markup.warnings, markup.facts, markup.table, markup.comparison):
        assert "<script" not in found_one(part(run)).text


def test_the_table_has_the_published_headings_and_marks(loaded: Loaded) -> None:
    text = markup.table(loaded("batch")).text
    assert "<th>Subscribers</th><th>Batch (msg)</th><th>Tx rate (msg/s)</th>" in text
    assert '<span class="mark">⚠</span> 120' in text
    assert (
        '<th title="cores: CPU time of the busiest publisher / *T* (length of the window)">publisher_cores</th>' in text
    )


def test_a_repeated_row_shows_its_interval_in_table_and_plot(loaded: Loaded) -> None:
    run = loaded("repeated")
    assert '<span class="interval">± ' in markup.table(run).text
    (half, *_) = found_one(line_plots.rates(run)).data[0].error_y.array
    assert half == pytest.approx(run.rows[0]["avg_tx_rate_pps_ci95"])


def test_the_ratio_stands_beside_the_published_figure(loaded: Loaded) -> None:
    run = loaded("fixed")
    text = found_one(markup.comparison(run)).text
    assert "hydra_kafka_fixed_rate.csv" in text
    assert "system zmq instead of kafka" in text
    tx = float(str(run.rows[0]["avg_tx_rate_pps"] or 0)) / 7190.53
    assert f'<td class="published">7,190.53</td><td class="ratio">{tx:.2f}×</td>' in text


def test_what_was_never_published_has_nothing_beside_it(loaded: Loaded) -> None:
    assert markup.comparison(loaded("rate")) is None


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_run_has_rates_loss_and_latency_on_logarithmic_axes(loaded: Loaded, kind: str) -> None:
    run = loaded(kind)
    for figure in map(found_one, (line_plots.rates(run), lost_figure(run), line_plots.latency(run))):
        assert {axis.type for axis in (*figure.select_xaxes(), *figure.select_yaxes())} == {"log"}
        assert all(y > 0 for trace in figure.data for y in trace.y)


def test_the_batch_is_plotted_where_it_varies(loaded: Loaded) -> None:
    figure = found_one(line_plots.batches(loaded("batch")))
    assert {trace.name for trace in figure.data} == {"30 subscribers", "60 subscribers", "120 subscribers"}
    assert line_plots.batches(loaded("fixed")) is None


def test_where_a_system_has_no_batch_the_burst_is_plotted(loaded: Loaded) -> None:
    varied = replace(FIXED, sweep=replace(FEW, clients=(30, 60), vary={"burst": (10, 100)}))
    figure = found_one(line_plots.batches(loaded(varied)))
    assert {tuple(trace.x) for trace in figure.data} == {(10, 100)}
    assert figure.layout.xaxis.title.text == "messages in a burst"


def test_a_setting_that_varies_at_one_client_count_is_on_the_horizontal_axis(loaded: Loaded) -> None:
    varied = replace(FIXED, publishers=2, sweep=replace(FEW, clients=(30,), vary={"rate": (50_000.0, 1000.0)}))
    run = loaded(varied)
    for figure in (found_one(line_plots.rates(run)), found_one(line_plots.latency(run))):
        assert {tuple(trace.x) for trace in figure.data} == {(1000.0, 50_000.0)}
        assert figure.layout.xaxis.title.text == "rate, messages/s"
        assert len(figure.data) > 1
    assert "2 publishers: Tx rate is the mean over publishers" in markup.table(run).text
    assert "all subscribers together (30 subscribers, rate 50,000, 2 publishers)" in summary.numbers(run)[0].detail


def test_no_loss_at_all_is_drawn_at_a_tick_that_says_0(loaded: Loaded) -> None:
    figure = found_one(lost_figure(loaded("fixed")))
    ticks = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    assert [ticks[y] for y in figure.data[0].y] == ["0"] * 3


def test_what_is_late_or_waits_is_drawn_beside_the_loss_and_not_as_one(loaded: Loaded) -> None:
    run = loaded("fixed")
    assert {name for result in run.results for name in result.figures} >= {"late_pct", "undrained_pct"}
    lagging = [{**row, "late_pct": 12.5, "undrained_pct": 30.0} for row in run.rows]
    figure = found_one(lost_figure(replace(run, rows=lagging)))
    assert {t.name: set(t.y) for t in figure.data} == {
        "Loss": {figure.data[0].y[0]},
        "late": {12.5},
        "still waiting (undrained)": {30.0},
    }
    assert figure.data[0].y[0] < 12.5


def test_an_axis_shows_whole_error_bars_and_no_label_upon_another(loaded: Loaded) -> None:
    run = loaded(replace(FIXED, sweep=replace(FEW, clients=(10, 11, 60, 120))))
    wide = [{**row, "avg_rx_rate_pps_low": 10.0, "avg_rx_rate_pps_high": 9e6} for row in run.rows]
    figure = found_one(line_plots.rates(replace(run, rows=wide)))
    assert figure.layout.xaxis.ticktext == ("10", "60", "120")
    low, high = figure.layout.yaxis.range
    assert low < 1
    assert high > math.log10(9e6)


def test_published_lines_have_one_entry_in_the_legend_which_hides_them_all(loaded: Loaded) -> None:
    dotted = [trace for trace in found_one(line_plots.rates(loaded("fixed"))).data if trace.meta == PUBLISHED]
    assert [trace.showlegend for trace in dotted] == [True] + [False] * (len(dotted) - 1)
    assert {(trace.legendgroup, trace.name) for trace in dotted} == {("published", "published (dotted, same colour)")}


def test_the_report_says_which_libraries_were_measured(tmp_path: Path) -> None:
    directory = make(tmp_path / "r", FIXED)
    assert "<th>Clients</th>" not in markup.facts(run_data.load(directory)).text
    with RunStore.open(directory, writable=True) as store:
        text = {"implementation": "native", "versions": {"libzmq": "4.3.4"}}
        store.set_meta("clients", [{"role": "publisher", **text}, {"role": "subscriber", **text}])
    assert "<th>Clients</th><td>native (libzmq 4.3.4)</td>" in markup.facts(run_data.load(directory)).text


def test_a_repeated_percentile_has_its_range_in_the_plot(loaded: Loaded) -> None:
    run = loaded("repeated")
    wide = [{**row, "latency_p50_us_low": 100, "latency_p50_us_high": 900} for row in run.rows]
    p50 = found_one(line_plots.latency(replace(run, rows=wide))).data[0]
    assert [y + up for y, up in zip(p50.y, p50.error_y.array, strict=True)] == [900] * 3
    assert [y - down for y, down in zip(p50.y, p50.error_y.arrayminus, strict=True)] == [100] * 3


def test_a_latency_below_the_bound_of_the_clocks_is_shown_as_that(loaded: Loaded) -> None:
    run = loaded("fixed")
    first, second, *others = run.rows
    early = {"latency_p50_us": -40, "latency_bound_us": 75.3, "negative_latencies": 20_000}
    run = replace(run, rows=[{**first, **early}, {**second, "latency_bound_us": 75.3}, *others])
    assert "<td>&lt; 36</td>" in markup.table(run).text
    assert "<td>20,000</td>" in markup.table(run).text
    p50 = found_one(line_plots.latency(run)).data[0]
    assert round(p50.y[0], 6) == 35.3
    assert p50.y[1] == second["latency_p50_us"]
    assert (p50.error_y.array[1], p50.error_y.arrayminus[1]) == pytest.approx((75.3, 75.3))
    assert f"<td>{second['latency_p50_us']} ± 76</td>" in markup.table(run).text.replace(",", "")
    assert list(p50.marker.symbol[:2]) == ["circle-open", "circle"]
    assert p50.customdata[0][0] == "30 subscribers: &lt; 36"


def test_a_latency_below_zero_that_no_bound_covers_is_left_out_of_the_plot(loaded: Loaded) -> None:
    run = loaded("fixed")
    figure = found_one(line_plots.latency(replace(run, rows=[{**run.rows[0], "latency_p50_us": -40}, *run.rows[1:]])))
    assert min(figure.layout.yaxis.tickvals) > 0


def with_a_third_step(directory: Path, **observed: Any) -> str:
    """The table of a run whose last step observed this as well; without that it has no hosts and clocks."""
    run = run_data.load(make(directory, FIXED, steps=2, ended=None))
    assert not re.search("Clocks|Each host|Busiest threads", markup.table(run).text)
    coming = found_one(run.coming)
    with RunStore.open(directory, writable=True) as store:
        store.add_step(StepResult(3, coming, "ok"), replace(observe(FIXED, coming), **observed))
    return markup.table(run_data.load(directory)).text


def lines(text: str) -> list[list[str]]:
    """The cells of a table's lines, after the step."""
    return [re.findall("<td>(.*?)</td>", line)[1:] for line in text.split("<tr>")[2:]]


def test_the_clocks_of_other_hosts_stand_below_the_table(tmp_path: Path) -> None:
    clocks = {
        "agent-1": model.AgentClock(0, 0, 0, 0, same_host=True, jumps=0),
        "agent-2": model.AgentClock(-86_400_123_456_789, 12_345, 75_300, 110_000, same_host=False, jumps=1),
        "<b>3": model.AgentClock(7_000_000_000, -500, 1_000, 1_500, same_host=False, jumps=0),
    }
    text = with_a_third_step(tmp_path / "r", clocks=clocks)
    shown = {line[0]: line[1:] for line in lines(text[text.index("<summary>Clock of each agent") :])}
    assert shown.keys() == {"agent-2", "&lt;b&gt;3"}
    assert shown["agent-2"] == ["-86,400.123457", "+12.345", "75.3", "110.0", "1"]
    assert shown["&lt;b&gt;3"][:2] == ["7.000000", "-0.500"]


def test_hosts_and_busiest_threads_stand_below_the_table(tmp_path: Path) -> None:
    busy, idle = counted(), replace(counted(), interfaces={}, pressure_us={}, tcp=model.TcpCounts(0, 0))
    threads = [model.BusyThread(17, "<i>o", 99.5), model.BusyThread(17, "main", 12.25)]
    text = with_a_third_step(
        tmp_path / "r",
        hosts={
            "here": [model.HostSample(START, busy), model.HostSample(START + 2 * SECOND, counted(1))],
            "<b>2": [model.HostSample(START, idle), model.HostSample(START + SECOND, idle)],
            "died": [model.HostSample(START, busy)],
        },
        host_of={**dict.fromkeys(("a-1", "a-2", "a-3", "a-4"), "here"), "<b>2": "<b>2"},
        threads={
            "a-1": [model.ThreadSample(START, "g"), model.ThreadSample(START + SECOND, "g", threads)],
            "a-2": [model.ThreadSample(START, "h")],
        },
    )
    hosts, busiest = text[text.index("<summary>Each host") :].split("<summary>Busiest threads")
    here = ["here", "a-1, a-2, a-3 and 1 more", "35.0", "70.0", "10.0", "5.0", "—", "0.0", "2.00", "6.00"]
    assert lines(hosts) == [
        ["&lt;b&gt;2", "&lt;b&gt;2", *["0.0"] * 3, *["—"] * 3, "2.00", "6.00", *["—"] * 4, "0", "—"],
        [*here, "eth1", "512.00", "0.00", "83.9", "7", "0.100"],
    ]
    assert lines(busiest) == [["a-1", "&lt;i&gt;o", "17", "99.5"], ["a-1", "main", "17", "12.2"]]


def counted(by: int = 0) -> model.HostCounters:
    """A host's counters, and by how much they grow in two seconds."""
    return model.HostCounters(
        cores=[model.CoreTimes(by, 0.4 * by, 2 * by), model.CoreTimes(0, 0, 2 * by)],
        pressure_us={"cpu": by * 100_000, "io": 5},
        memory_total=8 << 30,
        memory_available=6 << 30,
        interfaces={
            "eth1": model.InterfaceCounts(by << 30, 0, 0, 0, None),
            "eth0": model.InterfaceCounts(by << 22, by * (200 << 20), 3 * by, 4 * by, 1000),
        },
        tcp=model.TcpCounts(999 * by, by),
        context_switches=0,
    )


def test_a_point_with_a_warning_is_hollow(loaded: Loaded) -> None:
    assert list(found_one(lost_figure(loaded("batch"))).data[0].marker.symbol) == ["circle", "circle", "circle-open"]


def test_a_search_shows_the_interval_of_its_answer(loaded: Loaded) -> None:
    run = loaded("search")
    figure = found_one(line_plots.rates(run))
    (loss,) = (t for t in figure.data if t.name == "Highest rate within 0.5 % loss")
    low, high = (float(str(run.rows[0][f"loss_{limit}_pps"] or 0)) for limit in ("low", "high"))
    assert low < loss.y[0] < high
    assert loss.error_y.array[0] == pytest.approx(high - loss.y[0])
    assert loss.error_y.arrayminus[0] == pytest.approx(loss.y[0] - low)
    assert f"[{low:,.4g} – {high:,.4g}]" in loss.customdata[0][0]
    text = markup.table(run).text
    figure, *ends = (f"{known_digits(x, (high - low) / 2):,.0f}" for x in (loss.y[0], low, high))
    assert f'{figure} <span class="interval">[{" – ".join(ends)}]</span>' in text
    assert "at most 0.5 % of the messages are lost or added to the backlog" in text
    steps = ", ".join(f"{name} {run.rows[0][f'{name}_steps']}" for name in ("max_rate", "loss", "slow", "reconnecting"))
    assert f"30 subscribers: steps of 10 s: {steps}</p>" in text


def test_the_steps_of_a_search_at_each_rate_are_a_point(loaded: Loaded) -> None:
    run = loaded("rate")
    figure = found_one(lost_figure(run))
    lines = [t for t in figure.data if t.marker.symbol != "diamond"]
    assert [t.name for t in lines] == ["10 subscribers", "30 subscribers"]
    for trace, clients in zip(lines, (10, 30), strict=True):
        assert trace.mode == "markers"
        short: dict[float, list[float]] = {}
        for r in run.results:
            if r.plan.clients == clients:
                short.setdefault(float(r.plan.settings.rate), []).append(float(str(r.figures["shortfall_pct"] or 0)))
        drawn = dict(zip(trace.x, trace.y, strict=True))
        assert drawn.keys() == short.keys()
        assert len(trace.x) == len(short) < len(run.results)
        means = {rate: fmean(its) for rate, its in short.items() if any(its)}
        assert {rate: drawn[rate] for rate in means} == pytest.approx(means, rel=1e-3)
    # A target of 0 is taken for this.
    (target,) = figure.layout.annotations
    assert (target.text, 10**target.y) == ("target 0.05 %", pytest.approx(0.05))
    assert figure.layout.shapes[0].y0 == pytest.approx(0.05)


def test_the_latency_of_a_search_is_that_of_a_step_within_its_figure(loaded: Loaded) -> None:
    """Chance lets steps pass above it."""
    run = loaded("rate")
    assert found_one(line_plots.latency(run)).data[0].y[0] > 0
    passed = [r for r in run.results if r.plan.clients == 10 and r.figures["passed"]]
    slowest = min(passed, key=lambda r: float(r.plan.settings.rate))
    limited = [{**row, "max_rate_without_drop_pps": slowest.plan.settings.rate} for row in run.rows]
    marked = replace(slowest, figures=StepFigures.of({**slowest.figures, "latency_p50_us": 7}))
    results = [marked if r is slowest else r for r in run.results]
    assert found_one(line_plots.latency(replace(run, rows=limited, results=results))).data[0].y[0] == 7


def test_a_scenario_that_is_none_is_a_clear_error(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "r", {"scenario": {"name": "x"}}):
        pass
    with pytest.raises(RunDirectoryError, match="cannot read") as error:
        run_data.load(tmp_path / "r")
    assert error.value.exit_code == EXIT_USAGE


def test_a_line_is_broken_where_a_row_failed(tmp_path: Path) -> None:
    run = run_data.load(make(tmp_path / "r", FIXED, lambda plan: ("failed" if plan.clients == 60 else "ok", "")))
    figure = found_one(line_plots.rates(run))
    assert [y is None for y in figure.data[0].y] == [False, True, False]
    assert not figure.data[0].connectgaps


def test_a_search_at_several_high_water_marks_has_a_line_for_each(loaded: Loaded) -> None:
    run = loaded("native")
    drawn = found_one(line_plots.rates(run)).data
    searched = [t for t in drawn if "pub" not in t.name and t.name.startswith("Highest rate")]
    assert [bool(t.error_y.array) for t in searched] == [True, True, True]
    assert "30 subscribers, sndhwm 100,000" in {t.name for t in found_one(lost_figure(run)).data}
    assert "hydra_zmq_cpp.csv" in found_one(markup.comparison(run)).text


def test_each_series_of_a_search_has_a_line_of_its_losses(loaded: Loaded) -> None:
    sweep = replace(FOR_LOSS, search=SearchSpec(8_000.0, steps=8, series=("loss", "nodrop")))
    lost = found_one(lost_figure(loaded(replace(SEARCH, sweep=sweep))))
    assert {t.name for t in lost.data} == {
        "10 subscribers",
        "10 subscribers, nodrop",
        "30 subscribers",
        "30 subscribers, nodrop",
    }
