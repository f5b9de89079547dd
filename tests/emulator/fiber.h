/*
 * fiber.h - stacks that are switched by hand; the sanitizers are told of each switch
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

/* Begins at entry() when it is first switched to.  entry() never returns. */
void fiber_prepare(fiber *f, void (*entry)());
/* To be called first by entry(). */
void fiber_begin(fiber *f);
/* for_good: nobody switches back to `from`. */
void fiber_switch(fiber *from, fiber *to, bool for_good);
/* What fiber_prepare() made beside the stack. */
void fiber_release(fiber *f);
/* The host's thread as a fiber. */
void fiber_adopt(fiber *f);
} // namespace emulated

#endif
