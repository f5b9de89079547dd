/*
 * library.c - opens cuDNN as a shared library on first use; see library.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/cudnn/library.h"

#include "backend/shared_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

static bool
find_calls(const struct shared_library *library, struct cudnn_calls *calls, char *why, size_t size)
{
#define FIND(name)                                                             \
    if (!shared_library_find(library, "cudnn" #name, &calls->name, why, size)) \
        return false;
    CUDNN_CALLS(FIND)
#undef FIND
    return true;
}

/*
 * Opens cuBLAS before cuDNN needs it: cuDNN opens it on first use, and aborts the process if that fails.  Searches
 * where the dynamic linker searches, then where cuDNN itself does: next to its own directory, as pip installs them.
 */
static bool
find_cublas(const struct shared_library *library, char *why, size_t size)
{
    char origin[PATH_MAX], path[PATH_MAX + 128], suffix[3][32] = {"", "/../../cublas/lib"}, name[32];
    size_t (*runtime)(void), i;
    unsigned major;

    if (!shared_library_find(library, "cudnnGetCudartVersion", &runtime, why, size))
        return true; /* the CUDA version is unknown, and so is the name of cuBLAS */
    major = (unsigned)(runtime() / 1000);
    snprintf(name, sizeof(name), "libcublasLt.so.%u", major);
    snprintf(suffix[2], sizeof(suffix[2]), "/../../cu%u/lib", major);
    if (dlopen(name, RTLD_NOW | RTLD_LOCAL))
        return true;
    if (dlinfo(library->handle, RTLD_DI_ORIGIN, origin) == 0)
        for (i = 0; i < 3; i++) {
            snprintf(path, sizeof(path), "%s%s/%s", origin, suffix[i], name);
            if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
                return true;
        }
    snprintf(why, size, "%s, which %s needs, was not found", name, library->name);
    return false;
}

const struct cudnn_calls *
cudnn_open(char *why, size_t size)
{
    static struct shared_library library = {.name = "libcudnn.so.9", .place = CUDNN_LIBRARY, .package = "cudnn"};
    static struct cudnn_calls calls;
    static bool whole;

    if (!whole)
        whole = shared_library_open(&library, why, size) && find_calls(&library, &calls, why, size) &&
                find_cublas(&library, why, size);
    return whole ? &calls : NULL;
}
