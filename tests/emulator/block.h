/*
 * block.h - the threads of a block, and what each one waits for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_BLOCK_H
#define EMULATOR_BLOCK_H

#include "cuda_runtime_api.h"
#include "emulated.h"
#include "fiber.h"

#include <vector>

namespace emulated
{
enum { THREADS_MAX = 1024, WARP = 32, COPIES_MAX = 256 };

/* An asynchronous copy to shared memory in progress (async_copy.cc). */
struct pending_copy {
    unsigned char *to;
    const unsigned char *from;
    unsigned valid, group;
};

struct block_thread {
    thread seen;
    fiber stack;
    place at; /* where it waits */
    bool waits, ended;
    bool may_touch; /* device memory; in a programmatic dependent launch only after wait_for_kernels() */
    pending_copy copies[COPIES_MAX];
    unsigned copy_count;
    unsigned group; /* the group of copies that start now */
};

/*
 * A collective operation of the lanes of a warp.  Each lane passes words, the last lane to arrive computes all results,
 * and the operation ends when all lanes have left.
 */
struct meeting {
    uint32_t mask, arrived, left;
    place at;
    meeting *next; /* in the list of unused ones */
    struct {
        uint32_t in[16], out[8];
    } lane[WARP];
    TSAN(char *sync;)
};
meeting *meet(uint32_t mask, place at, const void *in, size_t size, void (*complete)(meeting *m), bool orders_memory);
void leave(meeting *m);

/* The running thread. */
extern block_thread *running;

/* The running thread waits until release() is called for it. */
void wait_here(place at);
void release(block_thread *t);
block_thread *lane_of_warp(unsigned lane);

/* End the process with a message: the violation, the kernel, block and thread, and the line of source. */
[[noreturn]] void violation(place at, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "kernel 'conv', block 0,0,0, thread 17", or "" on the host. */
const char *where();

void block_seed(uint64_t seed);
/* Memory of the device is open.  early: by programmatic dependent launch. */
void run_kernel(const kernel *k, const void *argument, dim3 grid, dim3 block, size_t shared, int device, bool early);
/* The same, never by the other executor. */
void emulate_kernel(const kernel *k, const void *argument, dim3 grid, dim3 block, size_t shared, int device,
                    bool early);
/* Runs kernels from other code than that which the C++ compiler made, for example from PTX.  NULL: there is none. */
struct executor {
    /* As run_kernel(); returns false if it has no code for this kernel, which is then emulated. */
    bool (*run)(const kernel *k, const void *argument, dim3 grid, dim3 block, size_t shared, int device, bool early);
    const char *(*where)(); /* the kernel and thread that it runs now, or "" */
};
extern const executor *other_executor;
/* The kernel of this address, or NULL. */
kernel *find_kernel(const void *address);

struct generator {
    uint64_t state;
    uint32_t next();
};
} // namespace emulated

#endif
