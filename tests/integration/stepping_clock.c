/* Preloaded into a run by test_surroundings.py: the wall clock jumps an hour ahead once the file exists that
 * STEPPED_BY names. CLOCK_MONOTONIC goes on as it is, as it does when somebody sets the clock. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int failed = (int)syscall(SYS_clock_gettime, clock, now);
    const char *step = getenv("STEPPED_BY");
    if (!failed && clock == CLOCK_REALTIME && step && access(step, F_OK) == 0) {
        now->tv_sec += 3600;
    }
    return failed;
}
