/*
 * small_dataset.c - see small_dataset.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "small_dataset.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#define ID   "0123456789abcdef"
#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const char *const shard_names[SMALL_SHARDS] = {
    "chestxray14-train.tfrecord-00000-of-00002",
    "chestxray14-train.tfrecord-00001-of-00002",
    "chestxray14-val.tfrecord-00000-of-00001",
};

static void
make_record(const struct record_layout *layout, unsigned image, unsigned shard, unsigned index, uint8_t weight,
            uint8_t *out)
{
    uint8_t label[14] = {0};
    char name[32], patient[16];
    struct record_values v = {
        .label = label,
        .weight = weight,
        .age = image == 1 ? NAN : (float)image * 10,
        .sex = image % 2 ? 'F' : 'M',
        .dataset_id = ID,
        .shard = shard,
        .index = index,
        .view = {image % 3 ? "PA" : "AP", 2},
        .patient = {patient, 8},
        .name = {name, 16},
    };
    unsigned x, y;

    label[image] = image > 0;
    snprintf(name, sizeof(name), "%08u_000.png", image);
    snprintf(patient, sizeof(patient), "%08u", image);
    record_encode(layout, &v, out);
    for (y = 0; y < SMALL_SIDE; y++)
        for (x = 0; x < SMALL_SIDE; x++)
            out[layout->pixel_offset + y * SMALL_SIDE + x] = (uint8_t)(image * 20 + (image == 5 ? 0 : x + y));
    record_seal(layout, out);
}

static void
make_shards(struct small_dataset *s)
{
    const struct record_layout *layout = &s->manifest.layout;
    unsigned shard, index;

    s->size = SMALL_RECORDS * layout->stride;
    for (shard = 0; shard < SMALL_SHARDS; shard++) {
        s->bytes[shard] = calloc(1, s->size);
        ck_assert_ptr_nonnull(s->bytes[shard]);
        for (index = 0; index < SMALL_RECORDS; index++) {
            unsigned image = shard * SMALL_RECORDS + index;
            bool padding = image == SMALL_IMAGES;

            make_record(layout, padding ? 6 : image, shard, index, !padding, s->bytes[shard] + index * layout->stride);
        }
    }
}

static void
describe(struct small_dataset *s)
{
    struct manifest *m = &s->manifest;
    unsigned i;

    *m = (struct manifest){
        .dataset_id = ID,
        .tool_version = "0.1.0",
        .layout = m->layout,
        .findings = findings_nih14,
        .shard_size = SMALL_RECORDS,
        .tail = "pad",
        .resize = "bilinear",
        .split_rule = "patient:70,30,0:0",
        .max_pixels = 64000000,
        .min_side = 8,
        .labels_sha256 = HASH,
        .view_size = 2,
        .patient_size = 8,
        .name_size = 16,
        .pixel_mean = 77.1,
        .pixel_deviation = 1.0 / 3,
        .split = s->split,
        .split_count = 2,
        .shard = s->shard,
        .shard_count = SMALL_SHARDS,
    };
    s->split[0] = (struct manifest_split){"train", HASH, 0, 2, 6, 6, {0}, {0}};
    s->split[1] = (struct manifest_split){"val", HASH, 2, 1, 2, 2, {0}, {0}};
    for (i = 1; i < SMALL_IMAGES; i++)
        s->split[i >= 6].positives[i] = 1;
    for (i = 0; i < SMALL_SHARDS; i++)
        s->shard[i] = (struct manifest_shard){shard_names[i], s->sha256[i],  i / 2,   i % 2,       i / 2 ? 1 : 2,
                                              SMALL_RECORDS,  i / 2 ? 2 : 3, s->size, s->crc32c[i]};
}

void
small_make(struct small_dataset *s, const char *name)
{
    size_t text_size = record_text_size(2, 8, 16);
    unsigned i;

    *s = (struct small_dataset){0};
    snprintf(s->path, sizeof(s->path), "%s/%s", unit_folder(), name);
    ck_assert_int_eq(mkdir(s->path, 0777), 0);
    ck_assert_int_eq(record_choose(SMALL_SIDE, SMALL_SIDE, 64, (struct label_form){14, false}, &text_size, 1,
                                   &s->manifest.layout, NULL),
                     CHEX_OK);
    make_shards(s);
    describe(s);
    for (i = 0; i < SMALL_SHARDS; i++)
        small_put_shard(s, i);
    small_put_manifest(s, true);
}

void
small_release(struct small_dataset *s)
{
    unsigned i;

    for (i = 0; i < SMALL_SHARDS; i++)
        free(s->bytes[i]);
}

static void
path_of(const struct small_dataset *s, const char *name, char *out, size_t size)
{
    ck_assert_int_lt(snprintf(out, size, "%s/%s", s->path, name), (int)size);
}

void
small_put(const struct small_dataset *s, const char *name, const void *data, size_t size)
{
    char path[1024];
    int fd;

    path_of(s, name, path, sizeof(path));
    /* Without O_TRUNC: ext4 would write a file that is replaced in that way to the disk at once, which takes 3 ms. */
    fd = open(path, O_CREAT | O_WRONLY, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, data, size, 0), (int)size);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    ck_assert_int_eq(close(fd), 0);
}

void
small_remove(const struct small_dataset *s, const char *name)
{
    char path[1024];

    path_of(s, name, path, sizeof(path));
    ck_assert_int_eq(unlink(path), 0);
}

void
small_put_shard(const struct small_dataset *s, unsigned shard)
{
    small_put(s, s->shard[shard].name, s->bytes[shard], s->size);
}

/* CRC-32C over the checksums at the end of the shard's records. */
void
small_sum_shard(struct small_dataset *s, unsigned shard)
{
    uint8_t stored[4 * SMALL_RECORDS];
    unsigned i;

    for (i = 0; i < SMALL_RECORDS; i++)
        memcpy(stored + 4 * i, s->bytes[shard] + (i + 1) * s->manifest.layout.stride - 4, 4);
    crc_hex(chex_crc32c(0, stored, sizeof(stored)), s->crc32c[shard]);
}

void
small_put_manifest(struct small_dataset *s, bool fix_hashes)
{
    struct buffer text = {0};
    uint8_t hash[DIGEST_SIZE];
    unsigned i;

    for (i = 0; fix_hashes && i < SMALL_SHARDS; i++) {
        struct digest *d = digest_new();

        digest_start(d);
        digest_add(d, s->bytes[i], s->size);
        digest_finish(d, hash);
        digest_hex(hash, sizeof(hash), s->sha256[i]);
        digest_free(d);
        small_sum_shard(s, i);
    }
    ck_assert_int_eq(manifest_format(&s->manifest, &text, NULL), CHEX_OK);
    small_put(s, MANIFEST_NAME, text.data, text.size);
    buffer_release(&text);
}
