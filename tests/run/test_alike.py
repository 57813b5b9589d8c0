"""Which flags a scenario has, and how flags of others are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hydra.cli.main import cli
from tests.integration.command import refusal


def scenario(folder: Path, system: str, table: str, more: str = "") -> str:
    path = folder / "mine.toml"
    path.write_text(f'system = "{system}"\ntable = "{table}"\n[sweep]\nclients = [2]\nduration_s = 0.5\n{more}')
    return str(path)


SEARCH = "[sweep.search]\n"


@pytest.mark.parametrize(
    ("system", "table", "more", "has", "has_not"),
    [
        ("zmq", "fixed", "", ("--rcvhwm INTEGER", "--rate", "--burst"), ("--search-steps", "--published")),
        (
            "zmq",
            "rates",
            SEARCH,
            ("--rcvhwm", "--search-steps", "--loss-target", "--duration"),
            ("--rate ",),
        ),
        ("kafka", "fixed", "", ("--msg-batch INTEGER", "--kafka-prop ", "--preset"), ("--search-steps", "--scale")),
        ("kafka", "batch", "[sweep.vary]\nmsg_batch = [1, 2]\n", ("--msg-batch N,N,…",), ("--rcvhwm",)),
        ("nats", "rate", SEARCH, ("--ack-policy [none|explicit]", "--no-publish-acks"), ("--rate ",)),
        ("mqtt", "fixed", "", ("--qos", "--retain "), ("--clean-session",)),
        ("nothing", "fixed", "", ("--resume",), ("--message-size",)),
    ],
)
def test_a_scenario_has_the_flags_of_its_system(
    tmp_path: Path, system: str, table: str, more: str, has: tuple[str, ...], has_not: tuple[str, ...]
) -> None:
    shown = help_of("run", scenario(tmp_path, system, table, more))
    assert [flag for flag in has if flag not in shown] == []
    assert [flag for flag in has_not if flag in shown] == []


@pytest.mark.parametrize(
    ("words", "has", "has_not"),
    [
        (("run", "zmqburst"), "--sndhwm N,N,…", "--search-steps"),
        (("run", "zmqfixed"), "--published", "--search-steps"),
        (("run", "single-consumer"), "--scale", "--msg-batch"),
        # What makes one step of a scenario has the flags of one step.
        (("slo", "zmqrate"), "--rate", "--search-steps"),
        (("slo", "kafka-batch"), "--linger", "--published"),
    ],
)
def test_names_that_come_along(words: tuple[str, ...], has: str, has_not: str) -> None:
    shown = help_of(*words)
    assert has in shown
    assert has_not not in shown


def help_of(*words: str) -> str:
    return CliRunner().invoke(cli, [*words, "--help"]).output


def test_a_varied_setting_takes_several_values(tmp_path: Path) -> None:
    own = scenario(tmp_path, "kafka", "batch", "[sweep.vary]\nmsg_batch = [1, 2]\n")
    text = refusal("run", own, "--implementation", "native", "--msg-batch", "5,5")
    assert "--msg-batch: a value stands twice in [5, 5]" in text


def test_a_scenarios_help_has_its_own_defaults(tmp_path: Path) -> None:
    own = scenario(tmp_path, "zmq", "fixed", "[settings]\nrate = 77.0\n")
    assert "[default: 77]" in CliRunner().invoke(cli, ["run", own, "--help"]).output


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        'system = "zmq"\nsweep = 3\nsettings = []\n',
        'system = "zmq"\n[settings]\nburst = 1\nbursts = 2\n',
        'system = "nothing"\ntable = 3\n[sweep]\nclients = "many"\n',
    ],
)
def test_help_is_shown_for_files_that_are_no_scenarios(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "mine.toml"), "--help"])
    assert done.exit_code == 0, done.exception
    assert "--resume" in done.output


def test_what_is_no_scenario_is_refused() -> None:
    assert "known scenarios" in refusal("run", "nosuch")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--bootstrap", "h:1"], "--bootstrap is for system kafka, and MINE is of zmq; leave out --bootstrap"),
        (["--servers", "h:1"], "--servers is for system kafka or mqtt or nats, and MINE is of zmq"),
        (["--search-width", "2"], "--search-width is a flag of hydra zmq-rate, and not of hydra COMMAND MINE"),
        (["--scale", "2"], "--scale is for published experiments, and MINE is none"),
        (["--nosuch"], "No such option '--nosuch'"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check", "slo"])
def test_flags_of_others_are_refused_by_name(tmp_path: Path, command: str, words: list[str], text: str) -> None:
    own = scenario(tmp_path, "zmq", "fixed")
    for line in ([own, *words], [*words, own]):
        assert text.replace("MINE", own).replace("COMMAND", command) in refusal(command, *line)


def test_of_a_published_experiment_too() -> None:
    text = refusal("run", "single-consumer", "--rcvhwm", 2)
    assert "--rcvhwm is for scenarios, and single-consumer is a published experiment" in text


def test_a_flags_value_is_not_taken_for_the_scenario(tmp_path: Path) -> None:
    own = scenario(tmp_path, "kafka", "fixed")
    Path(own).write_text(f'client = "kafka-python"\n{Path(own).read_text()}')
    other = tmp_path / "cluster.toml"
    other.write_text("nonsense = 1\n")
    text = refusal("check", "--config", other, "--bootstrap", "127.0.0.1:x", own)
    assert "--servers: '127.0.0.1:x' is no address" in text


def test_what_a_file_says_is_not_said_of_a_flag_that_nobody_gave(tmp_path: Path) -> None:
    own = scenario(tmp_path, "kafka", "fixed", "[kafka.properties]\nsome = [1]\n")
    text = refusal("run", own, "--implementation", "native")
    assert "kafka.properties.some: must be" in text
    assert "--kafka-prop" not in text
