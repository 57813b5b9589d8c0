"""What the expressions of an experiment's file can name: functions, the user's order, and the file's own values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import Final

from hydra.config import plugins
from hydra.config.experiment_file import ExperimentFile
from hydra.errors import ConfigError
from hydra.experiments.expression import value_of
from hydra.experiments.measured_rows import measured
from hydra.experiments.operations import OPERATIONS
from hydra.model import HEADER_BYTES
from hydra.system.experiment import ExperimentOptions, PartResult

MIB: Final = 2**20
ALWAYS: Final = (
    *("records", "option", "scale", "hosts", "experiment", "presets", "header_bytes", "mib", "done", "measured"),
    *OPERATIONS,
)
"""The names that every expression can use."""


def function_of(path: str) -> Callable[..., object]:
    """The function of a package, by ``module:function``.

    Raises:
        ConfigError: there is no such function.
    """
    try:
        found: object = resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"there is no function {path}: {error}", "write package.module:function") from error
    if not callable(found):
        raise ConfigError(f"{path} is no function", "write package.module:function")
    return found


def scope_of(file: ExperimentFile, order: ExperimentOptions, done: Sequence[PartResult]) -> dict[str, object]:
    """The names of an experiment with these options, after these parts."""
    scope: dict[str, object] = {
        **OPERATIONS,
        **{name: function_of(path) for name, path in file.functions.items()},
        "records": order.records,
        "option": order.options.get,
        "scale": order.scale,
        "hosts": order.hosts,
        "experiment": file.name,
        "presets": plugins.system(file.system).settings.presets,
        "header_bytes": HEADER_BYTES,
        "mib": MIB,
        "done": done,
        "measured": list(measured(done)),
    }
    for name, written in file.let.items():
        scope[name] = value_of(written, scope)
    return scope
