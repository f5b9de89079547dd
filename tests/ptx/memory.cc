/*
 * memory.cc - ld, st and ldmatrix
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core.h"

namespace ptx
{
/* The address of a lane's access to another space than shared memory. */
template <space S>
static unsigned char *
bytes_of(warp &w, unsigned lane, uint64_t address, size_t size)
{
    unsigned char *p = (unsigned char *)address;

    if (address % size)
        violation(w, "lane %u accesses %zu bytes at %p, which is not aligned", lane, size, (void *)p);
    if (S == PARAM) {
        size_t at = (size_t)(p - (const unsigned char *)w.in->launch->argument);

        if (at + size > w.in->of->argument_size)
            violation(w, "lane %u reads byte %zd of an argument of %zu bytes", lane, (ssize_t)at,
                      w.in->of->argument_size);
    }
    if (S == GLOBAL && is_shared(*w.in, p))
        violation(w, "lane %u accesses shared memory by an instruction for global memory", lane);
    return p;
}

/* Operands: the address, then `count` registers of type R.  Values of type T are extended by the sign of T. */
template <bool LOAD, space S, typename T, typename R>
static void
access(warp &w, const instruction &i, uint32_t mask)
{
    size_t size = sizeof(T) * i.count;

    if (S == GLOBAL || S == GENERIC)
        check_dependency(w, mask);
    each_lane(mask, [&](unsigned lane) {
        uint64_t base = S == SHARED && !i.wide ? w.operand<uint32_t>(i, 0)[lane] : w.operand<uint64_t>(i, 0)[lane];
        uint64_t address = base + (uint64_t)i.immediate;
        unsigned char *p = S == SHARED ? shared_bytes(w, lane, (uint32_t)address, size)
                                       : bytes_of<S>(w, lane, address, size);

        if (S == SHARED || is_shared(*w.in, p))
            note_access(w, lane, (size_t)(p - w.in->shared), size, LOAD ? READ : WRITE);
        for (unsigned k = 0; k < i.count; k++) {
            R *row = w.operand<R>(i, 1 + k);
            T v = (T)row[lane];

            if (LOAD) {
                memcpy(&v, p + k * sizeof(T), sizeof(T));
                row[lane] = (R)v;
            } else {
                memcpy(p + k * sizeof(T), &v, sizeof(T));
            }
        }
    });
}

template <bool LOAD, space S, typename T>
static operation
access_by_width(unsigned width)
{
    return width == 8 ? access<LOAD, S, T, uint64_t> : access<LOAD, S, T, uint32_t>;
}

template <bool LOAD, space S>
static operation
access_by_type(type t, unsigned width)
{
    switch (t) {
    case U8:
    case B8:
        return access_by_width<LOAD, S, uint8_t>(width);
    case S8:
        return access_by_width<LOAD, S, int8_t>(width);
    case U16:
    case B16:
        return access_by_width<LOAD, S, uint16_t>(width);
    case S16:
        return access_by_width<LOAD, S, int16_t>(width);
    case U32:
    case B32:
    case F32:
        return access_by_width<LOAD, S, uint32_t>(width);
    case S32:
        return access_by_width<LOAD, S, int32_t>(width);
    case U64:
    case B64:
    case S64:
    case F64:
        return width == 8 ? access<LOAD, S, uint64_t, uint64_t> : (operation) nullptr;
    default:
        return nullptr;
    }
}

operation
load_operation(space s, type t, unsigned width)
{
    return s == SHARED   ? access_by_type<true, SHARED>(t, width)
           : s == GLOBAL ? access_by_type<true, GLOBAL>(t, width)
           : s == PARAM  ? access_by_type<true, PARAM>(t, width)
                         : access_by_type<true, GENERIC>(t, width);
}

operation
store_operation(space s, type t, unsigned width)
{
    return s == SHARED    ? access_by_type<false, SHARED>(t, width)
           : s == GLOBAL  ? access_by_type<false, GLOBAL>(t, width)
           : s == GENERIC ? access_by_type<false, GENERIC>(t, width)
                          : (operation) nullptr;
}

/* ---- ldmatrix ---------------------------------------------------------------------------------------------------- */

/*
 * Lane 8 m + r has the address of row r of matrix m.  Register m of lane l gets two values of that matrix: those at
 * row l / 4, columns 2 (l % 4) and 2 (l % 4) + 1; or, with .trans, of the transposed matrix.
 */
template <bool TRANSPOSED, unsigned COUNT>
static void
load_matrices(warp &w, const instruction &i, uint32_t)
{
    uint16_t value[COUNT][8][8];
    uint32_t address[LANES];

    each_lane(ALL_LANES >> (LANES - 8 * COUNT), [&](unsigned lane) {
        address[lane] = w.operand<uint32_t>(i, 0)[lane] + (uint32_t)i.immediate;
        memcpy(value[lane / 8][lane % 8], shared_bytes(w, lane, address[lane], 16), 16);
    });
    for (unsigned m = 0; m < COUNT; m++)
        for (unsigned lane = 0; lane < LANES; lane++) {
            uint32_t pair = 0;

            for (unsigned k = 0; k < 2; k++) {
                unsigned across = lane % 4 * 2 + k, down = lane / 4;
                unsigned row = TRANSPOSED ? across : down, column = TRANSPOSED ? down : across;

                note_access(w, lane, address[m * 8 + row] - SHARED_BASE + column * 2, 2, READ);
                pair |= (uint32_t)value[m][row][column] << (16 * k);
            }
            w.operand<uint32_t>(i, 1 + m)[lane] = pair;
        }
}

operation
matrices_operation(bool transposed, unsigned count)
{
    switch (count) {
    case 1:
        return transposed ? load_matrices<true, 1> : load_matrices<false, 1>;
    case 2:
        return transposed ? load_matrices<true, 2> : load_matrices<false, 2>;
    case 4:
        return transposed ? load_matrices<true, 4> : load_matrices<false, 4>;
    default:
        return nullptr;
    }
}
} // namespace ptx
