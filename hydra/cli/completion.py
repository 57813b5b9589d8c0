"""The files by which bash, zsh and fish complete ``hydra``: their paths and their texts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from hydra.errors import UsageError

PROGRAM: Final = "hydra"
VARIABLE: Final = "_HYDRA_COMPLETE"
"""The environment variable by which the scripts ask ``hydra`` for completions."""
SHELLS: Final = ("bash", "zsh", "fish")
_LOADERS: Final = (Path("/usr/share/bash-completion/bash_completion"), Path("/etc/bash_completion"))
"""Files of the package bash-completion, which loads a completion by the name of its command."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a shell reads to complete ``hydra``.

    Attributes:
        file: the path at which the shell looks for the script.
        text: the script.
        notes: what else the user has to do, a line each.
    """

    file: Path
    text: str
    notes: tuple[str, ...]


def completion_for(shell: str, root: click.Command, environment: Mapping[str, str]) -> Completion:
    """The completion for one shell.

    Args:
        shell: one of :data:`SHELLS`.
        root: the ``hydra`` command.
        environment: environment variables; they name the user's own folders (XDG).
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"there is no completion for {shell}", f"name one of {', '.join(SHELLS)}")
    made = kind(root, {}, PROGRAM, VARIABLE)
    # Not source(): that starts a bash only to read its version.
    text = made.source_template % made.source_vars()
    home = Path(environment.get("HOME") or "~").expanduser()
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local/share")
    if shell == "bash":
        file = data / "bash-completion/completions" / PROGRAM
        loaded = any(path.is_file() for path in _LOADERS)
        notes = () if loaded else (f"bash-completion is not installed: add this line to ~/.bashrc: . {file}",)
        return Completion(file, text, notes)
    if shell == "zsh":
        file = data / "zsh/site-functions" / f"_{PROGRAM}"
        line = f"fpath=({file.parent} $fpath); autoload -Uz compinit; compinit"
        return Completion(file, text, (f"zsh finds it with this line in ~/.zshrc: {line}",))
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return Completion(config / "fish/completions" / f"{PROGRAM}.fish", text, ())


def shell_of(environment: Mapping[str, str]) -> str:
    """The user's shell, read from ``$SHELL``.

    Raises:
        UsageError: Hydra has no completion for this shell.
    """
    name = os.path.basename(environment.get("SHELL", ""))  # noqa: PTH119  # the value is text, not a path
    if name not in SHELLS:
        raise UsageError(
            f"your shell is {name}, for which there is no completion" if name else "$SHELL does not name your shell",
            f"name one: hydra install-completion {'|'.join(SHELLS)}",
        )
    return name
