/*
 * cudnn_library.c - see cudnn_library.h: cuDNN as a shared library that is opened when it is needed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cudnn/cudnn_library.h"

#include <dlfcn.h>
#include <limits.h>
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

/*
 * cuDNN opens cuBLAS when it is first used, and aborts the process where that fails: so it is opened here before.  The
 * places are those of the dynamic linker, then those of cuDNN itself: wheels lie side by side.
 */
static bool
find_cublas(void *library, char *why, size_t size)
{
    char origin[PATH_MAX], path[PATH_MAX + 128], beside[3][32] = {"", "/../../cublas/lib"}, name[32];
    size_t (*runtime)(void), i;
    unsigned major;

    if (!find_call(library, "cudnnGetCudartVersion", &runtime, sizeof(runtime)))
        return true; /* nothing says which one */
    major = (unsigned)(runtime() / 1000);
    snprintf(name, sizeof(name), "libcublasLt.so.%u", major);
    snprintf(beside[2], sizeof(beside[2]), "/../../cu%u/lib", major);
    if (dlopen(name, RTLD_NOW | RTLD_LOCAL))
        return true;
    if (dlinfo(library, RTLD_DI_ORIGIN, origin) == 0)
        for (i = 0; i < 3; i++) {
            snprintf(path, sizeof(path), "%s%s/%s", origin, beside[i], name);
            if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
                return true;
        }
    snprintf(why, size, "%s, which libcudnn.so.9 needs, is not there", name);
    return false;
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
    whole = find_calls(library, &calls, why, size) && find_cublas(library, why, size);
    return whole ? &calls : NULL;
}
