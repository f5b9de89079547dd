/*
 * check_kernels.c - compares every implementation of unfilter, convolve and SHA-256 on this CPU with plain C
 *
 * It needs only the kernels, so it can also be built for other CPUs and run in an emulator: check_aarch64.sh.  Prints
 * the implementations and the comparisons; the exit code is 1 if one differs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/sha256_private.h"
#include "kernels/convolve_private.h"
#include "kernels/unfilter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WIDTH  160
#define MAX_HEIGHT 80

/* xorshift32 (Marsaglia 2003): the same numbers on every machine. */
static uint32_t
next_random(void)
{
    static uint32_t state = 1;

    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static bool
unfilter_agrees(const struct unfilter_kind *kind, const struct unfilter_kind *plain)
{
    static uint8_t raw[(MAX_WIDTH + 1) * MAX_HEIGHT + UNFILTER_SLACK];
    static uint8_t want[MAX_WIDTH * MAX_HEIGHT], got[MAX_WIDTH * MAX_HEIGHT];
    /* The sets of types that have a version of their own: Paeth; average and Paeth; up and Paeth. */
    static const uint8_t types[][2] = {{4, 4}, {3, 4}, {2, 4}};
    uint32_t width = 1 + next_random() % MAX_WIDTH, height = 1 + next_random() % MAX_HEIGHT, part, i;
    uint32_t set = next_random() % 4;

    for (i = 0; i < sizeof(raw); i++) {
        uint32_t shift = next_random() % 3 ? 8 : 30;

        raw[i] = (uint8_t)(next_random() >> shift);
    }
    for (i = 0; i < height; i++)
        raw[i * (width + 1)] = set == 3 ? (uint8_t)(next_random() % 5) : types[set][next_random() % 2];
    part = next_random() % (height + 1);
    plain->gray(raw, width, 0, height, want, width);
    kind->gray(raw, width, 0, part, got, width);
    kind->gray(raw, width, part, height, got, width);
    return memcmp(want, got, (size_t)width * height) == 0;
}

/* Uses random factors of at most 1 << RESAMPLE_PRECISION together, also negative ones, and rows at any address. */
static bool
wide_agrees(const struct convolve_kind *kind)
{
    enum { TAPS = 50, STRIDE = MAX_WIDTH + 32 };
    static uint8_t from[TAPS * STRIDE], got[MAX_WIDTH + 1];
    int16_t low[TAPS] = {0}, high[TAPS] = {0};
    struct wide_factors f = {.low = low, .high = high, .count = 1 + next_random() % TAPS};
    uint32_t width = 1 + next_random() % MAX_WIDTH, shift = next_random() % 32, i;
    uint32_t limit = (1u << RESAMPLE_PRECISION) / f.count, samples = next_random() % 4;

    f.coarse = next_random() % 4 == 0;
    for (i = 0; i < sizeof(from); i++)
        from[i] = samples == 0 ? 255 : (uint8_t)(next_random() >> 8);
    for (i = 0; i < f.count; i++) {
        int32_t factor = (int32_t)(next_random() % (2 * limit + 1)) - (int32_t)limit;
        int32_t part;

        if (samples == 0 && factor < 0) /* the largest sums */
            factor = -factor;
        part = factor & ((1 << RESAMPLE_LOW_BITS) - 1);
        low[i] = (int16_t)(f.coarse ? 0 : part);
        high[i] = (int16_t)((factor - part) / (1 << RESAMPLE_LOW_BITS));
    }
    got[width] = 77;
    kind->wide_columns(from + shift, STRIDE, &f, width, got);
    for (i = 0; i < width; i++)
        if (got[i] != convolve_wide_one(from + shift + i, STRIDE, &f))
            return false;
    return got[width] == 77;
}

/* Uses random factors in the range that convolve_private.h promises, and also white samples, for the largest sums. */
static bool
convolve_agrees(const struct convolve_kind *kind, const struct convolve_kind *plain)
{
    static uint8_t from[16 * MAX_WIDTH], want[MAX_WIDTH], got[MAX_WIDTH];
    int8_t factor[16] = {0};
    uint32_t count = 1 + next_random() % 16, bits = next_random() % 8;
    struct small_factors f = {.factor = factor, .count = count, .bits = bits};
    uint32_t width = 1 + next_random() % MAX_WIDTH, left = 128, i;
    bool white = next_random() % 4 == 0;

    for (i = 0; i < sizeof(from); i++)
        from[i] = white ? 255 : (uint8_t)(next_random() >> 8);
    for (i = 0; i < f.count; i++) {
        uint32_t weight = next_random() % (left < 127 ? left + 1 : 128);

        factor[i] = (int8_t)weight;
        left -= weight;
    }
    plain->small_columns(from, MAX_WIDTH, &f, width, want);
    kind->small_columns(from, MAX_WIDTH, &f, width, got);
    if (memcmp(want, got, width) != 0)
        return false;
    f.count = 8;
    plain->small_rows(from, &f, width, want);
    kind->small_rows(from, &f, width, got);
    return memcmp(want, got, width) == 0;
}

/* Any state, one to four blocks at any address. */
static bool
sha256_agrees(const struct sha256_kind *kind)
{
    static uint8_t data[5 * SHA256_BLOCK];
    uint32_t want[8], got[8], shift = next_random() % SHA256_BLOCK, blocks = 1 + next_random() % 4;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(next_random() >> 8);
    for (int i = 0; i < 8; i++)
        want[i] = got[i] = next_random();
    sha256_blocks_c(want, data + shift, blocks);
    kind->blocks(got, data + shift, blocks);
    return memcmp(want, got, sizeof(want)) == 0;
}

int
main(void)
{
    const struct unfilter_kind *unfilter = unfilter_kinds, *unfilter_c = unfilter_kinds;
    const struct convolve_kind *convolve = convolve_kinds, *convolve_c = convolve_kinds;
    const struct sha256_kind *sha256 = sha256_kinds;
    int i, failed = 0, passed = 0;

    while (unfilter_c[1].name)
        unfilter_c++;
    while (convolve_c[1].name)
        convolve_c++;
    for (; unfilter->name; unfilter++) {
        for (i = 0; unfilter->supported() && i < 1000; i++)
            *(unfilter_agrees(unfilter, unfilter_c) ? &passed : &failed) += 1;
        printf("unfilter %s: %s\n", unfilter->name, unfilter->supported() ? "compared" : "not on this CPU");
    }
    for (; convolve->name; convolve++) {
        for (i = 0; convolve->supported() && i < 1000; i++)
            *(convolve_agrees(convolve, convolve_c) && wide_agrees(convolve) ? &passed : &failed) += 1;
        printf("convolve %s: %s\n", convolve->name, convolve->supported() ? "compared" : "not on this CPU");
    }
    for (; sha256->name; sha256++) {
        for (i = 0; sha256->supported() && i < 1000; i++)
            *(sha256_agrees(sha256) ? &passed : &failed) += 1;
        printf("sha256 %s: %s\n", sha256->name, sha256->supported() ? "compared" : "not on this CPU");
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
