/*
 * cudnn_library.c - see cudnn_library.h: cuDNN as a shared library that is opened when it is needed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cudnn/cudnn_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Where the dynamic linker looks, as LD_LIBRARY_PATH says; then where configure found it. */
static const char *const places[] = {"libcudnn.so.9", CUDNN_LIBRARY};

static bool
find_call(void *library, const char *name, void *where, size_t size)
{
    void *address = dlsym(library, name);

    memcpy(where, &address, size);
    return address;
}

static bool
find_calls(void *library, struct cudnn_calls *calls, char *why, size_t size)
{
#define FIND(name)                                                                   \
    if (!find_call(library, "cudnn" #name, &calls->name, sizeof(calls->name))) {     \
        snprintf(why, size, "libcudnn.so.9 is damaged: it has no cudnn" #name "()"); \
        return false;                                                                \
    }
    CUDNN_CALLS(FIND)
#undef FIND
    return true;
}

const struct cudnn_calls *
cudnn_open(char *why, size_t size)
{
    static struct cudnn_calls calls;
    static bool whole;
    void *library = NULL;
    size_t i;

    if (whole)
        return &calls;
    for (i = 0; !library && i < sizeof(places) / sizeof(places[0]); i++)
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, size, "libcudnn.so.9 is not there");
        return NULL;
    }
    whole = find_calls(library, &calls, why, size);
    return whole ? &calls : NULL;
}
