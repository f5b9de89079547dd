/*
 * inject.h - what the files of inject.so share
 *
 * inject.c decides what happens to a call; wrap_files.c and wrap_memory.c are the calls.
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

/* Nothing but the wrappers is to be seen by the program. */
#pragma GCC visibility push(hidden)

enum kind { WRITE, SYNC, CLOSE, RENAME, OPEN, READ, RESERVE, UNLINK, LINK, LIST, STAT, THREAD, MEMORY, CHANGE, KINDS };

/* What a call is to do in place of its work, where that is not an errno. */
enum { FAIL_SHORT = -1, FAIL_KILL = -2, FAIL_WAIT = -3 };

#define PATH_SIZE 4096
#define FOLDERS   4

struct plan {
    bool on;
    bool failing; /* a call has failed */
    enum kind kind;
    unsigned long nth, times; /* the first call that fails, and how many do */
    int what;                 /* errno, FAIL_SHORT, FAIL_KILL or FAIL_WAIT */
    long milliseconds;
    char below[FOLDERS][PATH_SIZE];
    unsigned folders;
    int log;
    char report[PATH_SIZE];
};

extern struct plan plan;
extern unsigned long counts[KINDS];
extern pthread_mutex_t order; /* of log and operation */
/* Calls of our own are not counted. */
extern __thread bool inside;
/*
 * Its functions for atexit() have run.  What follows belongs to compiler and C library, as the allocations of gcov,
 * which cannot do without.
 */
extern bool program_ended;

/* The function that a wrapper stands before: `real` in the wrapper. */
#define REAL(type, name, ...)         \
    static type (*real)(__VA_ARGS__); \
    if (!real)                        \
    *(void **)&real = dlsym(RTLD_NEXT, name)

/* The whole path of a name in an open folder. */
bool path_at(int folder, const char *name, char out[PATH_SIZE]);

/*
 * Count a call; 0: it is to do its work, else an errno or FAIL_SHORT.  A kill does not return.  `changes`: it changes
 * the folder, so that it is one of the kind CHANGE too.  path[] gets the path where the file counts, "" where not.
 */
int count_one(enum kind kind);
int fate(enum kind kind, bool changes);
int fate_of_fd(enum kind kind, int fd, bool changes, char path[PATH_SIZE]);
int fate_of_path(enum kind kind, int folder, const char *name, bool changes, char path[PATH_SIZE]);

/* Is a change of this path to be logged?  Then log_op(), with `order` held since before the change. */
bool logs(const char *path);
void log_op(const char *op, const char *path, uint64_t offset, const void *data, size_t size);

#pragma GCC visibility pop

#endif
