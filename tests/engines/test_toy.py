"""An engine in a package of its own, found by its entry point: nothing in Hydra names it."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hydra.cli.main import cli, main
from hydra.config import plugins
from hydra.config.cluster import load_engine
from hydra.config.file_locations import conf_dir
from hydra.engine.specification import EngineSpec
from hydra.errors import ConfigError, UsageError
from hydra.options import plugin_commands
from hydra.options.engine_choice import choose
from hydra.store.database import RunStore
from tests.engines import toy_engine
from tests.engines.flags import for_a_test
from tests.integration.command import assert_all_arrived, hydra, table
from tests.systems.package import installed_toy

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the package."""
    return installed_toy(tmp_path_factory.mktemp("site"), "engine")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A cluster file with a table of the toy's."""
    path = tmp_path / "cluster.toml"
    path.write_text((conf_dir() / "hydra.toml").read_text() + '\n[toy]\nmark = "file"\nmost = 9\n')
    return path


@pytest.fixture
def installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package can be imported in this process."""
    monkeypatch.syspath_prepend(package)
    plugins.engines.cache_clear()
    with for_a_test(plugins.engines()["toy"]):
        yield
    plugins.engines.cache_clear()


def output_of(*words: str) -> str:
    """What a command of Hydra's prints, run in this process."""
    return CliRunner().invoke(cli, words).output


@pytest.mark.tier("test")
def test_a_run_on_it_has_its_settings_and_its_flag(package: Path, cluster: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    load = ("--clients", 2, "--rate", 100, "--duration", 0.3, "--set", "warmup_s=0")
    place = ("--master", "toy://here", "--config", cluster, "--mark", "flag")
    hydra("zmqfixed", *load, *place, "--out", run, PYTHONPATH=str(package))
    (row,) = table(run)
    assert row["clients"] == "2"
    assert_all_arrived(row, 30)
    assert set((run / "toy.log").read_text().splitlines()) == {
        "flag: publisher on agent-pub",
        *(f"flag: subscriber on agent-sub-{n}" for n in (1, 2)),
    }
    with RunStore.open(run) as store:
        assert store.meta("master", "") == "toy://here"


@pytest.mark.tier("test")
def test_its_command_and_its_agents_are_hydras(package: Path, cluster: Path) -> None:
    output = hydra("toy-settings", "--config", cluster, PYTHONPATH=str(package), TOY_PASSWORD="geheim").stdout
    assert output == "ToySettings(mark='file', most=9, room='nursery')\n"
    listed = output_of("agents", "--json", "--master", "toy://agent-pub", "--config", str(cluster))
    assert [row["agent"] for row in json.loads(listed)] == ["agent-sub-1", "agent-sub-2", "agent-sub-3"]
    assert "toy://ANYTHING" in hydra("agents", "--help", PYTHONPATH=str(package)).stdout


@pytest.mark.tier("test")
def test_its_secret_is_hidden_in_its_errors(package: Path, tmp_path: Path) -> None:
    requests = ("zmqfixed", "--clients", 2, "--master", "toy://closed", "--out", tmp_path / "run")
    failed = hydra(*requests, expect=1, PYTHONPATH=str(package), TOY_PASSWORD="geheim")
    assert failed.stderr == "hydra: the toy is closed to ***; open it\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("marc = 'x'", "toy.marc: unknown key; did you mean mark?"),
        ("most = 'x'", "toy.most: must be a valid integer, not 'x'"),
        ("most = 2000", "toy.most: must be 1 to 1000, not 2000"),
        ("password = 42", "toy.password: must be a valid string; write the value in quotes"),
    ],
)
def test_a_mistake_in_its_table_is_refused_whichever_engine_runs(cluster: Path, written: str, expected: str) -> None:
    cluster.write_text(cluster.read_text().partition("[toy]")[0] + f"[toy]\n{written}\n")
    for master in ("toy", "local"):
        with pytest.raises(ConfigError) as refusal:
            choose(master, cluster)
        assert str(refusal.value) == f"{cluster}: {expected}"


def test_flags_go_before_the_environment_and_that_before_the_file(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_PASSWORD", "geheim")
    settings = load_engine("toy", cluster, {"mark": "flag", "most": None})
    assert (settings.mark, settings.most, settings.password) == ("flag", 9, "geheim")


@pytest.mark.parametrize(
    ("master", "name"),
    [("local", "local"), ("toy", "toy"), ("toy://x", "toy"), ("host:5050", "mesos"), ("zk://h/mesos", "mesos")],
)
def test_the_engine_is_the_one_that_the_master_names(master: str, name: str) -> None:
    assert choose(master, None).spec.name == name


@pytest.mark.parametrize("master", ["local", "host:5050"])
def test_its_flag_is_refused_on_another_engine(master: str) -> None:
    with pytest.raises(UsageError, match=r"^--mark is for another --master: toy://ANYTHING; name one, or leave out"):
        choose(master, None, {"mark": "x"})


def test_a_master_of_no_engine_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        UsageError, match=r"--master http://h belongs to no installed engine; .* local, or .*, or toy://ANYTHING"
    ):
        choose("http://h", None)


RUN = ("zmqfixed", "--clients", "2")
COMPARED = (*RUN, "--compare", "pyzmq,native")


Obeyed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def obeyed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Obeyed:
    """Runs a whole command in this process; gives its exit code and its output."""
    monkeypatch.setattr("hydra.cli.main.interrupt_on_the_first", lambda: None)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hydra", *words])
        with pytest.raises(SystemExit) as left:
            main()
        return int(str(left.value.code)), *capfd.readouterr()

    return run


@pytest.mark.parametrize(
    "words",
    [
        RUN,
        ("run", "zmqfixed"),
        ("slo", "zmqfixed", "--clients", "2", "--duration", "10s", "--p99", "20ms"),
        COMPARED,
        ("kafka-perf", "single-producer-no-replication"),
        ("run", "single-producer-no-replication"),
    ],
)
def test_it_may_run_a_whole_command_elsewhere(obeyed: Obeyed, tmp_path: Path, words: Sequence[str]) -> None:
    out = tmp_path / "run"
    words = (*words, "--master", "toy://elsewhere", "--mark", "m", "--out", str(out))
    assert obeyed(*words) == (3, f"m: {shlex.join(words)} into {out}\n", "")
    assert not out.exists()


SMALL = ("--clients", 2, "--rate", 100, "--duration", 0.5, "--set", "warmup_s=0")


@pytest.mark.tier("test")
def test_a_command_that_was_sent_elsewhere_is_carried_out_there(package: Path, cluster: Path, tmp_path: Path) -> None:
    run, trace, own = tmp_path / "run", tmp_path / "trace.csv", tmp_path / "mine.toml"
    trace.write_text("0,100\n1,100\n")
    own.write_text(
        'system = "zmq"\nclient = "pyzmq"\ntable = "fixed"\nsweep = {clients = [2], duration_s = 0.5}\n'
        f'load = {{shape = "recorded", file = "{trace}"}}\nsettings.rate = 100\nwarmup_s = 0\n'
    )
    words = ("run", own, "--config", cluster, "--master", "toy://sent", "--mark", "flag", "--out", run)
    done = hydra(*words, "--fail-if", "total_tx > 0", expect=3, PYTHONPATH=str(package))
    (row,) = table(run)
    assert_all_arrived(row, 50)
    assert done.stdout.strip() == (run / "table.md").read_text().strip()
    assert "--fail-if: " in done.stderr
    assert (run / "toy.log").read_text().startswith("flag: ")
    with RunStore.open(run) as store:
        assert store.meta("master", "") == "toy://there"
        assert store.meta("command_line", "") == shlex.join(map(str, ("hydra", *words, "--fail-if", "total_tx > 0")))
        assert store.meta("scenario")["load"]["file"] == str(trace)


FIXED = shlex.join(map(str, ("zmqfixed", *SMALL)))


@pytest.mark.tier("all")
@pytest.mark.parametrize(
    ("words", "code", "made"),
    [
        (("slo", "zmqfixed", *SMALL, "--p50", "20s"), 3, "slo.json"),
        (("compare", "--run", FIXED, "--run", f"{FIXED} --burst 1", "--repeat", 2), 0, "zmqfixed-2/run.db"),
    ],
)
def test_so_is_every_kind_of_command(
    package: Path, tmp_path: Path, words: Sequence[object], code: int, made: str
) -> None:
    hydra(*words, "--master", "toy://sent", "--out", tmp_path / "run", expect=code, PYTHONPATH=str(package))
    assert (tmp_path / "run" / made).is_file()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((*RUN, "--rate", "-5"), "--rate"),
        ((*RUN, "--fail-if", "nonsense > 1"), "nonsense"),
        ((*COMPARED, "--fail-if", "nonsense > 1"), "nonsense"),
        ((*RUN, "--mark", "m", "--out", "{here}"), "already holds a run"),
        ((*COMPARED, "--out", "{here}"), "already holds a run"),
        (("kafka-perf", "--resume", "{here}"), "{here}"),
        (("slo", "zmqfixed", "--clients", "2"), "no objective is set"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_asked(
    obeyed: Obeyed, tmp_path: Path, words: Sequence[str], expected: str
) -> None:
    (tmp_path / "run.db").touch()
    words = [word.format(here=tmp_path) for word in words]
    code, text, refused = obeyed(*words, "--master", "toy://elsewhere")
    assert (code, text) == (2, "")
    assert expected.format(here=tmp_path) in refused


def test_its_secret_is_hidden_where_it_cannot_run_a_command_elsewhere(
    monkeypatch: pytest.MonkeyPatch, obeyed: Obeyed
) -> None:
    monkeypatch.setenv("TOY_PASSWORD", "geheim")
    assert obeyed(*RUN, "--master", "toy://refused") == (1, "", "hydra: nobody else takes ***; run it here\n")


def test_what_runs_have_left_on_it_is_listed_and_ended() -> None:
    assert output_of("ps", "--master", "toy://untidy", "--room", "attic").split()[-3:] == ["old", "2", "attic"]
    as_json = output_of("ps", "--engine", "toy://untidy", "--json")
    assert json.loads(as_json) == [{"run": "old", "groups": 2, "room": "nursery"}]
    tidy = CliRunner().invoke(cli, ["ps", "--master", "toy"])
    none = "the cluster of --master toy knows no run of Hydra's; --room names another part of the cluster\n"
    assert (tidy.exit_code, tidy.output) == (0, none)
    ended = output_of("kill", "old", "--master", "toy://untidy", "--room", "attic")
    assert ended == "ended group 1 in attic\nended group 2 in attic\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["kill", "old", "--master", "toy"], "no run 'old'; hydra ps --master toy lists them"),
        (["ps", "--master", "local"], "runs on --master local leave nothing behind, .* name .*, or toy://ANYTHING;"),
        (["kill", "old", "--master", "local"], "so there is nothing for hydra kill"),
        (["ps", "--master", "host:5050", "--room", "x"], "--room is for another --master: toy://ANYTHING"),
    ],
)
def test_what_is_not_left_is_not_ended(words: list[str], expected: str) -> None:
    done = CliRunner().invoke(cli, words)
    assert isinstance(done.exception, UsageError)
    assert re.search(expected, str(done.exception))


@pytest.fixture
def with_engines(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has these engines installed, and none of their packages has entry points for commands."""

    def install(**known: EngineSpec) -> None:
        for module in ("options.plugin_commands", "options.engine_choice", "config.cluster"):
            monkeypatch.setattr(f"hydra.{module}.engines", lambda: known)
        monkeypatch.setattr(plugins, "without_commands", lambda: list(known))

    return install


def options(*flags: str) -> list[click.Parameter]:
    return [click.Option([flag, "sets"] if flag == "--set" else [flag]) for flag in flags]


def names(command: click.Command) -> list[str | None]:
    """Its flags, once those of engines have been added twice."""
    for _ in range(2):
        plugin_commands.add_flags(command, click.Context(command))
    return [param.name for param in command.params]


def test_an_engine_that_brings_a_command_twice_is_refused(with_engines: Callable[..., None]) -> None:
    command = click.Command("toy-settings")
    with_engines(toy=toy_engine.SPEC, other=replace(toy_engine.SPEC, name="other", commands=(command,)))
    with pytest.raises(ConfigError, match="other adds the command toy-settings, which exists already"):
        plugin_commands.commands({})


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        (["--resume"], "adds the flag --resume of hydra run, which exists already"),
        (["--other", "out"], "adds the flag --other of hydra run, which exists"),
    ],
)
def test_an_engine_that_takes_a_flag_twice_is_refused(
    with_engines: Callable[..., None], flag: list[str], expected: str
) -> None:
    with_engines(
        toy=toy_engine.SPEC,
        other=replace(toy_engine.SPEC, flags=replace(toy_engine.SPEC.flags, groups=(click.Option(flag),))),
    )
    with pytest.raises(ConfigError, match=expected):
        names(click.Command("run", params=options("--master", "--set", "--resume", "--out")))


def test_engines_may_have_a_flag_in_common(with_engines: Callable[..., None]) -> None:
    other = replace(
        toy_engine.SPEC,
        name="other",
        flags=replace(toy_engine.SPEC.flags, groups=(click.Option(["--mark"]),)),
        commands=(),
    )
    with_engines(other=other, toy=toy_engine.SPEC)
    run = click.Command("run", params=options("--master", "--set", "--resume"))
    assert names(run) == ["master", "sets", "resume", "room", "mark", "most"]
    for master in ("other", "toy"):
        assert choose(master, None, {"mark": "x"}).settings.mark == "x"


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ([], []),
        (["--resume", "--set"], []),
        (["--master"], ["room"]),
        (["--master", "--set"], ["room", "mark"]),
        (["--master", "--set", "--resume"], ["room", "mark", "most"]),
    ],
)
def test_a_command_has_those_of_its_flags_that_make_sense_there_once(
    with_engines: Callable[..., None], own: list[str], added: list[str]
) -> None:
    with_engines(toy=toy_engine.SPEC)
    found = names(click.Command("any", params=options(*own)))
    assert found == [*(option.name for option in options(*own)), *added]


@pytest.mark.parametrize(
    ("commands", "added"),
    [
        ("agents ps kill", {"room"}),
        ("check", {"room", "mark"}),
        ("run slo zmqfixed kafka-perf", {"room", "mark", "most"}),
        ("artifact plan", set()),
    ],
)
def test_hydras_commands_have_its_flags(commands: str, added: set[str]) -> None:
    for command in commands.split():
        text = output_of(command, "--help")
        assert {name for name in ("room", "mark", "most") if f"--{name} " in text} == added, command


def test_its_command_is_one_of_hydras(with_engines: Callable[..., None]) -> None:
    run, look = click.Command("run"), click.Command("look")
    with_engines(toy=toy_engine.SPEC)
    assert {"run", "look", "toy-settings"} < set(plugin_commands.commands({"run": run, "look": look}))
