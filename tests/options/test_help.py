"""The help of every command: each flag has a text and a group, defaults are shown, and examples can be typed."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hydra.cli.main import cli
from hydra.options.help import ORDER, group_of
from hydra.options.plugin_commands import add_flags

OWN_SCENARIO = """
system = "zmq"
client = "pyzmq"
table = "fixed"
[sweep]
clients = [2]
duration_s = 0.5
"""


def found(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command with its name and context; groups of commands among them."""
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            if inner.hidden:
                continue
            add_flags(inner, context)
            yield from found(inner, click.Context(inner, info_name=name, parent=context))


COMMANDS = {
    name: (command, context)
    for name, command, context in found(cli, click.Context(cli, info_name="hydra", resilient_parsing=True))
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_has_a_text_and_a_group(name: str) -> None:
    command, context = COMMANDS[name]
    assert command.help
    for param in command.get_params(context):
        if isinstance(param, click.Option):
            assert param.help, param.opts
            assert group_of(param) in ORDER, param.opts


def test_whoever_asks_a_cluster_takes_engine_as_another_name_of_master() -> None:
    named = {
        name: param.opts
        for name, (command, context) in COMMANDS.items()
        for param in command.get_params(context)
        if param.name == "master"
    }
    assert {"hydra agents", "hydra check", "hydra kill", "hydra ps", "hydra run", "hydra zmq-rate"} <= named.keys()
    assert set(map(tuple, named.values())) == {("--master", "--engine")}


def test_whoever_takes_subscriber_counts_takes_clients_as_another_name_of_subscribers() -> None:
    named = {
        name: param.opts
        for name, (command, context) in COMMANDS.items()
        for param in command.get_params(context)
        if {"--subscribers", "--clients"} & {*param.opts}
    }
    assert {"hydra check", "hydra fit", "hydra slo", "hydra zmq-rate", "hydra kafka-batch"} <= named.keys()
    assert set(map(tuple, named.values())) == {("--subscribers", "--clients")}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_it_understands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, _ = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(OWN_SCENARIO)
    (tmp_path / "runs" / "killed").mkdir(parents=True)
    examples = getattr(command, "examples", ())
    assert any(example.startswith(name) for example in examples)
    for example in examples:
        program, *words = shlex.split(example.partition(" > ")[0])
        assert program == "hydra"
        with contextlib.suppress(click.exceptions.Exit):  # it asks for a command's help
            parse(cli, "hydra", words, None)


def parse(command: click.Command, name: str, words: list[str], parent: click.Context | None) -> None:
    """Has click read the words as if the command ran, and goes no further."""
    if not isinstance(command, click.Group):
        command.make_context(name, words, parent)
        return
    context = command.make_context(name, list(words), parent)
    inner, found_command, rest = command.resolve_command(context, list(words))
    assert found_command is not None
    parse(found_command, str(inner), rest, context)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["zmqrate", "--help"], ["Search for a rate:", "[default: 0.5]", "[default: 10,30,100]", "Examples:"]),
        (
            ["zmqfixed", "--help"],
            ["System under test:", "[default: 10,30,100]", "[default: native if present, else pyzmq]"],
        ),
        (["kafka-fixed", "--help"], ["[default: 1000]", "[default: native if present, else kafka-python]"]),
        (["kafka", "broker", "--help"], ["Commands:", "hydra kafka broker up"]),
        (["--help"], ["Measure:", "Look at results:", "hydra zmq-rate --help"]),
    ],
)
def test_help_shows_groups_defaults_and_examples(words: list[str], shown: list[str]) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0
    for text in shown:
        assert text in " ".join(done.output.split())


def test_a_scenarios_help_has_the_flags_of_its_system(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(OWN_SCENARIO)
    text = CliRunner().invoke(cli, ["run", str(own), "--help"]).output
    assert "--rcvhwm" in text
    assert "--servers" not in text
    assert "--rcvhwm" not in CliRunner().invoke(cli, ["run", "--help"]).output
