"""Lists of the published experiments and of the presets."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from hydra.config import plugins
from hydra.config.file_locations import experiments
from hydra.events.value_formatting import duration
from hydra.report.table import tabled, terminal_width


def list_experiments(system: str, as_json: bool) -> None:
    """Prints the experiments of a system."""
    found = [
        {
            "name": each.name,
            "what it measures": each.title,
            "published": each.source,
            "scale": each.scale,
            "takes": f"about {duration(each.takes_s)}",
        }
        for each in experiments(system).values()
    ]
    click.echo(json.dumps(found, indent=2) if as_json else tabled(found, terminal_width()))


def list_presets(system: str, as_json: bool) -> None:
    """Prints the keys that each preset of a system sets, and the reasons."""
    presets = plugins.systems()[system].settings.presets
    if as_json:
        click.echo(json.dumps({name: asdict(preset) for name, preset in presets.items()}, indent=2))
        return
    for name, preset in presets.items():
        click.echo(f"{name}: {preset.about}")
        lines = [{"key": key, "value": json.dumps(value), "why": why} for key, (value, why) in preset.values.items()]
        click.echo(tabled(lines, terminal_width(), as_text=True) + "\n")
