#!/usr/bin/env bash
# Measures tonight's run in RUNS/tonight and compares it with RUNS/last, if there is one. Exit code 3: something became slower.
set -u
runs=${RUNS:-runs}
hydra=${HYDRA:-hydra}

rm -rf "$runs/tonight"
"$hydra" zmq-fixed --rate "${RATE:-5000}" --subscribers "${CLIENTS:-10,50}" --duration "${DURATION:-10}" --repeat "${REPEAT:-10}" \
    --fail-if 'client_loss_pct > 0.5' --out "$runs/tonight"
code=$?
# The report is worth most when something went wrong.
[ -e "$runs/tonight/run.db" ] && "$hydra" report "$runs/tonight"

if [ $code -eq 0 ] && [ -e "$runs/last/run.db" ]; then
    "$hydra" compare "$runs/last" "$runs/tonight" --html "$runs/tonight/compared.html" \
        --fail-if 'avg_rx_rate_pps < 0.9 * base' --fail-if 'latency_p99_us > 2 * base'
    code=$?
fi
# Only a good night is what the next one is compared with.
if [ $code -eq 0 ]; then
    rm -rf "$runs/last"
    mv "$runs/tonight" "$runs/last"
fi
exit $code
