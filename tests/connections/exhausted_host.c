/* Preloaded into a run by test_exhausted_host.py: as on a host that has reached a limit of its own, subscribers cannot
 * connect to the port EXHAUSTED_PORT; the kernel's error is EXHAUSTED_ERROR. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Clients are known by the kind in the command line of their process, whose words end with a zero. */
static int of_a_subscriber(void)
{
    char line[4096];
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? 0 : read(file, line, sizeof line);
    if (file >= 0) {
        close(file);
    }
    return size > 0 && memmem(line, (size_t)size, "-sub", 5) != NULL;
}

int connect(int socket, const struct sockaddr *address, socklen_t size)
{
    static int (*real)(int, const struct sockaddr *, socklen_t);
    const char *port = getenv("EXHAUSTED_PORT");
    const struct sockaddr_in *to = (const struct sockaddr_in *)(const void *)address;
    if (port && address && address->sa_family == AF_INET && ntohs(to->sin_port) == atoi(port) && of_a_subscriber()) {
        errno = atoi(getenv("EXHAUSTED_ERROR"));
        return -1;
    }
    if (!real) {
        *(void **)&real = dlsym(RTLD_NEXT, "connect");
    }
    return real(socket, address, size);
}
