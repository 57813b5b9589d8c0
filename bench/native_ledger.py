"""What the native subscriber's bookkeeping costs a message: header, ledger, latency; amortised over a batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hydra.native import build

TREE = Path(__file__).resolve().parents[1]


def main() -> int:
    missing = build.missing()
    if missing:
        print(f"not measured: apt-get install {' '.join(missing)}")
        return 0
    build.build(TREE / "native", TREE / "build" / "native-bench", "-DHYDRA_BENCH=ON", targets=("all",))
    return subprocess.run([TREE / "build" / "native-bench" / "bench" / "bench-ledger"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
