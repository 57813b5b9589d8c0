"""Runs a command with a CLOCK_MONOTONIC that is ahead, and through another endpoint, as its agent has them."""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """``in_other_time.py '{"AGENT": [SECONDS, "ENDPOINT"]}' COMMAND…``; the process stays the same."""
    ahead_s, endpoint = json.loads(sys.argv[1])[os.environ["HYDRA_AGENT"]]
    os.environ["HYDRA_CONTROL"] = endpoint
    os.execvp("unshare", ["unshare", "--time", "--monotonic", str(ahead_s), *sys.argv[2:]])


if __name__ == "__main__":
    main()
