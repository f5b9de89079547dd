/*
 * inject.c - a preloaded library that makes the N-th call of a kind fail, kills the process at it, or logs all writes;
 * for check_faults.py
 *
 *     CHEX_FAULT=KIND:N:TIMES:WHAT       TIMES: once, ever, or a number of calls, from the N-th one
 *                                        WHAT: an errno (ENOSPC, EIO, ...), short (half is written or read), kill, wait
 *                                        (three seconds, then the call), wait20 (20 milliseconds)
 *     CHEX_FAULT_BELOW=/out:/in          count only files below these folders; calls of kind memory always count
 *     CHEX_FAULT_UNTIL=FILE              a wait ends when this file exists
 *     CHEX_FAULT_REPORT=FILE             at the end: a line "KIND COUNT" for each kind
 *     CHEX_FAULT_LOG=FILE                every change below the folders, in order, for the replay of a power loss
 *
 * Kinds: write (and pwrite), sync (fsync, fdatasync), close, rename, open, read (and pread), reserve (fallocate,
 * ftruncate), unlink, link, list (opendir, readdir), stat, thread (pthread_create, of any file), memory (malloc,
 * calloc, realloc, directly or through another function, until the program has ended), change (write, sync, rename,
 * unlink, link, open with O_CREAT and reserve counted together).
 *
 * After a failed call, pauses (nanosleep) take no time, so retries end soon.
 *
 * The library knows only the names of the system call wrappers, in wrap_files.c and wrap_memory.c, and nothing of the
 * program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct plan plan = {.log = -1};
unsigned long counts[KINDS];
pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
__thread bool inside;
bool program_ended;

static const char *const kind_names[KINDS] = {"write",  "sync", "close", "rename", "open",   "read",   "reserve",
                                              "unlink", "link", "list",  "stat",   "thread", "memory", "change"};

static const struct {
    const char *name;
    int number;
} errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EDQUOT", EDQUOT}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM},
              {"EINTR", EINTR},   {"ESTALE", ESTALE}, {"EROFS", EROFS},   {"EACCES", EACCES}, {"EAGAIN", EAGAIN}};

/* ---- setting up ------------------------------------------------------------------------------------------------ */

static void
parse_plan(const char *text)
{
    char kind[16], mode[16], what[16];
    size_t i;

    if (!text || sscanf(text, "%15[^:]:%lu:%15[^:]:%15s", kind, &plan.nth, mode, what) != 4)
        return;
    for (i = 0; i < KINDS; i++)
        if (strcmp(kind, kind_names[i]) == 0)
            plan.kind = (enum kind)i, plan.on = true;
    plan.times = strcmp(mode, "ever") == 0 ? ULONG_MAX : strcmp(mode, "once") == 0 ? 1 : strtoul(mode, NULL, 10);
    plan.what = strcmp(what, "short") == 0 ? FAIL_SHORT : strcmp(what, "kill") == 0 ? FAIL_KILL : 0;
    if (strncmp(what, "wait", 4) == 0) {
        plan.what = FAIL_WAIT;
        plan.milliseconds = what[4] ? atol(what + 4) : 3000;
    }
    for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (strcmp(what, errors[i].name) == 0)
            plan.what = errors[i].number;
    if (!plan.on || plan.what == 0 || plan.times == 0) {
        static const char text_bad[] = "inject: CHEX_FAULT cannot be read\n";

        if (write(2, text_bad, sizeof(text_bad) - 1) < 0)
            _exit(99);
        _exit(99);
    }
}

__attribute__((constructor)) static void
begin(void)
{
    const char *below = getenv("CHEX_FAULT_BELOW"), *report = getenv("CHEX_FAULT_REPORT"),
               *log = getenv("CHEX_FAULT_LOG"), *until = getenv("CHEX_FAULT_UNTIL");

    inside = true;
    while (below && *below && plan.folders < FOLDERS) {
        size_t length = strcspn(below, ":");

        snprintf(plan.below[plan.folders++], PATH_SIZE, "%.*s", (int)length, below);
        below += length + (below[length] == ':');
    }
    if (report)
        snprintf(plan.report, sizeof(plan.report), "%s", report);
    if (until)
        snprintf(plan.until, sizeof(plan.until), "%s", until);
    if (log)
        plan.log = (int)syscall(SYS_openat, AT_FDCWD, log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
    memset(counts, 0, sizeof(counts));
    parse_plan(getenv("CHEX_FAULT"));
    inside = false;
}

/* ---- the program's end ------------------------------------------------------------------------------------------ */

static int (*real_main)(int, char **, char **);

static void
end_of_program(void)
{
    program_ended = true;
}

/* Registered before anything that the program registers, so it is called after all of that; the destructors follow. */
static int
main_with_an_end(int argc, char **argv, char **environment)
{
    inside = true;
    if (atexit(end_of_program) != 0)
        _exit(97);
    inside = false;
    return real_main(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end);

/* The function of the C library that starts a program; it gets another main(). */
int
__libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                  void (*loader_fini)(void), void *stack_end)
{
    REAL(int, "__libc_start_main", int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
         void (*)(void), void *);

    real_main = main;
    return real(main_with_an_end, argc, argv, init, fini, loader_fini, stack_end);
}

__attribute__((destructor)) static void
end(void)
{
    char text[512];
    int used = 0, fd;
    size_t i;

    inside = true;
    plan.on = false;
    if (!plan.report[0])
        return;
    for (i = 0; i < KINDS; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s %lu\n", kind_names[i], counts[i]);
    fd = (int)syscall(SYS_openat, AT_FDCWD, plan.report, O_CREAT | O_WRONLY | O_TRUNC, 0666);
    if (fd >= 0 && syscall(SYS_write, fd, text, (size_t)used) >= 0)
        syscall(SYS_close, fd);
}

/* ---- which files ----------------------------------------------------------------------------------------------- */

static bool
is_below(const char *path)
{
    unsigned i;

    for (i = 0; i < plan.folders; i++) {
        size_t length = strlen(plan.below[i]);

        if (strncmp(path, plan.below[i], length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return true;
    }
    return false;
}

static bool
path_of_fd(int fd, char out[PATH_SIZE])
{
    char link[64];
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_SIZE - 1);
    if (length < 0)
        return false;
    out[length] = '\0';
    return true;
}

bool
path_at(int folder, const char *name, char out[PATH_SIZE])
{
    size_t used;

    if (name[0] == '/')
        return snprintf(out, PATH_SIZE, "%s", name) < PATH_SIZE;
    if (folder == AT_FDCWD ? !getcwd(out, PATH_SIZE) : !path_of_fd(folder, out))
        return false;
    used = strlen(out);
    if (strcmp(name, ".") == 0)
        return true;
    return (size_t)snprintf(out + used, PATH_SIZE - used, "/%s", name) < PATH_SIZE - used;
}

/* ---- the fate of a call ---------------------------------------------------------------------------------------- */

int
count_one(enum kind kind)
{
    unsigned long n = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_SEQ_CST);

    if (!plan.on || plan.kind != kind || n < plan.nth || n - plan.nth >= plan.times)
        return 0;
    if (plan.what == FAIL_KILL) {
        syscall(SYS_kill, (long)getpid(), SIGKILL);
        for (;;)
            pause();
    }
    if (plan.what == FAIL_WAIT) {
        struct timespec end, now, pause = {.tv_nsec = 5000000};

        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += plan.milliseconds / 1000;
        end.tv_nsec += plan.milliseconds % 1000 * 1000000;
        do {
            clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL); /* a signal does not end the wait */
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((double)(end.tv_sec - now.tv_sec) + (double)(end.tv_nsec - now.tv_nsec) * 1e-9 > 0 &&
                 (!plan.until[0] || syscall(SYS_faccessat, AT_FDCWD, plan.until, F_OK) != 0));
        return 0;
    }
    __atomic_store_n(&plan.failing, true, __ATOMIC_SEQ_CST);
    return plan.what;
}

int
fate(enum kind kind, bool changes)
{
    int a = count_one(kind), b = changes ? count_one(CHANGE) : 0;

    return a ? a : b;
}

int
fate_of_fd(enum kind kind, int fd, bool changes, char path[PATH_SIZE])
{
    int saved = errno, result = 0;

    path[0] = '\0';
    if (!inside && plan.folders > 0) {
        inside = true;
        if (path_of_fd(fd, path) && is_below(path))
            result = fate(kind, changes);
        else
            path[0] = '\0';
        inside = false;
    }
    errno = saved;
    return result;
}

int
fate_of_path(enum kind kind, int folder, const char *name, bool changes, char path[PATH_SIZE])
{
    int saved = errno, result = 0;

    path[0] = '\0';
    if (!inside && plan.folders > 0) {
        inside = true;
        if (path_at(folder, name, path) && is_below(path))
            result = fate(kind, changes);
        else
            path[0] = '\0';
        inside = false;
    }
    errno = saved;
    return result;
}

/* ---- the log: OP LENGTH-OF-PATH OFFSET SIZE\n PATH DATA\n ------------------------------------------------------- */

void
log_op(const char *op, const char *path, uint64_t offset, const void *data, size_t size)
{
    char head[128];
    int length = snprintf(head, sizeof(head), "%s %zu %llu %zu\n", op, strlen(path), (unsigned long long)offset, size);
    struct iovec parts[] = {{head, (size_t)length},
                            {(void *)(uintptr_t)path, strlen(path)},
                            {(void *)(uintptr_t)data, size},
                            {(void *)(uintptr_t) "\n", 1}};

    if (syscall(SYS_writev, plan.log, parts, 4) < 0)
        _exit(98);
}

bool
logs(const char *path)
{
    return plan.log >= 0 && path[0] && !inside;
}
