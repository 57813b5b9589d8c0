"""The program that makes one page, in a process of its own: ``python -m hydra.serve.page_worker``.

It takes seconds and hundreds of megabytes, and ends when it is told to, which a thread would not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from hydra.client.linux_process import die_with_parent
from hydra.errors import HydraError
from hydra.options.interrupts import interrupt_on_the_first

REPORT: Final = "report"
COMPARISON: Final = "comparison"


def command(parent: int, kind: str, file: Path, nonce: str, runs: list[Path]) -> list[str]:
    """The command line.

    Args:
        parent: the process without which nobody waits for the page.
        kind: :data:`REPORT` or :data:`COMPARISON`.
        file: what is written; plotly.js is written beside it, once.
        nonce: what every script of the page carries.
        runs: one for a report, otherwise the base first.
    """
    words = [str(parent), kind, str(file), nonce, *map(str, runs)]
    return [sys.executable, "-m", __name__, *words]


def make(kind: str, file: Path, nonce: str, runs: list[Path]) -> None:
    """Writes a page.

    Raises:
        HydraError: it cannot be made or written.
    """
    from plotly.offline import get_plotlyjs

    from hydra.jupyter import rendering
    from hydra.jupyter.comparison_page import notebook
    from hydra.report.run_comparison import compare_runs
    from hydra.store.files import write_whole

    remedy = "free some space, or set XDG_CACHE_HOME"
    library = file.with_name(rendering.LIBRARY)
    if not library.exists():
        write_whole(library, get_plotlyjs(), remedy)
    if kind == REPORT:
        made = rendering.executed(runs[0], rendering.title(runs[0]))
    else:
        made = notebook(compare_runs(runs, "", ())[0])
    write_whole(file, rendering.page(made, f"/assets/{rendering.LIBRARY}", nonce), remedy)


def main() -> None:
    """Makes the page that the arguments name; what goes wrong is one line on standard error and an exit code."""
    parent, kind, file, nonce, *runs = sys.argv[1:]
    die_with_parent(int(parent))
    interrupt_on_the_first()
    try:
        make(kind, Path(file), nonce, [Path(run) for run in runs])
    except HydraError as e:
        sys.stderr.write(f"{e}\n")
        sys.exit(e.exit_code)


if __name__ == "__main__":
    main()
