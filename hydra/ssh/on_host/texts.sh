# Prints the lines of files of the kernel: the number of the reading, the path, the line; of a long file the beginning.
texts() {
    number=$1
    shift
    # A file more has grep print each path.
    grep -sm 80 '' "$@" /dev/null | tr "$tab" ' ' | sed "s/^\\([^:]*\\):/text$tab$number$tab\\1$tab/"
}
