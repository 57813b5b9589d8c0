"""How often the verdict is right where the limit was planted: the confusion matrix of ``docs/verdicts.md``.

    python bench/verdicts.py run RESULTS.jsonl [--times 12] [--first 0] [--tuning] [RIG …]
    python bench/verdicts.py show RESULTS.jsonl

``run`` adds a line for each run: its rig, its parameters, the verdict, and the evidence for it. Needs root,
cgroup v1 and network namespaces. ``show`` prints the matrix as Markdown. See ``tests.verdicts.rigs.py`` for the rigs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hydra.errors import HydraError
from hydra.measure.verdict import UNDECIDED
from tests.verdicts.rigs import RIGS, Rig, counts, validated


def take(rig: Rig, seed: int, *, trial: bool) -> dict[str, object]:
    """One run, as a line of the results; one that could not be measured says why."""
    drawn = rig.draw(seed, trial=trial)
    line: dict[str, object] = {"rig": rig.name, "seed": seed, "trial": trial, "drawn": drawn, "truth": rig.truth}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            measured = rig.take(drawn, Path(folder))
        except HydraError as e:
            return {**line, "failed": str(e)}
    names = ("verdict", "verdict_evidence", "avg_tx_rate_pps", "client_loss_pct", "rate_held", "passed")
    figures = {name: measured.figures[name] for name in names}
    return {**line, **figures, "evidence": measured.evidence, "took_s": round(time.monotonic() - began, 1)}


def matrix(lines: Sequence[dict[str, object]]) -> str:
    """The confusion matrix of these runs, and what it comes to, as Markdown."""
    told = Counter((str(line["truth"]), _short(str(line["verdict"]))) for line in lines)
    truths = list(dict.fromkeys(str(line["truth"]) for line in lines))
    heads = [*truths, *sorted({verdict for _, verdict in told} - set(truths))]
    rows = [f"| planted | runs | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    for truth in truths:
        runs = sum(n for (planted, _), n in told.items() if planted == truth)
        rows.append(f"| {truth} | {runs} | {' | '.join(str(told[truth, head] or '') for head in heads)} |")
    right = sum(n for (truth, verdict), n in told.items() if truth == verdict)
    undecided = sum(n for (_, verdict), n in told.items() if verdict == "undecided")
    wrong = len(lines) - right - undecided
    share = 100 * right / len(lines)
    rows += ["", f"{right} of {len(lines)} right ({share:.1f} %), {undecided} undecided, {wrong} wrong."]
    rows.append(validated(right, len(lines)))
    return "\n".join(rows)


def _short(verdict: str) -> str:
    return "undecided" if verdict.startswith(UNDECIDED) else verdict


def main() -> int:
    """Runs rigs, or shows what they told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("results", type=Path)
    parser.add_argument("rigs", nargs="*", metavar="RIG")
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--tuning", action="store_true", help="draw from the range that thresholds were chosen on")
    asked = parser.parse_args()
    if asked.what == "run":
        # In turns, so that what else the machine does meets all of them.
        seeds = dict.fromkeys(asked.rigs or RIGS, asked.first)
        for _ in range(asked.times):
            for name in seeds:
                counted = False
                while not counted:
                    line = take(RIGS[name], seeds[name], trial=not asked.tuning)
                    with asked.results.open("a") as file:
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                    print(name, seeds[name], line.get("verdict", line.get("failed")), flush=True)
                    seeds[name] += 1
                    counted = counts(line)
    lines = [json.loads(text) for text in asked.results.read_text().splitlines()]
    print(matrix([line for line in lines if counts(line)]))
    print(f"{sum('failed' in line for line in lines)} further runs could not be measured.")
    others = sum("failed" not in line and not counts(line) for line in lines)
    print(
        f"{others} in which nothing was lost or late and the rate was held, though a limit was planted, were repeated."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
