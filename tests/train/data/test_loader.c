/*
 * test_loader.c - the order of samples, and the loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "backend/host.h"
#include "data/loader.h"
#include "lib/dataset/small_dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes `count` samples, `each` in a shard. */
static struct samples
make_samples(struct sample_place *place, size_t count, uint32_t each)
{
    for (size_t i = 0; i < count; i++)
        place[i] = (struct sample_place){(uint32_t)(i / each), (uint32_t)(i % each)};
    return (struct samples){place, count};
}

static void
expect_permutation(const uint32_t *order, size_t count)
{
    bool *seen = calloc(count, sizeof(*seen));

    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_lt(order[i], count);
        ck_assert(!seen[order[i]]);
        seen[order[i]] = true;
    }
    free(seen);
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

TEST_CASE("loader", "order", NULL, NULL);

TEST(an_order_is_a_permutation_and_depends_on_seed_and_epoch)
{
    static struct sample_place place[1000];
    static uint32_t a[1000], b[1000];
    struct samples s = make_samples(place, 1000, 7);
    char hash[3][ORDER_HASH];
    struct chex_error err;

    ck_assert_int_eq(order_epoch(&s, 1, 0, 0, a, &err), CHEX_OK);
    expect_permutation(a, 1000);
    ck_assert_int_eq(order_hash(&s, a, hash[0], &err), CHEX_OK);
    ck_assert_int_eq(order_epoch(&s, 1, 0, 0, b, &err), CHEX_OK);
    ck_assert_mem_eq(a, b, sizeof(a));
    ck_assert_int_eq(order_epoch(&s, 1, 1, 0, b, &err), CHEX_OK);
    expect_permutation(b, 1000);
    ck_assert_int_eq(order_hash(&s, b, hash[1], &err), CHEX_OK);
    ck_assert_int_eq(order_epoch(&s, 2, 0, 0, b, &err), CHEX_OK);
    ck_assert_int_eq(order_hash(&s, b, hash[2], &err), CHEX_OK);
    ck_assert_str_ne(hash[0], hash[1]);
    ck_assert_str_ne(hash[0], hash[2]);
    ck_assert_str_ne(hash[1], hash[2]);
}

TEST(every_sample_comes_first_equally_often)
{
    struct sample_place place[5];
    struct samples s = make_samples(place, 5, 5);
    unsigned first[5] = {0};
    struct chex_error err;
    uint32_t order[5];

    for (uint32_t epoch = 0; epoch < 5000; epoch++) {
        ck_assert_int_eq(order_epoch(&s, 9, epoch, 0, order, &err), CHEX_OK);
        first[order[0]]++;
    }
    for (int i = 0; i < 5; i++) /* five deviations of a binomial count are 141 */
        ck_assert(first[i] > 1000 - 141 && first[i] < 1000 + 141);
}

TEST(a_window_consists_of_complete_shards)
{
    static struct sample_place place[103];
    struct samples s = make_samples(place, 103, 10); /* 11 shards, the last with 3 */
    uint32_t order[103];
    struct chex_error err;
    size_t at = 0;

    ck_assert_int_eq(order_epoch(&s, 4, 2, 3, order, &err), CHEX_OK);
    expect_permutation(order, 103);
    while (at < 103) {
        bool in_window[11] = {false};
        unsigned shards = 0;
        size_t begin = at, size = 0;

        /* A window ends at the end of a shard; it has three of them, the last one two. */
        while (at < 103 && (shards < 3 || in_window[place[order[at]].shard] || size > at - begin)) {
            unsigned shard = place[order[at]].shard;

            if (!in_window[shard]) {
                in_window[shard] = true;
                shards++;
                size += shard == 10 ? 3 : 10;
            }
            at++;
        }
        ck_assert_uint_eq(at - begin, size);
        ck_assert_uint_le(shards, 3);
    }
}

TEST(a_window_is_chosen_by_size_and_memory_alone)
{
    ck_assert_uint_eq(order_choose_window(1000, 10, 1000), 0);
    ck_assert_uint_eq(order_choose_window(1000, 10, UINT64_MAX), 0);
    ck_assert_uint_eq(order_choose_window(0, 0, 0), 0);
    /* Two windows of 4 shards have 800 bytes; of 8 they would exceed the total. */
    ck_assert_uint_eq(order_choose_window(1000, 10, 999), 4);
    ck_assert_uint_eq(order_choose_window(1000, 10, 800), 4);
    ck_assert_uint_eq(order_choose_window(1000, 10, 799), 2);
    ck_assert_uint_eq(order_choose_window(1000, 10, 400), 2);
    ck_assert_uint_eq(order_choose_window(1000, 10, 399), 1);
    ck_assert_uint_eq(order_choose_window(1000, 10, 0), 1);
    ck_assert_uint_eq(order_choose_window(1000, 1, 0), 1);
}

TEST(a_padding_record_is_not_a_sample)
{
    struct small_dataset small;
    struct chex_dataset *ds;
    struct samples s;
    struct chex_error err;

    small_make(&small, "samples");
    ck_assert_int_eq(chex_dataset_open(small.path, &ds, &err), CHEX_OK);
    ck_assert_int_eq(samples_list(ds, 1, &s, &err), CHEX_OK);
    ck_assert_uint_eq(s.count, 2);
    ck_assert(s.place[0].shard == 2 && s.place[0].index == 0 && s.place[1].index == 1);
    samples_release(&s);
    chex_dataset_close(ds);
    small_release(&small);
}

TEST(steps_are_rounded_up)
{
    ck_assert_uint_eq(order_steps(0, 8), 0);
    ck_assert_uint_eq(order_steps(8, 8), 1);
    ck_assert_uint_eq(order_steps(9, 8), 2);
}

/* ---- loader ---------------------------------------------------------------------------------------------------- */

struct bench {
    struct small_dataset small;
    struct chex_dataset *ds;
    struct samples samples;
    uint32_t order[6];
    struct loader_options o;
};

static void
bench_make(struct bench *b)
{
    struct chex_error err;
    char name[32];

    snprintf(name, sizeof(name), "loader%ld", (long)getpid()); /* the tests share one folder */
    small_make(&b->small, name);
    ck_assert_int_eq(chex_dataset_open(b->small.path, &b->ds, &err), CHEX_OK);
    ck_assert_int_eq(samples_list(b->ds, 0, &b->samples, &err), CHEX_OK);
    ck_assert_uint_eq(b->samples.count, 6);
    for (uint32_t i = 0; i < 6; i++)
        b->order[i] = 5 - i;
    b->o = (struct loader_options){
        .ds = b->ds,
        .samples = &b->samples,
        .order = b->order,
        .seed = 3,
        .side = 6,
        .batch = 4,
        .stride = 4,
        .count = 2,
        .each = 1,
        .threads = 2,
        .ahead = 2,
        .check_crc = true,
    };
}

static void
bench_release(struct bench *b)
{
    samples_release(&b->samples);
    chex_dataset_close(b->ds);
    small_release(&b->small);
}

TEST_CASE("loader", "loader", NULL, NULL);

TEST(batches_come_in_order_and_the_last_is_filled_with_weight_0)
{
    struct bench b;
    struct loader *l;
    struct loaded *x, *y, *end;
    struct chex_error err;

    bench_make(&b);
    ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
    ck_assert_int_eq(loader_next(l, &x, &err), CHEX_OK);
    ck_assert_int_eq(loader_next(l, &y, &err), CHEX_OK);
    ck_assert_uint_eq(x->images, 4);
    ck_assert_uint_eq(y->images, 2);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(x->sample[i], 5 - i);
        ck_assert(x->weights[i] == 1 && y->weights[i] == (i < 2));
    }
    /* Image 4 has the pixels 80 + x + y and finding 1 << 4 (small_dataset.h); the centre of 8 for 6 starts at 1. */
    ck_assert_uint_eq(x->batch.pixels[1 * 64 + 8 + 2], 83);
    ck_assert_uint_eq(x->batch.label[1 * findings_nih14.count + 4], 1);
    ck_assert_uint_eq(x->batch.label[1 * findings_nih14.count + 3], 0);
    ck_assert(x->batch.crop[1].x == 1 && x->batch.crop[1].y == 1 && !x->batch.crop[1].flip);
    loader_return(l, y);
    loader_return(l, x);
    ck_assert_int_eq(loader_next(l, &end, &err), CHEX_OK);
    ck_assert_ptr_null(end);
    loader_free(l);
    bench_release(&b);
}

TEST(batches_do_not_depend_on_the_threads)
{
    struct bench b;
    static uint8_t seen[40 * 256];
    static struct crop crops[160];
    struct chex_error err;

    bench_make(&b);
    b.o.count = 40; /* far beyond the samples: positions wrap around */
    b.o.augment = AUGMENT_CROP | AUGMENT_FLIP;
    for (unsigned threads = 1; threads <= 7; threads += 3) {
        struct loader *l;

        b.o.threads = threads;
        b.o.ahead = threads + 1;
        ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
        for (unsigned n = 0; n < 40; n++) {
            struct loaded *x;

            ck_assert_int_eq(loader_next(l, &x, &err), CHEX_OK);
            ck_assert_uint_eq(x->number, n);
            if (threads == 1) {
                memcpy(seen + n * 256, x->batch.pixels, 256);
                memcpy(crops + n * 4, x->batch.crop, sizeof(*crops) * 4);
            }
            ck_assert_mem_eq(seen + n * 256, x->batch.pixels, 256);
            for (unsigned i = 0; i < 4; i++)
                ck_assert(crops[n * 4 + i].x == x->batch.crop[i].x && crops[n * 4 + i].y == x->batch.crop[i].y &&
                          crops[n * 4 + i].flip == x->batch.crop[i].flip);
            loader_return(l, x);
        }
        loader_free(l);
    }
    bench_release(&b);
}

TEST(angles_and_factors_are_within_their_bounds_and_change_no_crop)
{
    const struct loader_options plain = {.seed = 5, .epoch = 2, .augment = AUGMENT_CROP | AUGMENT_FLIP, .side = 10};
    struct loader_options o = plain;
    double least_gain = 1, most_gain = -1, least_sine = 1, most_sine = -1;

    o.rotate = 30;
    o.brightness = 0.25;
    for (uint32_t i = 0; i < 1000; i++) {
        const struct sample_place place = {.shard = i % 3, .index = i};
        struct crop before = loader_crop(&plain, &place, 16), c = loader_crop(&o, &place, 16);
        double sine = (double)c.sine / CROP_ONE, cosine = (double)c.cosine / CROP_ONE;
        double gain = (double)c.gain / CROP_GAIN;

        ck_assert(before.sine == 0 && before.cosine == 0 && before.gain == 0);
        ck_assert(before.x == c.x && before.y == c.y && before.flip == c.flip);
        ck_assert_double_eq_tol(sine * sine + cosine * cosine, 1, 1e-8);
        least_sine = fmin(sine, least_sine);
        most_sine = fmax(sine, most_sine);
        least_gain = fmin(gain, least_gain);
        most_gain = fmax(gain, most_gain);
    }
    ck_assert(least_sine >= -0.5 && least_sine < -0.49 && most_sine <= 0.5 && most_sine > 0.49);
    ck_assert(least_gain >= -0.25 && least_gain < -0.24 && most_gain <= 0.25 && most_gain > 0.24);
}

TEST(angles_and_factors_differ_by_seed_epoch_and_image)
{
    struct loader_options o[3] = {{.seed = 5, .epoch = 2, .side = 16, .rotate = 180, .brightness = 1}};
    const struct sample_place place[4] = {
        {.shard = 1, .index = 7}, {.shard = 1, .index = 7}, {.shard = 2, .index = 7}, {.shard = 1, .index = 8}};
    struct crop first = loader_crop(&o[0], &place[0], 16), again = loader_crop(&o[0], &place[1], 16);

    o[1] = o[2] = o[0];
    o[1].seed = 6;
    o[2].epoch = 3;
    ck_assert(first.sine == again.sine && first.cosine == again.cosine && first.gain == again.gain);
    for (int i = 0; i < 4; i++) {
        struct crop other = loader_crop(i < 2 ? &o[1 + i] : &o[0], &place[i < 2 ? 0 : i], 16);

        ck_assert(other.sine != first.sine && other.gain != first.gain);
    }
}

/*
 * Image n has the pixels 20 n + x + y and finding n, image 0 none.  A micro-batch has the partner of its last image,
 * and the partner of the last image of the order, 0, is the first one, 5.
 */
TEST(the_partner_of_an_image_is_the_next_one_of_the_order_in_any_micro_batch)
{
    struct bench b;
    float shares[6] = {0};
    struct chex_error err;

    bench_make(&b);
    b.o.mixup = 1;
    for (unsigned batch = 1; batch <= 4; batch++) {
        struct loader *l;
        struct loaded *x;

        b.o.batch = batch;
        b.o.stride = batch;
        b.o.count = (6 + batch - 1) / batch;
        ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
        while (loader_next(l, &x, &err) == CHEX_OK && x) {
            for (unsigned i = 0; i < batch && x->weights[i] != 0; i++) {
                unsigned own = x->sample[i], partner = (own + 5) % 6;
                const uint8_t *label = x->batch.label + i * findings_nih14.count;

                ck_assert_uint_eq(x->batch.pixels[(i + 1) * 64], 20 * partner);
                for (unsigned k = 0; k < findings_nih14.count; k++)
                    ck_assert_uint_eq(label[k], k == 0 ? 0 : k == own ? 3 : k == partner ? 2 : 0);
                ck_assert(x->batch.mix[i] > 0 && x->batch.mix[i] < 1);
                ck_assert(batch == 1 || x->batch.mix[i] == shares[own]);
                ck_assert_float_eq(x->batch.mix[i] * MIX_ONE, rintf(x->batch.mix[i] * MIX_ONE));
                shares[own] = x->batch.mix[i];
            }
            loader_return(l, x);
        }
        loader_free(l);
    }
    bench_release(&b);
}

TEST(shares_differ_by_seed_epoch_and_image)
{
    struct loader_options o[3] = {{.seed = 5, .epoch = 2, .mixup = 1}};
    const struct sample_place place[3] = {{.shard = 1, .index = 7}, {.shard = 2, .index = 7}, {.shard = 1, .index = 8}};
    float first = loader_mix(&o[0], &place[0]);

    o[1] = o[2] = o[0];
    o[1].seed = 6;
    o[2].epoch = 3;
    for (int i = 1; i < 3; i++)
        ck_assert(loader_mix(&o[i], &place[0]) != first && loader_mix(&o[0], &place[i]) != first);
    o[0].mixup = 1e-4; /* nearly all images are mixed with the share 0 or 1 */
    ck_assert(loader_mix(&o[0], &place[0]) == 0 || loader_mix(&o[0], &place[0]) == 1);
}

TEST(ranks_take_their_slices_of_every_global_batch)
{
    struct bench b;
    struct chex_error err;

    bench_make(&b);
    b.o.batch = 1;
    b.o.stride = 4; /* two ranks, two micro-batches each */
    b.o.each = 2;
    b.o.count = 4;
    for (unsigned rank = 0; rank < 2; rank++) {
        static const uint32_t expected[2][4] = {{5, 4, 1, 0}, {3, 2, 5, 4}}; /* the last two are padding */
        struct loader *l;

        b.o.start = rank * 2;
        ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
        for (unsigned n = 0; n < 4; n++) {
            struct loaded *x;

            ck_assert_int_eq(loader_next(l, &x, &err), CHEX_OK);
            ck_assert_uint_eq(x->sample[0], expected[rank][n]);
            ck_assert_uint_eq(x->images, rank == 0 || n < 2);
            loader_return(l, x);
        }
        loader_free(l);
    }
    bench_release(&b);
}

TEST(batches_do_not_depend_on_where_records_come_from)
{
    struct bench b;
    struct chex_error err;
    static uint8_t seen[20 * 256];
    bool keep[2] = {true, false};

    bench_make(&b);
    b.o.count = 20;
    /* From files, from host memory, or by index from the device's memory. */
    for (unsigned kind = 0; kind < 8; kind++) {
        struct reader_options o = {.ds = b.ds, .keep = kind & 1 ? keep : NULL};
        struct reader *r;
        struct loader *l;
        unsigned numbered = 0;

        o.keeper = (struct image_keeper){.put = host_store_put, .get = kind & 4 ? NULL : host_store_pixels};
        ck_assert_int_eq(host_store_new(NULL, reader_images(b.ds, keep), SMALL_SIDE, &o.keeper.store, &err), CHEX_OK);
        ck_assert_int_eq(reader_new(&o, &r, &err), CHEX_OK);
        if (kind == 3)
            ck_assert_int_eq(reader_fill(r, 2, &err), CHEX_OK);
        b.o.reader = r;
        b.o.expect = kind & 2 ? 7 : 0;
        for (unsigned pass = 0; pass < 2; pass++) {
            ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
            for (unsigned n = 0; n < 20; n++) {
                struct loaded *x;

                ck_assert_int_eq(loader_next(l, &x, &err), CHEX_OK);
                if (kind == 0 && pass == 0)
                    memcpy(seen + n * 256, x->batch.pixels, 256);
                for (unsigned i = 0; i < 256 / (SMALL_SIDE * SMALL_SIDE); i++) {
                    ck_assert_mem_eq(seen + n * 256 + i * SMALL_SIDE * SMALL_SIDE,
                                     host_pixels(&x->batch, i, SMALL_SIDE), SMALL_SIDE * SMALL_SIDE);
                    numbered += x->batch.index[i] != STORE_NONE;
                }
                loader_return(l, x);
            }
            loader_free(l);
        }
        if (kind & 1)
            ck_assert_uint_eq(reader_counts(r).kept, 6);
        else
            ck_assert_uint_eq(reader_counts(r).kept, 0);
        ck_assert((numbered > 0) == (kind & 4 && kind & 1));
        reader_free(r);
        host_store_free(o.keeper.store);
    }
    bench_release(&b);
}

TEST(a_damaged_record_ends_the_pass_or_is_replaced)
{
    struct bench b;
    struct loader *l;
    struct loaded *x;
    struct buffer taken = {0};
    struct chex_error err;

    bench_make(&b);
    b.small.bytes[1][b.small.manifest.layout.stride + b.small.manifest.layout.pixel_offset] ^= 1; /* sample 4 */
    small_put_shard(&b.small, 1);
    ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
    ck_assert_int_eq(loader_next(l, &x, &err), CHEX_ERR_CHECKSUM);
    ck_assert_msg(strstr(err.text, "' record 1 (") && strstr(err.text, ".png): "), "%s", err.text);
    loader_free(l);
    b.o.skip_bad = true;
    ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
    ck_assert_int_eq(loader_next(l, &x, &err), CHEX_OK);
    ck_assert_uint_eq(x->sample[1], 3);
    ck_assert_uint_eq(x->sample[2], 3);
    ck_assert_int_eq(loader_take_skipped(l, 3, &taken, &err), CHEX_OK);
    ck_assert_uint_eq(taken.size, sizeof(struct sample_place));
    buffer_release(&taken);
    loader_free(l);
    bench_release(&b);
}

/* Neither the padding after the last sample nor a second damaged record next to the first adds to the count. */
TEST(a_damaged_record_of_a_pass_counts_once)
{
    struct bench b;
    struct loader *l;
    struct loaded *x;
    struct chex_error err;
    struct buffer taken = {0};
    struct sample_place *place;
    size_t pixel, i;

    bench_make(&b);
    pixel = b.small.manifest.layout.pixel_offset;
    b.small.bytes[0][pixel] ^= 1;
    b.small.bytes[0][b.small.manifest.layout.stride + pixel] ^= 1;
    b.small.bytes[1][2 * b.small.manifest.layout.stride + pixel] ^= 1; /* the first in the order */
    small_put_shard(&b.small, 0);
    small_put_shard(&b.small, 1);
    b.o.skip_bad = true;
    for (unsigned batch = 1; batch <= 6; batch++) {
        b.o.batch = batch;
        b.o.stride = batch;
        b.o.count = order_steps(b.samples.count, batch);
        ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
        while (loader_next(l, &x, &err) == CHEX_OK && x)
            loader_return(l, x);
        ck_assert_int_eq(loader_take_skipped(l, 1, &taken, &err), CHEX_OK);
        ck_assert_uint_eq(taken.size, sizeof(*place));
        ck_assert_int_eq(loader_take_skipped(l, UINT64_MAX, &taken, &err), CHEX_OK);
        ck_assert_uint_eq(taken.size, 3 * sizeof(*place));
        for (place = (struct sample_place *)(void *)taken.data, i = 0; i < 3; i++)
            ck_assert(place[i].shard == 0 ? place[i].index <= 1 : place[i].shard == 1 && place[i].index == 2);
        taken.size = 0;
        ck_assert_int_eq(loader_take_skipped(l, UINT64_MAX, &taken, &err), CHEX_OK);
        ck_assert_uint_eq(taken.size, 0);
        loader_free(l);
    }
    buffer_release(&taken);
    bench_release(&b);
}

TEST(a_loader_may_be_freed_at_any_time)
{
    struct bench b;
    struct chex_error err;

    bench_make(&b);
    b.o.count = 1000;
    for (unsigned taken = 0; taken < 5; taken++) {
        struct loader *l;
        struct loaded *x;

        ck_assert_int_eq(loader_start(&b.o, &l, &err), CHEX_OK);
        for (unsigned n = 0; n < taken; n++) {
            ck_assert_int_eq(loader_next(l, &x, &err), CHEX_OK);
            loader_return(l, x);
        }
        loader_free(l);
    }
    loader_free(NULL);
    bench_release(&b);
}
