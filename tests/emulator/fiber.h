/*
 * fiber.h - fibers: stacks that the program switches itself, with annotations for the sanitizers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_FIBER_H
#define EMULATOR_FIBER_H

#include "sanitizer.h"

#include <stddef.h>
#if !defined(__x86_64__) && !defined(EMULATOR_UCONTEXT)
#define EMULATOR_UCONTEXT
#endif
#ifdef EMULATOR_UCONTEXT
#include <ucontext.h>
#endif

namespace emulated
{
#define FIBER_STACK ((size_t)64 << 10)

struct fiber {
    unsigned char *stack; /* its lowest byte; NULL: the stack of the host's thread */
#ifdef EMULATOR_UCONTEXT
    ucontext_t context;
#else
    void *top; /* of the stack, below the saved registers */
#endif
    TSAN(void *tsan;)
    ASAN(void *fake; const void *bottom; size_t size;)
};

/* The first switch to the fiber starts entry(), which must never return. */
void fiber_prepare(fiber *f, void (*entry)());
/* entry() must call this first. */
void fiber_begin(fiber *f);
/* for_good: nobody switches back to `from`. */
void fiber_switch(fiber *from, fiber *to, bool for_good);
/* Free what fiber_prepare() allocated in addition to the stack. */
void fiber_release(fiber *f);
/* Make the current host thread a fiber. */
void fiber_adopt(fiber *f);
} // namespace emulated

#endif
