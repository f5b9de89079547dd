/*
 * traffic.h - bytes of global memory and banks of shared memory that kernels touch: of a build whose kernels the
 * compiler instruments as for the thread sanitizer (build.mk: counted), without that sanitizer
 *
 * Each access of a kernel calls a function of its name, __tsan_read4() and the like: those of traffic.cc count.  The
 * compiler removes what is read twice in a row before it instruments, as that of a GPU does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_TRAFFIC_H
#define EMULATOR_TRAFFIC_H

#include <stddef.h>

namespace emulated
{
struct kernel;

void traffic_begin(const kernel *k, size_t shared);
void traffic_end();
/* All lanes of a warp have come here, or all threads of the block: what they did before it is counted. */
void traffic_warp(unsigned warp);
void traffic_block(unsigned threads);

/* What no instruction of the kernel's own does: an asynchronous copy, the rows of the matrices of an ldmatrix. */
void traffic_copy(const void *to, const void *from, unsigned size, unsigned valid, const void *site);
void traffic_matrices(const void *const *row, unsigned matrices);
} // namespace emulated

#endif
