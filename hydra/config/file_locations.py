"""Locations of the files that are installed with Hydra and its systems."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from hydra.config import plugins
from hydra.errors import ConfigError

if TYPE_CHECKING:
    from hydra.config.experiment_file import ExperimentFile


def conf_dir() -> Path:
    """The folder ``conf/``: package data of an installed Hydra, otherwise the repository's folder."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "conf"
    return installed if (installed / "hydra.toml").is_file() else package.parent / "conf"


def scenarios() -> list[str]:
    """The names of the scenarios of Hydra and of all installed systems, in alphabetical order."""
    return sorted({path.stem for folder in _folders() for path in folder.glob("*.toml")})


def experiments(system: str = "") -> dict[str, ExperimentFile]:
    """The published experiments of all systems, or of one system, by name; raises what ``read_experiment`` raises."""
    from hydra.config.experiment_file import experiments_in

    known = plugins.systems()
    specs = [known[system]] if system else known.values()
    folders = [
        conf_dir() / "experiments",
        *(folder / "experiments" for spec in specs if (folder := spec.published.folder) is not None),
    ]
    found = (each for folder in folders for each in experiments_in(folder))
    return {each.name: each for each in found if system in ("", each.system)}


def experiment_named(name: str) -> ExperimentFile | None:
    """The published experiment with this name; None if there is none, or if a scenario has this name."""
    return None if _is_path(name) or _named(name) is not None else experiments().get(name)


def is_scenario(word: str) -> bool:
    """Whether an argument of a command can be a scenario or an experiment."""
    return Path(word).is_file() if _is_path(word) else _named(word) is not None or experiment_named(word) is not None


def scenario_path(name_or_path: str | Path) -> Path:
    """The file of a scenario; a text that ends with .toml or contains a slash is a path, any other text a name.

    Raises:
        ConfigError: there is no scenario with this name; the remedy lists the known ones.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or _is_path(text):
        return Path(text)
    found = _named(text)
    if found is None:
        known, published = scenarios(), experiments()
        if text in published:
            raise ConfigError(
                f"{text} is a published experiment, and no scenario",
                f"run it with hydra run {quote(text)}; known scenarios: {', '.join(known)}",
            )
        from difflib import get_close_matches

        close = get_close_matches(text, [*known, *published], n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        others = f"; experiments, for hydra run: {', '.join(published)}" if published else ""
        raise ConfigError(
            f"no scenario {text!r} in {conf_dir() / 'scenarios'}",
            f"{hint}known scenarios: {', '.join(known)}{others}; for your own file, write its path",
        )
    return found


def is_shipped(source: Path) -> bool:
    """Whether a scenario's file came with Hydra or with a system, so its values are defaults."""
    own = source.resolve().parent
    return any(own == folder.resolve() for folder in _folders())


def _is_path(text: str) -> bool:
    return text.endswith(".toml") or os.sep in text


def _named(name: str) -> Path | None:
    """The file of that name, or else the one whose name has hyphens elsewhere: a-rate is arate."""
    # The folder of Hydra's own scenarios comes first: to know the others, all systems have to be imported.
    exact = next((path for folder in _folders() if (path := folder / f"{name}.toml").is_file()), None)
    if exact is not None:
        return exact
    known, plain = (path for folder in _folders() for path in folder.glob("*.toml")), name.replace("-", "")
    return next((path for path in known if path.stem.replace("-", "") == plain), None)


def _folders() -> Iterator[Path]:
    yield conf_dir() / "scenarios"
    for spec in plugins.systems().values():
        if spec.published.folder is not None:
            yield spec.published.folder / "scenarios"
