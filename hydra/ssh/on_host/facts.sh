# Facts about a host, one a line. hydra/ssh/host_scripts.py begins each script with shell.sh.
copies=$base/hydra-$(id -u)
shared=$copies/@digest@
# Anyone may make a folder of this name in a shared TMPDIR: nothing of another user's is run.
own() { [ -d "$copies" ] && [ ! -L "$copies" ] && [ -O "$copies" ]; }
kept() { own && [ -e "$shared/complete" ] && [ -x "$shared/hydra-run" ]; }
fact() { printf 'fact\t%s\t%s\n' "$1" "$2"; }
facts() {
    fact machine "$(uname -m)"
    fact cpus "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
    fact mem "$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)"
    fact disk "$(df -Pk "$base" | awk 'NR == 2 { print int($4 / 1024) }')"
    fact folder "$base"
    fact nofile "$(ulimit -Hn)"
    fact python "$(command -v @python@)"
    fact addresses "$(awk '/32 host LOCAL/ { print last } { last = $2 }' /proc/net/fib_trie | sort -u | tr '\n' ' ')"
    fact connection "${SSH_CONNECTION:-}"
    fact listening "$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk '$4 == "0A" { n = split($2, part, ":"); print part[n] }' | sort -u | tr '\n' ' ')"
    fact archive "$(kept && echo kept)"
}
