"""The ``hydra`` command: parse, call, print.

A command's modules are imported when it runs: ``hydra --help`` and errors in flags do not wait for the imports.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from hydra.cli.error_exit import FULL, REMEDIES, command_of, drop, error_text, leave
from hydra.cli.measurement_commands import RUNS
from hydra.errors import EXIT_INTERRUPTED, EXIT_UNREAD, EXIT_USAGE, INTERRUPTED_EARLY, HydraError, UsageError
from hydra.options.help import MACHINE, MORE, RESULTS, GroupedHelpCommand
from hydra.options.interrupts import hung_up, ignore_signals, interrupt_on_the_first, present
from hydra.options.late_commands import CommandPlaces
from hydra.options.plugin_commands import add_flags, commands
from hydra.options.scenario_commands import MEASURE, ScenarioCommand

_F = TypeVar("_F", bound=Callable[..., Any])

_STANDARD_ERROR: Final = 2
_COLLECTED_AFTER: Final = 10_000
"""New objects after which Python looks for garbage. What a command imports stays; to look for garbage among it after
every 700 objects, Python's default, takes 5 % of the CPU of a command that is rejected."""
_COMMANDS: Final = {
    "run": "hydra.cli.measurement_commands:run_",
    "slo": "hydra.cli.measurement_commands:slo",
    **{name: f"hydra.cli.result_commands:{name}" for name in ("report", "compare", "runs", "serve", "fit")},
    **{name: f"hydra.cli.agent_commands:{name}" for name in ("agents", "artifact", "kill", "ps")},
    "check": "hydra.cli.machine_commands:check",
    "install-completion": "hydra.cli.setup_commands:install_completion",
    "schema": "hydra.cli.setup_commands:schema",
}
"""Hydra's own commands, each imported when it is used or listed."""
SECTIONS: Final = (MEASURE, RESULTS, MACHINE, MORE)
"""The sections of the list of commands, in the order in which they are printed."""


class _UnreadError(Exception):
    """The process that read the output has ended: nothing more can be printed."""


class HydraCommand(GroupedHelpCommand, click.Group):
    """The group of all commands: Hydra's own, and those of systems and engines."""

    def make_context(self, *args: Any, **attributes: Any) -> click.Context:
        """Parses the command line; see :meth:`invoke`."""
        try:
            return super().make_context(*args, **attributes)
        except BrokenPipeError as e:
            raise _UnreadError from e

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; its exit code is not click's if nothing more can be printed."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as e:
            raise _UnreadError from e

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands in sections, each in alphabetical order."""
        known = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        found = {name: command for name, command in known if command and not command.hidden}
        width = formatter.width - 6 - max(map(len, found))
        rows: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for name, command in found.items():
            section = getattr(command, "section", "") or MORE
            rows.setdefault(section, []).append((name, command.get_short_help_str(width)))
        for section, commands_ in rows.items():
            if commands_:
                with formatter.section(section):
                    formatter.write_dl(commands_, col_max=max(map(len, found)))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """The names of all commands in alphabetical order."""
        return sorted(commands(self.commands))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # likewise
        """The command with this name; None if there is none."""
        found = commands(self.commands).get(cmd_name)
        return found() if found else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the user named, with the flags of engines and experiments added."""
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, ScenarioCommand):
            command.check_first(ctx, rest)
        if getattr(command, "section", "") == MEASURE:
            present().early = INTERRUPTED_EARLY
        if command is not None:
            add_flags(command, ctx)
        return name, command, rest


@click.group(
    cls=HydraCommand,
    commands=CommandPlaces(_COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=(
        "hydra zmq-rate --subscribers 30,120 --out runs/first",
        "hydra report runs/first",
        "hydra zmq-rate --help",
    ),
)
@click.version_option(package_name="hydra-scale", prog_name="hydra")
@click.pass_context
def cli(context: click.Context) -> None:
    """Measure how a publish-subscribe system behaves as the number of its clients grows."""
    # Commands of systems call these functions, because they do not import the code that runs scenarios.
    context.obj = RUNS


def main(command: click.Command = cli) -> None:
    """Runs the command; an error becomes one line on standard error and an exit code."""
    gc.set_threshold(_COLLECTED_AFTER)
    _open_standard_streams()
    interrupt_on_the_first()
    atexit.register(ignore_signals)  # registered first, so it is called last
    try:
        try:
            _obey(command)
        finally:
            # What could not be written stays in the buffers: Python would try again at exit, and exit with 120.
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except OSError:
                    drop(stream)
                except KeyboardInterrupt:
                    drop(stream)
                    raise
    except KeyboardInterrupt:  # Ctrl-C while another exception was handled
        sys.exit(EXIT_INTERRUPTED)
    finally:
        present().end()  # threads of libraries may still be ending
        # Otherwise Python would look for garbage among all that was imported, which takes 0.1 s after a run.
        gc.freeze()


def _open_standard_streams() -> None:
    """Leads standard input and standard error that are closed to the null device; refuses closed standard output.

    Otherwise a socket or a database would get the number of the closed file, and Hydra's output would go there.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    # Each call takes the lowest free number.
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(number, True)
    os.close(number)
    is_closed = sys.stdout is None
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(_STANDARD_ERROR, "w")
    if is_closed:
        leave("hydra: standard output is closed; leave out >&-, or write >/dev/null", EXIT_USAGE)


def _obey(command: click.Command) -> None:
    try:
        for number, word in enumerate(sys.argv):
            if not word.isascii() and any("\ud800" <= c <= "\udfff" for c in word):
                raise UsageError(f"argument {number} is not UTF-8", "set the terminal to UTF-8")
        command(standalone_mode=False)
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except click.Abort:
        if present().early:
            leave(f"hydra: {present().early}", EXIT_INTERRUPTED)
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as e:
        # One line instead of click's usage block: what, where, what to try.
        where = command_of(e)
        if not sys.argv[1:] or e.format_message().startswith("Usage:"):  # a group without a command prints its help
            click.echo(e.format_message(), err=True)
            sys.exit(e.exit_code)
        leave(f"{where}: {error_text(e, where)} (see {where} --help)", e.exit_code)
    except HydraError as e:
        _leave_at_a_limit(e)
        leave(f"hydra: {e}", e.exit_code)
    except _UnreadError:
        drop(sys.stdout)
        sys.exit(EXIT_UNREAD)
    except RuntimeError as e:
        # Python 3.11 reports an interrupt in __set_name__, while it makes a dataclass, as an error of that call.
        if not isinstance(e.__cause__, KeyboardInterrupt):
            _leave_at_a_limit(e)
            raise
        if present().early:
            leave(f"hydra: {present().early}", EXIT_INTERRUPTED)
        sys.exit(EXIT_INTERRUPTED)
    except OSError as e:
        if e.errno == errno.EIO and hung_up():
            sys.exit(EXIT_INTERRUPTED)
        if e.errno is None or e.errno not in (REMEDIES if e.filename else FULL):
            _leave_at_a_limit(e)
            raise
        what = f"{e.filename}: {e.strerror}"
        if not e.filename:
            drop(sys.stdout)
            what = f"cannot write: {e.strerror}"
        leave(f"hydra: {what}; {REMEDIES[e.errno]}", EXIT_USAGE)
    except Exception as e:
        _leave_at_a_limit(e)
        raise


def _leave_at_a_limit(error: Exception) -> None:
    """Exits with one line if a limit of this process or machine caused an error."""
    try:
        from hydra.cli.process_limits import limit_behind
    except (ImportError, OSError, MemoryError):  # no file can be opened any more, and so no module be read
        return
    if text := limit_behind(error):
        leave(f"hydra: {text}", EXIT_USAGE)


if __name__ == "__main__":
    main()
