/*
 * nvtx_injection.c - an NVTX tool that logs the ranges of a process, for check_nvtx.py
 *
 * The program loads it from NVTX_INJECTION64_PATH, like Nsight's.  It writes these lines to NVTX_RANGES.PID:
 *     domain NAME
 *     push THREAD NAME [NUMBER]      THREAD: 0, 1, ... in the order of their first range
 *     pop THREAD
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* From nvtxDetail/nvtxTypes.h, which programs must not include. */
enum { TABLE_CALLBACKS = 1, MODULE_CORE2 = 5, RANGE_PUSH = 4, RANGE_POP = 5, DOMAIN_CREATE = 12, FUNCTIONS = 15 };
typedef void (*function)(void);
struct callbacks {
    size_t size;
    int (*functions)(int module, function ***table, unsigned *count);
};

static FILE *out;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int threads;
static _Thread_local int self = -1;

static int
thread(void)
{
    if (self < 0)
        self = atomic_fetch_add(&threads, 1);
    return self;
}

static nvtxDomainHandle_t
create_domain(const char *name)
{
    fprintf(out, "domain %s\n", name);
    return (nvtxDomainHandle_t)(void *)out;
}

static int
push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *what)
{
    if ((void *)domain != (void *)out || what->messageType != NVTX_MESSAGE_TYPE_ASCII)
        abort();
    pthread_mutex_lock(&mutex);
    fprintf(out, "push %d %s", thread(), what->message.ascii);
    if (what->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
        fprintf(out, " %llu", (unsigned long long)what->payload.ullValue);
    fprintf(out, "\n");
    pthread_mutex_unlock(&mutex);
    return 0;
}

static int
pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    pthread_mutex_lock(&mutex);
    fprintf(out, "pop %d\n", thread());
    pthread_mutex_unlock(&mutex);
    return 0;
}

int InitializeInjectionNvtx2(const void *(*table)(uint32_t));

int
InitializeInjectionNvtx2(const void *(*table)(uint32_t))
{
    const struct callbacks *callbacks = table(TABLE_CALLBACKS);
    const char *name = getenv("NVTX_RANGES");
    function **place;
    char path[4096];
    unsigned count;

    snprintf(path, sizeof(path), "%s.%ld", name ? name : "ranges", (long)getpid());
    out = fopen(path, "w");
    if (!out || !callbacks || !callbacks->functions(MODULE_CORE2, &place, &count) || count < FUNCTIONS)
        return 0;
    setvbuf(out, NULL, _IOLBF, 0);
    *place[RANGE_PUSH] = (function)push;
    *place[RANGE_POP] = (function)pop;
    *place[DOMAIN_CREATE] = (function)create_domain;
    return 1;
}
