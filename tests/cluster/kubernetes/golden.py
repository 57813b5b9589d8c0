"""What a Kubernetes 1.32 has said, recorded on the rig of tests/kubernetes; see tests/golden/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_FOLDER = Path(__file__).parents[2] / "golden" / "kubernetes"


def recorded(name: str) -> Any:
    """What is in a file: pods, refusals, nodes or events."""
    return json.loads((_FOLDER / f"{name}.json").read_text())
