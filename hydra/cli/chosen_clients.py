"""Chooses the implementation of a command's clients if the user names none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from hydra.config.file_locations import is_shipped, scenario_path
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.errors import ConfigError, HydraError, MissingDependencyError, RefusedKeyError
from hydra.native.build import find, has_sources
from hydra.options.engine_choice import SelectedEngine

Presence = Literal["there", "absent", "unknown"]
"""Whether the native program is on every host that runs clients."""


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What the choice depends on.

    Attributes:
        usual: the implementation that the scenario names.
        native: the implementation that is Hydra's native program; "": the system has none.
        is_named: whether the user names an implementation.
        is_published: whether the published sweep is measured.
        presence: whether the native program is on every host that runs clients.
        lacks: what the scenario asks for and native clients cannot do; "": they can do everything.
        build: how the program is built.
    """

    usual: str
    native: str
    is_named: bool = False
    is_published: bool = False
    presence: Presence = "there"
    lacks: str = ""
    build: str = ""


@dataclass(frozen=True, slots=True)
class DefaultClient:
    """The implementation, and why the native one is not chosen; "": it is chosen, or the user names one."""

    name: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.name} clients: {self.why}"


def default_client(facts: ClientFacts) -> DefaultClient:
    """Native clients if their program is there and can do what the scenario asks, otherwise the usual ones."""
    if facts.is_named or facts.is_published or facts.native in ("", facts.usual):
        return DefaultClient(facts.usual)
    why = {
        "there": facts.lacks,
        "absent": f"the native program is not built; {facts.build}",
        "unknown": "whether these hosts have the native program is not known before the start; --implementation "
        f"{facts.native} uses it",
    }[facts.presence]
    return DefaultClient(facts.usual if why else facts.native, why)


CLIENT: Final = "client"
"""The key of a scenario that names the implementation of its clients."""
_MAKE: Final = "`make native` builds it"
_INSTALL: Final = "docs/packaging.md states how it is installed"


def with_default_client(
    scenario: str | Path,
    resolved: ResolvedScenario,
    replaced: Mapping[str, object],
    engine: SelectedEngine,
) -> tuple[ResolvedScenario, Mapping[str, object], str]:
    """The scenario with native clients if they are the default, and what the command then replaces in it.

    What is replaced is stored with a run, so a resumed run has the clients with which it began. The last result is why
    the clients are not native, "" if they are, or were not to be.

    Args:
        scenario: the scenario's name or path.
        resolved: the scenario with what the command replaces.
        replaced: the values that the command replaces, by dotted key.
        engine: the engine of the groups.
    """
    usual = resolved.scenario.client
    implementations = resolved.system.identity.implementations.items()
    native = next((name for name, each in implementations if each.program == "native"), "")
    facts = ClientFacts(
        usual,
        native,
        is_named=CLIENT in replaced or not is_shipped(scenario_path(scenario)),
        is_published=resolved.scenario.published,
        presence="unknown" if not engine.spec.is_local else "there" if find() else "absent",
        build=_MAKE if has_sources() else _INSTALL,
    )
    chosen = default_client(facts)
    if chosen.name != usual and (lacks := _lacks(scenario, {**replaced, CLIENT: native})):
        chosen = default_client(replace(facts, lacks=lacks))
    why = str(chosen) if chosen.why else ""
    if chosen.name == usual:
        return resolved, replaced, why
    given = {**replaced, CLIENT: chosen.name}
    return resolve(scenario, given), given, why


def _lacks(scenario: str | Path, replaced: Mapping[str, object]) -> str:
    """What native clients on this machine cannot do of a scenario; "": nothing is known.

    Args:
        scenario: the scenario's name or path.
        replaced: the values that the command replaces, native clients among them.
    """
    from hydra.run.launcher import system_for

    try:
        resolved = resolve(scenario, replaced)
        if why := resolved.system.settings.native_lacks(resolved.scenario):
            return why
        system = system_for(resolved)
        for role in ("publisher", "subscriber"):
            system.program(role)
    except (ConfigError, MissingDependencyError) as e:
        return str(e.__cause__) if isinstance(e, RefusedKeyError) else e.what
    except HydraError:
        return ""  # a server does not answer: the run reports it
    return ""
