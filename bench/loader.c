/*
 * loader.c - how many images a second the loader gives, with nobody who uses them
 *
 *     loader-loop FOLDER SPLIT SECONDS THREADS WINDOW CACHE CRC EXPECT
 *
 * WINDOW 0: shuffled as a whole.  CACHE 1: kept in memory, all of it before the clock starts.  CRC: 0 never, 1 always.
 * EXPECT: images of which the system is told before they are read.  Micro-batches of 16 are asked for as fast as they
 * come, for so many seconds or one epoch.  Prints images, seconds, seconds of processor time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/host.h"
#include "base/progress.h"
#include "data/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void
need(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(EXIT_FAILURE);
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

static void
run(const struct loader_options *o, double seconds)
{
    double begun = progress_clock(), now = begun, used = (double)clock() / CLOCKS_PER_SEC;
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
        loader_return(l, b);
        now = progress_clock();
    }
    printf("%llu %.6f %.6f\n", (unsigned long long)images, now - begun, (double)clock() / CLOCKS_PER_SEC - used);
    loader_free(l);
}

int
main(int argc, char **argv)
{
    struct samples samples;
    struct chex_dataset *ds;
    struct chex_error err = {.status = CHEX_OK};
    struct reader_options from = {.check = READER_ALWAYS};
    struct loader_options o = {
        .batch = 16, .stride = 16, .each = 1, .ahead = 8, .augment = AUGMENT_CROP | AUGMENT_FLIP};
    unsigned window;
    uint32_t *order;
    bool *keep;
    int split;

    if (argc != 9) {
        fprintf(stderr, "usage: loader-loop FOLDER SPLIT SECONDS THREADS WINDOW CACHE CRC EXPECT\n");
        return EXIT_FAILURE;
    }
    need(chex_dataset_open(argv[1], &ds, &err), &err);
    split = chex_dataset_find_split(ds, argv[2]);
    if (split < 0)
        return EXIT_FAILURE;
    need(samples_list(ds, (unsigned)split, &samples, &err), &err);
    order = malloc((samples.count + 1) * sizeof(*order));
    keep = calloc(chex_dataset_info(ds)->split_count, sizeof(*keep));
    if (!order || !keep)
        return EXIT_FAILURE;
    window = (unsigned)atoi(argv[5]);
    need(order_epoch(&samples, (uint64_t)time(NULL), 0, window, order, &err), &err);
    keep[split] = atoi(argv[6]) != 0;
    from.ds = o.ds = ds;
    from.keep = keep;
    from.keeper = (struct image_keeper){.put = host_store_put};
    need(host_store_new(NULL, reader_images(ds, keep), chex_dataset_info(ds)->width, &from.keeper.store, &err), &err);
    from.check = atoi(argv[7]) ? READER_ALWAYS : READER_NEVER;
    need(reader_new(&from, &o.reader, &err), &err);
    if (keep[split])
        fill(o.reader, records_of(ds, (unsigned)split), &err);
    o.samples = &samples;
    o.order = order;
    o.side = chex_dataset_info(ds)->width < 224 ? chex_dataset_info(ds)->width : 224;
    o.count = order_steps(samples.count, o.batch);
    o.threads = (unsigned)atoi(argv[4]);
    o.expect = (unsigned)atoi(argv[8]);
    run(&o, atof(argv[3]));
    reader_free(o.reader);
    host_store_free(from.keeper.store);
    samples_release(&samples);
    chex_dataset_close(ds);
    free(order);
    free(keep);
    return EXIT_SUCCESS;
}
