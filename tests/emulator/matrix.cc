/*
 * matrix.cc - mma and ldmatrix, following the tables of the PTX ISA, chapters "Matrix Fragments for mma.m16n8k16",
 * "... for mma.m16n8k8", which has one table for halves and one for tf32, and "... for mma.m8n8k4 with .f16"; ldmatrix
 * in "Warp-level matrix load instruction: ldmatrix"
 *
 * The last lane to arrive computes the results of all lanes.  Sums are in float, in the order of k; a tensor core
 * rounds differently.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "block.h"

namespace emulated
{
/* Operands and results of a lane; the second half of b is for a second product. */
struct fragments {
    float a[8], b[8];
};
static_assert(sizeof(fragments) == sizeof(((meeting *)0)->lane[0].in), "a lane hands in sixteen words");

static float
word(const uint32_t *words, unsigned i)
{
    return float_of(words[i]);
}

/*
 * m16n8k16 and m16n8k8, DEEP is k; group = lane / 4, t = lane % 4:
 * a[i] is A[group + 8 (i / 2 % 2)][2 t + i % 2 + 8 (i / 4)],
 * b[i] is B[2 t + i % 2 + 8 (i / 2)][group]; the second B follows the first.
 */
template <unsigned DEEP, unsigned PRODUCTS>
static void
complete_168(meeting *m)
{
    enum { OF_A = DEEP / 2, OF_B = DEEP / 4 }; /* values of a lane */
    float a[16][DEEP], b[DEEP][8 * PRODUCTS];

    for (unsigned lane = 0; lane < WARP; lane++) {
        const uint32_t *in = m->lane[lane].in;
        unsigned group = lane / 4, t = lane % 4;

        for (unsigned i = 0; i < OF_A; i++)
            a[group + i / 2 % 2 * 8][t * 2 + i % 2 + i / 4 * 8] = word(in, i);
        for (unsigned i = 0; i < OF_B * PRODUCTS; i++)
            b[t * 2 + i % 2 + i % OF_B / 2 * 8][group + i / OF_B * 8] = word(in, 8 + i);
    }
    for (unsigned row = 0; row < 16; row++) {
        float sum[8 * PRODUCTS] = {0};

        for (unsigned k = 0; k < DEEP; k++)
            for (unsigned n = 0; n < 8 * PRODUCTS; n++)
                sum[n] += a[row][k] * b[k][n];
        for (unsigned n = 0; n < 8 * PRODUCTS; n++)
            m->lane[row % 8 * 4 + n % 8 / 2].out[n % 2 + row / 8 * 2 + n / 8 * 4] = bits_of(sum[n]);
    }
}

template <unsigned DEEP, unsigned PRODUCTS>
static void
mma_168_of(float *d, const float *a, const float *b, place at)
{
    fragments mine;

    for (unsigned i = 0; i < 8; i++)
        mine.a[i] = i < DEEP / 2 ? a[i] : 0;
    for (unsigned i = 0; i < DEEP / 4 * PRODUCTS; i++)
        mine.b[i] = b[i];
    meeting *m = meet(0xffffffffu, at, &mine, (8 + DEEP / 4 * PRODUCTS) * sizeof(float), complete_168<DEEP, PRODUCTS>,
                      false);
    for (unsigned i = 0; i < 4 * PRODUCTS; i++)
        d[i] += word(m->lane[running->seen.lane].out, i);
    leave(m);
}

void
mma_16816(float d[4], const float a[8], const float b[4], place at)
{
    mma_168_of<16, 1>(d, a, b, at);
}

void
mma_16816_twice(float d[8], const float a[8], const float b[8], place at)
{
    mma_168_of<16, 2>(d, a, b, at);
}

void
mma_1688(float d[4], const float a[4], const float b[2], place at)
{
    mma_168_of<8, 1>(d, a, b, at);
}

/*
 * m16n8k8 of tf32; group = lane / 4, t = lane % 4: a[i] is A[group + 8 (i % 2)][t + 4 (i / 2)], b[i] is
 * B[t + 4 i][group]; the second B follows the first.
 */
template <unsigned PRODUCTS>
static void
complete_tf32(meeting *m)
{
    float a[16][8], b[8][8 * PRODUCTS];

    for (unsigned lane = 0; lane < WARP; lane++) {
        const uint32_t *in = m->lane[lane].in;
        unsigned group = lane / 4, t = lane % 4;

        for (unsigned i = 0; i < 4; i++)
            a[group + i % 2 * 8][t + i / 2 * 4] = float_of(in[i] & ~0x1fffu);
        for (unsigned i = 0; i < 2 * PRODUCTS; i++)
            b[t + i % 2 * 4][group + i / 2 * 8] = float_of(in[8 + i] & ~0x1fffu);
    }
    for (unsigned row = 0; row < 16; row++) {
        float sum[8 * PRODUCTS] = {0};

        for (unsigned k = 0; k < 8; k++)
            for (unsigned n = 0; n < 8 * PRODUCTS; n++)
                sum[n] += a[row][k] * b[k][n];
        for (unsigned n = 0; n < 8 * PRODUCTS; n++)
            m->lane[row % 8 * 4 + n % 8 / 2].out[n % 2 + row / 8 * 2 + n / 8 * 4] = bits_of(sum[n]);
    }
}

template <unsigned PRODUCTS>
static void
mma_tf32_of(float *d, const float *a, const float *b, place at)
{
    fragments mine = {};

    for (unsigned i = 0; i < 4; i++)
        mine.a[i] = a[i];
    for (unsigned i = 0; i < 2 * PRODUCTS; i++)
        mine.b[i] = b[i];
    meeting *m = meet(0xffffffffu, at, &mine, (8 + 2 * PRODUCTS) * sizeof(float), complete_tf32<PRODUCTS>, false);
    for (unsigned i = 0; i < 4 * PRODUCTS; i++)
        d[i] += word(m->lane[running->seen.lane].out, i);
    leave(m);
}

void
mma_1688_tf32(float d[4], const float a[4], const float b[2], place at)
{
    mma_tf32_of<1>(d, a, b, at);
}

void
mma_1688_tf32_twice(float d[8], const float a[4], const float b[4], place at)
{
    mma_tf32_of<2>(d, a, b, at);
}

/*
 * Four quad pairs: lanes 4 q .. 4 q + 3 and 16 + 4 q .. 16 + 4 q + 3 multiply 8 x 4 by 4 x 8.  line = lane % 4, + 4
 * in the upper half.  A .row: a[i] = A[line][i]; A .col: a[i] = A[i + 4 upper][lane % 4]; B .col and .row are similar,
 * with k in place of the column.
 */
static void
complete_884(meeting *m, bool transposed_a, bool transposed_b)
{
    for (unsigned quad = 0; quad < 4; quad++) {
        float a[8][4], b[4][8];

        for (unsigned l = 0; l < 8; l++) {
            const uint32_t *in = m->lane[quad * 4 + l % 4 + l / 4 * 16].in;

            for (unsigned i = 0; i < 4; i++) {
                a[transposed_a ? i + l / 4 * 4 : l][transposed_a ? l % 4 : i] = word(in, i);
                b[transposed_b ? l % 4 : i][transposed_b ? i + l / 4 * 4 : l] = word(in, 8 + i);
            }
        }
        for (unsigned l = 0; l < 8; l++)
            for (unsigned i = 0; i < 8; i++) {
                unsigned row = (l & 1) + (i & 2) + l / 4 * 4, column = (i & 4) + (l & 2) + (i & 1);
                float sum = 0;

                for (unsigned k = 0; k < 4; k++)
                    sum += a[row][k] * b[k][column];
                m->lane[quad * 4 + l % 4 + l / 4 * 16].out[i] = bits_of(sum);
            }
    }
}

template <bool transposed_a, bool transposed_b>
static void
complete_884_as(meeting *m)
{
    complete_884(m, transposed_a, transposed_b);
}

void
mma_884(float d[8], const float a[4], const float b[4], bool transposed_a, bool transposed_b, place at)
{
    static void (*const complete[2][2])(meeting *) = {{complete_884_as<false, false>, complete_884_as<false, true>},
                                                      {complete_884_as<true, false>, complete_884_as<true, true>}};
    fragments mine = {};

    for (unsigned i = 0; i < 4; i++) {
        mine.a[i] = a[i];
        mine.b[i] = b[i];
    }
    meeting *m = meet(0xffffffffu, at, &mine, sizeof(mine), complete[transposed_a][transposed_b], false);
    for (unsigned i = 0; i < 8; i++)
        d[i] += word(m->lane[running->seen.lane].out, i);
    leave(m);
}

#ifdef EMULATOR_COUNTED
static void
count_rows(const meeting *m, unsigned matrices)
{
    const void *row[WARP];

    for (unsigned lane = 0; lane < matrices * 8; lane++)
        row[lane] = (const void *)(uintptr_t)(m->lane[lane].in[0] | (uint64_t)m->lane[lane].in[1] << 32);
    traffic_matrices(row, matrices);
}
#endif

void
exchange_rows(const void *row, unsigned matrices, unsigned first, unsigned count, const void **p, place at)
{
    uint32_t words[2] = {(uint32_t)(uintptr_t)row, (uint32_t)((uintptr_t)row >> 32)};

    if (running->seen.lane < matrices * 8 && (uintptr_t)row % 16 != 0)
        violation(at, "ldmatrix of a row at %p, which is no multiple of 16", row);
    meeting *m = meet(0xffffffffu, at, words, sizeof(words), NULL, false);
    COUNTED(if (running->seen.lane == 0) count_rows(m, matrices);)
    for (unsigned i = 0; i < matrices; i++)
        for (unsigned k = 0; k < count; k++) {
            const uint32_t *in = m->lane[i * 8 + first + k].in;

            p[count * i + k] = (const void *)(uintptr_t)(in[0] | (uint64_t)in[1] << 32);
        }
    leave(m);
}

void
fetch(void *to, const void *from, size_t size)
{
    TSAN(if (size == 2) __tsan_read2((void *)from); else __tsan_read4((void *)from);)
    if (size == 2)
        memcpy(to, from, 2);
    else
        memcpy(to, from, 4);
}
} // namespace emulated
