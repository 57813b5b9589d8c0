# The beginning of each script on a host.
umask 077
LC_ALL=C
export LC_ALL
base=${TMPDIR:-/tmp}
tab=$(printf '\t')
newline='
'
