/* Some writes of one program to files under one folder fail. Built by tests/real/faults/tools.py, loaded with LD_PRELOAD.
 *
 *   FAULTS_WRITES_UNDER   folder
 *   FAULTS_WRITES_WHO     words of the command line of the program that is meant
 *   FAULTS_WRITES_ERRNO   what the call fails with
 *   FAULTS_WRITES_AFTER   how many calls succeed first
 *   FAULTS_WRITES_FOR     how many fail then
 *   FAULTS_WRITES_SAID    a file that is made when the first one fails
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *under, *said;
static long after, most;
static int error_number, meant;
static atomic_long calls;

__attribute__((constructor)) static void begin(void) {
    const char *who = getenv("FAULTS_WRITES_WHO");
    under = getenv("FAULTS_WRITES_UNDER");
    said = getenv("FAULTS_WRITES_SAID");
    if (!who || !under || !said) return;
    error_number = atoi(getenv("FAULTS_WRITES_ERRNO"));
    after = atol(getenv("FAULTS_WRITES_AFTER"));
    most = atol(getenv("FAULTS_WRITES_FOR"));
    char line[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t size = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    for (ssize_t i = 0; i < size; i++)
        if (!line[i]) line[i] = ' ';
    line[size > 0 ? size : 0] = 0;
    meant = strstr(line, who) != NULL;
}

static int struck(void) {
    long number = atomic_fetch_add(&calls, 1);
    if (number < after || number >= after + most) return 0;
    int fd = syscall(SYS_openat, AT_FDCWD, said, O_WRONLY | O_CREAT, 0666);
    if (fd >= 0) syscall(SYS_close, fd);
    errno = error_number;
    return 1;
}

static int is_under(int fd) {
    char link[64], path[4096];
    struct stat what;
    if (!meant || fstat(fd, &what) || !S_ISREG(what.st_mode)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return strncmp(path, under, strlen(under)) == 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    return is_under(fd) && struck() ? -1 : NEXT(write)(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return is_under(fd) && struck() ? -1 : NEXT(pwrite)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return is_under(fd) && struck() ? -1 : NEXT(pwrite64)(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    return is_under(fd) && struck() ? -1 : NEXT(writev)(fd, parts, count);
}
int fsync(int fd) { return is_under(fd) && struck() ? -1 : NEXT(fsync)(fd); }
int ftruncate(int fd, off_t size) { return is_under(fd) && struck() ? -1 : NEXT(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return is_under(fd) && struck() ? -1 : NEXT(ftruncate64)(fd, size); }
int rename(const char *from, const char *to) {
    return meant && strncmp(to, under, strlen(under)) == 0 && struck() ? -1 : NEXT(rename)(from, to);
}
int mkdir(const char *path, mode_t mode) {
    return meant && strncmp(path, under, strlen(under)) == 0 && struck() ? -1 : NEXT(mkdir)(path, mode);
}
