"""Which implementation the clients have if the user names none. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
