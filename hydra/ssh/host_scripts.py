"""The programs that run on a host: shell scripts, as a host of native clients needs no Python.

``SUPERVISOR`` serves one run. Its commands are lines on its standard input, in words quoted as sh quotes them
(:func:`line`); its replies are lines of fields between tabs (:func:`reply`):

    ping                                          it is not silent
    archive BYTES                                 that number of bytes of the archive follow
    unpack                                        unpacks all of these → stored
    prove WORD…                                   starts this program of the archive → tried FAILURE; "" is none;
                                                  or refused TEXT
    reach ADDRESS PORT                            whether the host reaches it → reach yes, no or unknown
    start GROUP COUNT VARIABLE=VALUE… WORD…       → started GROUP PID, and later ended GROUP STATUS TEXT
    signal GROUP NAME                             sends a signal to the group
    end                                           ends all groups and itself

Its first reply is ``hello`` with facts about the host (:mod:`hydra.ssh.facts`). Only the supervisor has the write end
of the lifeline (file descriptor 8), whose read end (9) the groups and the *watcher* have. However the supervisor ends,
the watcher reads end-of-file, ends all groups, kills what else has the folder's name in its environment, and removes
the folder. A network that fell silent leaves the standard input open, so the *ticker* ends a supervisor that got no
ping for 30 to 60 s, or for 10 minutes while it proves programs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

PING_EVERY_S: Final = 10.0
RUN: Final = "HYDRA_RUN"
"""The environment variable that all processes of a run on a host have: the run's name, a slash, random digits."""


def _script(*names: str) -> str:
    """Scripts of ``on_host/`` as one."""
    return "".join(Path(__file__).with_name("on_host").joinpath(f"{name}.sh").read_text() for name in names)


FACTS: Final = _script("shell", "facts") + "facts\necho hello\n"
"""Prints the facts and ends."""
SUPERVISOR: Final = _script("shell", "facts", "supervisor")
_READ: Final = _script("shell", "texts")
LISTED: Final = _script("shell", "leftovers", "listed")
"""Prints a line for each process and each folder that a run of this user has there: kind, which one, the run."""
KILLED: Final = _script("shell", "leftovers", "killed")
"""Ends what a run of this user has there, and prints the same lines."""

_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "hello": (),
    "fact": ("name", "value"),
    "stored": (),
    "tried": ("failure",),
    "refused": ("what",),
    "reach": ("answer",),
    "started": ("group", "pid"),
    "ended": ("group", "status", "text"),
    "text": ("reading", "path", "line"),
    "process": ("which", "run"),
    "folder": ("which", "run"),
}


def filled(script: str, **values: str) -> str:
    """The script with each ``@NAME@`` replaced by its value, which is quoted."""
    for name, value in values.items():
        script = script.replace(f"@{name}@", shlex.quote(value))
    return script


def reading(readings: Sequence[Sequence[str]]) -> str:
    """The script that prints each line of these files of the kernel, half a second between two readings.

    Args:
        readings: the files of each reading; ``*``, ``?`` and ``[…]`` stand for a part of a name.
    """
    # What a host reports, such as the name of a control group, must not become a command.
    words = [[re.sub(r"[^\w/.*?\[\]-]", r"\\\g<0>", file, flags=re.ASCII) for file in files] for files in readings]
    lines = [f"texts {number} {' '.join(files)}\n" for number, files in enumerate(words)]
    return _READ + "sleep 0.5\n".join(lines) + "echo hello\n"


def started(script: str, run: str = "") -> list[str]:
    """The program that reads this script from its standard input and runs it; what follows is the script's input.

    Args:
        script: the script.
        run: the run, as in :data:`RUN`, whose processes this one and its children are; "" is none.
    """
    words = ["env", f"{RUN}={run}"] if run else []
    # dd reads no byte more, and a shell that reads its script from standard input may read some of what follows.
    return [*words, "/bin/sh", "-c", f'eval "$(dd bs=1 count={len(script.encode())} 2>/dev/null)"']


def line(*words: str) -> bytes:
    """A command for the supervisor."""
    newline = "'\"$newline\"'"
    return (" ".join(shlex.quote(word).replace("\n", newline) for word in words) + "\n").encode()


def reply(text: str) -> dict[str, Any] | None:
    """A reply as a message, by ``kind``; None if the line is none (a login shell may print lines of its own)."""
    kind, *values = text.split("\t")
    fields = _FIELDS.get(kind)
    if fields is None or len(values) != len(fields):
        return None
    return {"kind": kind, **dict(zip(fields, values, strict=True))}
