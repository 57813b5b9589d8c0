"""The shell script ``hydra-run``, with which an agent starts a program of the archive."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

RUNNER: Final = "hydra-run"
"""The script's name in the archive."""

TEMPLATE: Final = """\
#!/bin/sh
# Starts a group of Hydra in its folder on an agent, or prints why it cannot: hydra-run python|PROGRAM ARGUMENT…
root=$(cd "$(dirname "$0")" && pwd) || exit 78
report() { printf 'hydra-run: %s\\n' "$*" >&2; }
if [ "$(uname -m)" != '@machine@' ]; then
    report "this agent is $(uname -m); the archive was built on @machine@: run hydra on a machine like the agents"
    exit 78
fi
if [ -n "${HYDRA_ARTIFACT:-}" ] && [ "$HYDRA_ARTIFACT" != '@digest@' ]; then
    report "this archive is @digest@, and the run needs $HYDRA_ARTIFACT: make the copy that you serve again"
    exit 78
fi
program=$1
shift
shared=${TMPDIR:-/tmp}/hydra-$(id -u 2>/dev/null)
home=$shared/@digest@
mine() { [ -d "$shared" ] && [ ! -L "$shared" ] && [ -O "$shared" ]; }
found=
if [ "$program" = python ]; then
    # The search for a Python starts several. The first group of an agent searches for all groups with the same PATH.
    # The real path is compared as well: after an upgrade the same name may be another Python.
    mine && { read -r path && read -r interpreter && read -r real; } 2>/dev/null <"$home/interpreter"
    if [ "${path:-}" != "$PATH" ] || [ ! -x "$interpreter" ] || [ "$(readlink -f "$interpreter")" != "${real:-}" ]; then
        for python in python@python@ python3 python; do
            command -v "$python" >/dev/null 2>&1 || continue
            interpreter=$("$python" -ISc '
import sys
sys.exit(1) if sys.version_info[:2] != (@major@, @minor@) else print(sys.executable)' 2>/dev/null) && found=yes && break
        done
        if [ -z "$found" ]; then
            have=$(command -v python3 >/dev/null 2>&1 && python3 --version 2>&1)
            report "this agent has no Python @python@, which the controller runs (python3 here: ${have:-none});" \\
                "install python@python@, or run hydra with the agents' Python"
            exit 78
        fi
    fi
else
    have=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/glibc //')
    oldest=$(printf '%s\\n%s\\n' '@glibc@' "$have" | sort -V | head -n 1)
    if [ "$oldest" != '@glibc@' ]; then
        report "this agent has glibc ${have:-of an unknown version}; the native clients need @glibc@ or newer"
        exit 78
    fi
fi

# All groups of an agent share one unpacked copy: a copy for each would need disk and memory many times. The copy is in
# a folder of this user in which programs may run; if there is no such folder, each group has a copy in its sandbox.
unpack() { mkdir -p "$1" && tar -xzf "$root/program.tar.gz" -C "$1"; }
share() {
    command -v flock >/dev/null 2>&1 || return 1
    mkdir -m 700 "$shared" 2>/dev/null
    mine || return 1
    (
        flock -w 60 9 || exit 1
        [ -e "$home/complete" ] && touch "$home" && exit 0
        find "$shared" -mindepth 1 -maxdepth 1 -type d -mmin +1440 -exec rm -rf {} +
        rm -rf "$home"
        mkdir "$home" && printf '#!/bin/sh\\n' >"$home/probe" && chmod 700 "$home/probe" && "$home/probe" || exit 1
        unpack "$home" && touch "$home/complete"
    ) 9>"$shared/lock"
}
if ! share 2>/dev/null; then
    home=$root/program
    unpack "$home" || { report 'the archive cannot be unpacked here: is the disk full?'; exit 78; }
fi
rm -f "$root/program.tar.gz"

[ "$program" = python ] || exec "$home/bin/$program" "$@"

if [ -n "$found" ]; then
    printf '%s\\n' "$PATH" "$interpreter" "$(readlink -f "$interpreter")" >"$home/.$$" &&
        mv "$home/.$$" "$home/interpreter"
fi
export PYTHONPATH="$home/site-packages" PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1
exec "$interpreter" "$@"
"""
"""The script, with ``@NAME@`` for each value that :func:`script` replaces."""


def script(values: Mapping[str, str]) -> str:
    """The script for one archive.

    Args:
        values: ``machine``, ``digest``, ``python`` with its parts ``major`` and ``minor``, and ``glibc``.
    """
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], TEMPLATE)


def rewritten(command: Sequence[str]) -> Iterator[str]:
    """A group's command for ``hydra-run``: it replaces this Python by the agent's, a native client by the archive's."""
    program, *arguments = command
    yield "python" if program == sys.executable else Path(program).name
    yield from arguments
