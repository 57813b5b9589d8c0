# Prints the lines of files of the kernel: the number of the reading, the path, the line; of a long file the beginning.
texts() {
    number=$1
    shift
    # With a second file grep prints the path of each line.
    grep -sm 80 '' "$@" /dev/null | tr "$tab" ' ' | sed "s/^\\([^:]*\\):/text$tab$number$tab\\1$tab/"
}
