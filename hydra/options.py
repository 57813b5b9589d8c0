"""The kit of which commands are made: types of flags, the flags that commands share, and how they replace keys.

A flag that replaces a key of the scenario names it (:func:`keyed`); nothing else has to know the flag.

``hydra --help`` imports every module that defines a command, so these import little: click and this one. A flag that
takes more is a function that imports it, for flags are made when their command is used (:class:`LateCommand`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, get_args

import click

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


class Amount(click.ParamType[float]):
    """A number with a unit: ``64GB``.

    Args:
        units: how much each is; one of them has to be named.
    """

    def __init__(self, units: Mapping[str, float]) -> None:
        self.name = f"N{next(iter(units))}"
        self._units = units

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The amount; fails with one line where it is none."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        unit = next((unit for unit in sorted(self._units, key=len, reverse=True) if text.endswith(unit)), None)
        try:
            amount = float(text.removesuffix(unit or "")) * self._units[unit or ""]
        except (ValueError, KeyError):
            amount = 0.0
        if not isfinite(amount) or amount <= 0:
            self.fail(f"{value!r} is not a number above 0 with a unit: {', '.join(self._units)}", param, ctx)
        return amount


MEMORY = Amount({"GB": 1e9, "MB": 1e6, "TB": 1e12, "GiB": 2.0**30, "MiB": 2.0**20, "TiB": 2.0**40})
"""Bytes."""
BANDWIDTH = Amount({"Gbit": 1e9 / 8, "Mbit": 1e6 / 8})
"""Bytes/s."""


class Duration(click.ParamType[float]):
    """A time with its unit: ``20ms``, ``90s``, ``1h``.

    Args:
        unit: that of what comes out, and of a number without one; of :data:`UNITS`.
    """

    name = "TIME"

    def __init__(self, unit: str) -> None:
        self._unit = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The time in its unit; fails with one line where it is none."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        unit = next((u for u in sorted(UNITS, key=len, reverse=True) if text.endswith(u)), "")
        try:
            number = float(text.removesuffix(unit))
        except ValueError:
            number = -1.0
        if not isfinite(number) or number < 0:
            self.fail(f"{value!r} is no time like {' or '.join(f'20{u}' for u in UNITS)}", param, ctx)
        return number * UNITS[unit or self._unit] / UNITS[self._unit]


class Listening(click.ParamType[tuple[str, int]]):
    """An address for Prometheus: ``:9464`` and ``9464`` are this machine's own, which nobody else reaches."""

    name = "[HOST]:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Host and port; fails with one line where it is no address, or nobody can listen there."""
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (port.isascii() and port.isdigit() and int(port) < 65536) or any(c in host for c in "/@ []"):
            self.fail(f"{value!r} is no address like :9464 or 0.0.0.0:9464", param, ctx)
        from hydra.metrics.refusal import refuse_address, refuse_missing

        found = host or "127.0.0.1", int(port)
        refuse_missing("--prometheus", "prometheus_client")
        refuse_address(*found)
        return found


class OtlpUrl(click.ParamType[str]):
    """The address of an OpenTelemetry receiver."""

    name = "URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The address; fails with one line where it is none."""
        from urllib.parse import urlsplit

        text = str(value).strip()
        try:
            parts = urlsplit(text)
            known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and " " not in text
        except ValueError:
            known = False
        if not known:
            self.fail(f"{value!r} is no address like http://localhost:4318", param, ctx)
        from hydra.metrics.refusal import refuse_missing

        refuse_missing("--otlp", "opentelemetry.sdk")
        return text


UNITS: Final[Mapping[str, float]] = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""Of times, in seconds."""

COUNTS = Counts()
RATE = RateType()
PERCENT = Percent()
WORD = Word()
PATH = FilePath(path_type=Path)


class LateCommand(click.Command):
    """A command whose flags are made when it is used, and not when it is listed.

    Args:
        flags: adds them.
    """

    def __init__(self, *args: Any, flags: Callable[[click.Command], object], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._flags: Callable[[click.Command], object] | None = flags

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All of them, made by now."""
        if self._flags is not None:
            make, self._flags = self._flags, None
            make(self)
            self.params.reverse()  # decorators add the last one first
        return super().get_params(ctx)


def late_command(name: str, *options: Callable[[_F], _F]) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a :class:`LateCommand` of a function, whose docstring is the command's help.

    Args:
        name: the command's.
        options: its arguments and flags.
    """
    return click.command(name, cls=LateCommand, flags=flags(*options))


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
    from hydra.config.toml import parse_set

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


class Runs(NamedTuple):
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
        return late_command(name, *options, sweep_flags, comparing_flags, run_flags)(callback)

    return decorate


def experiment_command(
    name: str, system: str, *options: Callable[[_F], _F], one: str = ""
) -> Callable[[Callable[..., Mapping[str, object] | None]], click.Command]:
    """Makes a command that runs published experiments of a function; see :func:`scenario_command`.

    The flags that these experiments have of their own are its flags.

    Args:
        name: the command's.
        system: whose experiments (``SystemSpec.experiments``).
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
        own = _flags_of_experiments(system, one)
        return late_command(name, *named, *options, experiment_flags, run_flags, own)(callback)

    return decorate


def _flags_of_experiments(system: str, one: str) -> Callable[[_F], _F]:
    """The own flags of a system's experiments, or of one of them, each once by its name."""

    def decorate(command: _F) -> _F:
        from hydra import plugins

        known = [each for each in plugins.system(system).experiments if one in ("", each.name)]
        options = {option.name: option for each in known for option in each.options}
        command.params += reversed(options.values())  # type: ignore[attr-defined]  # of a LateCommand
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
"""Its help is what the engines say (``hydra.run.contributed.add_flags``)."""

KEY_VALUE: Final = "KEY=VALUE"
"""The metavar of flags behind whose key a secret may stand."""
SET: Final = "--set"

set_flag = click.option(SET, "sets", multiple=True, metavar=KEY_VALUE, help="Replace any key of the scenario.")


def _fail_if_flag(command: _F) -> _F:
    from hydra.columns.names import LOSS

    about = f"Exit with 3 if this is true of a row, such as '{LOSS} > 0.5'; any column of numbers can be compared."
    return click.option("--fail-if", "fail_if", multiple=True, metavar="EXPR", help=about)(command)


run_flags = flags(
    click.option("--out", type=PATH, help="Run directory to make (default: runs/NAME-TIME)."),
    click.option("--config", type=PATH, help="Cluster file (default: conf/hydra.toml)."),
    master_flag,
    set_flag,
    click.option("--resume", type=PATH, metavar="DIR", help="Go on with the run in DIR."),
    keyed(
        "--repeat", key="sweep.repeat", type=int, metavar="N", help="Measure each row N times: mean and 95 % interval."
    ),
    _fail_if_flag,
    click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON instead of the table."),
    click.option("--quiet", is_flag=True, help="Print warnings and the table only."),
    click.option(
        "--prometheus", type=Listening(), help="Serve figures for Prometheus there (:PORT: this machine only)."
    ),
    click.option("--otlp", type=OtlpUrl(), help="Send figures to the OpenTelemetry receiver at URL (OTLP over HTTP)."),
    click.option("--plain", is_flag=True, help="Print plain lines instead of the live view of a terminal."),
)
"""Flags of every command that runs a scenario; those of engines are added by ``hydra.run.contributed.add_flags``."""


def _payload_flag(command: _F) -> _F:
    from hydra.model import Payload

    about = "What follows the header: zeros, random bytes, JSON records, or the lines of a file."
    kind = click.Choice(get_args(Payload))
    return keyed("--payload", key="settings.payload", type=kind, help=about)(command)


sweep_flags = flags(
    keyed("--clients", key="sweep.clients", type=COUNTS, help="Subscriber counts."),
    keyed(
        "--message-size",
        key="settings.message_size",
        type=int,
        metavar="BYTES",
        help="Bytes of a message, its 24-byte header included.",
    ),
    _payload_flag,
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

comparing_flags = flags(
    click.option(
        "--compare-implementations",
        "compared",
        type=WORD,
        metavar="A,B,…",
        help="Measure each of these implementations in turn, and compare them with the first: see hydra compare.",
    ),
    click.option(
        "--interleave/--no-interleave",
        default=None,
        help="Whether their repeats take turns (default), or one is measured after the other.",
    ),
)
"""Flags of every command that runs a scenario, and no experiment."""

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


def _load_flag(command: _F) -> _F:
    from hydra.model import LoadShape

    kind = click.Choice(get_args(LoadShape))
    return keyed("--load", key="load.shape", type=kind, help="How the rate changes; [load] has the details.")(command)


slo_flags = flags(
    keyed("--rate", key="settings.rate", type=RATE, help="Messages per second of each publisher, at most."),
    keyed("--clients", key="sweep.clients", type=COUNTS, help="How many subscribers."),
    keyed("--publishers", key="publishers", type=int, metavar="N", help="How many publish, each at the rate."),
    keyed("--duration", key="sweep.duration_s", type=Duration("s"), help="How long, such as 90s, 10min or 1h."),
    _load_flag,
    *(
        keyed(f"--{name}", key=f"slo.{name}_ms", type=Duration("ms"), help=f"{what} of the latency at most, like 20ms.")
        for name, what in (
            ("p50", "The median"),
            ("p90", "The 90th percentile"),
            ("p99", "The 99th percentile"),
            ("p999", "The 99.9th percentile"),
            ("max", "The highest"),
        )
    ),
    keyed("--loss", key="slo.loss_pct", type=Finite(min=0), metavar="PERCENT", help="Lost messages at most."),
    keyed(
        "--recovery",
        key="slo.recovery_s",
        type=Duration("s"),
        help="How soon after each event everything is to be good again.",
    ),
)
"""Flags of the command that asks whether a workload holds."""

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
