/*
 * example.c - how to read a data set with libchex: checks every record, and prints how many images of each split show
 * each finding
 *
 *     cc example.c -o example $(pkg-config --cflags --libs chex) -Wl,-rpath,$(pkg-config --variable=libdir chex)
 *     ./example shards
 *
 * with PKG_CONFIG_PATH=PREFIX/lib/pkgconfig where it was installed with --prefix=PREFIX.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <chex.h>
#include <stdio.h>
#include <stdlib.h>

#define RUN 64 /* records read at once */

struct totals {
    unsigned long images;
    unsigned long with[CHEX_FINDINGS];
};

/* Add the images of one shard to *t. */
static enum chex_status
add_shard(const struct chex_dataset *ds, unsigned number, unsigned char *buffer, struct totals *t,
          struct chex_error *err)
{
    const struct chex_shard_info *info = chex_dataset_shard(ds, number);
    size_t stride = chex_dataset_info(ds)->stride;
    struct chex_shard *shard;
    enum chex_status status = chex_shard_open(ds, number, &shard, err);

    if (status != CHEX_OK)
        return status;
    for (uint32_t first = 0; first < info->record_count && status == CHEX_OK; first += RUN) {
        uint32_t left = info->record_count - first, count = left < RUN ? left : RUN;

        status = chex_shard_read(shard, first, count, buffer, err);
        for (uint32_t i = 0; i < count && status == CHEX_OK; i++) {
            struct chex_record record; /* points into buffer: record.pixels[row * record.width + column] */

            status = chex_record_view(ds, number, first + i, buffer + i * stride, true, &record, err);
            if (status != CHEX_OK || record.weight == 0)
                continue;
            t->images++;
            for (unsigned f = 0; f < CHEX_FINDINGS; f++)
                t->with[f] += record.label[f];
        }
    }
    chex_shard_close(shard);
    return status;
}

static enum chex_status
print_split(const struct chex_dataset *ds, unsigned number, unsigned char *buffer, struct chex_error *err)
{
    const struct chex_split_info *split = chex_dataset_split(ds, number);
    struct totals t = {0};

    for (unsigned i = 0; i < split->shard_count; i++) {
        enum chex_status status = add_shard(ds, split->first_shard + i, buffer, &t, err);

        if (status != CHEX_OK)
            return status;
    }
    printf("%s: %lu images\n", split->name, t.images);
    for (unsigned f = 0; f < CHEX_FINDINGS; f++)
        printf("  %-20s %lu\n", chex_finding_name(f), t.with[f]);
    return CHEX_OK;
}

int
main(int argc, char **argv)
{
    struct chex_error err;
    struct chex_dataset *ds = NULL;
    unsigned char *buffer = NULL;
    enum chex_status status = chex_dataset_open(argc > 1 ? argv[1] : "shards", &ds, &err);

    if (status == CHEX_OK) {
        buffer = malloc(RUN * chex_dataset_info(ds)->stride);
        if (!buffer) {
            chex_dataset_close(ds);
            fprintf(stderr, "example: out of memory\n");
            return EXIT_FAILURE;
        }
        for (unsigned i = 0; i < chex_dataset_info(ds)->split_count && status == CHEX_OK; i++)
            status = print_split(ds, i, buffer, &err);
    }
    if (status != CHEX_OK)
        fprintf(stderr, "example: %s\n", err.text);
    free(buffer);
    chex_dataset_close(ds);
    return status == CHEX_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
