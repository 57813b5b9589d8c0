run=@run@
for _ in 1 2 3; do
    mine | while IFS="$tab" read -r pid its; do
        [ "$its" = "$run" ] && kill -KILL "$pid" 2>/dev/null && printf 'process\t%s\t%s\n' "$pid" "$its"
    done
done
folders | while IFS="$tab" read -r folder its; do
    [ "$its" = "$run" ] && rm -rf "$folder" && printf 'folder\t%s\t%s\n' "$folder" "$its"
done
echo hello
