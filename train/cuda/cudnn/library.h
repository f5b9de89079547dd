/*
 * library.h - cuDNN's functions, found when they are needed
 *
 * A program that was built with cuDNN runs where the library is not: its own kernels do all convolutions.  So it is not
 * linked but opened, by library.c.  The backend API of cuDNN 9 is enough: descriptors, and no other entry point.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_CUDNN_LIBRARY_H
#define CHEX_CUDA_CUDNN_LIBRARY_H

#include <cudnn_graph.h>
#include <stddef.h>

/* The calls that are used: X(the name behind "cudnn"). */
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
 * The library, opened once, with cuBLAS, which it needs; or NULL, and why, as shared_library.h says.  From one thread
 * at a time.
 */
const struct cudnn_calls *cudnn_open(char *why, size_t size);

#endif
