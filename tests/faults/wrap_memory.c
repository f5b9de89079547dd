/*
 * wrap_memory.c - wrappers of the C library's calls for memory and threads; see inject.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* dlsym() may allocate memory before the real functions are known. */
static _Alignas(16) char first_memory[1 << 18];
static size_t first_used;

static bool
is_first_memory(const void *p)
{
    return (const char *)p >= first_memory && (const char *)p < first_memory + sizeof(first_memory);
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
    if (inside || program_ended)
        return false;
    if (!plan.on || plan.kind != MEMORY) {
        __atomic_add_fetch(&counts[MEMORY], 1, __ATOMIC_SEQ_CST);
        return false;
    }
    if (count_one(MEMORY) == 0)
        return false;
    errno = ENOMEM;
    return true;
}

/*
 * Set while dlsym() looks for the real allocator.  Volatile, because dlsym() is declared to call nothing here, so the
 * compiler would remove the store.
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
    if (!real) /* called by a library during its initialisation, before its own allocator is ready */
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
        if (looking) /* dlsym() itself, for the text of an error, which is lost */
            return;
        looking = true;
        *(void **)&real = dlsym(RTLD_NEXT, "free");
        looking = false;
    }
    real(p);
}
