/*
 * emulator.h - controls of the emulator for tests, in addition to the CUDA runtime
 *
 * Environment variables, read at the first call:
 *     EMULATOR_DEVICES   compute capability of each device: "90" (default); "90 90 80"; "" for no device
 *     EMULATOR_BUS       one PCI bus number for all devices, as for MIG instances of a GPU; default: different ones
 *     EMULATOR_MEMORY    bytes of each device; default 1 GiB
 *     EMULATOR_PTX       compute capability of the kernels' PTX; default: that of the device
 *     EMULATOR_THREADS   seed of the order of threads and blocks; default 0: by their numbers
 *     EMULATOR_STREAMS   seed of the order of streams; default 0: only work that the host waits for is done
 *     EMULATOR_FAIL      "NAME COUNT ERROR, ...": as emulator_fail()
 * A violation of the execution model ends the process (SIGABRT) with a message that names the kernel, block, thread and
 * line of source.
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

/* Cancel the failures that have not occurred yet.  Returns their number. */
unsigned emulator_unfail(void);

/* Counts since the process began. */
struct emulator_counts {
    uint64_t kernels, copies, graphs; /* completed, including those of graphs */
    uint64_t early;                   /* kernels by programmatic dependent launch */
    uint64_t urgent;                  /* work with a higher priority than the default */
    uint64_t waits;                   /* calls that blocked the host: synchronisation, cudaMemcpy(), cudaFree() */
    uint64_t queries;
    uint64_t allocations;
};
void emulator_count(struct emulator_counts *out);

/*
 * Memory traffic of a kernel's launches since the last emulator_forget_traffic().  Only in the build "counted"
 * (build.mk).
 */
enum emulator_shared_kind {
    SHARED_MATRICES, /* ldmatrix */
    SHARED_COPIES,   /* asynchronous copies */
    SHARED_WIDE,     /* accesses of 16 bytes a lane */
    SHARED_NARROW,   /* accesses of fewer bytes */
    SHARED_KINDS
};
struct emulator_shared {
    uint64_t accesses;  /* accesses of warps */
    uint64_t phases;    /* passes that they take without bank conflicts */
    uint64_t conflicts; /* additional passes */
};
struct emulator_traffic {
    uint64_t launches;
    uint64_t bytes_read, bytes_written;     /* global memory, as requested by threads */
    uint64_t sectors_read, sectors_written; /* of 32 bytes; each counted once per launch */
    struct emulator_shared shared[SHARED_KINDS];
};
/* Returns false if the kernel was not launched. */
bool emulator_traffic_of(const char *kernel, struct emulator_traffic *out);
void emulator_forget_traffic(void);

/*
 * Set the clock of the devices.  Then it advances by one microsecond at each recorded event, independent of real
 * time.  A negative value, the default, selects the host's monotonic clock.
 */
void emulator_set_clock(double seconds);

/* Set new seeds; see EMULATOR_THREADS and EMULATOR_STREAMS. */
void emulator_seed(uint64_t threads, uint64_t streams);

#ifdef __cplusplus
}
#endif

#endif
