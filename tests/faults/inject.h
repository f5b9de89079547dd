/*
 * inject.h - shared declarations of the files of inject.so
 *
 * inject.c decides the fate of a call; wrap_files.c and wrap_memory.c define the calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_INJECT_H
#define CHEX_TESTS_INJECT_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The program must see only the wrappers. */
#pragma GCC visibility push(hidden)

enum kind { WRITE, SYNC, CLOSE, RENAME, OPEN, READ, RESERVE, UNLINK, LINK, LIST, STAT, THREAD, MEMORY, CHANGE, KINDS };

/* Instead of an errno: what happens to a call. */
enum { FAIL_SHORT = -1, FAIL_KILL = -2, FAIL_WAIT = -3 };

#define PATH_SIZE 4096
#define FOLDERS   4

struct plan {
    bool on;
    bool failing; /* a call has failed */
    enum kind kind;
    unsigned long nth, times; /* the first call that fails, and the number of calls that fail */
    int what;                 /* errno, FAIL_SHORT, FAIL_KILL or FAIL_WAIT */
    long milliseconds;
    char below[FOLDERS][PATH_SIZE];
    unsigned folders;
    int log;
    char report[PATH_SIZE], until[PATH_SIZE];
};

extern struct plan plan;
extern unsigned long counts[KINDS];
extern pthread_mutex_t order; /* serialises the log and the operation */
/* Our own calls are not counted. */
extern __thread bool inside;
/*
 * The program's atexit() functions have run.  Later calls belong to the compiler and the C library, such as the
 * allocations of gcov, which cannot work without them.
 */
extern bool program_ended;

/* Declares `real`, the function that a wrapper replaces. */
#define REAL(type, name, ...)         \
    static type (*real)(__VA_ARGS__); \
    if (!real)                        \
    *(void **)&real = dlsym(RTLD_NEXT, name)

/* Sets the full path of a name in an open folder. */
bool path_at(int folder, const char *name, char out[PATH_SIZE]);

/*
 * Count a call.  Returns 0 if it must do its work, otherwise an errno or FAIL_SHORT.  A kill does not return.
 * `changes`:  the call changes the folder, so it also counts for CHANGE.  path[] is set to the path if the file counts,
 * otherwise to "".
 */
int count_one(enum kind kind);
int fate(enum kind kind, bool changes);
int fate_of_fd(enum kind kind, int fd, bool changes, char path[PATH_SIZE]);
int fate_of_path(enum kind kind, int folder, const char *name, bool changes, char path[PATH_SIZE]);

/*
 * Returns true if a change of this path must be logged.  Then call log_op(), and hold `order` from before the change.
 */
bool logs(const char *path);
void log_op(const char *op, const char *path, uint64_t offset, const void *data, size_t size);

#pragma GCC visibility pop

#endif
