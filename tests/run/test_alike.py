"""Which command's flags a scenario has, and how flags of others are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hydra.cli.main import cli
from hydra.errors import ConfigError
from hydra.options.scenario_flags import command_like
from tests.integration.command import refusal


def scenario(folder: Path, system: str, table: str, more: str = "") -> str:
    path = folder / "mine.toml"
    path.write_text(f'system = "{system}"\ntable = "{table}"\n[sweep]\nclients = [2]\nduration_s = 0.5\n{more}')
    return str(path)


@pytest.mark.parametrize(
    ("system", "table", "command"),
    [
        ("zmq", "fixed", "zmqfixed"),
        ("zmq", "rates", "zmqrate"),
        ("zmq", "rate", "zmqrate"),
        ("zmq", "batch", "zmqfixed"),
        ("kafka", "batch", "kafka-batch"),
        ("kafka", "fixed", "kafka-fixed"),
        ("kafka", "rate", "kafka-rate"),
        ("nats", "rate", "nats-rate"),
        ("mqtt", "fixed", "mqtt-fixed"),
        ("nothing", "fixed", None),
    ],
)
def test_a_scenario_has_the_flags_of_the_command_for_its_system_and_table(
    tmp_path: Path, system: str, table: str, command: str | None
) -> None:
    like = command_like(scenario(tmp_path, system, table, "[sweep.search]\n" if "rate" in table else ""))
    assert getattr(like, "name", None) == command


@pytest.mark.parametrize(
    ("named", "command"),
    [
        (("kafka-rate",), "kafka-rate"),
        (("zmqburst",), "zmqfixed"),
        (("single-consumer",), "kafka-perf"),
        # What makes one step of a scenario has the flags of one step.
        (("zmqrate", "fixed"), "zmqfixed"),
        (("kafka-batch", "fixed"), "kafka-fixed"),
    ],
)
def test_names_that_come_along(named: tuple[str, ...], command: str) -> None:
    assert getattr(command_like(*named), "name", None) == command


def test_a_scenarios_help_has_its_own_defaults(tmp_path: Path) -> None:
    mine = scenario(tmp_path, "zmq", "fixed", "[settings]\nrate = 77.0\n")
    assert "[default: 77]" in CliRunner().invoke(cli, ["run", mine, "--help"]).output


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        'system = "zmq"\nsweep = 3\nsettings = []\n',
        'system = "zmq"\n[settings]\nburst = 1\nmsg_batch = 2\n',
        'system = "nothing"\ntable = 3\n[sweep]\nclients = "many"\n',
    ],
)
def test_help_is_shown_for_files_that_are_no_scenarios(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "mine.toml"), "--help"])
    assert done.exit_code == 0, done.exception
    assert "--resume" in done.output


def test_what_is_no_scenario_is_refused() -> None:
    with pytest.raises(ConfigError, match="known scenarios"):
        command_like("nosuch")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bootstrap", "h:1"], "--bootstrap is for system kafka, and MINE is of zmq; leave out --bootstrap"),
        (["--servers", "h:1"], "--servers is for system nats, and MINE is of zmq"),
        (["--search-width", "2"], "--search-width is a flag of hydra zmqrate, and MINE has those of hydra zmqfixed"),
        (["--scale", "2"], "--scale is for published experiments, and MINE is none"),
        (["--nosuch"], "No such option '--nosuch'"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check", "slo"])
def test_flags_of_others_are_refused_by_name(tmp_path: Path, command: str, words: list[str], said: str) -> None:
    mine = scenario(tmp_path, "zmq", "fixed")
    for line in ([mine, *words], [*words, mine]):
        assert said.replace("MINE", mine) in refusal(command, *line)


def test_of_a_published_experiment_too() -> None:
    said = refusal("run", "single-consumer", "--rcvhwm", 2)
    assert "--rcvhwm is for scenarios, and single-consumer is a published experiment" in said


def test_a_flags_value_is_not_taken_for_the_scenario(tmp_path: Path) -> None:
    mine = scenario(tmp_path, "kafka", "fixed")
    Path(mine).write_text(f'client = "kafka-python"\n{Path(mine).read_text()}')
    other = tmp_path / "cluster.toml"
    other.write_text("nonsense = 1\n")
    said = refusal("check", "--config", other, "--bootstrap", "127.0.0.1:x", mine)
    assert "--bootstrap: '127.0.0.1:x' is no address" in said
