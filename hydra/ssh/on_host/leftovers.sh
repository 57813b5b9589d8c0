# What runs of this user have on a host: processes by their environment, and folders.
mine() {
    grep -szao '^HYDRA_RUN=[^[:cntrl:]]*' /proc/[0-9]*/environ | tr '\000' '\n' | while IFS= read -r found; do
        process=${found%%/environ:*}
        [ -O "$process" ] && printf '%s\t%s\n' "${process#/proc/}" "${found#*=}"
    done
}
folders() {
    for folder in "$base"/hydra-run-*; do
        [ -O "$folder/run" ] && printf '%s\t%s\n' "$folder" "$(tail -n 1 "$folder/run")"
    done
}
