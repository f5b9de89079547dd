/*
 * ptx.h - an interpreter of PTX: runs kernels thread by thread on the CPU
 *
 * PTX is the assembly language that nvcc makes of a kernel.  The interpreter follows "Parallel Thread Execution ISA"
 * (NVIDIA).  A block's warps run one after the other, each until all of its lanes wait at a barrier or have ended.
 * Pointers of kernels are pointers of this process, so all of its memory is the memory of the device.
 *
 * A violation ends the process (SIGABRT).  The message names the kernel, block, warp, and lines of PTX and of source.
 * Violations: a race in shared memory between two barriers, an access outside shared memory or not aligned, memory that
 * an asynchronous copy has not yet written, lanes that do not meet, memory of the device before griddepcontrol.wait
 * (sm_90), an instruction that the interpreter does not know.
 *
 * Environment variables, read at the first call:
 *     PTX_FILES   folder of files ARCH-*.ptx, for example 90-fp16-pool.ptx
 *     PTX_ARCH    70, 75, 80 or 90 (default): the files to read, and how tensor cores round
 *     PTX_ORDER   0 (default): the lanes of a warp run together; otherwise a seed: lanes run one by one until they must
 *                 meet, and warps and blocks run in random order
 *     PTX_MMA     "cores" (default): a tensor core adds products as published measurements found (matrix.cc);
 *                 "float": products are added one by one, in float
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PTX_H
#define PTX_H

#include <stddef.h>

struct ptx_launch {
    const char *kernel;
    const void *argument; /* its only parameter */
    size_t argument_size;
    unsigned grid[3], block[3];
    size_t shared; /* dynamic shared memory, bytes */
};

/* Adds the kernels of a PTX text, as from a file of this name. */
void ptx_load(const char *text, const char *name);

/* Has a file or a text a kernel of this name? */
bool ptx_has(const char *kernel);

/* Runs a kernel that ptx_has(). */
void ptx_run(const ptx_launch &launch);

/* What runs now: kernel, block, warp, lines of PTX and of source; or "". */
const char *ptx_where();

#endif
