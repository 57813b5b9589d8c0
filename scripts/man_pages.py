"""Writes the man pages of all commands into a folder: ``make man`` puts them where ``man`` finds them."""

from __future__ import annotations

import sys
from pathlib import Path

from hydra.cli.main import cli
from hydra.cli.man_pages import pages


def main(folder: Path) -> None:
    """Writes them, and says how many."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [(folder / name).write_text(text, encoding="utf-8") for name, text in pages(cli)]
    sys.stdout.write(f"{len(written)} pages in {folder}; read one with: man {folder}/hydra.1\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
