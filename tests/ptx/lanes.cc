/*
 * lanes.cc - instructions that exchange values between lanes: shfl.sync and vote.sync; mov between one register and two
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core.h"

namespace ptx
{
enum shuffle_mode { UP, DOWN, BUTTERFLY, INDEX };

/* shfl.sync d|p, a, b, c: b selects the lane; c has the largest lane in bits 0 to 4, the segment mask in 8 to 12. */
template <shuffle_mode MODE>
static void
shuffle(warp &w, const instruction &i, uint32_t mask)
{
    uint32_t *d = w.operand<uint32_t>(i, 0), *p = w.operand<uint32_t>(i, 1), a[LANES];
    const uint32_t *b = w.operand<uint32_t>(i, 3), *c = w.operand<uint32_t>(i, 4);

    memcpy(a, w.operand<uint32_t>(i, 2), sizeof(a));
    each_lane(mask, [&](unsigned lane) {
        unsigned segment = c[lane] >> 8 & 31, by = b[lane] & 31, first = lane & segment;
        int limit = (int)(first | (c[lane] & 31 & ~segment)), from = (int)lane;

        switch (MODE) {
        case UP:
            from -= (int)by;
            break;
        case DOWN:
            from += (int)by;
            break;
        case BUTTERFLY:
            from ^= (int)by;
            break;
        case INDEX:
            from = (int)(first | (by & ~segment));
            break;
        }
        p[lane] = MODE == UP ? from >= limit : from <= limit;
        if (!p[lane])
            from = (int)lane;
        if (!(mask >> from & 1))
            violation(w, "lane %u reads lane %d, which takes no part in the shuffle", lane, from);
        d[lane] = a[from];
    });
}

operation
shuffle_operation(const std::string &mode)
{
    return mode == "up"     ? shuffle<UP>
           : mode == "down" ? shuffle<DOWN>
           : mode == "bfly" ? shuffle<BUTTERFLY>
           : mode == "idx"  ? shuffle<INDEX>
                            : (operation) nullptr;
}

static void
ballot(warp &w, const instruction &i, uint32_t mask)
{
    uint32_t *d = w.operand<uint32_t>(i, 0), votes = 0;
    const uint32_t *a = w.operand<uint32_t>(i, 1);

    each_lane(mask, [&](unsigned lane) { votes |= (uint32_t)(a[lane] != 0) << lane; });
    each_lane(mask, [&](unsigned lane) { d[lane] = votes; });
}

operation
vote_operation(const std::string &mode)
{
    return mode == "ballot" ? ballot : (operation) nullptr;
}

template <typename WHOLE, typename PART>
static void
pack(warp &w, const instruction &i, uint32_t mask)
{
    WHOLE *d = w.operand<WHOLE>(i, 0);
    const uint32_t *low = w.operand<uint32_t>(i, 1), *high = w.operand<uint32_t>(i, 2);

    each_lane(mask,
              [=](unsigned lane) { d[lane] = (WHOLE)(PART)high[lane] << (sizeof(PART) * 8) | (WHOLE)(PART)low[lane]; });
}

template <typename WHOLE, typename PART>
static void
unpack(warp &w, const instruction &i, uint32_t mask)
{
    uint32_t *low = w.operand<uint32_t>(i, 0), *high = w.operand<uint32_t>(i, 1);
    const WHOLE *a = w.operand<WHOLE>(i, 2);

    each_lane(mask, [=](unsigned lane) {
        WHOLE v = a[lane];

        low[lane] = (PART)v;
        high[lane] = (PART)(v >> (sizeof(PART) * 8));
    });
}

operation
pack_operation(unsigned bytes)
{
    return bytes == 8 ? pack<uint64_t, uint32_t> : pack<uint32_t, uint16_t>;
}

operation
unpack_operation(unsigned bytes)
{
    return bytes == 8 ? unpack<uint64_t, uint32_t> : unpack<uint32_t, uint16_t>;
}
} // namespace ptx
