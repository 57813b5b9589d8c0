"""The argument that names a scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_F = TypeVar("_F", bound=Callable[..., Any])
USUAL: Final = "zmqrate"
"""The default scenario of commands that take one."""


def scenario_argument(**attributes: Any) -> Callable[[_F], _F]:
    """The argument that names a scenario; a shell completes the names of Hydra's scenarios and experiments."""

    def complete(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from hydra.config.file_locations import experiments, scenarios

        names = [name for name in (*scenarios(), *experiments()) if name.startswith(incomplete)]
        # If no name matches, the word is completed as a file.
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]

    return click.argument("scenario", shell_complete=complete, **attributes)
