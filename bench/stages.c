/*
 * stages.c - measures the time of each stage of a conversion, in one thread, one image after another
 *
 *     bench-stages SIZE FILE...     a line per stage: its name, milliseconds per image, multiple of the floor
 *
 * The floor is the time of ISA-L's inflate, with its Adler-32, on image data that were concatenated before.  The stages
 * of an image take turns, RUNS times, so that a noisy machine affects all of them.  The output is the mean over the
 * files of the medians, in CPU time of the thread.
 *
 *     inflate, unfilter   separately, for the whole image; decode alternates between them for each band of rows
 *     pair                inflate for the image twice in one loop, as a conversion does with two images; half its time
 *     libpng              the time of decode without its fast path
 *     checksum            the record's two CRC-32C, and SHA-256, which hashes the shard
 *     write               the record to its slot in a file in TMPDIR
 *     whole               read, decode, resize, record with its checksum, SHA-256 and write, measured as one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/sha256.h"
#include "dataset/record.h"
#include "image/decode.h"
#include "image/png_chunk.h"
#include "image/png_decode.h"
#include "image/resample.h"
#include "io/file.h"
#include "kernels/inflate.h"
#include "kernels/unfilter.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RUNS 7

enum stage { READ, FLOOR, INFLATE, PAIR, UNFILTER, DECODE, LIBPNG, RESIZE, CHECKSUM, WRITE, WHOLE, STAGES };

static const char *const names[STAGES] = {"read",   "floor",  "inflate",  "pair",  "unfilter", "decode",
                                          "libpng", "resize", "checksum", "write", "whole"};

struct bench {
    const char *path;
    uint32_t size;
    struct buffer file, packed, raw, raw2;
    struct image image;
    struct image_traits traits;
    struct decoder decoder;
    struct resampler resampler;
    struct inflater *tables, *tables2;
    struct inflate_state *isal;
    struct digest *digest;
    struct record_layout layout;
    uint8_t *record;
    size_t raw_size;
    int slot; /* the file for the records */
};

static const struct decode_limits limits = {.max_pixels = 64u << 20, .min_side = 1};

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool
inflate_with_isal(struct bench *b)
{
    isal_inflate_init(b->isal);
    b->isal->crc_flag = ISAL_ZLIB;
    b->isal->next_in = b->packed.data;
    b->isal->avail_in = (uint32_t)b->packed.size;
    b->isal->next_out = b->raw.data;
    b->isal->avail_out = (uint32_t)b->raw.capacity;
    return isal_inflate_stateless(b->isal) == ISAL_DECOMP_OK;
}

/* Concatenates the image data and allocates the output; not measured. */
static bool
collect(struct bench *b)
{
    size_t position = CHUNK_FIRST;
    struct chunk chunk;

    if (file_read(AT_FDCWD, b->path, 1u << 28, &b->file, NULL) != CHEX_OK ||
        decode_png(b->file.data, b->file.size, &limits, &b->image, &b->traits, NULL) != CHEX_OK)
        return false;
    b->packed.size = 0;
    while (chunk_next(b->file.data, b->file.size, &position, &chunk))
        if (strcmp(chunk.type, "IDAT") == 0 && buffer_append(&b->packed, chunk.body + 4, chunk.length, NULL) != CHEX_OK)
            return false;
    if (buffer_reserve(&b->packed, b->packed.size + INFLATER_IN_SLACK, NULL) != CHEX_OK)
        return false;
    memset(b->packed.data + b->packed.size, 0, INFLATER_IN_SLACK);
    b->raw_size = ((size_t)b->image.width * b->traits.channels + 1) * b->image.height;
    return buffer_reserve(&b->raw, b->raw_size + INFLATER_OUT_SLACK, NULL) == CHEX_OK &&
           buffer_reserve(&b->raw2, b->raw_size + INFLATER_OUT_SLACK, NULL) == CHEX_OK && inflate_with_isal(b);
}

/* Inflates the same image twice in one loop. */
static bool
inflate_pair(struct bench *b)
{
    struct inflater *const t[2] = {b->tables, b->tables2};
    struct buffer *raw[2] = {&b->raw, &b->raw2};
    size_t wanted[2] = {b->raw_size, b->raw_size};
    unsigned i;

    for (i = 0; i < 2; i++)
        if (!inflater_begin(t[i], b->packed.data, b->packed.size, raw[i]->data, b->raw_size))
            return false;
    i = inflater_together(t, wanted);
    return inflater_until(t[i], b->raw_size) && inflater_end(t[0]) && inflater_end(t[1]);
}

static bool
resize(struct bench *b)
{
    return resampler_run(&b->resampler, RESAMPLE_BILINEAR, &b->image, b->size, b->size,
                         b->record + b->layout.pixel_offset, NULL) == CHEX_OK;
}

/* Encodes the record except its pixels. */
static void
encode(struct bench *b)
{
    static const uint8_t label[14];
    struct record_values values = {.label = label, .sex = 'U', .view = {"PA", 2}, .patient = {"00000001", 8}};

    memcpy(values.dataset_id, "0123456789abcdef", CHEX_ID_LENGTH);
    values.name = (struct chex_bytes){"00000001_000.png", 16};
    record_encode(&b->layout, &values, b->record);
}

static void
checksum(struct bench *b)
{
    uint8_t hash[DIGEST_SIZE];

    record_seal(&b->layout, b->record);
    digest_start(b->digest);
    digest_add(b->digest, b->record, b->layout.stride);
    digest_finish(b->digest, hash);
}

static bool
run(struct bench *b, enum stage stage)
{
    switch (stage) {
    case READ:
        return file_read(AT_FDCWD, b->path, 1u << 28, &b->file, NULL) == CHEX_OK;
    case FLOOR:
        return inflate_with_isal(b);
    case INFLATE:
        return inflater_exactly(b->tables, b->packed.data, b->packed.size, b->raw.data, b->raw_size);
    case PAIR:
        return inflate_pair(b);
    case UNFILTER:
        if (b->traits.channels == 1)
            unfilter_best()->gray(b->raw.data, b->image.width, 0, b->image.height, b->image.data, b->image.stride);
        return true;
    case DECODE:
        return decode_image(&b->decoder, b->file.data, b->file.size, &limits, &b->image, &b->traits, NULL) == CHEX_OK;
    case LIBPNG:
        return decode_png(b->file.data, b->file.size, &limits, &b->image, &b->traits, NULL) == CHEX_OK;
    case RESIZE:
        return resize(b);
    case CHECKSUM:
        checksum(b);
        return true;
    case WRITE:
        return pwrite(b->slot, b->record, b->layout.stride, 0) == (ssize_t)b->layout.stride;
    case WHOLE:
        if (!run(b, READ) || !run(b, DECODE) || !resize(b))
            return false;
        encode(b);
        checksum(b);
        return run(b, WRITE);
    default:
        return false;
    }
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static bool
measure(struct bench *b, double *total)
{
    double took[STAGES][RUNS];
    int stage, i;

    if (!collect(b))
        return false;
    encode(b);
    for (i = 0; i < RUNS; i++) {
        for (stage = 0; stage < STAGES; stage++) {
            double begun = now();

            if (!run(b, (enum stage)stage))
                return false;
            took[stage][i] = now() - begun;
        }
    }
    for (stage = 0; stage < STAGES; stage++) {
        qsort(took[stage], RUNS, sizeof(double), compare);
        total[stage] += took[stage][RUNS / 2] / (stage == PAIR ? 2 : 1);
    }
    return true;
}

/* Opens an unnamed file. */
static int
open_slot(void)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    int fd;

    if (snprintf(path, sizeof(path), "%s/bench-stages-XXXXXX", folder ? folder : "/tmp") >= (int)sizeof(path))
        return -1;
    fd = mkstemp(path);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static bool
set_up(struct bench *b)
{
    size_t text = record_text_size(2, 8, 16);

    b->tables = inflater_new(inflater_best());
    b->tables2 = inflater_new(inflater_best());
    b->isal = malloc(sizeof(*b->isal));
    b->digest = digest_new();
    if (!b->tables || !b->tables2 || !b->isal || !b->digest || decoder_init(&b->decoder, NULL) != CHEX_OK ||
        record_choose(b->size, b->size, 64, (struct label_form){14, false}, &text, 1, &b->layout, NULL) != CHEX_OK)
        return false;
    b->record = calloc(1, b->layout.stride);
    b->slot = open_slot();
    return b->record != NULL && b->slot >= 0;
}

static void
tear_down(struct bench *b)
{
    buffer_release(&b->file);
    buffer_release(&b->packed);
    buffer_release(&b->raw);
    buffer_release(&b->raw2);
    image_release(&b->image);
    decoder_release(&b->decoder);
    resampler_release(&b->resampler);
    inflater_free(b->tables);
    inflater_free(b->tables2);
    digest_free(b->digest);
    free(b->isal);
    free(b->record);
    if (b->slot >= 0)
        close(b->slot);
}

int
main(int argc, char **argv)
{
    struct bench b = {.slot = -1, .size = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0};
    double total[STAGES] = {0};
    int i, code = 0;

    if (argc < 3 || b.size == 0) {
        fprintf(stderr, "usage: bench-stages SIZE FILE...\n");
        return 2;
    }
    if (!set_up(&b))
        code = 1;
    for (i = 2; code == 0 && i < argc; i++) {
        b.path = argv[i];
        if (!measure(&b, total)) {
            fprintf(stderr, "bench-stages: '%s' is no PNG that can be measured\n", b.path);
            code = 1;
        }
    }
    for (i = 0; code == 0 && i < STAGES; i++)
        printf("%-9s %8.4f %6.2f\n", names[i], total[i] / (argc - 2) * 1e3, total[i] / total[FLOOR]);
    tear_down(&b);
    return code;
}
