/*
 * png_decode.c - fuzz target: compares the fast path for PNGs with libpng
 *
 * What fastpng_decode() accepts, libpng accepts without a warning, with the same pixels and traits.  So decode_image(),
 * which tries first one and then the other, gives the same result as libpng.  State that is kept between images must
 * have no effect: each input is decoded after another one, and a second time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "image/decode.h"
#include "image/png_decode.h"
#include "image/png_fast.h"
#include "png_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct decode_limits strict = {.max_pixels = 1u << 20, .min_side = 1};

struct result {
    enum chex_status status;
    struct image image;
    struct image_traits traits;
    struct chex_error err;
};

static void
require_same(const struct result *a, const struct result *b)
{
    FUZZ_REQUIRE(a->status == b->status);
    if (a->status != CHEX_OK) {
        FUZZ_REQUIRE(strcmp(a->err.text, b->err.text) == 0);
        return;
    }
    FUZZ_REQUIRE(a->image.width == b->image.width && a->image.height == b->image.height);
    for (uint32_t y = 0; y < a->image.height; y++)
        FUZZ_REQUIRE(memcmp(a->image.data + y * a->image.stride, b->image.data + y * b->image.stride, a->image.width) ==
                     0);
    FUZZ_REQUIRE(a->traits.container == b->traits.container && a->traits.bit_depth == b->traits.bit_depth &&
                 a->traits.channels == b->traits.channels && a->traits.palette == b->traits.palette &&
                 a->traits.interlaced == b->traits.interlaced && a->traits.colour == b->traits.colour &&
                 a->traits.transparent == b->traits.transparent && a->traits.animated == b->traits.animated &&
                 a->traits.warnings == b->traits.warnings);
}

static void
require_limits(const struct result *r, const struct decode_limits *limits)
{
    if (r->status == CHEX_OK)
        FUZZ_REQUIRE((uint64_t)r->image.width * r->image.height <= limits->max_pixels &&
                     r->image.width >= limits->min_side && r->image.height >= limits->min_side);
    else
        fuzz_require_error(r->status, &r->err);
}

/* Two decoders of one input in one loop give what one gives; want is NULL if that does not take the input. */
static void
require_together(const uint8_t *data, size_t size, const struct result *want)
{
    static struct decoder decoder[2];
    static struct result result[2];
    bool taken[2];
    int i;

    if (!decoder[0].png)
        FUZZ_REQUIRE(decoder_init(&decoder[0], NULL) == CHEX_OK && decoder_init(&decoder[1], NULL) == CHEX_OK);
    fastpng_decode_two((struct fastpng *[]){decoder[0].png, decoder[1].png},
                       (struct image_file[]){{data, size}, {data, size}}, &strict,
                       (struct image *[]){&result[0].image, &result[1].image},
                       (struct image_traits *[]){&result[0].traits, &result[1].traits}, taken);
    for (i = 0; i < 2; i++) {
        FUZZ_REQUIRE(taken[i] == (want != NULL));
        if (want)
            require_same(&result[i], want);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decoder decoder; /* kept, so that one image follows another */
    static struct result fast, slow;
    struct decode_limits lenient = strict, small = strict;
    struct result once = {0};
    bool taken;

    if (!decoder.png)
        FUZZ_REQUIRE(decoder_init(&decoder, NULL) == CHEX_OK);
    lenient.lenient = true;
    slow.status = decode_png(data, size, &strict, &slow.image, &slow.traits, &slow.err);
    require_limits(&slow, &strict);
    taken = fastpng_decode(decoder.png, data, size, &strict, &fast.image, &fast.traits);
    fast.status = CHEX_OK;
    if (taken) {
        FUZZ_REQUIRE(slow.status == CHEX_OK && slow.traits.warnings == 0);
        require_same(&fast, &slow);
    }
    require_together(data, size, taken ? &fast : NULL);
    if (is_png(data, size)) {
        fast.status = decode_image(&decoder, data, size, &strict, &fast.image, &fast.traits, &fast.err);
        require_same(&fast, &slow);
    }
    /* lenient changes nothing for an input that is accepted anyway. */
    once.status = decode_png(data, size, &lenient, &once.image, &once.traits, &once.err);
    require_limits(&once, &lenient);
    if (slow.status == CHEX_OK)
        require_same(&once, &slow);
    /* With a limit just below the size of an accepted image, both decoders refuse it. */
    if (slow.status == CHEX_OK && (uint64_t)slow.image.width * slow.image.height > 1) {
        small.max_pixels = (uint64_t)slow.image.width * slow.image.height - 1;
        FUZZ_REQUIRE(!fastpng_decode(decoder.png, data, size, &small, &fast.image, &fast.traits));
        FUZZ_REQUIRE(decode_png(data, size, &small, &once.image, &once.traits, &once.err) == CHEX_ERR_LIMIT);
    }
    image_release(&once.image);
    return 0;
}

/* ---- mutation -------------------------------------------------------------------------------------------------- */

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint64_t random = seed;
    struct buffer file = {0};

    /* In a third of the runs, mutate the rows before compression, so that there are streams of every form. */
    if (fuzz_below(&random, 3) == 0) {
        FUZZ_REQUIRE(buffer_append(&file, data, size, NULL) == CHEX_OK);
        if (!png_file_change_rows(&file, LLVMFuzzerMutate, &random))
            file.size = 0;
    }
    if (file.size == 0) {
        size = LLVMFuzzerMutate(data, size, max_size);
        FUZZ_REQUIRE(buffer_append(&file, data, size, NULL) == CHEX_OK);
    }
    /* Sometimes leave a checksum wrong. */
    if (fuzz_below(&random, 32) > 0)
        png_file_repair(&file, fuzz_below(&random, 16) > 0);
    if (file.size <= max_size) {
        memcpy(data, file.data, file.size);
        size = file.size;
    }
    buffer_release(&file);
    return size;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const struct {
        unsigned colour, depth;
    } kinds[] = {{0, 8},  {6, 8}, {0, 8}, {6, 8}, {0, 1}, {0, 2}, {0, 4},  {0, 16}, {2, 8},
                 {2, 16}, {3, 1}, {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 16}};
    static const uint32_t sides[][2] = {{1, 1}, {3, 5}, {33, 20}, {64, 40}, {7, 70}};
    struct buffer b = {0};
    char name[64];

    for (unsigned s = 0; s < 5; s++) {
        for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            struct png_form form = {
                .width = sides[s][0],
                .height = sides[s][1],
                .colour = kinds[k].colour,
                .depth = kinds[k].depth,
                .interlaced = s == 0 && k % 2 == 1, /* of one pixel: a single pass */
                .level = (int)((s * 3 + k) % 10),
                .strategy = (int)((s + k) % 5),
                .pieces = 1 + (s + k) % 3,
                .ancillary = k % 3 == 0,
            };

            b.size = 0;
            png_file_make(&form, s * 100 + k, &b);
            snprintf(name, sizeof(name), "side%u-kind%u", s, k);
            give(name, b.data, b.size, context);
        }
    }
    buffer_release(&b);
}
