/*
 * loader.c - measures how many images per second the loader delivers, or how long a consumer with a given rate waits
 *
 *     loader-loop FOLDER SPLIT [NAME=VALUE ...]
 *
 *     seconds=2     duration, or one epoch if that is shorter
 *     threads=2     threads that read
 *     window=0      of the shuffle, in shards; 0: the whole split
 *     cache=none    none; host: kept in memory; or a backend whose device keeps them (cpu, cuda-emulated); filled
 *                   before the clock starts
 *     crc=always    never, first, always
 *     expect=256    images to request by readahead
 *     batch=16      images of a micro-batch
 *     images=0      of an epoch: the split is repeated up to this number; 0: each image once
 *     rate=0        images per second that a consumer uses, like a GPU that works on one micro-batch while the next is
 *                   copied; 0: as fast as possible
 *     stage=        a folder for a copy of the data set (chex-train --stage); created if it is missing
 *     seed=1        of the order
 *     wait=0        1: print "ready", and start at the first line of standard input
 *
 * Prints images, seconds, seconds of processor time, and idle seconds of the GPU (rate 0: seconds that the caller
 * waited).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/host.h"
#include "base/clock.h"
#include "data/loader.h"
#include "data/pace.h"
#include "data/staging.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void
need(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "loader-loop: %s\n", err->text);
    exit(EXIT_FAILURE);
}

/* Returns the text after NAME= among the arguments, or the default. */
static const char *
word(char **argv, const char *name, const char *otherwise)
{
    size_t size = strlen(name);
    unsigned i;

    for (i = 3; argv[i]; i++)
        if (strncmp(argv[i], name, size) == 0 && argv[i][size] == '=')
            return argv[i] + size + 1;
    return otherwise;
}

static unsigned
number(char **argv, const char *name, const char *otherwise)
{
    return (unsigned)strtoul(word(argv, name, otherwise), NULL, 10);
}

static void
fill(struct reader *r, uint64_t records, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 10000000};

    need(reader_fill(r, 2, err), err);
    while (reader_counts(r).kept < records)
        nanosleep(&pause, NULL);
}

static uint64_t
records_of(const struct chex_dataset *ds, unsigned split)
{
    const struct chex_split_info *s = chex_dataset_split(ds, split);
    uint64_t records = 0;
    unsigned i;

    for (i = 0; i < s->shard_count; i++)
        records += chex_dataset_shard(ds, s->first_shard + i)->record_count;
    return records;
}

/* Repeats the list; does nothing if it is long enough already. */
static void
repeat(struct samples *s, size_t count)
{
    struct sample_place *place;
    size_t i;

    if (count <= s->count)
        return;
    place = realloc(s->place, count * sizeof(*place));
    if (!place)
        exit(EXIT_FAILURE);
    for (i = s->count; i < count; i++)
        place[i] = place[i - s->count];
    s->place = place;
    s->count = count;
}

/* One process copies and the others wait for it (lock.h), like the ranks of a node. */
static struct chex_dataset *
staged(const struct chex_dataset *ds, int split, const char *folder, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 10000000};
    struct staging_options o = {.ds = ds, .folder = folder, .threads = 2};
    bool *splits = calloc(chex_dataset_info(ds)->split_count, sizeof(*splits));
    struct staging_progress p;
    struct chex_dataset *copy;
    struct staging *s;

    if (!splits)
        exit(EXIT_FAILURE);
    splits[split] = true;
    o.split = splits;
    need(staging_start(&o, &s, err), err);
    while (!staging_progress(s, &p))
        nanosleep(&pause, NULL);
    need(staging_end(s, err), err);
    need(staging_open(folder, ds, &copy, err), err);
    free(splits);
    return copy;
}

/* Sets where the images are kept: nowhere, in memory, or on a device, which returns no pixels. */
static const struct backend *
open_keeper(const char *cache, uint32_t images, unsigned side, struct image_keeper *out, struct device **device,
            struct chex_error *err)
{
    const struct backend *b = strcmp(cache, "none") == 0 || strcmp(cache, "host") == 0 ? NULL : backend_find(cache);

    *out = (struct image_keeper){.put = host_store_put, .get = host_store_pixels};
    if (strcmp(cache, "none") == 0)
        return NULL;
    if (!b && strcmp(cache, "host") != 0) {
        fprintf(stderr, "loader-loop: '%s': no such backend\n", cache);
        exit(EXIT_FAILURE);
    }
    if (!b) {
        need(host_store_new(NULL, images, side, &out->store, err), err);
        return NULL;
    }
    need(b->device_open(0, device, err), err);
    *out = (struct image_keeper){.put = b->store_put};
    need(b->store_new(*device, images, side, &out->store, err), err);
    return b;
}

static void
sleep_until(double until)
{
    double left = until - clock_now();

    if (left > 0) {
        struct timespec pause = {.tv_sec = (time_t)left};

        pause.tv_nsec = (long)((left - (double)pause.tv_sec) * 1e9);
        nanosleep(&pause, NULL);
    }
}

static void
run(const struct loader_options *o, double seconds, double rate)
{
    double begun = clock_now(), now = begun, used = (double)clock() / CLOCKS_PER_SEC;
    struct pace pace = {.rate = rate};
    uint64_t images = 0;
    struct chex_error err;
    struct loader *l;
    struct loaded *b;

    need(loader_start(o, &l, &err), &err);
    while (now - begun < seconds) {
        need(loader_next(l, &b, &err), &err);
        if (!b)
            break;
        images += b->images;
        sleep_until(pace_take(&pace, b->images));
        loader_return(l, b);
        now = clock_now();
    }
    printf("%llu %.6f %.6f %.6f\n", (unsigned long long)images, now - begun, (double)clock() / CLOCKS_PER_SEC - used,
           rate > 0 ? pace.waited : loader_wait(l));
    loader_free(l);
}

static enum reader_check
check_of(const char *name)
{
    enum reader_check check = READER_FIRST;

    while (check < READER_NEVER && strcmp(reader_check_names[check], name) != 0)
        check++;
    return check;
}

/* Everything that is open while the benchmark runs. */
struct bench {
    struct chex_dataset *ds, *copy;
    struct samples samples;
    uint32_t *order;
    bool *keep;
    struct device *device;
    const struct backend *keeps; /* the backend whose device keeps the images; NULL: none */
    struct reader_options from;
};

static void
open_images(struct bench *b, char **argv, struct chex_error *err)
{
    int split;

    need(chex_dataset_open(argv[1], &b->ds, err), err);
    split = chex_dataset_find_split(b->ds, argv[2]);
    b->keep = calloc(chex_dataset_info(b->ds)->split_count, sizeof(*b->keep));
    if (split < 0 || !b->keep)
        exit(EXIT_FAILURE);
    need(samples_list(b->ds, (unsigned)split, &b->samples, err), err);
    repeat(&b->samples, number(argv, "images", "0"));
    b->order = malloc((b->samples.count + 1) * sizeof(*b->order));
    if (!b->order)
        exit(EXIT_FAILURE);
    need(order_epoch(&b->samples, number(argv, "seed", "1"), 0, number(argv, "window", "0"), b->order, err), err);
    if (*word(argv, "stage", ""))
        b->copy = staged(b->ds, split, word(argv, "stage", ""), err);
    b->keep[split] = strcmp(word(argv, "cache", "none"), "none") != 0;
    b->from = (struct reader_options){
        .ds = b->ds, .staged = b->copy, .check = check_of(word(argv, "crc", "always")), .keep = b->keep};
    b->keeps = open_keeper(word(argv, "cache", "none"), reader_images(b->ds, b->keep), chex_dataset_info(b->ds)->width,
                           &b->from.keeper, &b->device, err);
}

static void
close_images(struct bench *b)
{
    if (b->keeps) {
        b->keeps->store_free(b->from.keeper.store);
        b->keeps->device_close(b->device);
    } else {
        host_store_free(b->from.keeper.store);
    }
    samples_release(&b->samples);
    chex_dataset_close(b->copy);
    chex_dataset_close(b->ds);
    free(b->order);
    free(b->keep);
}

int
main(int argc, char **argv)
{
    struct bench b = {.ds = NULL};
    struct chex_error err = {.status = CHEX_OK};
    struct loader_options o = {.each = 1, .augment = AUGMENT_CROP | AUGMENT_FLIP};

    if (argc < 3) {
        fprintf(stderr, "usage: loader-loop FOLDER SPLIT [NAME=VALUE ...], see the head of bench/loader.c\n");
        return EXIT_FAILURE;
    }
    open_images(&b, argv, &err);
    need(reader_new(&b.from, &o.reader, &err), &err);
    if (strcmp(word(argv, "cache", "none"), "none") != 0)
        fill(o.reader, records_of(b.ds, (unsigned)chex_dataset_find_split(b.ds, argv[2])), &err);
    o.ds = b.ds;
    o.samples = &b.samples;
    o.order = b.order;
    o.batch = number(argv, "batch", "16");
    o.stride = o.batch;
    o.ahead = o.batch > 16 ? 4 : 8;
    o.side = chex_dataset_info(b.ds)->width < 224 ? chex_dataset_info(b.ds)->width : 224;
    o.count = order_steps(b.samples.count, o.batch);
    o.threads = number(argv, "threads", "2");
    o.expect = number(argv, "expect", "256");
    if (number(argv, "wait", "0")) {
        puts("ready");
        fflush(stdout);
        if (getchar() == EOF)
            return EXIT_FAILURE;
    }
    run(&o, atof(word(argv, "seconds", "2")), atof(word(argv, "rate", "0")));
    reader_free(o.reader);
    close_images(&b);
    return EXIT_SUCCESS;
}
