"""The metadata stored before a run begins, and the check that a resumed run has the same scenario."""

from __future__ import annotations

import os
import platform
import resource
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.errors import ConfigError, RunDirectoryError
from hydra.model import ClusterSpec, Scenario
from hydra.store.database import RunStore
from hydra.store.redaction import HIDDEN, Redactor
from hydra.store.stored_scenario import as_stored, stored_scenario
from hydra.system import batch_of


def redacted(scenario: Scenario, redactor: Redactor) -> dict[str, Any]:
    """The stored form of a scenario, without secrets in texts of users."""
    stored = as_stored(scenario)
    tables = {name: redactor.value(table, name) for name, table in stored["tables"].items()}
    return {**stored, "description": redactor.text(scenario.description), "tables": tables}


def command_record(command_line: Sequence[str], overrides: Mapping[str, object], redactor: Redactor) -> dict[str, Any]:
    """The command line, its overrides and the time; secrets are hidden.

    Args:
        command_line: the words of the command.
        overrides: the values that the command replaced in the scenario, by dotted key.
        redactor: hides the secrets.
    """
    return {
        "command_line": shlex.join(redactor.command_line(command_line)),
        "overrides": {key: redactor.value(value, key) for key, value in overrides.items()},
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def metadata(
    name: str,
    scenario: Scenario,
    cluster: ClusterSpec,
    master: str,
    command_line: Sequence[str],
    overrides: Mapping[str, object],
    redactor: Redactor,
) -> dict[str, Any]:
    """The metadata of a run by key, as JSON values; all secrets are hidden.

    ``versions`` are those of the controller's host; clients report the versions of their libraries in their hello.

    Args:
        name: the name of the run.
        scenario: the scenario of the run.
        cluster: the agents of the local engine.
        master: the selected engine.
        command_line: the words of the command.
        overrides: the values that the command replaced in the scenario, by dotted key.
        redactor: hides the secrets.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "name": redactor.text(name),
        "scenario": redacted(scenario, redactor),
        "cluster": cluster,
        "master": redactor.text(master),
        **command_record(command_line, overrides, redactor),
        "versions": {
            "hydra": version("hydra-scale"),
            "python": platform.python_version(),
        },
        "host": {
            "name": platform.node(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "byte_order": sys.byteorder,
        },
        "limits": {"nofile_soft": soft, "nofile_hard": hard},
    }


Load = Callable[[Mapping[str, object]], ResolvedScenario]
"""Loads a scenario with the values of some keys replaced; errors as for ``resolve``."""


def scenario_of(directory: Path, name_or_path: str | Path, given: Mapping[str, object]) -> ResolvedScenario:
    """As :func:`continued`, for the scenario that a command names; settings that it does not use may be stored."""
    return continued(directory, partial(resolve, name_or_path, alone=False), given)


def continued(
    directory: Path, load: Load, given: Mapping[str, object], others: Sequence[ResolvedScenario] = ()
) -> ResolvedScenario:
    """The scenario of a resumed run: the one that it was started with, if this command agrees with it.

    Args:
        directory: the directory of the run.
        load: loads the scenario that this command names.
        given: the overrides of this command; those of the first command apply, too.
        others: the other scenarios of the command, whose secrets are hidden in the stored one, too.

    Raises:
        RunDirectoryError: there is no run, it is damaged, or of another scenario; the text names the difference.
        ConfigError: the scenario is not valid any more, or a secret has to be given again.
    """
    with RunStore.open(directory) as store, store.reading():
        results = store.results()
        stored, first = stored_scenario(store.meta("scenario")).scenario, dict(store.meta("overrides"))
        command = str(store.meta("command_line", ""))
    _refuse_other_command(directory, load, stored, command, renamed="name" in {**first, **given})
    resolved = load({**first, **given})
    scenario, system = resolved.scenario, resolved.system
    burst = batch_of(scenario.settings, system.published.columns)
    refuse_hidden(as_written(as_stored(scenario), burst))
    shown = redacted(scenario, Redactor.of_runs([resolved, *others]))
    known = as_written(as_stored(stored), batch_of(stored.settings, system.published.columns))
    difference = next(differences(known, as_written(shown, burst)), None)
    if difference is not None:
        raise RunDirectoryError(
            f"{directory} is a run of another scenario: {difference}",
            "resume the run with the flags with which it was started, or start a new run",
        )
    # The default burst may be written or not; the stored steps have it in the form of the first command.
    settings = replace(scenario.settings, burst=stored.settings.burst)
    resolved = replace(resolved, scenario=replace(scenario, settings=settings))
    try:
        resolved.sweep.next(results)
    except ValueError as e:
        raise RunDirectoryError(
            f"the steps of {directory} do not belong to its scenario: {e}",
            "resume the run with the version that made it, or start a new run",
        ) from e
    return resolved


def _refuse_other_command(directory: Path, load: Load, stored: Scenario, command: str, *, renamed: bool) -> None:
    """Rejects a run of another scenario before its overrides are applied to this one, which may not have their keys.

    Raises:
        RunDirectoryError: the text names both, and the command that the run was started with.
    """
    try:
        named = load({}).scenario
    except ConfigError:
        return  # the scenario is invalid without flags: an error follows when all flags are applied
    if named.system == stored.system and (renamed or named.name == stored.name):
        return
    first = f": {command}" if command else ""
    began = f"repeat the run's first command, with --resume in place of --out{first}"
    raise RunDirectoryError(
        f"{directory} is a run of {stored.name} (system {stored.system}), and this command runs {named.name} "
        f"(system {named.system})",
        began,
    )


def as_written(stored: Mapping[str, Any], burst: int) -> dict[str, Any]:
    """The values of a scenario's stored form by the keys of a file, with the default burst."""
    flat = {name: {**stored[name], **stored[name]["system"]} for name in ("settings", "native")}
    known = {**stored, **flat, **stored["tables"]}
    known["settings"]["burst"] = known["settings"]["burst"] or burst
    for table in (known["settings"], known["native"]):
        del table["system"]
    del known["tables"]
    return known


def differences(stored: object, wanted: object, key: str = "") -> Iterator[str]:
    """Every dotted key whose values differ, with both of them."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        for name in {**stored, **wanted}:
            yield from differences(stored.get(name), wanted.get(name), f"{key}.{name}" if key else str(name))
    elif _plain(stored) != _plain(wanted):
        yield f"{key} was {stored!r} and is now {wanted!r}"


def refuse_hidden(stored: object) -> None:
    """Rejects a scenario with hidden secrets, which are not stored.

    Raises:
        ConfigError: the user has to give them again.
    """
    if hidden := hidden_keys(stored):
        raise ConfigError(
            f"secrets are not stored with a run: {', '.join(hidden)}",
            "give them again, with all other keys of the same table",
        )


def hidden_keys(stored: object) -> list[str]:
    """Every dotted key with a hidden secret."""
    return [key for key, value in leaves(stored) if isinstance(value, str) and HIDDEN in value]


def leaves(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """(dotted key, value) for every value that is no table."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def given_again(stored: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, Any]:
    """Stored overrides, each hidden secret replaced by the value that the user gives for its dotted key."""
    known = dict(leaves(given))

    def shown(value: object, key: str) -> object:
        if isinstance(value, dict):
            return {name: shown(inner, f"{key}.{name}") for name, inner in value.items()}
        return known.get(key, value) if hidden_keys({key: value}) else value

    return {key: shown(value, key) for key, value in stored.items()}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | list) else value
