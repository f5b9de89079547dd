/*
 * async_copy.cc - cp.async: asynchronous copies of 16 bytes from global to shared memory
 *
 * A copy is as late as the rules allow.  The call sets the destination to NaN.  The bytes are read and stored when the
 * thread waits for their group.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "block.h"

namespace emulated
{
void
copy_async(void *to, const void *from, unsigned size, unsigned valid, place at)
{
    unsigned char *target = (unsigned char *)to;
    const unsigned char *source = (const unsigned char *)from;

    if (size != 16 || valid > size || (uintptr_t)to % 16 != 0 || (valid > 0 && (uintptr_t)from % 16 != 0))
        violation(at, "an asynchronous copy of %u bytes from %p to %p: both are to be multiples of 16", size, from, to);
    if (target < running->seen.shared)
        violation(at, "an asynchronous copy to %p, which is not in shared memory", to);
    running->at = at;
    if (valid > 0) /* report an invalid source here, not at the wait */
        (void)*(const volatile unsigned char *)source;
    COUNTED(traffic_copy(to, from, size, valid, __builtin_return_address(0));)
    TSAN(for (unsigned i = 0; i < 16; i += 8) { __tsan_write8(target + i); })
    for (unsigned i = 0; i < 16; i++)
        ((volatile unsigned char *)target)[i] = 0xff;
    if (running->copy_count == COPIES_MAX)
        violation(at, "a thread has %u asynchronous copies under way", COPIES_MAX);
    running->copies[running->copy_count++] = {target, source, valid, running->group};
}

void
copy_commit()
{
    running->group++;
}

static void
arrive(const pending_copy &c)
{
    TSAN(for (unsigned i = 0; i < 16; i += 8) {
        if (c.valid == 16)
            __tsan_read8((void *)(c.from + i));
        __tsan_write8(c.to + i);
    })
    for (unsigned i = 0; i < 16; i++)
        ((volatile unsigned char *)c.to)[i] = i < c.valid ? c.from[i] : 0;
}

void
copy_wait(unsigned groups_left)
{
    unsigned i, kept = 0;

    for (i = 0; i < running->copy_count; i++) {
        pending_copy c = running->copies[i];

        if (c.group + groups_left < running->group)
            arrive(c);
        else
            running->copies[kept++] = c;
    }
    running->copy_count = kept;
}
} // namespace emulated
