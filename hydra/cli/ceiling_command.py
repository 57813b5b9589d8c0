"""The command ``hydra ceiling``: measures, keeps and prints what the clients' own code can do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from typing import Final

import click

from hydra.cli.ceiling_measurement import LANGUAGES, measure
from hydra.errors import MissingDependencyError
from hydra.model import Role
from hydra.store.ceiling import add, load, path

_ROLES: Final[tuple[Role, ...]] = ("publisher", "subscriber")


def run_ceiling(
    languages: Sequence[str], clients: Sequence[int], sizes: Sequence[int], window_s: float, *, as_json: bool
) -> None:
    """Measures each combination; a publisher's is measured with one publisher. Prints all that is known then.

    Raises:
        HydraError: it could not be measured, or not be kept.
    """
    for language, role in product(languages or LANGUAGES, _ROLES):
        for count, size in product([1] if role == "publisher" else clients, sizes):
            try:
                add([measure(language, role, count, size, window_s)])
            except MissingDependencyError:
                if languages:
                    raise
                break  # nobody asked for it
    rows = [
        {"clients in": c.language, "role": c.role, "clients": c.clients, "bytes": c.message_size, "messages/s": c.pps}
        for c in load()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    from hydra.report.terminal_layout import tabled, terminal_width

    click.echo(tabled(rows, terminal_width(), floats=",.0f"))
    click.echo(f"kept in {path()}; rows within 10 % of it are marked as limited by the generator")
