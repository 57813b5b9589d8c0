"""The records of columns: complete, and the tables that are made with them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hydra.config import resolved_scenario
from hydra.config.plugins import systems
from hydra.measure.column import LossBursts, LossEvidence, Values, of_repeats
from hydra.measure.connection_columns import ComingBack, Disconnections
from hydra.measure.latency_columns import DUE, SENT, Delays
from hydra.measure.loss_columns import Outcomes
from hydra.measure.observation import ServerFigures
from hydra.measure.step_part import columns_of as part_columns
from hydra.measure.step_result import step_columns
from hydra.measure.verdict import Causes
from hydra.model import Cohort, Histogram, Rate, Scenario, StepPlan
from hydra.model.batch_columns import BATCH_COLUMNS
from hydra.report import tables
from hydra.store.stored_scenario import added_by, columns_of
from hydra.sweep import Row
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_columns import search_columns
from hydra.sweep.search_spec import SearchSpec
from tests.jupyter.runs import BATCH, FIXED, KINDS, RATE, observe
from tests.suite.figures import figures

GOLDEN = Path(__file__).with_name("golden")
RUNS: Mapping[str, Scenario] = {
    **KINDS,
    "max": replace(FIXED, settings=replace(FIXED.settings, rate="max")),
    "repeated-search": replace(RATE, sweep=replace(RATE.sweep, repeat=2)),
}
"""A run of each kind. What it measured, and the tables that were made of it before there were records, is in GOLDEN."""
EVERY_SEARCH = SearchSpec(series=("max_rate", "loss", "slow", "reconnecting", "nodrop"), sndhwms=(10, 20))


def rows(kind: str) -> list[Row]:
    found: list[Row] = json.loads((GOLDEN / f"{kind}.json").read_text())["rows"]
    return [row | {n: Causes((str(v),)) for n, v in row.items() if v and n.endswith("verdict")} for row in found]


@pytest.mark.parametrize("kind", RUNS)
def test_the_tables_are_byte_for_byte_what_they_were(kind: str) -> None:
    # The order of the columns is that of the records, not the one in which the figures of a row came about.
    turned = [dict(reversed(row.items())) for row in rows(kind)]
    made = tables.RunTables(RUNS[kind], turned)
    for suffix, text in (("md", made.markdown), ("csv", made.csv), ("json", made.json)):
        assert text == (GOLDEN / f"{kind}.{suffix}").read_text()


OF_SERVERS = ("cpu_seconds_per_s", "in_bytes_per_s", "out_bytes_per_s", "messages_per_s")
OF_TOPICS = (
    *("topics", "copies_expected", "hot_topics_loss_pct", "other_topics_loss_pct"),
    *("hot_topics_p99_us", "other_topics_p99_us"),
)
"""Tested in ``tests/measure/test_hot_topics.py``."""


@pytest.mark.parametrize("kind", RUNS)
def test_every_column_of_a_row_is_known_before_anything_is_measured(kind: str) -> None:
    assert {name for row in rows(kind) for name in row} - set(columns_of(RUNS[kind])) == set()


@pytest.mark.parametrize("scenario", [FIXED, BATCH], ids=["fixed", "batch"])
@pytest.mark.parametrize(("rate", "prefix"), [(100.0, DUE), ("max", SENT)])
@pytest.mark.parametrize(("joined", "group"), [(False, ""), (True, ""), (False, "readers")])
@pytest.mark.parametrize("cohort", [Cohort(), Cohort("slow", 0.5, 10.0)])
@pytest.mark.parametrize("servers", [{}, {"broker 1": dict.fromkeys(OF_SERVERS, 1.0)}])
def test_every_figure_of_a_step_has_a_record_and_every_record_a_figure(
    scenario: Scenario, rate: Rate, prefix: str, joined: bool, group: str, cohort: Cohort, servers: ServerFigures
) -> None:
    plan = StepPlan(30, replace(scenario.settings, rate=rate), 1.0, cohort=cohort)
    o = replace(observe(scenario, plan), group=group, servers=servers)
    if joined:
        report = replace(o.publisher_reports[0], unacknowledged=[(3, 5)], unacknowledged_joined=True)
        o = replace(o, publisher_reports={0: report})
    log = ("log_growth", "account", *(c.name for c in part_columns(Delays) if c.optional))
    if group:
        report = replace(o.publisher_reports[0], ack_latency=Histogram([7, 2], 7, 7))
        o = replace(o, publisher_reports={0: report}, log_growth=1000)
    expected = [c.name for c in step_columns([prefix], cohort.kind != "none", o.columns, connecting=False)]
    bounds = ("client_loss_low_pct", "client_loss_high_pct")
    # Members whose reports list nothing of what they received leave bounds, too.
    of_servers = () if servers else ("server_cpu_pct", "server_in_mb_s", "server_out_mb_s", "server_messages_s")
    back = (column.name for part in (Disconnections, ComingBack) for column in part_columns(part))
    rare = ("lone_loser", "lone_loser_loss_pct", "rest_bursts_s", "died_by", "payload", "pacing", *OF_TOPICS, *back)
    absent = {*(() if joined or group else bounds), *(() if group else ["group", *log]), *of_servers, *rare}
    assert {*figures(o)} - {"client_loss_unlisted"} == {*expected} - absent


def test_every_count_that_rows_add_up_is_a_field() -> None:
    shown = {column.name for column in BATCH_COLUMNS if column.shown}
    assert shown <= {column.name for column in part_columns(Outcomes)}


def test_every_record_says_what_it_is() -> None:
    added = [resolved_scenario.added_by(spec) for spec in systems().values()]
    own = [column for system in added for column in (system.batch, *system.reported)]
    columns = [*step_columns(), *own, *search_columns(EVERY_SEARCH)]
    assert [column.name for column in columns if not column.help] == []


@pytest.mark.parametrize("scenario", RUNS.values(), ids=RUNS.keys())
def test_no_column_of_repeats_has_the_name_of_another(scenario: Scenario) -> None:
    sweep = scenario.sweep
    searched = search_columns(sweep.search) if isinstance(sweep, SearchSweep) else ()
    columns = searched or step_columns(system=added_by(scenario))
    names = [each.name for column in columns for each in (column, *of_repeats(column))]
    assert len(set(names)) == len(names)


def test_the_order_of_columns_does_not_depend_on_which_row_has_them() -> None:
    """A figure that only a later row has stands where it stands in every run."""
    first, *others = rows("repeated")
    lacking = {name: value for name, value in first.items() if not name.startswith("latency")}
    whole, part = (tables.RunTables(RUNS["repeated"], [row, *others]).csv for row in (first, lacking))
    assert part.splitlines()[0] == whole.splitlines()[0]


def test_evidence_is_a_text_in_tables_and_files() -> None:
    (first, *_) = rows("fixed")
    bursts, evidence = LossBursts((0.25, 0.5)), LossEvidence(10.0, 2, 0.75)
    row: Row = {**first, "bursts_s": bursts, "loss_evidence": evidence, "verdict": Values(("server", "publisher"))}
    made = tables.RunTables(FIXED, [row])
    (written,) = json.loads(made.json)["rows"]
    names = ("bursts_s", "loss_evidence", "verdict")
    expected = ["0.25 0.5", "10 2 0.75 0 0 0 0", "server / publisher"]
    assert [written[name] for name in names] == expected
    (line,) = csv.DictReader(io.StringIO(made.csv))
    assert [line[name] for name in names] == expected
