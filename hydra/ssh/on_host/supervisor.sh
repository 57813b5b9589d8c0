# The supervisor of one run; hydra/ssh/host_scripts.py describes its commands and replies. facts.sh precedes it.
trap '' HUP INT TERM PIPE
refuse() { printf 'refused\t%s\n' "$(printf '%s' "$*" | tr '\n\t' '  ')"; }

# A batch system may end a supervisor together with its watcher; the next one removes the folder.
# Hosts may share TMPDIR, and the first PID namespace of every host has the same number.
namespace="$(uname -n) $(readlink /proc/self/ns/pid)"
for folder in "$base"/hydra-run-*; do
    [ -O "$folder/run" ] && { read -r pid its; } <"$folder/run" && [ "$its" = "$namespace" ] &&
        ! grep -qs HYDRA_RUN= "/proc/$pid/environ" && rm -rf "$folder"
done

output=$(mktemp -d "$base/hydra-run-XXXXXX" 2>&1) || { refuse "$output"; exit 1; }
work=$output
HYDRA_ARTIFACT=@digest@ HYDRA_LIFELINE=9 HYDRA_WORK=$work
export HYDRA_ARTIFACT HYDRA_LIFELINE HYDRA_WORK
{
    printf '%s %s\n%s\n' "$$" "$namespace" "$HYDRA_RUN" >"$work/run" && true >"$work/open" && mkfifo "$work/lifeline"
} 2>"$work/output" || {
    refuse "$(tail -n 1 "$work/output")"
    rm -rf "$work"
    exit 1
}
exec 7<>"$work/lifeline" 8>"$work/lifeline" 9<"$work/lifeline" 7>&-
rm "$work/lifeline"

# The supervisor reads no ping while it unpacks and proves programs, which a slow disk may make long.
setsid sh -c 'while sleep 30 && { [ -e "$1/ping" ] || [ "$(find "$1/proving" -mmin -10 2>/dev/null)" ]; }; do
        rm -f "$1/ping"
    done
    grep -qs HYDRA_RUN "/proc/$2/environ" && kill -KILL "$2"' ticker "$work" $$ 8>&- 9<&- </dev/null >/dev/null 2>&1 &
ticker=$!

two_seconds='1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20'
# A process that has not yet called setsid has no process group of its own.
group() { kill -s "$1" -- "-$2" || kill -s "$1" "$2"; } 2>/dev/null
groups() {
    for file in "$work"/*.pid; do
        [ -e "$file" ] || continue
        # The file is empty until the process of the group is there.
        read -r pid <"$file" && ! group "$1" "$pid" || found=yes
    done
}
(
    exec 8>&- </dev/null >/dev/null 2>&1
    unset HYDRA_WORK
    read -r _ <&9
    # A group whose number is written after this ends at once; the watcher sees every other one.
    rm -f "$work/open"
    group KILL "$ticker"
    groups TERM
    for _ in $two_seconds; do
        found=
        groups 0
        [ "$found" ] || break
        sleep 0.1
    done
    groups KILL
    # Processes that left their group, and what a killed supervisor waited for.
    for _ in 1 2 3; do
        found=$(grep -slF "HYDRA_WORK=$work" /proc/[0-9]*/environ | tr -dc '0-9\n')
        # shellcheck disable=SC2086  # words on purpose
        [ "$found" ] && kill -s KILL $found || break
    done
    cd /
    rm -rf "$work" || { sleep 0.5; rm -rf "$work"; }
) &

start() {
    id=$1 count=$2
    shift 2
    true >"$work/$id.pid"
    (
        exec 8>&- </dev/null
        trap - HUP INT TERM PIPE
        while [ "$count" -gt 0 ]; do
            export "$1"
            shift
            count=$((count - 1))
        done
        fail() { printf 'ended\t%s\t78\t%s\n' "$id" "$(tr '\n\t' '  ' <"$work/$id.output")"; rm -f "$work/$id.pid"; exit; }
        { mkdir -p "$work/$id" && cd "$work/$id" && true >>stdout && true >>stderr; } 2>"$work/$id.output" || fail
        setsid "$shared/hydra-run" "$@" >>stdout 2>>stderr &
        pid=$!
        { echo "$pid" >"$work/$id.pid" && [ -e "$work/open" ]; } || { group KILL "$pid"; fail; }
        printf 'started\t%s\t%s\n' "$id" "$pid"
        trap '' HUP INT TERM PIPE
        wait "$pid"
        status=$?
        rm -f "$work/$id.pid"
        kill -s KILL -- "-$pid" 2>/dev/null
        output=$(tail -c 2000 stderr 2>/dev/null | tail -n 5 | tr '\n\t' '| ')
        printf 'ended\t%s\t%s\t%s\n' "$id" "$status" "$output"
    ) &
}

prove() {
    runner=$shared/hydra-run
    kept || runner=$work/hydra-run
    if output=$("$runner" "$@" </dev/null 2>&1 >/dev/null 8>&-); then
        output=
        kept || {
            own && [ -e "$shared/complete" ] && cp "$work/hydra-run" "$shared/.$$" && mv "$shared/.$$" "$shared/hydra-run"
        } 2>/dev/null || {
            refuse "programs cannot be kept in $base: it is full, hydra-$(id -u) there belongs to another user, or" \
                "programs may not run there"
            return
        }
        rm -f "$work/hydra-run" "$work/program.tar.gz"
    else
        status=$?
        output=$(printf '%s' "$output" | tail -n 1 | tr '\t' ' ')
        output=${output:-$* ends with status $status there, and prints nothing}
    fi
    printf 'tried\t%s\n' "$output"
}

reach() {
    if command -v bash >/dev/null && command -v timeout >/dev/null; then
        timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null && echo yes || echo no
    elif command -v nc >/dev/null; then
        nc -z -w 5 "$1" "$2" 2>/dev/null && echo yes || echo no
    elif command -v @python@ >/dev/null; then
        @python@ -c 'import socket, sys; socket.create_connection((sys.argv[1], sys.argv[2]), 5)' "$1" "$2" \
            2>/dev/null && echo yes || echo no
    else
        echo unknown
    fi
}

facts
printf 'hello\n'
while IFS= read -r line; do
    eval "set -- $line"
    word=$1
    shift
    case $word in
        ping) true >"$work/ping" ;; # where it cannot be written, ":" would end the shell
        archive)
            # What head did not read would be read as commands. If the supervisor is killed, head may wait for ever.
            output=$(exec 8>&- 2>&1 && head -c "$1" >>"$work/archive") || { refuse "$output"; break; } ;;
        unpack)
            output=$(exec 8>&- 2>&1 && tar -xf "$work/archive" -C "$work") && printf 'stored\n' || refuse "$output"
            rm -f "$work/archive" ;;
        prove)
            true >"$work/proving"
            prove "$@"
            true >"$work/ping"
            rm -f "$work/proving" ;;
        reach) printf 'reach\t%s\n' "$(exec 8>&- && reach "$@")" ;;
        start) start "$@" ;;
        signal)
            for _ in $two_seconds; do
                [ -s "$work/$1.pid" ] || [ ! -e "$work/$1.pid" ] || { sleep 0.1 && continue; }
                break
            done
            [ -s "$work/$1.pid" ] && group "$2" "$(cat "$work/$1.pid")" ;;
        end) break ;;
    esac
done
exec 8>&-
wait
