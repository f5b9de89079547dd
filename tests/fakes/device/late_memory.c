/*
 * late_memory.c - memory that only the working device may access; see late.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "late.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REGION ((size_t)1 << 30) /* address space of a plan */
#define PLANS  4

static void *regions[PLANS];
static __thread struct late_region *allocating;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

static void *
take(size_t size)
{
    void *p = (char *)allocating + allocating->used;

    allocating->used += (size + 63) / 64 * 64;
    return allocating->used <= REGION ? p : NULL;
}

void *
__wrap_malloc(size_t size)
{
    void *p = allocating ? take(size) : __real_malloc(size);

    if (allocating && p)
        memset(p, 0xff, size); /* as floats: NaN */
    return p;
}

void *
__wrap_calloc(size_t count, size_t size)
{
    return allocating ? take(count * size) : __real_calloc(count, size);
}

static bool
is_of_device(const void *p)
{
    for (size_t i = 0; i < PLANS; i++)
        if (regions[i] && (const char *)p >= (const char *)regions[i] && (const char *)p < (char *)regions[i] + REGION)
            return true;
    return false;
}

void *
__wrap_realloc(void *p, size_t size)
{
    return __real_realloc(p, size);
}

void
__wrap_free(void *p)
{
    if (!is_of_device(p))
        __real_free(p);
}

struct plan *
late_open_memory(struct plan *plan)
{
    if (mprotect(plan, REGION, PROT_READ | PROT_WRITE) != 0)
        abort();
    return plan;
}

enum chex_status
late_close_memory(struct plan *plan, enum chex_status status)
{
    if (mprotect(plan, REGION, PROT_NONE) != 0)
        abort();
    return status;
}

void *
late_new_memory(size_t size)
{
    for (size_t i = 0; i < PLANS; i++) {
        if (regions[i])
            continue;
        regions[i] = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (regions[i] == MAP_FAILED)
            abort();
        ((struct late_region *)regions[i])->used = (size + 63) / 64 * 64;
        return regions[i];
    }
    abort();
}

void
late_free_memory(struct plan *plan)
{
    for (size_t i = 0; i < PLANS; i++)
        if (regions[i] == (void *)plan)
            regions[i] = NULL;
    munmap(plan, REGION);
}

void
late_allocate_from(struct late_region *region)
{
    allocating = region;
}
