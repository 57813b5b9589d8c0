run=@run@
# A run's name with random digits is one run; the name alone is every run that has it.
its() { [ "$1" = "$run" ] || [ "${1%/*}" = "$run" ]; }
for _ in 1 2 3; do
    mine | while IFS="$tab" read -r pid name; do
        its "$name" && kill -KILL "$pid" 2>/dev/null && printf 'process\t%s\t%s\n' "$pid" "$name"
    done
done
folders | while IFS="$tab" read -r folder name; do
    its "$name" && rm -rf "$folder" && printf 'folder\t%s\t%s\n' "$folder" "$name"
done
echo hello
