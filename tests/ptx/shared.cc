/*
 * shared.cc - shared memory: bounds, races, and asynchronous copies to it
 *
 * A race: two threads access a byte between two barriers, and one of them writes.  A copy writes when its thread waits
 * for its group.  Until then the bytes are NaN, and no thread may access them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core.h"

namespace ptx
{
bool
is_shared(const block &b, const unsigned char *p)
{
    return p >= b.shared && p < b.shared + b.shared_size;
}

unsigned char *
shared_bytes(warp &w, unsigned lane, uint32_t address, size_t size)
{
    if (address < SHARED_BASE || address - SHARED_BASE + size > w.in->shared_size)
        violation(w, "lane %u accesses %zu bytes from byte %d on of a shared memory of %zu bytes", lane, size,
                  (int)(address - SHARED_BASE), w.in->shared_size);
    if (address % size)
        violation(w, "lane %u accesses %zu bytes of shared memory at byte %u, which is not aligned", lane, size,
                  address - SHARED_BASE);
    return w.in->shared + (address - SHARED_BASE);
}

static void
note_byte(warp &w, unsigned lane, size_t at, access_kind kind)
{
    block &b = *w.in;
    byte_history &h = b.history[at];
    uint16_t thread = (uint16_t)(w.number * LANES + lane);
    const char *verb = kind == READ ? "reads" : "writes";

    if (b.copying[at] && kind != COPY_ARRIVES)
        violation(w, "lane %u %s byte %zu of shared memory, which a copy in progress will write", lane, verb, at);
    if (h.write_time == b.time && h.writer != thread)
        violation(w, "race: lane %u %s byte %zu of shared memory, which thread %u wrote (PTX line %u)", lane, verb, at,
                  h.writer, h.write_line);
    if (kind != READ && h.read_time == b.time && h.reader != thread)
        violation(w, "race: lane %u writes byte %zu of shared memory, which %s read (PTX line %u)", lane, at,
                  h.reader == SEVERAL ? "several threads" : "another thread", h.read_line);
    if (kind == READ) {
        h.reader = h.read_time == b.time && h.reader != thread ? SEVERAL : thread;
        h.read_time = b.time, h.read_line = w.now->line;
    } else {
        h.writer = thread;
        h.write_time = b.time, h.write_line = w.now->line;
    }
}

void
note_access(warp &w, unsigned lane, size_t at, size_t size, access_kind kind)
{
    for (size_t k = at; k < at + size; k++)
        note_byte(w, lane, k, kind);
}

/* ---- griddepcontrol ---------------------------------------------------------------------------------------------- */

void
check_dependency(const warp &w, uint32_t mask)
{
    if (setting().arch >= 90 && mask & ~w.waited)
        violation(w, "device memory is accessed before griddepcontrol.wait");
}

static void
wait_for_dependency(warp &w, const instruction &, uint32_t mask)
{
    w.waited |= mask;
}

static void
launch_dependents(warp &w, const instruction &, uint32_t mask)
{
    w.launched |= mask;
}

operation
launch_dependents_operation()
{
    return launch_dependents;
}

operation
dependency_wait_operation()
{
    return wait_for_dependency;
}

/* ---- cp.async ---------------------------------------------------------------------------------------------------- */

/* Operands: to, from, bytes of 16 to copy, offsets of `to` and of `from`. */
static void
start_copy(warp &w, const instruction &i, uint32_t mask)
{
    check_dependency(w, mask);
    each_lane(mask, [&](unsigned lane) {
        uint32_t valid = w.operand<uint32_t>(i, 2)[lane];
        uint32_t address = w.operand<uint32_t>(i, 0)[lane] + w.operand<uint32_t>(i, 3)[lane];
        uint64_t from = w.operand<uint64_t>(i, 1)[lane] + w.operand<uint64_t>(i, 4)[lane];
        const unsigned char *bytes = (const unsigned char *)from;
        unsigned char *to = shared_bytes(w, lane, address, 16);
        size_t at = (size_t)(to - w.in->shared);

        if (valid > 16 || (valid && (from % 16 || is_shared(*w.in, bytes))))
            violation(w, "lane %u copies %u bytes of 16 from %p", lane, valid, (const void *)bytes);
        note_access(w, lane, at, 16, WRITE);
        for (size_t k = at; k < at + 16; k++)
            w.in->copying[k] = true;
        memset(to, 0xff, 16);
        if (valid) /* memory that is not accessible fails here, not at the wait */
            (void)*(const volatile unsigned char *)bytes, (void)*(const volatile unsigned char *)(bytes + valid - 1);
        w.copies[lane].push_back({at, bytes, valid, w.group[lane], i.line});
    });
}

static void
commit_copies(warp &w, const instruction &, uint32_t mask)
{
    each_lane(mask, [&](unsigned lane) { w.group[lane]++; });
}

static void
finish_copy(warp &w, unsigned lane, const pending_copy &c)
{
    unsigned char *to = w.in->shared + c.to;

    memset(to, 0, 16);
    memcpy(to, c.from, c.valid);
    note_access(w, lane, c.to, 16, COPY_ARRIVES);
    for (size_t k = c.to; k < c.to + 16; k++)
        w.in->copying[k] = false;
}

/* All groups but the last `immediate` ones are complete after it. */
static void
wait_for_copies(warp &w, const instruction &i, uint32_t mask)
{
    each_lane(mask, [&](unsigned lane) {
        std::vector<pending_copy> &all = w.copies[lane];
        size_t left = 0;

        for (const pending_copy &c : all)
            if ((int64_t)c.group >= (int64_t)w.group[lane] - i.immediate)
                all[left++] = c;
            else
                finish_copy(w, lane, c);
        all.resize(left);
    });
}

operation
copy_operation()
{
    return start_copy;
}

operation
commit_operation()
{
    return commit_copies;
}

operation
wait_operation()
{
    return wait_for_copies;
}
} // namespace ptx
