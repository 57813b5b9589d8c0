"""The program that makes one page, in its own process: ``python -m hydra.serve.page_worker``.

Making a page takes seconds and hundreds of megabytes. The process ends with the server; a thread would not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from hydra.client.linux_process import die_with_parent
from hydra.errors import HydraError

REPORT: Final = "report"
COMPARISON: Final = "comparison"
ROOM: Final = "free some space, or set XDG_CACHE_HOME"
"""The remedy if the cache cannot be written."""


def command(parent: int, kind: str, cache: Path, nonce: str, runs: list[Path]) -> list[str]:
    """The command line that makes a page.

    Args:
        parent: id of the process that waits for the page.
        kind: :data:`REPORT` or :data:`COMPARISON`.
        cache: the folder where plotly.js is written, once.
        nonce: the nonce that every script of the page carries.
        runs: one run for a report; for a comparison the base first.
    """
    words = [str(parent), kind, str(cache), nonce, *map(str, runs)]
    return [sys.executable, "-m", __name__, *words]


def made(kind: str, cache: Path, nonce: str, runs: list[Path]) -> str:
    """The HTML of a page.

    Raises:
        HydraError: the page cannot be made, or the cache cannot be written.
    """
    from plotly.offline import get_plotlyjs

    from hydra.jupyter import comparison_page, rendering
    from hydra.report.comparison_report import compare_runs
    from hydra.store.run_folders import write_whole

    library = cache / rendering.LIBRARY
    if not library.exists():
        write_whole(library, get_plotlyjs(), ROOM)
    if kind == REPORT:
        page = rendering.page_of(*rendering.cells_of(runs[0]))
    else:
        page = comparison_page.page(compare_runs(runs, "", ())[0])
    return rendering.html(page, f"/assets/{library.name}", nonce)


def main() -> None:
    """Writes the page that the arguments name; an error becomes one line on standard error and an exit code."""
    parent, kind, cache, nonce, *runs = sys.argv[1:]
    die_with_parent(int(parent))
    try:
        sys.stdout.buffer.write(made(kind, Path(cache), nonce, [Path(run) for run in runs]).encode())
    except HydraError as e:
        sys.stderr.write(f"{e}\n")
        sys.exit(e.exit_code)


if __name__ == "__main__":
    main()
