/*
 * library.h - the functions of cuDNN, looked up at run time
 *
 * A program that was built with cuDNN must also run without the library; its own kernels then run all convolutions.  So
 * library.c opens the library when it is needed, and the program is not linked with it.  The program only uses the
 * backend API of cuDNN 9 (descriptors).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_CUDNN_LIBRARY_H
#define CHEX_CUDA_CUDNN_LIBRARY_H

#include <cudnn_graph.h>
#include <stddef.h>

/* The calls in use: X(name without the prefix "cudnn"). */
#define CUDNN_CALLS(X)          \
    X(GetVersion)               \
    X(GetErrorString)           \
    X(Create)                   \
    X(Destroy)                  \
    X(SetStream)                \
    X(BackendCreateDescriptor)  \
    X(BackendDestroyDescriptor) \
    X(BackendSetAttribute)      \
    X(BackendGetAttribute)      \
    X(BackendFinalize)          \
    X(BackendExecute)

#define CUDNN_MEMBER(name) __typeof__(&cudnn##name) name;
#define CUDNN_ENTRY(name)  .name = cudnn##name,
struct cudnn_calls {
    CUDNN_CALLS(CUDNN_MEMBER)
};

/*
 * Opens the library, and cuBLAS, which it needs, on the first call.  Returns NULL on failure, with the reason in `why`
 * (shared_library.h).  Not thread-safe.
 */
const struct cudnn_calls *cudnn_open(char *why, size_t size);

#endif
