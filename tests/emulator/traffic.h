/*
 * traffic.h - counts the bytes of global memory and the bank conflicts of shared memory that kernels cause
 *
 * In this build (build.mk: counted), the compiler instruments the kernels as for the thread sanitizer, but the program
 * is linked without that sanitizer.  Each memory access of a kernel calls a function such as __tsan_read4(), and
 * traffic.cc counts these calls.  Like the compiler for a GPU, this one removes redundant loads first.
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
/* All lanes of a warp, or all threads of the block, have synchronised: count their accesses so far. */
void traffic_warp(unsigned warp);
void traffic_block(unsigned threads);

/* Accesses without an instrumented instruction: asynchronous copies, and the matrix rows of ldmatrix. */
void traffic_copy(const void *to, const void *from, unsigned size, unsigned valid, const void *site);
void traffic_matrices(const void *const *row, unsigned matrices);
} // namespace emulated

#endif
