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

#define BATCH 64 /* images read at once */

static enum chex_status
print_split(const struct chex_dataset *ds, const char *split, uint8_t *pixels, struct chex_error *err)
{
    static uint8_t labels[BATCH * CHEX_FINDINGS_MAX];
    struct chex_batch batch = {.capacity = BATCH, .pixels = pixels, .labels = labels};
    unsigned long images = 0, with[CHEX_FINDINGS_MAX] = {0};
    unsigned findings;
    const char *const *name = chex_dataset_findings(ds, &findings);
    struct chex_reader *reader;
    enum chex_status status = chex_reader_open(ds, split, &reader, err);

    if (status != CHEX_OK)
        return status;
    while ((status = chex_reader_next(reader, &batch, err)) == CHEX_OK && batch.count > 0) {
        /* Here pixels[(i * height + row) * width + column] is image i of the batch, if there is one channel. */
        for (size_t i = 0; i < batch.count; i++)
            for (unsigned f = 0; f < findings; f++)
                with[f] += labels[i * findings + f] == 1; /* CHEX_LABEL_UNKNOWN does not count */
        images += batch.count;
    }
    chex_reader_close(reader);
    if (status != CHEX_OK)
        return status;
    printf("%s: %lu images\n", split, images);
    for (unsigned f = 0; f < findings; f++)
        printf("  %-20s %lu\n", name[f], with[f]);
    return CHEX_OK;
}

int
main(int argc, char **argv)
{
    struct chex_error err;
    struct chex_dataset *ds = NULL;
    uint8_t *pixels = NULL;
    enum chex_status status = chex_dataset_open(argc > 1 ? argv[1] : "shards", &ds, &err);

    if (status == CHEX_OK) {
        pixels = malloc(BATCH * chex_dataset_info(ds)->pixel_size);
        if (!pixels) {
            chex_dataset_close(ds);
            fprintf(stderr, "example: out of memory\n");
            return EXIT_FAILURE;
        }
        for (unsigned i = 0; i < chex_dataset_info(ds)->split_count && status == CHEX_OK; i++)
            status = print_split(ds, chex_dataset_split(ds, i)->name, pixels, &err);
    }
    if (status != CHEX_OK)
        fprintf(stderr, "example: %s\n", err.text);
    free(pixels);
    chex_dataset_close(ds);
    return status == CHEX_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
