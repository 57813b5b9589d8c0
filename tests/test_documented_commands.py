"""Hydra understands each command of README and the documentation: the command is parsed, and its scenario resolved."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

import click
import pytest

from hydra.cli import check_command, experiment_execution, interleaved_runs, measurement
from hydra.cli.main import cli
from hydra.cli.measurement_commands import RUNS
from hydra.config.scenario import resolve
from hydra.options.scenario_commands import ScenarioCommand

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"## Your own scenario\n```toml\n(.*?)```", re.DOTALL)
FILES = {
    **dict.fromkeys(("cluster.toml", "namespaces.toml"), ""),
    **dict.fromkeys(("kafka.properties", "client.properties"), "security.protocol=SSL\n"),
    "secret": "geheim\n",
}
"""Files of the reader that commands name, beside ``mine.toml``, which is the example of docs/scenarios.md."""
STANDS_FOR = {"SCENARIO": "zmqfixed"}
ROOT_CONTEXT = click.Context(cli, info_name="hydra")
_COMMAND = re.compile(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*/bin/)?hydra +([a-z].*)")
_MENTIONED = re.compile(r"`hydra ([a-z][^`]*)`")


def lines(page: Path) -> Iterator[str]:
    """Each command in the blocks of code of a page."""
    inside = False
    written = page.read_text().partition("<!-- made by scripts/command_pages.py")[0]
    for line in written.replace("\\\n", " ").splitlines():
        inside ^= line.lstrip().startswith("```")
        if (inside or line.startswith(" " * 4)) and (found := _COMMAND.fullmatch(line)):
            yield found[1]


def words_of(line: str) -> list[str]:
    """The words of a command, without its comment, up to a pipe."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((number for number, word in enumerate(words) if set(word) <= set("();<>|&")), None)
    return [STANDS_FOR.get(word, word) for word in words[:end]]


COMMANDS = sorted({(page.name, line) for page in PAGES for line in lines(page)})
MENTIONED = sorted({(page.name, text) for page in PAGES for text in _MENTIONED.findall(page.read_text())})


class ReachedError(Exception):
    """A command has resolved all that it was given, and would begin."""


def reached(*_: object, **__: object) -> NoReturn:
    raise ReachedError


def checked(scenario: str, replaced: Mapping[str, object], _flags: object, **_: object) -> NoReturn:
    resolve(scenario, replaced)
    raise ReachedError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = EXAMPLE.search((ROOT / "docs/scenarios.md").read_text())
    assert example is not None
    for name, text in {**FILES, "mine.toml": example[1]}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    context = tmp_path / "config/nats/context/production.json"
    context.parent.mkdir(parents=True)
    context.write_text('{"url": "nats://nats.example:4222"}')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for module in (measurement, experiment_execution, interleaved_runs):
        monkeypatch.setattr(module, "carry_out", reached)
    monkeypatch.setattr(check_command, "check_scenario", checked)


def test_commands_of_each_kind_are_found() -> None:
    assert {line.split()[0] for _, line in COMMANDS} >= {"zmq-rate", "kafka-batch", "run", "slo", "check", "fit"}


@pytest.mark.tier("test")
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_is_understood(page: str, line: str) -> None:
    assert page
    context = parsed(cli, "hydra", words_of(line), click.Context(cli, obj=RUNS))
    is_run = isinstance(context.command, ScenarioCommand)
    is_run |= context.info_name == "compare" and bool(context.params["commands"])
    if is_run and not context.params.get("listed") and not context.params.get("resume"):
        with pytest.raises(ReachedError), context:
            context.command.invoke(context)


def parsed(command: click.Command, name: str, words: list[str], parent: click.Context) -> click.Context:
    """The context in which the command would run."""
    context = command.make_context(name, list(words), parent)
    if not isinstance(command, click.Group):
        return context
    inner, found, rest = command.resolve_command(context, words)
    assert found is not None
    return parsed(found, str(inner), rest, context)


@pytest.mark.tier("test")
@pytest.mark.parametrize("page", sorted({page for page, _ in MENTIONED}))
def test_commands_that_are_mentioned_have_these_flags(page: str) -> None:
    for words in (text.split() for name, text in MENTIONED if name == page):
        if words[0].isupper() or "--help" in words:
            continue
        # Scenarios have the flags of their system.
        names = cli.list_commands(ROOT_CONTEXT) if words[0] in ("run", "slo", "check") else words[:1]
        options = {option for name in names for option in options_of(name)}
        flags = [word.strip("[]").partition("=")[0] for word in words if word.strip("[").startswith("--")]
        assert [flag for flag in flags if flag not in options] == [], words


@cache
def options_of(name: str) -> frozenset[str]:
    _, command, _ = cli.resolve_command(ROOT_CONTEXT, [name])
    assert command is not None
    return frozenset(o for p in command.get_params(click.Context(command)) for o in (*p.opts, *p.secondary_opts))
