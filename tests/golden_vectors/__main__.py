"""Writes every file, and removes those that are no more."""

from __future__ import annotations

from tests.golden_vectors import KINDS, text
from tests.golden_vectors.common import GOLDEN


def main() -> None:
    """Writes every file, and removes those that are no more."""
    for kind, cases in KINDS.items():
        folder = GOLDEN / kind
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for name, case in cases().items():
            (folder / f"{name}.json").write_text(text(case))


if __name__ == "__main__":
    main()
