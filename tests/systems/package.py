"""Packages with a system or an engine of their own, as pip leaves them."""

from __future__ import annotations

from pathlib import Path

_COMMANDS = {"system": "[hydra.commands]\ntoy-fixed = toy_system:toy_fixed\n", "engine": ""}


def installed_toy(folder: Path, kind: str) -> Path:
    """A folder into which the toy ``system`` or ``engine`` has been installed."""
    source = Path(__file__).parents[1] / f"{kind}s" / f"toy_{kind}.py"
    information = folder / f"toy_{kind}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toy-{kind}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[hydra.{kind}s]\ntoy = toy_{kind}:SPEC\n{_COMMANDS[kind]}")
    (folder / source.name).write_text(source.read_text())
    return folder
