/*
 * inject.c - a library to be preloaded that lets the N-th call of a kind fail, kills the process at it, or logs what is
 * written; for check_faults.py
 *
 *     CHEX_FAULT=KIND:N:once|ever:WHAT   WHAT: an errno (ENOSPC, EIO, ...), short (half is written or read), kill, wait
 *                                        (three seconds, then the call)
 *     CHEX_FAULT_BELOW=/out:/in          only files below these folders count; calls of kind memory always do
 *     CHEX_FAULT_REPORT=FILE             at the end: a line "KIND COUNT" for each kind
 *     CHEX_FAULT_LOG=FILE                every change below the folders, in order, for the replay of a power loss
 *
 * Kinds: write (and pwrite, writev), sync (fsync, fdatasync), close, rename, open, read (and pread), reserve (fallocate,
 * ftruncate), unlink, link, list (opendir, readdir), thread (pthread_create, of any file), memory (malloc, calloc, realloc, and who calls them), change (write,
 * sync, rename, unlink, link, open with O_CREAT and reserve counted together).
 *
 * It knows nothing of what it is loaded into but the names of system calls' wrappers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { WRITE, SYNC, CLOSE, RENAME, OPEN, READ, RESERVE, UNLINK, LINK, LIST, THREAD, MEMORY, CHANGE, KINDS };

static const char *const kind_names[KINDS] = {"write",  "sync", "close", "rename", "open",   "read",  "reserve",
                                              "unlink", "link", "list",  "thread", "memory", "change"};

static const struct {
    const char *name;
    int number;
} errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EDQUOT", EDQUOT}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM},
              {"EINTR", EINTR},   {"ESTALE", ESTALE}, {"EROFS", EROFS},   {"EACCES", EACCES}, {"EAGAIN", EAGAIN}};

enum { FAIL_SHORT = -1, FAIL_KILL = -2, FAIL_WAIT = -3 };

#define PATH_SIZE 4096
#define FOLDERS   4

static struct {
    bool on, ever;
    enum kind kind;
    unsigned long nth;
    int what; /* errno, FAIL_SHORT or FAIL_KILL */
    char below[FOLDERS][PATH_SIZE];
    unsigned folders;
    int log;
    char report[PATH_SIZE];
} plan = {.log = -1};

static unsigned long counts[KINDS];
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER; /* of log and operation */
static __thread bool inside;                              /* calls of our own are not counted */

/* ---- the real ones --------------------------------------------------------------------------------------------- */

#define REAL(type, name, ...)         \
    static type (*real)(__VA_ARGS__); \
    if (!real)                        \
    *(void **)&real = dlsym(RTLD_NEXT, name)

/* dlsym() may allocate before the real functions are known. */
static _Alignas(16) char first_memory[1 << 18];
static size_t first_used;

static bool
is_first_memory(const void *p)
{
    return (const char *)p >= first_memory && (const char *)p < first_memory + sizeof(first_memory);
}

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
    plan.ever = strcmp(mode, "ever") == 0;
    plan.what = strcmp(what, "short") == 0 ? FAIL_SHORT : strcmp(what, "kill") == 0 ? FAIL_KILL : 0;
    if (strcmp(what, "wait") == 0)
        plan.what = FAIL_WAIT;
    for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (strcmp(what, errors[i].name) == 0)
            plan.what = errors[i].number;
    if (!plan.on || plan.what == 0) {
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
               *log = getenv("CHEX_FAULT_LOG");

    inside = true;
    while (below && *below && plan.folders < FOLDERS) {
        size_t length = strcspn(below, ":");

        snprintf(plan.below[plan.folders++], PATH_SIZE, "%.*s", (int)length, below);
        below += length + (below[length] == ':');
    }
    if (report)
        snprintf(plan.report, sizeof(plan.report), "%s", report);
    if (log)
        plan.log = (int)syscall(SYS_openat, AT_FDCWD, log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
    memset(counts, 0, sizeof(counts));
    parse_plan(getenv("CHEX_FAULT"));
    inside = false;
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

/* The whole path of a name in an open folder. */
static bool
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

/* ---- what happens to a call ------------------------------------------------------------------------------------ */

/* 0: nothing; else errno or FAIL_SHORT.  A kill does not return. */
static int
count_one(enum kind kind)
{
    unsigned long n = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_SEQ_CST);

    if (!plan.on || plan.kind != kind || (plan.ever ? n < plan.nth : n != plan.nth))
        return 0;
    if (plan.what == FAIL_KILL) {
        syscall(SYS_kill, (long)getpid(), SIGKILL);
        for (;;)
            pause();
    }
    if (plan.what == FAIL_WAIT) {
        struct timespec left = {.tv_sec = 3};

        while (nanosleep(&left, &left) != 0)
            continue; /* a signal does not end it */
        return 0;
    }
    return plan.what;
}

static int
fate(enum kind kind, bool changes)
{
    int a = count_one(kind), b = changes ? count_one(CHANGE) : 0;

    return a ? a : b;
}

static int
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

static int
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

static void
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

static bool
logs(const char *path)
{
    return plan.log >= 0 && path[0] && !inside;
}

/* ---- wrappers -------------------------------------------------------------------------------------------------- */

ssize_t
write(int fd, const void *data, size_t size)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(WRITE, fd, true, path);
    ssize_t n;

    if (why > 0) {
        errno = why;
        return -1;
    }
    if (!logs(path))
        return real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size);
    pthread_mutex_lock(&order);
    off_t at = lseek(fd, 0, SEEK_CUR);
    n = real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size);
    if (n > 0)
        log_op("write", path, (uint64_t)at, data, (size_t)n);
    pthread_mutex_unlock(&order);
    return n;
}

ssize_t
pwrite(int fd, const void *data, size_t size, off_t at)
{
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(WRITE, fd, true, path);
    ssize_t n;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    n = real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size, at);
    if (n > 0 && logs(path))
        log_op("write", path, (uint64_t)at, data, (size_t)n);
    pthread_mutex_unlock(&order);
    return n;
}

ssize_t
pwrite64(int fd, const void *data, size_t size, off_t at)
{
    return pwrite(fd, data, size, at);
}

ssize_t
pread(int fd, void *data, size_t size, off_t at)
{
    REAL(ssize_t, "pread", int, void *, size_t, off_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(READ, fd, false, path);

    if (why > 0) {
        errno = why;
        return -1;
    }
    return real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size, at);
}

ssize_t
pread64(int fd, void *data, size_t size, off_t at)
{
    return pread(fd, data, size, at);
}

ssize_t
read(int fd, void *data, size_t size)
{
    REAL(ssize_t, "read", int, void *, size_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(READ, fd, false, path);

    if (why > 0) {
        errno = why;
        return -1;
    }
    return real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size);
}

/* What a failed fsync leaves behind is anybody's guess: that is the business of the replay. */
#define SYNC_WRAPPER(name)                                  \
    int name(int fd)                                        \
    {                                                       \
        REAL(int, #name, int);                              \
        char path[PATH_SIZE];                               \
        int why = fate_of_fd(SYNC, fd, true, path), result; \
                                                            \
        if (why > 0) {                                      \
            errno = why;                                    \
            return -1;                                      \
        }                                                   \
        pthread_mutex_lock(&order);                         \
        result = real(fd);                                  \
        if (result == 0 && logs(path))                      \
            log_op("sync", path, 0, NULL, 0);               \
        pthread_mutex_unlock(&order);                       \
        return result;                                      \
    }
SYNC_WRAPPER(fsync)
SYNC_WRAPPER(fdatasync)

/* As on Linux: the descriptor is closed even where close() fails. */
int
close(int fd)
{
    REAL(int, "close", int);
    char path[PATH_SIZE];
    int why = fate_of_fd(CLOSE, fd, false, path), result = real(fd);

    if (why <= 0)
        return result;
    errno = why;
    return -1;
}

int
renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    REAL(int, "renameat", int, const char *, int, const char *);
    char path[PATH_SIZE], target[PATH_SIZE];
    int why = fate_of_path(RENAME, to_folder, to, true, target), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(from_folder, from, to_folder, to);
    if (result == 0 && logs(target) && path_at(from_folder, from, path))
        log_op("rename", path, 0, target, strlen(target));
    pthread_mutex_unlock(&order);
    return result;
}

int
linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    REAL(int, "linkat", int, const char *, int, const char *, int);
    char path[PATH_SIZE], target[PATH_SIZE];
    int why = fate_of_path(LINK, to_folder, to, true, target), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(from_folder, from, to_folder, to, flags);
    if (result == 0 && logs(target) && path_at(from_folder, from, path))
        log_op("link", path, 0, target, strlen(target));
    pthread_mutex_unlock(&order);
    return result;
}

int
unlinkat(int folder, const char *name, int flags)
{
    REAL(int, "unlinkat", int, const char *, int);
    char path[PATH_SIZE];
    int why = fate_of_path(UNLINK, folder, name, true, path), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(folder, name, flags);
    if (result == 0 && logs(path))
        log_op("unlink", path, 0, NULL, 0);
    pthread_mutex_unlock(&order);
    return result;
}

static int
open_at(int folder, const char *name, int flags, mode_t mode)
{
    REAL(int, "openat", int, const char *, int, ...);
    char path[PATH_SIZE];
    int why = fate_of_path(OPEN, folder, name, flags & O_CREAT, path), fd;

    if (why > 0) {
        errno = why;
        return -1;
    }
    if (!logs(path) || !(flags & O_CREAT))
        return real(folder, name, flags, mode);
    pthread_mutex_lock(&order);
    bool there = syscall(SYS_faccessat, folder, name, F_OK) == 0;
    fd = real(folder, name, flags, mode);
    if (fd >= 0 && !there)
        log_op("create", path, 0, NULL, 0);
    pthread_mutex_unlock(&order);
    return fd;
}

static mode_t
mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(args, int) : 0;
}

#define OPEN_AT_WRAPPER(function)                              \
    int function(int folder, const char *name, int flags, ...) \
    {                                                          \
        va_list args;                                          \
        mode_t mode;                                           \
                                                               \
        va_start(args, flags);                                 \
        mode = mode_of(flags, args);                           \
        va_end(args);                                          \
        return open_at(folder, name, flags, mode);             \
    }
OPEN_AT_WRAPPER(openat)
OPEN_AT_WRAPPER(openat64)

#define OPEN_WRAPPER(function)                       \
    int function(const char *name, int flags, ...)   \
    {                                                \
        va_list args;                                \
        mode_t mode;                                 \
                                                     \
        va_start(args, flags);                       \
        mode = mode_of(flags, args);                 \
        va_end(args);                                \
        return open_at(AT_FDCWD, name, flags, mode); \
    }
OPEN_WRAPPER(open)
OPEN_WRAPPER(open64)

/* What fortified code calls instead. */
int
__open_2(const char *name, int flags)
{
    return open_at(AT_FDCWD, name, flags, 0);
}

int
__openat_2(int folder, const char *name, int flags)
{
    return open_at(folder, name, flags, 0);
}

DIR *
opendir(const char *name)
{
    REAL(DIR *, "opendir", const char *);
    char path[PATH_SIZE];
    int why = fate_of_path(LIST, AT_FDCWD, name, false, path);

    if (why <= 0)
        return real(name);
    errno = why;
    return NULL;
}

struct dirent *
readdir(DIR *dir)
{
    REAL(struct dirent *, "readdir", DIR *);
    char path[PATH_SIZE];
    int why = fate_of_fd(LIST, dirfd(dir), false, path);

    if (why <= 0)
        return real(dir);
    errno = why;
    return NULL;
}

int
fallocate(int fd, int mode, off_t at, off_t size)
{
    REAL(int, "fallocate", int, int, off_t, off_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(RESERVE, fd, true, path), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(fd, mode, at, size);
    if (result == 0 && logs(path))
        log_op("extend", path, (uint64_t)at + (uint64_t)size, NULL, 0);
    pthread_mutex_unlock(&order);
    return result;
}

int
fallocate64(int fd, int mode, off_t at, off_t size)
{
    return fallocate(fd, mode, at, size);
}

int
ftruncate(int fd, off_t size)
{
    REAL(int, "ftruncate", int, off_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(RESERVE, fd, true, path), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(fd, size);
    if (result == 0 && logs(path))
        log_op("truncate", path, (uint64_t)size, NULL, 0);
    pthread_mutex_unlock(&order);
    return result;
}

int
ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int why = fate(THREAD, false);

    return why > 0 ? why : real(thread, attributes, start, argument);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static bool
memory_fails(void)
{
    if (inside || !plan.on || plan.kind != MEMORY) {
        if (!inside)
            __atomic_add_fetch(&counts[MEMORY], 1, __ATOMIC_SEQ_CST);
        return false;
    }
    if (count_one(MEMORY) == 0)
        return false;
    errno = ENOMEM;
    return true;
}

/*
 * Set while dlsym() looks for the real allocator.  Volatile: it is declared to call nothing here, and so the compiler
 * would leave out what only such a call can see.
 */
static __thread volatile bool looking;

static void *
first(size_t size)
{
    void *p = first_memory + first_used;

    size = (size + 15) / 16 * 16;
    if (size > sizeof(first_memory) - first_used)
        _exit(97);
    first_used += size;
    return p;
}

void *
malloc(size_t size)
{
    static void *(*real)(size_t);

    if (!real) {
        if (looking)
            return first(size);
        looking = true;
        *(void **)&real = dlsym(RTLD_NEXT, "malloc");
        looking = false;
    }
    if (!real) /* asked for by a library that is being set up while its own allocator is not */
        return first(size);
    return memory_fails() ? NULL : real(size);
}

void *
calloc(size_t count, size_t size)
{
    static void *(*real)(size_t, size_t);

    if (!real) {
        if (looking)
            return first(count * size);
        looking = true;
        *(void **)&real = dlsym(RTLD_NEXT, "calloc");
        looking = false;
    }
    if (!real)
        return first(count * size);
    return memory_fails() ? NULL : real(count, size);
}

void *
realloc(void *p, size_t size)
{
    static void *(*real)(void *, size_t);

    if (!real) {
        looking = true;
        *(void **)&real = dlsym(RTLD_NEXT, "realloc");
        looking = false;
    }
    if (is_first_memory(p)) {
        void *moved = malloc(size);

        if (moved)
            memcpy(moved, p, size);
        return moved;
    }
    return memory_fails() ? NULL : real(p, size);
}

void
free(void *p)
{
    static void (*real)(void *);

    if (!p || is_first_memory(p))
        return;
    if (!real) {
        if (looking) /* dlsym() itself, of the text of an error: it is lost */
            return;
        looking = true;
        *(void **)&real = dlsym(RTLD_NEXT, "free");
        looking = false;
    }
    real(p);
}
