"""The programs that run on a host: shell scripts, as a host of native clients needs no Python. Pure.

``SUPERVISOR`` serves one run. Its commands are lines on its standard input, in words quoted as sh quotes them
(:func:`line`); its replies are lines of fields between tabs (:func:`reply`):

    ping                                          it is not silent
    archive BYTES                                 that number of bytes of the archive follow → stored
    prove PROGRAM…                                → proved, or refused TEXT
    reach ADDRESS PORT                            whether the host reaches it → reach yes, no or unknown
    start GROUP COUNT VARIABLE=VALUE… WORD…       → started GROUP PID, and later ended GROUP STATUS TEXT
    signal GROUP NAME                             sends a signal to the group
    end                                           ends all groups and itself

Its first reply is ``hello`` with facts about the host (:mod:`hydra.ssh.facts`). Only the supervisor has the write end
of the lifeline (file descriptor 8), whose read end (9) the groups and the *watcher* have. However the supervisor ends,
the watcher reads end-of-file, ends all groups and removes the folder. A network that fell silent leaves the standard
input open, so the *ticker* ends a supervisor that got no ping for 30 to 60 s.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

PING_EVERY_S: Final = 10.0
RUN: Final = "HYDRA_RUN"
"""The environment variable with the run's name, which all processes of a run on a host have."""

_START: Final = """\
umask 077
LC_ALL=C
export LC_ALL
base=${TMPDIR:-/tmp}
tab=$(printf '\\t')
newline='
'
"""

FACTS: Final = (
    _START
    + """\
shared=$base/hydra-$(id -u)/@digest@
fact() { printf 'fact\\t%s\\t%s\\n' "$1" "$2"; }
facts() {
    fact machine "$(uname -m)"
    fact cpus "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
    fact mem "$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)"
    fact disk "$(df -Pk "$base" | awk 'NR == 2 { print int($4 / 1024) }')"
    fact folder "$base"
    fact nofile "$(ulimit -Hn)"
    fact python "$(command -v @python@)"
    fact addresses "$(awk '/32 host LOCAL/ { print last } { last = $2 }' /proc/net/fib_trie | sort -u | tr '\\n' ' ')"
    fact connection "${SSH_CONNECTION:-}"
    fact listening "$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk '$4 == "0A" { n = split($2, part, ":"); print part[n] }' | sort -u | tr '\\n' ' ')"
    fact archive "$([ -e "$shared/complete" ] && [ -x "$shared/hydra-run" ] && echo kept)"
}
"""
)

ASKED: Final = FACTS + "facts\necho hello\n"
"""Prints the facts and ends."""

SUPERVISOR: Final = (
    FACTS
    + """\
trap '' HUP INT TERM PIPE
refuse() { printf 'refused\\t%s\\n' "$(printf '%s' "$*" | tr '\\n\\t' '  ')"; }
output=$(mktemp -d "$base/hydra-run-XXXXXX" 2>&1) || { refuse "$output"; exit 1; }
work=$output
HYDRA_ARTIFACT=@digest@ HYDRA_LIFELINE=9
export HYDRA_ARTIFACT HYDRA_LIFELINE
{ printf '%s\\n' "$HYDRA_RUN" >"$work/run" && mkfifo "$work/lifeline"; } 2>"$work/output" || {
    refuse "$(tail -n 1 "$work/output")"
    rm -rf "$work"
    exit 1
}
exec 7<>"$work/lifeline" 8>"$work/lifeline" 9<"$work/lifeline" 7>&-
rm "$work/lifeline"

setsid sh -c 'while sleep 30 && [ -e "$1/ping" ]; do rm -f "$1/ping"; done
    grep -qs HYDRA_RUN "/proc/$2/environ" && kill -KILL "$2"' ticker "$work" $$ 8>&- 9<&- </dev/null >/dev/null 2>&1 &
ticker=$!

groups() {
    for file in "$work"/*.pid; do
        [ -e "$file" ] && kill -s "$1" -- "-$(cat "$file")" 2>/dev/null && found=yes
    done
}
(
    exec 8>&- </dev/null >/dev/null 2>&1
    read -r _ <&9
    kill -s KILL -- "-$ticker"
    groups TERM
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        found=
        groups 0
        [ "$found" ] || break
        sleep 0.1
    done
    groups KILL
    cd /
    rm -rf "$work" || { sleep 0.5; rm -rf "$work"; }
) &
watcher=$!

start() {
    id=$1 count=$2
    shift 2
    (
        exec 8>&- </dev/null
        trap - HUP INT TERM PIPE
        while [ "$count" -gt 0 ]; do
            export "$1"
            shift
            count=$((count - 1))
        done
        fail() { printf 'ended\\t%s\\t78\\t%s\\n' "$id" "$(tr '\\n\\t' '  ' <"$work/$id.output")"; exit; }
        { mkdir -p "$work/$id" && cd "$work/$id" && : >>stdout && : >>stderr; } 2>"$work/$id.output" || fail
        setsid "$shared/hydra-run" "$@" >>stdout 2>>stderr &
        pid=$!
        echo "$pid" >"$work/$id.pid" || { kill -KILL "$pid"; fail; }
        printf 'started\\t%s\\t%s\\n' "$id" "$pid"
        trap '' HUP INT TERM PIPE
        wait "$pid"
        status=$?
        rm -f "$work/$id.pid"
        kill -s KILL -- "-$pid" 2>/dev/null
        output=$(tail -c 2000 stderr 2>/dev/null | tail -n 5 | tr '\\n\\t' '| ')
        printf 'ended\\t%s\\t%s\\t%s\\n' "$id" "$status" "$output"
    ) &
}

prove() {
    for program in "$@"; do
        runner=$shared/hydra-run
        [ -x "$runner" ] || runner=$work/hydra-run
        case $program in
            python) output=$("$runner" python -c 'import hydra.control.control_client' 2>&1) ;;
            *) output=$("$runner" "$program" --help 2>&1 >/dev/null) ;;
        esac || { refuse "$(printf '%s' "$output" | tail -n 1)"; return; }
        [ -x "$shared/hydra-run" ] || {
            [ -e "$shared/complete" ] && cp "$work/hydra-run" "$shared/.$$" && mv "$shared/.$$" "$shared/hydra-run"
        } 2>/dev/null || {
            refuse "programs cannot be kept in $base: it is full, hydra-$(id -u) there belongs to another user, or " \
                "programs may not run there"
            return
        }
    done
    rm -f "$work/hydra-run" "$work/program.tar.gz"
    printf 'proved\\n'
}

reach() {
    if command -v bash >/dev/null && command -v timeout >/dev/null; then
        timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null && echo yes || echo no
    elif command -v nc >/dev/null; then
        nc -z -w 5 "$1" "$2" 2>/dev/null && echo yes || echo no
    else
        echo unknown
    fi
}

facts
printf 'hello\\n'
while IFS= read -r line; do
    eval "set -- $line"
    word=$1
    shift
    case $word in
        ping) : >"$work/ping" ;;
        archive)
            if output=$(head -c "$1" | tar -xf - -C "$work" 2>&1); then printf 'stored\\n'; else refuse "$output"; fi ;;
        prove) prove "$@" ;;
        reach) printf 'reach\\t%s\\n' "$(reach "$@")" ;;
        start) start "$@" ;;
        signal) [ -e "$work/$1.pid" ] && kill -s "$2" -- "-$(cat "$work/$1.pid")" 2>/dev/null ;;
        end) break ;;
    esac
done
exec 8>&-
wait "$watcher"
"""
)

_LEFT: Final = (
    _START
    + """\
mine() {
    grep -sao 'HYDRA_RUN=[^[:cntrl:]]*' /proc/[0-9]*/environ | while IFS= read -r found; do
        process=${found%%/environ:*}
        [ -O "$process" ] && printf '%s\\t%s\\n' "${process#/proc/}" "${found#*=}"
    done
}
folders() {
    for folder in "$base"/hydra-run-*; do
        [ -O "$folder/run" ] && printf '%s\\t%s\\n' "$folder" "$(cat "$folder/run")"
    done
}
"""
)

LISTED: Final = (
    _LEFT
    + """\
mine | sed 's/^/process\\t/'
folders | sed 's/^/folder\\t/'
echo hello
"""
)
"""Prints a line for each process and each folder that a run of this user has there: kind, which one, the run."""

KILLED: Final = (
    _LEFT
    + """\
run=@run@
for _ in 1 2 3; do
    mine | while IFS="$tab" read -r pid its; do
        [ "$its" = "$run" ] && kill -KILL "$pid" 2>/dev/null && printf 'process\\t%s\\t%s\\n' "$pid" "$its"
    done
done
folders | while IFS="$tab" read -r folder its; do
    [ "$its" = "$run" ] && rm -rf "$folder" && printf 'folder\\t%s\\t%s\\n' "$folder" "$its"
done
echo hello
"""
)
"""Ends what a run of this user has there, and prints the same lines."""

_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "hello": (),
    "fact": ("name", "value"),
    "stored": (),
    "proved": (),
    "refused": ("what",),
    "reach": ("answer",),
    "started": ("group", "pid"),
    "ended": ("group", "status", "text"),
    "process": ("which", "run"),
    "folder": ("which", "run"),
}


def filled(script: str, **values: str) -> str:
    """The script with each ``@NAME@`` replaced by its value, which is quoted."""
    for name, value in values.items():
        script = script.replace(f"@{name}@", shlex.quote(value))
    return script


def started(script: str, run: str = "") -> list[str]:
    """The program that reads this script from its standard input and runs it; what follows is the script's input.

    Args:
        script: the script.
        run: the name of the run whose processes this one and its children are; "" is none.
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
