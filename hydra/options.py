"""The kit of which commands are made: types of flags, the flags that commands share, and how they replace keys.

A flag that replaces a key of the scenario names it (:func:`keyed`); nothing else has to know the flag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import click

from hydra.columns.names import LOSS
from hydra.config.toml import parse_set
from hydra.model import Payload
from hydra.system import Experiment

_F = TypeVar("_F", bound=Callable[..., Any])


class Counts(click.ParamType[list[int]]):
    """Whole numbers with commas between them: ``30,60,120``."""

    name = "N,N,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers as a list; fails with one line where it is none."""
        if isinstance(value, list):
            return value
        try:
            numbers = [int(part) for part in str(value).split(",")]
        except ValueError:
            numbers = []
        if not numbers or any(n < 0 for n in numbers):
            self.fail(f"{value!r} is not a list of whole numbers like 30,60,120", param, ctx)
        return numbers


class Word(click.ParamType[str]):
    """Text that is not empty."""

    name = "TEXT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text; fails with one line where there is none."""
        if not str(value).strip():
            self.fail("it is empty", param, ctx)
        return value


class FilePath(click.Path):
    """A path that is not empty: that would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails with one line where it is empty."""
        return super().convert(WORD.convert(str(value), param, ctx), param, ctx)


class RateType(click.ParamType[float | str]):
    """Messages per second, or ``max``."""

    name = "RATE|max"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The rate; fails with one line where it is none."""
        if value == "max" or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither messages per second nor max", param, ctx)


class Percent(click.types.FloatParamType):
    """A fraction that is written in percent."""

    name = "PERCENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The fraction; fails with one line where it is no number."""
        return super().convert(value, param, ctx) / 100


class Finite(click.FloatRange):
    """A number in a range, and neither nan nor infinite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; fails with one line where it is none."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


COUNTS = Counts()
RATE = RateType()
PERCENT = Percent()
WORD = Word()
PATH = FilePath(path_type=Path)


class Keyed(click.Option):
    """An option whose value replaces the value of a scenario's key.

    Args:
        key: the dotted key.
    """

    def __init__(self, *args: Any, key: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.key = key


def keyed(*names: str, key: str, **attributes: Any) -> Callable[[_F], _F]:
    """A flag that replaces the value of a scenario's key; the rest is as for ``click.option``."""
    return click.option(*names, cls=Keyed, key=key, **attributes)


def flags(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Several flags as one decorator, in this order."""

    def decorate(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def overrides(more: Mapping[str, object] | None = None) -> dict[str, object]:
    """Dotted keys and values from the flags that were given to the command that runs, and from ``--set``, which wins.

    Args:
        more: what the command makes of flags that have no key.

    Raises:
        ConfigError: a ``--set`` is no KEY=VALUE.
    """
    context = click.get_current_context()
    options = [param for param in context.command.params if isinstance(param, Keyed)]
    given = {option.key: context.params[str(option.name)] for option in options}
    result = {key: value for key, value in given.items() if value is not None} | dict(more or {})
    for text in context.params.get("sets", ()):
        key, value = parse_set(text)
        # Last, for it may be a part of what another flag has set.
        result.pop(key, None)
        result[key] = value
    return result


@dataclass(frozen=True, slots=True)
class Runs:
    """What commands of systems, which know nothing of runs, have done for them: the object of a command's context.

    Attributes:
        scenario: runs a scenario with these overrides and the values of ``run_flags``.
        experiment: runs the experiment of this name ("": the one that is resumed) of this system, likewise; the values
            are those of ``experiment_flags`` as well.
        experiments: prints the experiments of this system, as JSON or as a table.
        presets: prints the presets of this system, likewise.
    """

    scenario: Callable[[str | Path, Mapping[str, object], Mapping[str, Any]], None]
    experiment: Callable[[str, str, Mapping[str, object], Mapping[str, Any]], None]
    experiments: Callable[[str, bool], None]
    presets: Callable[[str, bool], None]


def scenario_command(
    name: str, scenario: str | Path, *options: Callable[[_F], _F]
) -> Callable[[Callable[..., Mapping[str, object] | None]], click.Command]:
    """Makes a command that runs a scenario of a function, whose docstring is the command's help.

    The function gets the flags that were given, and returns what it makes of those without a key.

    Args:
        name: the command's.
        scenario: a scenario's name or path.
        options: flags of its own, beside those of every scenario.
    """

    def decorate(function: Callable[..., Mapping[str, object] | None]) -> click.Command:
        def callback(**values: Any) -> None:
            runs: Runs = click.get_current_context().obj
            runs.scenario(scenario, overrides(function(**values)), values)

        callback.__doc__ = function.__doc__
        return click.command(name)(flags(*options, sweep_flags, run_flags)(callback))  # type: ignore[arg-type]

    return decorate


def experiment_command(
    name: str, system: str, experiments: Sequence[Experiment], *options: Callable[[_F], _F], one: str = ""
) -> Callable[[Callable[..., Mapping[str, object] | None]], click.Command]:
    """Makes a command that runs published experiments of a function; see :func:`scenario_command`.

    Args:
        name: the command's.
        system: whose experiments.
        experiments: those that it can run; their own flags are its flags.
        options: flags of its own.
        one: the experiment that it runs; "": the one that the user names.
    """

    def decorate(function: Callable[..., Mapping[str, object] | None]) -> click.Command:
        def callback(experiment: str = one, listed: str = "", **values: Any) -> None:
            runs: Runs = click.get_current_context().obj
            if listed:
                (runs.presets if listed == "presets" else runs.experiments)(system, values["as_json"])
            else:
                runs.experiment(system, experiment or "", overrides(function(**values)), values)

        callback.__doc__ = function.__doc__
        named = [] if one else [_name_argument, _list_flag, _presets_flag]
        command = click.command(name)(flags(*named, *options, experiment_flags, run_flags)(callback))  # type: ignore[arg-type]
        known = {option.name: option for each in experiments for option in each.options}
        command.params += known.values()
        return command

    return decorate


class _Several(click.Choice[str]):
    """One or more of the names, with commas in between."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return ",".join(super(_Several, self).convert(name, param, ctx) for name in str(value).split(","))


def implementations_flag(names: Sequence[str]) -> Callable[[_F], _F]:
    """``--implementation`` of an experiment: one of the names or several."""
    about = "Client implementation; several, with commas, one after the other in one table."
    return keyed("--implementation", "--client", "client", key="client", type=_Several(list(names)), help=about)


def implementation_flag(names: Sequence[str] | None = None) -> Callable[[_F], _F]:
    """``--implementation``: one of the names, or any where the system is not known before."""
    kind = click.Choice(list(names)) if names else WORD
    return keyed("--implementation", "--client", "client", key="client", type=kind, help="Client implementation.")


master_flag = click.option("--master", type=WORD, default="local", show_default=True)
"""Its help is what the engines say (``hydra.run.contributed.complete``)."""

KEY_VALUE: Final = "KEY=VALUE"
"""The metavar of flags behind whose key a secret may stand."""
SET: Final = "--set"

set_flag = click.option(SET, "sets", multiple=True, metavar=KEY_VALUE, help="Replace any key of the scenario.")

run_flags = flags(
    click.option("--out", type=PATH, help="Run directory to make (default: runs/NAME-TIME)."),
    click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml)."),
    master_flag,
    set_flag,
    click.option("--resume", type=PATH, metavar="DIR", help="Go on with the run in DIR."),
    keyed(
        "--repeat", key="sweep.repeat", type=int, metavar="N", help="Measure each row N times: mean and 95 % interval."
    ),
    click.option(
        "--fail-if",
        "fail_if",
        multiple=True,
        metavar="EXPR",
        help=f"Exit with 3 if this is true of a row, such as '{LOSS} > 0.5'; any column of numbers can be compared.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON instead of the table."),
    click.option("--quiet", is_flag=True, help="Print warnings and the table only."),
)
"""Flags of every command that runs a scenario; those of engines are added by ``hydra.run.contributed.complete``."""

sweep_flags = flags(
    keyed("--clients", key="sweep.clients", type=COUNTS, help="Subscriber counts."),
    keyed(
        "--message-size",
        key="settings.message_size",
        type=int,
        metavar="BYTES",
        help="Bytes of a message, its 24-byte header included.",
    ),
    keyed(
        "--payload",
        key="settings.payload",
        type=click.Choice(get_args(Payload)),
        help="What follows the header: zeros, random bytes, JSON records, or the lines of a file.",
    ),
    keyed(
        "--payload-ratio",
        key="settings.payload_ratio",
        type=float,
        metavar="RATIO",
        help="json: how many times smaller a compressed batch is (default: 4).",
    ),
    keyed("--payload-file", key="settings.payload_file", type=WORD, help="lines: the file, on the publishers' hosts."),
)
"""Flags of every command with a scenario of its own."""

preset_flag = keyed(
    "--preset",
    key="preset",
    type=WORD,
    metavar="GOAL",
    help="The settings that are recommended for a design goal; other flags go before it.",
)

experiment_flags = flags(
    click.option(
        "--scale",
        type=Finite(min=0, max=1000, min_open=True),
        metavar="X",
        help="Of the published numbers of records and lengths (default: the experiment's own); 1 is the original.",
    )
)
"""Flags of every command that runs experiments."""

_name_argument = click.argument("experiment", required=False, metavar="[NAME]", default="")
_list_flag = click.option("--list", "listed", flag_value="experiments", help="List the experiments, and run none.")
_presets_flag = click.option("--presets", "listed", flag_value="presets", help="Show what each preset sets, and why.")

rate_flag = keyed("--rate", key="settings.rate", type=RATE, help="Messages per second, or max.")
duration_flag = keyed("--duration", key="sweep.duration_s", type=float, metavar="SECONDS", help="Length of a step.")

search_flags = flags(
    keyed(
        "--start-rate",
        key="sweep.search.start_rate",
        type=float,
        metavar="RATE",
        help="Where the search for a rate begins.",
    ),
    keyed(
        "--search-width",
        key="sweep.search.width",
        type=float,
        metavar="RATIO",
        help="A search ends when the upper limit of its 95 % interval is at most this times the lower (default: 1.25).",
    ),
    keyed(
        "--search-steps",
        key="sweep.search.steps",
        type=int,
        metavar="N",
        help="Steps of a search at most (default: 60).",
    ),
)
"""Flags of the commands that search for rates."""

packing_flag = keyed(
    "--clients-per-process",
    key="native.clients_per_process",
    type=int,
    metavar="K",
    help="native: subscribers packed into one process.",
)

native_flags = flags(
    packing_flag,
    keyed(
        "--pacing",
        key="native.pacing",
        type=click.Choice(["smooth", "bursty"]),
        help="native: bursty sends by whole seconds.",
    ),
)
"""Flags of what only the native clients can do, in any system."""
