/*
 * warp.cc - runs the lanes of a warp: branches, calls, and instructions that lanes execute together
 *
 * Each lane has its own program counter.  The lanes at the smallest one run until they branch apart, or until they
 * reach lanes that wait.  In random order a single lane runs until it must wait for others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core.h"

#include <algorithm>

namespace ptx
{
static uint32_t
lanes_where(warp &w, const instruction &i, uint32_t mask)
{
    const uint32_t *predicate = w.row<uint32_t>(i.predicate);
    uint32_t lanes = 0;

    if (!i.predicate)
        return mask;
    for (unsigned lane = 0; lane < LANES; lane++)
        lanes |= (uint32_t)(predicate[lane] != 0) << lane;
    return mask & (i.negated ? ~lanes : lanes);
}

static void
set_pc(warp &w, uint32_t mask, uint32_t pc)
{
    each_lane(mask, [&](unsigned lane) { w.pc[lane] = pc; });
}

static void
end_lane(warp &w, unsigned lane)
{
    w.alive &= ~(1u << lane);
    if (!w.copies[lane].empty())
        violation(w, "lane %u ends with a copy in progress (PTX line %u)", lane, w.copies[lane][0].line);
    if (setting().arch >= 90 && !(w.waited >> lane & 1))
        violation(w, "lane %u ends without griddepcontrol.wait", lane);
    if (setting().arch >= 90 && !(w.launched >> lane & 1))
        violation(w, "lane %u ends without griddepcontrol.launch_dependents", lane);
}

static void
call_function(warp &w, uint32_t mask, uint32_t pc)
{
    each_lane(mask, [&](unsigned lane) {
        if (w.return_to[lane])
            violation(w, "a function calls another one");
        w.return_to[lane] = pc + 1;
    });
}

static void
return_from_function(warp &w, uint32_t mask)
{
    each_lane(mask, [&](unsigned lane) {
        if (w.return_to[lane])
            w.pc[lane] = w.return_to[lane], w.return_to[lane] = 0;
        else
            end_lane(w, lane);
    });
}

/* Lanes of `mask` arrive.  Returns the lanes that execute the instruction together if all are here, otherwise 0. */
static uint32_t
lanes_that_meet(warp &w, const instruction &i, uint32_t pc, uint32_t mask)
{
    uint32_t members = ALL_LANES;

    if (i.members) {
        const uint32_t *given = w.row<uint32_t>(i.members);

        members = given[__builtin_ctz(mask)];
        each_lane(mask, [&](unsigned lane) {
            if (given[lane] != members || !(members >> lane & 1))
                violation(w, "lane %u has the mask %08x, another one %08x", lane, given[lane], members);
        });
    }
    if (members & ~w.alive)
        violation(w, "lanes %08x must meet, but lanes %08x have ended", members, members & ~w.alive);
    for (uint32_t m = members & ~mask; m; m &= m - 1) {
        unsigned lane = (unsigned)__builtin_ctz(m);

        if (!(w.blocked >> lane & 1) || w.pc[lane] != pc)
            return 0;
    }
    return members;
}

/* Executes an instruction of kind MEETING in `mask`.  Returns whether exactly these lanes have gone on. */
static bool
meet(warp &w, const instruction &i, uint32_t pc, uint32_t arrived, uint32_t mask)
{
    uint32_t members;

    set_pc(w, mask & ~arrived, pc + 1);
    members = arrived ? lanes_that_meet(w, i, pc, arrived) : 0;
    if (members) {
        i.run(w, i, members);
        set_pc(w, members, pc + 1);
        w.blocked &= ~members;
        return members == mask;
    }
    set_pc(w, arrived, pc);
    w.blocked |= arrived;
    return false;
}

/*
 * Executes one instruction in `mask`; pc is that of all these lanes.  Returns false if they no longer have a common pc:
 * then each lane has its own in w.pc.
 */
static bool
step(warp &w, const instruction &i, uint32_t &pc, uint32_t mask)
{
    uint32_t active = lanes_where(w, i, mask);

    w.now = &i;
    switch (i.what) {
    case NEXT:
        if (active)
            i.run(w, i, active);
        break;
    case BRANCH:
        if (active == mask) {
            pc = i.target;
            return true;
        }
        if (active == 0)
            break;
        set_pc(w, active, i.target);
        set_pc(w, mask & ~active, pc + 1);
        return false;
    case CALL:
        call_function(w, active, pc);
        pc = i.target;
        return true;
    case RETURN:
        set_pc(w, mask & ~active, pc + 1);
        return_from_function(w, active);
        return false;
    case BARRIER:
        set_pc(w, active, pc);
        set_pc(w, mask & ~active, pc + 1);
        w.at_barrier |= active;
        return false;
    case MEETING:
        if (!meet(w, i, pc, active, mask))
            return false;
        break;
    }
    pc++;
    return true;
}

/* Chooses lanes that run together.  `limit`: the next larger pc, at which other lanes wait for their turn. */
static uint32_t
choose_lanes(const warp &w, uint32_t ready, uint32_t *pc, uint32_t *limit)
{
    uint32_t mask = 0;

    *pc = *limit = NO_PC;
    if (setting().random_order) {
        unsigned skip = next_random() % (unsigned)__builtin_popcount(ready);

        for (mask = ready; skip > 0; skip--)
            mask &= mask - 1;
        mask &= -mask;
        *pc = w.pc[__builtin_ctz(mask)];
        return mask;
    }
    each_lane(ready, [&](unsigned lane) { *pc = std::min(*pc, w.pc[lane]); });
    each_lane(ready, [&](unsigned lane) {
        if (w.pc[lane] == *pc)
            mask |= 1u << lane;
        else
            *limit = std::min(*limit, w.pc[lane]);
    });
    return mask;
}

void
run_warp(warp &w)
{
    const std::vector<instruction> &code = w.in->of->code;
    uint32_t ready, mask, pc, limit;

    while ((ready = w.alive & ~w.blocked & ~w.at_barrier) != 0) {
        mask = choose_lanes(w, ready, &pc, &limit);
        do {
            if (pc >= code.size())
                violation(w, "the code ends without ret");
            if (!step(w, code[pc], pc, mask)) {
                mask = 0;
                break;
            }
        } while (pc < limit);
        set_pc(w, mask, pc);
    }
    if (w.blocked)
        violation(w, "lanes %08x wait for other lanes of their warp, which wait elsewhere", w.blocked);
}
} // namespace ptx
