"""The measurements of ``bench/`` are no part of the package, and are imported from the tree."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
