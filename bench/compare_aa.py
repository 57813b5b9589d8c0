#!/usr/bin/env python3
"""Real comparisons of an implementation with itself: how many show a difference, where one in twenty should.

Each is one command, `hydra zmqfixed --compare X,X`: short steps of few clients, repeats in turns. Half
of them are paced (the primary figure is the 99th percentile of latency), half go as fast as they can (what a subscriber
received). The answer of each is one line of FOLDER/aa.jsonl; started again, the script goes on behind the last of them.

    bench/compare_aa.py                            # a few, into runs/aa
    bench/compare_aa.py runs/aa --times 50         # go on until there are 50: about a quarter of an hour on two cores
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from hydra.analysis.comparison import NO_DIFFERENCE, NO_SPREAD, NO_VERDICT
from hydra.cli.main import cli

RATES = ("2000", "max")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs/aa"))
    parser.add_argument("--times", type=int, default=4, help="comparisons in all, those in the folder included")
    parser.add_argument("--implementation", default="native")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--duration", type=float, default=0.5)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    kept = asked.folder / "aa.jsonl"
    done = len(kept.read_text().splitlines()) if kept.is_file() else 0
    for number in range(done, asked.times):
        began = time.monotonic()
        told = one(asked, number)
        with kept.open("a") as file:
            file.write(json.dumps(told) + "\n")
        print(line(told), f"({time.monotonic() - began:.0f} s)", flush=True)
    summary([json.loads(text) for text in kept.read_text().splitlines()])


def one(asked: argparse.Namespace, number: int) -> dict[str, Any]:
    """Runs a comparison; what it says of each figure."""
    out = asked.folder / f"{number:03}"
    shutil.rmtree(out, ignore_errors=True)  # one that was begun and did not end
    names = f"{asked.implementation},{asked.implementation}"
    words = ["zmqfixed", "--compare", names, "--repeat", asked.repeat, "--clients", asked.clients]
    words += ["--rate", RATES[number % len(RATES)], "--duration", asked.duration, "--set", "warmup_s=0"]
    words += ["--out", out, "--quiet", "--json"]
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        cli.main([str(word) for word in words], standalone_mode=False)
    told = json.loads(text.getvalue())
    shown = ("figure", "primary", "change", "low", "high", "p", "p_adjusted", "repeats", "verdict")
    return {
        "number": number,
        "rate": RATES[number % len(RATES)],
        "figures": [{name: each[name] for name in shown} for each in told["comparisons"]],
    }


def differs(figure: dict[str, Any]) -> bool:
    return figure["verdict"] not in (NO_DIFFERENCE, NO_VERDICT, NO_SPREAD)


def line(told: dict[str, Any]) -> str:
    first = next(each for each in told["figures"] if each["primary"])
    others = [each["figure"] for each in told["figures"] if differs(each) and not each["primary"]]
    more = f"; also {', '.join(others)}" if others else ""
    change = "—" if first["change"] is None else f"{100 * first['change']:+.1f} %"
    p = "—" if first["p"] is None else f"{first['p']:.3f}"
    return f"{told['number']:3} rate {told['rate']}: {first['figure']} {change}, p {p}, {first['verdict']}{more}"


def summary(told: list[dict[str, Any]]) -> None:
    primary = sum(any(differs(each) for each in of["figures"] if each["primary"]) for of in told)
    others = sum(any(differs(each) for each in of["figures"] if not each["primary"]) for of in told)
    print(f"{len(told)} comparisons: {primary} with a difference in the primary figure, {others} in any other")
    # More than that has a chance of one in eighty of 50, where one in twenty differs.
    sys.exit(0 if primary <= max(6, len(told) * 6 // 50) else 1)


if __name__ == "__main__":
    main()
