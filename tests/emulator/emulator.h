/*
 * emulator.h - what a test sets and asks of the emulator, beside the calls of the CUDA runtime
 *
 * From the environment, read at the first call:
 *     EMULATOR_DEVICES   compute capabilities, one a device: "90" by default; "90 90 80"; "" for a machine without one
 *     EMULATOR_BUS       the PCI bus of all devices, as parts of one GPU (MIG) have; by default each has its own
 *     EMULATOR_MEMORY    bytes of each device, 1 GiB by default
 *     EMULATOR_PTX       compute capability of the PTX that kernels were made of; by default that of the device
 *     EMULATOR_THREADS   seed of the order of threads and blocks; 0, the default: by their numbers
 *     EMULATOR_STREAMS   seed of the order of streams; 0, the default: only what is waited for is done
 *     EMULATOR_FAIL      "NAME COUNT ERROR, ...": as emulator_fail()
 * Whoever breaks a rule of the execution model ends the process (SIGABRT) with a line that names kernel, block,
 * thread and line of source.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_H
#define EMULATOR_H

#include "cuda_runtime_api.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Call `count` from now on (1: the next) of the function `name`, or launch `count` of the kernel `name`, fails with
 * this error.  An error of a kernel is sticky: nothing runs on its device any more.
 */
void emulator_fail(const char *name, unsigned count, cudaError_t error);

/* Forget those that did not come yet: how many they were. */
unsigned emulator_unfail(void);

/* What the host has asked for since the process began. */
struct emulator_counts {
    uint64_t kernels, copies, graphs; /* done, those of graphs among them */
    uint64_t early;                   /* of the kernels: by programmatic dependent launch */
    uint64_t waits;                   /* calls in which the host waited: synchronisation, cudaMemcpy(), cudaFree() */
    uint64_t queries;
    uint64_t allocations;
};
void emulator_count(struct emulator_counts *out);

/*
 * What launches of a kernel touched since the last emulator_forget_traffic().  Of a build that counts (build.mk:
 * counted); no other has these functions.
 */
enum emulator_shared_kind {
    SHARED_MATRICES, /* ldmatrix */
    SHARED_COPIES,   /* asynchronous copies */
    SHARED_WIDE,     /* accesses of 16 bytes a lane */
    SHARED_NARROW,   /* of fewer */
    SHARED_KINDS
};
struct emulator_shared {
    uint64_t accesses;  /* of warps */
    uint64_t phases;    /* passes that they take where no two lanes want different words of a bank */
    uint64_t conflicts; /* passes beside those */
};
struct emulator_traffic {
    uint64_t launches;
    uint64_t bytes_read, bytes_written;     /* of global memory, as threads asked for them */
    uint64_t sectors_read, sectors_written; /* of 32 bytes, each once a launch */
    struct emulator_shared shared[SHARED_KINDS];
};
/* false: it was not launched. */
bool emulator_traffic_of(const char *kernel, struct emulator_traffic *out);
void emulator_forget_traffic(void);

/*
 * From now on the clock of the devices shows this, and a microsecond more at each event that is recorded, whatever time
 * the emulator takes; negative, the default: it is the host's monotonic clock.
 */
void emulator_set_clock(double seconds);

/* Seeds anew, as of EMULATOR_THREADS and EMULATOR_STREAMS. */
void emulator_seed(uint64_t threads, uint64_t streams);

#ifdef __cplusplus
}
#endif

#endif
