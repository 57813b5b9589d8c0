mine | sed 's/^/process\t/'
folders | sed 's/^/folder\t/'
echo hello
