#!/usr/bin/env python3
"""Runs parts of the test suite one after the other, and says how long each took: ``make test`` and ``make test-all``.

    tox run -e tests                      # what make test runs
    tox run -e tests -- rest              # what make test-all runs after it
    tox run -e tests -- lint type         # single parts
    tox run -e tests -- pytest tests/run  # pytest with arguments

The first part that fails ends it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
NATIVE: Final = ROOT / "build" / "native"
ASAN: Final = ROOT / "build" / "asan"
# Optimizing what the sanitizers check takes the compiler six times as long.
SANITIZED: Final = ["-DHYDRA_SANITIZE=address", "-DCMAKE_BUILD_TYPE=Debug"]
CORES: Final = str(os.cpu_count() or 1)
# Most of the time of a test with processes is spent waiting.
SHARED: Final = ["--dist", "loadfile", "-n", str(2 * (os.cpu_count() or 1))]
PURE: Final = ["--dist", "loadfile", "-n", CORES]

CPP: Final = [p for p in sorted((ROOT / "native").rglob("*")) if p.suffix in {".cc", ".h"} and "build" not in p.parts]

# Tests misspell keys on purpose.
SPELLED: Final = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "hydra", "conf", "native/src", "scripts"]

PARTS: Final[dict[str, list[list[str]]]] = {
    "lint": [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["clang-format", "--dry-run", "-Werror", *map(str, CPP)],
        ["codespell", *SPELLED],
    ],
    "type": [["mypy"]],
    "docs": [["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(ROOT / "build" / "site")]],
    "native": [
        ["cmake", "-S", "native", "-B", str(NATIVE), "-DHYDRA_TESTS=ON"],
        ["cmake", "--build", str(NATIVE), "--parallel", CORES, "--target", "unit-tests"],
        ["ctest", "--test-dir", str(NATIVE), "--output-on-failure", "--parallel", CORES],
    ],
    "native-asan": [
        ["cmake", "-S", "native", "-B", str(ASAN), "-DHYDRA_TESTS=ON", *SANITIZED],
        ["cmake", "--build", str(ASAN), "--parallel", CORES, "--target", "unit-tests"],
        ["ctest", "--test-dir", str(ASAN), "--output-on-failure", "--parallel", CORES],
    ],
    "quick": [["pytest", "--tier", "quick", *PURE]],
    "tests": [["pytest", "--tier", "test", "--check-prices", "--durations", "10", *SHARED]],
    "other-tests": [
        ["pytest", "--above", "test", "--check-prices", "--durations", "20", *SHARED, "--ignore", "tests/kubernetes"]
    ],
    # By itself: what a cluster costs two cores would make others late. Without the rig all is skipped.
    "kubernetes": [["pytest", "--above", "test", "--durations", "10", *PURE, "tests/kubernetes"]],
    "prices": [["pytest", "--write-prices", *SHARED, "--ignore", "tests/kubernetes"]],
}
TIERS: Final[dict[str, list[str]]] = {
    "test": ["lint", "type", "native", "tests"],
    "rest": ["docs", "native-asan", "other-tests", "kubernetes"],
}


BESIDE: Final = {"native-asan"}
"""Parts of a compiler's work, which run with the least priority beside the parts after them."""


def run(commands: list[list[str]]) -> int:
    """Runs them until one fails; its exit code, else 0."""
    for program, *arguments in commands:
        done = subprocess.run([shutil.which(program) or program, *arguments], check=False, cwd=ROOT)
        if done.returncode:
            return done.returncode
    return 0


def _log(part: str) -> Path:
    """What a part writes that runs beside others, which is shown at the end."""
    return ROOT / "build" / f"{part}.log"


def _line(part: str, began: float, code: int) -> str:
    return f"{part:12}{time.monotonic() - began:8.0f} s{'' if code == 0 else '  failed'}"


def main(words: list[str]) -> int:
    """Runs the parts and tiers of these names; the exit code of what failed, else 0."""
    if words[:1] == ["pytest"]:
        return subprocess.run(words, check=False).returncode
    parts = [part for word in words or ["test"] for part in TIERS.get(word, [word])]
    if unknown := [part for part in parts if part not in PARTS]:
        sys.stderr.write(f"no such part: {' '.join(unknown)}; there are {' '.join([*TIERS, *PARTS])}, and pytest …\n")
        return 2
    took: list[str] = []
    beside: list[tuple[str, float, subprocess.Popen[bytes]]] = []
    code = 0
    for part in parts:
        began = time.monotonic()
        if part in BESIDE and part != parts[-1]:
            words = ["nice", "-n", "19", sys.executable, __file__, part]
            _log(part).parent.mkdir(exist_ok=True)
            with _log(part).open("w") as output:
                beside.append((part, began, subprocess.Popen(words, cwd=ROOT, stdout=output, stderr=output)))
            continue
        code = run(PARTS[part])
        took.append(_line(part, began, code))
        if code:
            break
    for part, began, process in beside:
        failed = process.wait()
        sys.stdout.write(_log(part).read_text())
        took.append(_line(part, began, failed))
        code = code or failed
    sys.stdout.write("\n".join(["", *took, ""]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
