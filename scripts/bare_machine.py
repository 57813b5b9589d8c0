#!/usr/bin/env python3
"""Runs ``make demo`` twice on a bare Debian 12 and prints the seconds of each stage.

    sudo scripts/bare_machine.py [--suite bookworm] [--keep FOLDER] [COMMAND …]

The script makes a root with mmdebstrap that has Debian's essential packages, Python, make and certificates, and
nothing else; it puts a clone of the committed tree there, and runs the command (``make demo``) in it, twice, as a user
does who has just cloned Hydra. The root has its own process ids and mounts, and uses the network of this machine. A
stage is what the command announces: a line that ends with "…", or that begins with "==".
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("ca-certificates", "make", "python3")
HOME: Final = "root/hydra"
"""Where the clone is, below the root."""
_OF_NETWORK: Final = ("etc/resolv.conf", "etc/hosts")
"""Files by which this machine reaches its registries; its own certificates are copied, too."""
_CERTIFICATES: Final = Path("/usr/local/share/ca-certificates")
_TRUSTED: Final = "/etc/ssl/certs/ca-certificates.crt"
_STAGE: Final = re.compile(r"^(?:== (?P<step>.*)|(?P<work>.*?) …)$")


def make_root(root: Path, suite: str) -> None:
    """Makes the bare root with a clone of the committed tree."""
    subprocess.run(["mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, root], check=True)
    for name in _OF_NETWORK:
        if Path("/", name).is_file():
            shutil.copy(Path("/", name), root / name)
    if _CERTIFICATES.is_dir():
        shutil.copytree(_CERTIFICATES, root / _CERTIFICATES.relative_to("/"), dirs_exist_ok=True)
    subprocess.run(["chroot", root, "update-ca-certificates"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{TREE}", root / HOME], check=True)


def timed(root: Path, command: Sequence[str]) -> int:
    """Runs a command in the root, prints its lines with the time, then the seconds of each stage; its exit code."""
    mounts = f"mount --rbind /dev {root}/dev; mount -t proc proc {root}/proc; mount --rbind /sys {root}/sys"
    inside = [
        "chroot",
        str(root),
        "env",
        "-i",
        "HOME=/root",
        "LANG=C.UTF-8",
        "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ]
    inside += [f"PIP_CERT={_TRUSTED}", "sh", "-c", f'cd /{HOME} && exec "$@"', "sh", *command]
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", f'{mounts}; exec "$@"', "sh", *inside]
    began, stages = time.monotonic(), list[tuple[float, str]]()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None  # noqa: S101  # it was asked for
        for line in process.stdout:
            seconds = time.monotonic() - began
            sys.stdout.write(f"{seconds:6.1f} s  {line}")
            sys.stdout.flush()
            if found := _STAGE.match(line.rstrip()):
                stages.append((seconds, found["step"] or found["work"]))
    stages.append((time.monotonic() - began, "the end"))
    lines = [f"\n{' '.join(command)}: {stages[-1][0]:.0f} s, exit code {process.returncode}"]
    for (at, name), (until, _) in pairwise(stages):
        lines.append(f"  from {at:5.1f} s, {until - at:5.1f} s until the next: {name}")
    sys.stdout.write("\n".join([*lines, "", ""]))
    return process.returncode


def main() -> int:
    """Runs the command twice in a new root, which is removed unless the user keeps it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", default="bookworm", help="release of Debian")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="folder for the root, which stays and is used again"
    )
    parser.add_argument("command", nargs="*", default=["make", "demo"])
    options = parser.parse_args()
    root = options.keep or Path(tempfile.mkdtemp(prefix="hydra-bare-"))
    try:
        if not (root / HOME).is_dir():
            make_root(root, options.suite)
        return timed(root, options.command) or timed(root, options.command)
    finally:
        if not options.keep:
            shutil.rmtree(root)


if __name__ == "__main__":
    sys.exit(main())
