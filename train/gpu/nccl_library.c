/*
 * nccl_library.c - see nccl_library.h: NCCL as a shared library that is opened when it is needed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu/nccl_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Where the dynamic linker looks, as LD_LIBRARY_PATH says; then where configure found it. */
static const char *const places[] = {"libnccl.so.2", NCCL_LIBRARY};

static bool
find_call(void *library, const char *name, void *where, size_t size)
{
    void *address = dlsym(library, name);

    memcpy(where, &address, size);
    return address;
}

static bool
find_calls(void *library, struct nccl_calls *calls, char *why, size_t size)
{
#define FIND(name)                                                                 \
    if (!find_call(library, "nccl" #name, &calls->name, sizeof(calls->name))) {    \
        snprintf(why, size, "libnccl.so.2 is too old: it has no nccl" #name "()"); \
        return false;                                                              \
    }
    NCCL_CALLS(FIND)
#undef FIND
    return true;
}

/* A library that is there and cannot be loaded is none that is not there: the linker knows what it lacks. */
static void *
open_library(char *why, size_t size)
{
    void *library;
    size_t i;

    snprintf(why, size, "libnccl.so.2 is not there");
    for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        size_t length = strlen(places[i]);
        const char *text;

        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
        text = dlerror();
        if (text && (strncmp(text, places[i], length) != 0 || !strstr(text, "No such file"))) {
            snprintf(why, size, "%s", text);
            return NULL;
        }
    }
    return NULL;
}

const struct nccl_calls *
nccl_open(char *why, size_t size)
{
    static struct nccl_calls calls;
    void *library;

    if (calls.GetLastError)
        return &calls;
    library = open_library(why, size);
    return library && find_calls(library, &calls, why, size) ? &calls : NULL;
}
