/*
 * fiber.cc - see fiber.h; x86-64 by a few instructions, other processors by ucontext
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fiber.h"

#include <stdint.h>

namespace emulated
{
ASAN(static fiber *previous;)

#ifdef EMULATOR_UCONTEXT
static void
set_entry(fiber *f, void (*entry)())
{
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = FIBER_STACK;
    f->context.uc_link = NULL;
    makecontext(&f->context, entry, 0);
}

static void
switch_stacks(fiber *from, fiber *to)
{
    swapcontext(&from->context, &to->context);
}
#else
/* Saves the callee-saved registers (System V ABI, 3.2.1), then switches the stack pointer. */
extern "C" void emulator_switch_stacks(void **from, void *to);
__asm__(".text\n"
        ".globl emulator_switch_stacks\n"
        ".type emulator_switch_stacks,@function\n"
        "emulator_switch_stacks:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size emulator_switch_stacks,.-emulator_switch_stacks\n");

static void
set_entry(fiber *f, void (*entry)())
{
    uintptr_t *top = (uintptr_t *)(void *)(f->stack + FIBER_STACK);

    *--top = 0; /* alignment: entry() expects a stack as after a call */
    *--top = (uintptr_t)entry;
    f->top = top - 6;
    for (unsigned i = 0; i < 6; i++)
        top[-1 - (int)i] = 0;
}

static void
switch_stacks(fiber *from, fiber *to)
{
    emulator_switch_stacks(&from->top, to->top);
}
#endif

void
fiber_prepare(fiber *f, void (*entry)())
{
    ASAN(f->fake = NULL; f->bottom = f->stack; f->size = FIBER_STACK; __asan_unpoison_memory_region(f->stack, f->size);)
    TSAN(f->tsan = __tsan_create_fiber(0);)
    set_entry(f, entry);
}

void
fiber_release(fiber *f)
{
    (void)f;
    TSAN(__tsan_destroy_fiber(f->tsan);)
}

void
fiber_adopt(fiber *f)
{
    f->stack = NULL;
    ASAN(f->fake = NULL;)
    TSAN(f->tsan = __tsan_get_current_fiber();)
}

void
fiber_begin(fiber *f)
{
    (void)f;
    ASAN(const void *bottom; size_t size; __sanitizer_finish_switch_fiber(NULL, &bottom, &size);
         if (!previous->stack) previous->bottom = bottom, previous->size = size;)
}

void
fiber_switch(fiber *from, fiber *to, bool for_good)
{
    (void)for_good;
    ASAN(previous = from; __sanitizer_start_switch_fiber(for_good ? NULL : &from->fake, to->bottom, to->size);)
    TSAN(__tsan_switch_to_fiber(to->tsan, __tsan_switch_to_fiber_no_sync);)
    switch_stacks(from, to);
    ASAN(__sanitizer_finish_switch_fiber(from->fake, NULL, NULL);)
}
} // namespace emulated
