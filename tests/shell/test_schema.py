"""The schema of what ``--json`` prints: as it is shipped, and real output against it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from hydra.config.file_locations import conf_dir
from hydra.config.scenario import load_scenario
from hydra.events.event import StoredEvent
from hydra.events.group_events import ClientExit
from hydra.events.run_events import WindowOpened
from hydra.events.warnings import Interrupted
from hydra.report.json_schema import schema_of
from hydra.report.tables import RunTables
from hydra.sweep import Row
from tests.integration.command import hydra

ROW: Row = {"clients": 2, "avg_tx_rate_pps": 10.0, "client_loss_pct": 50.0, "status": "ok", "reason": ""}
EVENTS = (
    StoredEvent(1, None, Interrupted("runs/x").data()),
    StoredEvent(2, 3, ClientExit(4, 99, -9, replaced=True).data()),
    StoredEvent(3, 3, WindowOpened(3).data()),
)


def test_the_shipped_schema_is_that_of_the_code() -> None:
    """Write it again with: hydra schema > conf/schema/rows.json."""
    assert (conf_dir() / "schema" / "rows.json").read_text(encoding="utf-8") == schema_of(None)


@pytest.mark.parametrize("scenario", [None, "zmqrate", "kafka-batch", "mqtt-fixed", "nats-fixed"])
def test_every_schema_is_one(scenario: str | None) -> None:
    schema = json.loads(schema_of(scenario))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["rows"]["items"]["properties"]["clients"]["description"]


@pytest.mark.parametrize("scenario", [None, "zmqfixed"])
def test_warnings_of_rows_and_of_the_run(scenario: str | None) -> None:
    content = json.loads(RunTables(load_scenario("zmqfixed"), [ROW], events=EVENTS).json)
    jsonschema.validate(content, json.loads(schema_of(scenario)))
    found = [(each["row"], each["step"], each["level"], each["kind"], each["fields"]) for each in content["warnings"]]
    assert found == [
        (None, None, "note", "interrupted", {"out": "runs/x", "steps": 0, "by_key": False}),
        (None, 3, "note", "client_exit", {"client": 4, "pid": 99, "status": -9, "replaced": True}),
        (
            0,
            None,
            "loss",
            "loss",
            {
                "pct": 50.0,
                "as_much_at_pps": None,
                "limited_by": "",
                "unreported": "",
                "others_lost": False,
                "limit": {"causes": [], "refused": "", "local": "", "others_pct": 0.0, "shut_out": ""},
                "unheard": "",
            },
        ),
    ]
    assert content["warnings"][0]["remedy"] == "continue with --resume runs/x"
    assert content["warnings"][2]["clients"] == 2
    assert "50" in content["warnings"][2]["text"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": [{"clients": 2}]},
        {"rows": [{**ROW, "nonsense": 1}]},
        {"rows": [{**ROW, "avg_tx_rate_pps": "many"}]},
        {"warnings": [{"row": 0, "text": "what?"}]},
        {"more": 1},
    ],
)
def test_what_is_no_output_is_refused(wrong: dict[str, object]) -> None:
    good = json.loads(RunTables(load_scenario("zmqfixed"), [ROW]).json)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, **wrong}, json.loads(schema_of("zmqfixed")))


@pytest.mark.tier("all")
def test_what_a_run_prints_and_stores(tmp_path: Path) -> None:
    """Two subscribers at a rate that no machine holds: rows with warnings."""
    out = tmp_path / "run"
    small = ("--clients", "2", "--rate", 1e8, "--duration", 0.2, "--repeat", 2, "--set", "warmup_s=0")
    done = hydra("zmqfixed", *small, "--json", "--out", out)
    output = json.loads(done.stdout)
    for scenario in (None, "zmqfixed"):
        jsonschema.validate(output, json.loads(schema_of(scenario)))
    assert [each["row"] for each in output["warnings"]].count(0) >= 1
    assert json.loads((out / "rows.json").read_text()) == output
