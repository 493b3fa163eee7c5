/* The clock of the day of a program and of what it starts jumps. Loaded with LD_PRELOAD; monotonic clocks go on as they were.
 *
 *   FAULTS_CLOCK   a file of eight bytes: the seconds that are added, a native long, read at every call
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *offset;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) offset = page;
    close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
    return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int failed = syscall(SYS_gettimeofday, now, zone);
    if (!failed && offset) now->tv_sec += *offset;
    return failed;
}
time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
