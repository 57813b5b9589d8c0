"""The ``hydra`` command: parse, call, print."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from datetime import datetime
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, NoReturn

import click
from tabulate import tabulate

from hydra.cluster.mesos.engine import end_run, leftovers
from hydra.cluster.resources import format_resources
from hydra.config.scenario import load_cluster, load_mesos, load_scenario
from hydra.errors import EXIT_FAILED, EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_USAGE, HydraError, UsageError
from hydra.jupyter.command import write_report
from hydra.kafkatest.commands import broker, kafka_clean
from hydra.limits import machine
from hydra.limits.machine import raise_soft_limits
from hydra.limits.report import check_all, needs_line
from hydra.options import (
    COUNTS,
    PATH,
    RATE,
    WORD,
    kafka_flags,
    master_flag,
    native_flags,
    native_zmq_flags,
    overrides,
    packing_flag,
    run_flags,
    search_flags,
    sweep_flags,
    zmq_flags,
)
from hydra.results.catalog import catalog
from hydra.results.conditions import columns, met, parse
from hydra.results.store import CLIENTS_KEY
from hydra.results.tables import json_text, markdown
from hydra.run import launcher
from hydra.run.interrupts import interrupt_on_the_first
from hydra.run.redaction import Redactor
from hydra.run.resume import scenario_of
from hydra.sweep import for_scenario


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hydra-scale", prog_name="hydra")
def cli() -> None:
    """Find out how a publish-subscribe system behaves as the number of its clients grows."""


def _run(scenario: str | Path, flags: dict[str, Any], more: dict[str, object] | None = None) -> None:
    """Runs a scenario with these flags, prints its table and exits with the run's code."""
    replaced = overrides(flags, flags["sets"]) | (more or {})
    resumed: Path | None = flags["resume"]
    if resumed is not None and flags["out"] is not None:
        raise UsageError("--resume and --out name two run directories", "leave out --out")
    for flag in ("advertise", "artifact"):
        if flags[flag] is not None and flags["master"] == launcher.LOCAL:
            raise UsageError(
                f"--{flag} is for the agents of a Mesos master", f"name it with --master, or leave out --{flag}"
            )
    loaded = scenario_of(resumed, scenario, replaced) if resumed else load_scenario(scenario, replaced)
    conditions = [parse(text, columns(loaded)) for text in flags["fail_if"]]
    fresh = Path("runs") / f"{loaded.name}-{datetime.now():%Y%m%d-%H%M%S}"  # local time
    order = launcher.Order(
        master=flags["master"],
        out=resumed or flags["out"] or fresh,
        command_line=["hydra", *sys.argv[1:]],
        overrides=replaced,
        resume=resumed is not None,
        quiet=flags["quiet"],
        mesos=load_mesos(flags["config"], {key: flags[key] for key in ("advertise", "artifact")}),
    )
    code, store = launcher.launch(loaded, load_cluster(flags["config"]), order)
    with store:
        rows, clients = for_scenario(loaded).rows(store.results()), store.meta(CLIENTS_KEY, [])
    click.echo(json_text(loaded, rows) if flags["as_json"] else markdown(loaded, rows, clients))
    for line in met(conditions, rows):
        click.echo(f"--fail-if: {line}", err=True)
        code = code or EXIT_INCOMPLETE
    sys.exit(code)


@cli.command()
@zmq_flags
@native_flags
@native_zmq_flags
@sweep_flags
@run_flags
@click.option("--sndhwm", "sndhwms", type=COUNTS, help="High-water marks to search at; 0 is unbounded.")
@click.option("--step-seconds", "duration", type=float, metavar="SECONDS", help="Length of a step (default: 60).")
@search_flags
@click.option("--loss-target", type=float, metavar="PERCENT", help="Loss below which a rate passes (default: 0.5).")
@click.option("--no-flaky", is_flag=True, help="Leave out the slow and the reconnecting clients.")
def zmqrate(**flags: Any) -> None:
    """The highest rates that raw ZMQ PUB/SUB carries, by client count."""
    more: dict[str, object] = {}
    if flags["loss_target"] is not None:
        more["sweep.search.loss_target"] = flags["loss_target"] / 100
    marks = flags["sndhwms"] or []
    if len(marks) == 1:
        more["settings.sndhwm"] = marks[0]
    elif marks:
        # The original's table of its C++ clients, and one column more.
        more |= {"sweep.search.sndhwms": marks, "sweep.search.series": ["max_rate", "loss", "nodrop"]}
    if flags["no_flaky"]:
        more["sweep.search.series"] = ["max_rate", "loss", *(["nodrop"] if len(marks) > 1 else [])]
    _run("zmqrate", flags, more)


@cli.command()
@zmq_flags
@native_flags
@native_zmq_flags
@sweep_flags
@run_flags
@click.option("--sndhwm", type=int, help="The publisher's high-water mark in messages; 0 is unbounded.")
@click.option("--rate", type=RATE, help="Messages per second, or max.")
@click.option("--duration", type=float, metavar="SECONDS", help="Length of a step.")
def zmqfixed(**flags: Any) -> None:
    """Raw ZMQ PUB/SUB at a fixed rate, by client count."""
    _run("zmqfixed", flags)


@cli.command("kafka-batch")
@kafka_flags
@native_flags
@sweep_flags
@run_flags
@click.option("--rate", type=RATE, help="Messages per second, or max.")
@click.option("--msg-batch", type=COUNTS, help="Messages per batch to try.")
@click.option("--linger-ms", type=float, help="How long the producer waits for a batch to fill.")
def kafka_batch(**flags: Any) -> None:
    """Kafka's throughput by client count and producer batch."""
    _run("kafka-batch", flags)


@cli.command("kafka-fixed")
@kafka_flags
@native_flags
@sweep_flags
@run_flags
@click.option("--rate", type=RATE, help="Messages per second, or max (default: 10000).")
@click.option("--msg-batch", type=int, help="Messages per batch (default: 1000).")
@click.option("--linger-ms", type=float, help="How long the producer waits for a batch to fill (default: 10).")
def kafka_fixed(**flags: Any) -> None:
    """Kafka at a fixed rate, by client count."""
    _run("kafka-fixed", flags)


@cli.command("kafka-rate")
@kafka_flags
@native_flags
@sweep_flags
@run_flags
@search_flags
@click.option("--msg-batch", type=int, help="Messages per batch (default: 1000).")
@click.option("--linger-ms", type=float, help="How long the producer waits for a batch to fill (default: 10).")
def kafka_rate(**flags: Any) -> None:
    """The highest rate that Kafka carries without any drop, by client count."""
    _run("kafka-rate", flags)


@cli.command("run")
@run_flags
@click.argument("scenario")
def run_scenario(scenario: str, **flags: Any) -> None:
    """Run any scenario: a name from conf/scenarios or a TOML file."""
    _run(scenario, flags)


@cli.command()
@click.argument("run", type=PATH)
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser, too.")
def report(run: Path, opened: bool) -> None:
    """Write report.ipynb and report.html into the run directory RUN."""
    paths = write_report(run)
    click.echo("\n".join(map(str, paths)))
    if opened:
        click.launch(str(paths[-1]))


@cli.command()
@click.argument("folder", type=PATH, default=Path("runs"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def runs(folder: Path, as_json: bool) -> None:
    """List the run directories in FOLDER (default: runs), newest first, with how each ended and why."""
    entries = catalog(folder)
    # A line of a terminal has room for the beginning of a reason; JSON has all of it.
    short = [{**entry, "why": shorten(entry["why"], 72, placeholder=" …")} for entry in entries]
    click.echo(json.dumps(entries, indent=2) if as_json else tabulate(short, headers="keys"))


@cli.command()
@click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
@master_flag
@click.option("--for", "scenario", type=WORD, metavar="SCENARIO", help="Say also which of its roles could run on each.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def agents(config: Path | None, master: str, scenario: str | None, as_json: bool) -> None:
    """List the cluster's agents with their attributes and free resources."""
    required = load_scenario(scenario) if scenario else None
    rows = [
        {
            "agent": a.id,
            "hostname": a.hostname,
            "attributes": ";".join(f"{k}:{v}" for k, v in a.attributes.items()),
            "resources": format_resources(a.resources),
            **({"could run": ", ".join(launcher.roles_on(a, required))} if required else {}),
        }
        for a in launcher.agents(load_cluster(config), master, load_mesos(config))
    ]
    click.echo(json.dumps(rows, indent=2) if as_json else tabulate(rows, headers="keys"))


@cli.command()
@click.argument("scenario", default="zmqrate")
@click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
@click.option("--clients", type=COUNTS, help="Client counts to check (default: the scenario's).")
@click.option("--client", help="Client implementation.")
@packing_flag
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Replace any key of the scenario.")
def check(scenario: str, config: Path | None, **flags: Any) -> None:
    """Say what a scenario needs of this machine, and the command that removes each shortage.

    Exit code 3 if some row does not fit.
    """
    loaded = load_scenario(scenario, overrides(flags, flags["sets"]))
    launcher.system_for(loaded).program("subscriber")
    raise_soft_limits()
    rows = check_all(loaded, load_cluster(config), machine.read())
    click.echo(tabulate([needs_line(row) for row in rows], headers="keys", floatfmt=".1f"))
    # The largest row asks for the most: its lines mend the others too.
    for shortage in rows[-1].shortages:
        click.echo(str(shortage))
    sys.exit(EXIT_GOOD if all(row.fits for row in rows) else EXIT_INCOMPLETE)


@cli.command()
@click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
@click.option("--master", type=WORD, required=True, help="The address of a Mesos master.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ps(config: Path | None, master: str, as_json: bool) -> None:
    """List the runs that a Mesos master still knows, and their tasks."""
    rows = leftovers(load_mesos(config), master)
    click.echo(json.dumps(rows, indent=2) if as_json else tabulate(rows, headers="keys"))


@cli.command()
@click.argument("run", type=WORD)
@click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml).")
@click.option("--master", type=WORD, required=True, help="The address of a Mesos master.")
def kill(run: str, config: Path | None, master: str) -> None:
    """End what is left of RUN on a Mesos cluster: its framework and all its tasks."""
    for framework in end_run(load_mesos(config), master, run):
        click.echo(f"ended {framework}")


@cli.command()
@click.argument("scenario", default="zmqrate")
@click.option("--client", help="Client implementation.")
@click.option(
    "--bootstrap", type=WORD, metavar="HOST:PORT", help="As in the run: with a cluster of yours, no broker is in it."
)
def artifact(scenario: str, **flags: Any) -> None:
    """Make the archive that agents need for SCENARIO, for serving it yourself (--artifact)."""
    loaded = load_scenario(scenario, overrides(flags, ()))
    made = launcher.archive(launcher.system_for(loaded, is_local=False))
    click.echo(f"{made.path}\nsha256 {made.sha256}")


cli.add_command(broker)
cli.add_command(kafka_clean)


def main() -> None:
    """Runs the command; what goes wrong is one line on standard error and an exit code."""
    interrupt_on_the_first()
    try:
        for number, word in enumerate(sys.argv):
            if not word.isascii() and any("\ud800" <= c <= "\udfff" for c in word):
                raise UsageError(f"argument {number} is not UTF-8", "set the terminal to UTF-8")
        cli(standalone_mode=False)
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except click.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as e:
        # One line instead of click's usage block: what, where, what to try.
        where = f"hydra {e.ctx.info_name}" if isinstance(e, click.UsageError) and e.ctx and e.ctx.parent else "hydra"
        if not sys.argv[1:] or e.format_message().startswith("Usage:"):  # a command alone, which asks for its help
            click.echo(e.format_message(), err=True)
            sys.exit(e.exit_code)
        _leave(f"{where}: {e.format_message()} (see {where} --help)", e.exit_code)
    except HydraError as e:
        _leave(f"hydra: {e}", e.exit_code)
    except BrokenPipeError:
        # Whoever read our output has gone; nothing can be said to them any more.
        _drop_output()
        sys.exit(EXIT_FAILED)
    except OSError as e:
        if e.errno is None or e.errno not in (_REMEDIES if e.filename else _FULL):
            raise
        what = f"{e.filename}: {e.strerror}"
        if not e.filename:
            _drop_output()
            what = f"cannot write: {e.strerror}"
        _leave(f"hydra: {what}; {_REMEDIES[e.errno]}", EXIT_USAGE)


_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What happens to output as well, which has no file's name."""

_REMEDIES: Final = {
    **dict.fromkeys(_FULL, "free some space, raise ulimit -f, or write elsewhere"),
    errno.EACCES: "check the permissions, or name another place",
    errno.EPERM: "check the permissions, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "check that the folder exists and can be written",
    errno.ENOTDIR: "a part of it is no folder: name another place",
    errno.EISDIR: "name a file, not a folder",
    errno.ELOOP: "its symbolic links lead in a circle: name another place",
}
"""What the user can do about files that cannot be read or written, by the kernel's error."""


_LINE: Final = 800
"""Characters of an error at most: what the user gave may be a file."""


def _leave(text: str, code: int) -> NoReturn:
    """Ends with one line, in which no secret of the command line is repeated."""
    text = Redactor.of_command(sys.argv).text(text)
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(line) > _LINE:
        line = f"{line[: _LINE // 2]} … {line[-_LINE // 2 :]}"
    with contextlib.suppress(OSError):  # nobody reads it
        click.echo(line, err=True)
    sys.exit(code)


def _drop_output() -> None:
    """Standard output leads nowhere from now on: what is left in its buffer could not be written at the end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
