/*
 * manifest_check.c - the values that a manifest can have; see manifest_json.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/manifest_json.h"

#include "base/sha256.h"
#include "dataset/format.h"
#include "image/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RULE 128

static bool
is_hex(const char *text, size_t length)
{
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* A file name that can lead nowhere else, of the characters that no shell or file system minds. */
static bool
is_file_name(const char *text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strlen(text);

    return length > 0 && length < SHARD_NAME_MAX && text[0] != '.' && strspn(text, allowed) == length;
}

static bool
is_split_name(const char *text)
{
    size_t length = strlen(text);

    return length > 0 && length < SPLIT_NAME_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

static bool
is_printable(const char *text, size_t max)
{
    size_t i;

    for (i = 0; text[i]; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
    return i > 0 && i <= max;
}

static bool
is_tail(const char *text)
{
    return strcmp(text, tail_name(TAIL_PAD)) == 0 || strcmp(text, tail_name(TAIL_SHORT)) == 0 ||
           strcmp(text, tail_name(TAIL_DROP)) == 0;
}

/* Views stand in a command that people copy. */
static enum chex_status
check_left_out(const struct manifest_left_out *l, struct chex_error *err)
{
    const uint64_t most = INT64_MAX / 4;
    const char *views = l->views ? l->views : "";

    if (l->other_views > most || l->excluded > most || l->missing > most)
        return chex_fail(err, CHEX_ERR_DAMAGED, "left_out: a number above 2^61");
    if (l->other_views + l->excluded + l->missing > 0 && !l->views)
        return chex_fail(err, CHEX_ERR_DAMAGED, "left_out.views: not there");
    if (strlen(views) > MAX_RULE || strspn(views, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,") != strlen(views) ||
        (views[0] != '\0') != (l->other_views > 0))
        return chex_fail(err, CHEX_ERR_DAMAGED, "left_out.views: not a list such as PA,AP where others were left out");
    return CHEX_OK;
}

static enum chex_status
check_scalars(const struct manifest *m, struct chex_error *err)
{
    enum resample_method method;
    size_t at[3];

    if (!is_hex(m->dataset_id, CHEX_ID_LENGTH))
        return chex_fail(err, CHEX_ERR_DAMAGED, "dataset_id: not %d hexadecimal digits", CHEX_ID_LENGTH);
    if (!is_printable(m->tool_version, MAX_RULE))
        return chex_fail(err, CHEX_ERR_DAMAGED, "tool.version: not a short printable text");
    if (m->shard_size == 0 || m->shard_size > MANIFEST_MAX_SHARD_SIZE)
        return chex_fail(err, CHEX_ERR_DAMAGED, "record.shard_size: not a number from 1 to %d",
                         MANIFEST_MAX_SHARD_SIZE);
    if (!is_tail(m->tail))
        return chex_fail(err, CHEX_ERR_DAMAGED, "record.tail: not pad, short or drop");
    if (m->view_size > RECORD_MAX_TEXT || m->patient_size > RECORD_MAX_TEXT || m->name_size > RECORD_MAX_TEXT)
        return chex_fail(err, CHEX_ERR_DAMAGED, "record.text_sizes: above %d", RECORD_MAX_TEXT);
    record_text_offsets(&m->layout, m->view_size, m->patient_size, m->name_size, at);
    if (at[2] + m->name_size > m->layout.stride)
        return chex_fail(err, CHEX_ERR_DAMAGED, "record.text_sizes: more than a record holds");
    if (!resample_method_parse(m->resize, &method))
        return chex_fail(err, CHEX_ERR_DAMAGED, "decode.resize: not a known method");
    if (m->max_pixels == 0 || m->max_pixels > INT64_MAX)
        return chex_fail(err, CHEX_ERR_DAMAGED, "decode.max_pixels: not a number from 1 to 2^63 - 1");
    if (!is_printable(m->split_rule, MAX_RULE))
        return chex_fail(err, CHEX_ERR_DAMAGED, "split.rule: not a short printable text");
    if (m->seed > INT64_MAX)
        return chex_fail(err, CHEX_ERR_DAMAGED, "split.order_seed: above 2^63 - 1");
    if (!isfinite(m->pixel_mean) || m->pixel_mean < 0 || m->pixel_mean > 255)
        return chex_fail(err, CHEX_ERR_DAMAGED, "pixels.mean: not a number from 0 to 255");
    if (!isfinite(m->pixel_deviation) || m->pixel_deviation < 0 || m->pixel_deviation > 127.5)
        return chex_fail(err, CHEX_ERR_DAMAGED, "pixels.deviation: not a number from 0 to 127.5");
    if (!is_hex(m->labels_sha256, 2 * DIGEST_SIZE))
        return chex_fail(err, CHEX_ERR_DAMAGED, "labels_sha256: not %d hexadecimal digits", 2 * DIGEST_SIZE);
    if (m->rejects > INT64_MAX)
        return chex_fail(err, CHEX_ERR_DAMAGED, "rejects: above 2^63 - 1");
    return check_left_out(&m->left_out, err);
}

/* One split; `next` is the shard with which it must begin. */
static enum chex_status
check_split(const struct manifest *m, unsigned i, unsigned next, struct chex_error *err)
{
    const struct manifest_split *split = &m->split[i];
    unsigned j;

    if (!is_split_name(split->name))
        return chex_fail(err, CHEX_ERR_DAMAGED, "splits[%u].name: not of the form [a-z0-9_]{1,%d}", i,
                         SPLIT_NAME_MAX - 1);
    for (j = 0; j < i; j++)
        if (strcmp(split->name, m->split[j].name) == 0)
            return chex_fail(err, CHEX_ERR_DAMAGED, "splits[%u].name: '%s' is there twice", i, split->name);
    if (!is_hex(split->members_sha256, 2 * DIGEST_SIZE))
        return chex_fail(err, CHEX_ERR_DAMAGED, "splits[%u].members_sha256: not %d hexadecimal digits", i,
                         2 * DIGEST_SIZE);
    if (split->first_shard != next || split->shard_count == 0 || split->shard_count > m->shard_count - next)
        return chex_fail(err, CHEX_ERR_DAMAGED, "splits[%u]: shards %u + %u do not follow those before it", i,
                         split->first_shard, split->shard_count);
    if (split->images > INT64_MAX || split->patients > INT64_MAX)
        return chex_fail(err, CHEX_ERR_DAMAGED, "splits[%u]: too many images", i);
    for (j = 0; j < CHEX_FINDINGS; j++)
        if (split->positives[j] > split->images)
            return chex_fail(err, CHEX_ERR_DAMAGED, "splits[%u].positives: more images with %s than images", i,
                             chex_finding_name(j));
    return CHEX_OK;
}

static enum chex_status
check_shard(const struct manifest *m, unsigned i, struct chex_error *err)
{
    const struct manifest_shard *shard = &m->shard[i];
    const struct manifest_split *split = &m->split[shard->split];
    bool may_be_short = strcmp(m->tail, tail_name(TAIL_SHORT)) == 0 && shard->number + 1 == split->shard_count;
    size_t size;

    if (!is_file_name(shard->name) || strcmp(shard->name, MANIFEST_NAME) == 0)
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards[%u].name: not a plain file name", i);
    if (shard->number != i - split->first_shard || shard->of != split->shard_count)
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards[%u]: number %u of %u, its split has it as %u of %u", i,
                         shard->number, shard->of, i - split->first_shard, split->shard_count);
    if (shard->records == 0 || shard->records > m->shard_size || (shard->records < m->shard_size && !may_be_short))
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards[%u].records: %u, where the size of shards is %u", i,
                         shard->records, m->shard_size);
    if (shard->images > shard->records)
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards[%u].images: more than records", i);
    if (!size_mul(shard->records, m->layout.stride, &size) || size != shard->size)
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards[%u].size: not %u records of %zu bytes", i, shard->records,
                         m->layout.stride);
    if (!is_hex(shard->sha256, 2 * DIGEST_SIZE))
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards[%u].sha256: not %d hexadecimal digits", i, 2 * DIGEST_SIZE);
    if (shard->crc32c && !is_hex(shard->crc32c, CRC_HEX - 1))
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards[%u].crc32c: not %d hexadecimal digits", i, CRC_HEX - 1);
    return CHEX_OK;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* No two shards of one name. */
static enum chex_status
check_names(const struct manifest *m, struct chex_error *err)
{
    const char **name = calloc(m->shard_count, sizeof(*name));
    enum chex_status status = CHEX_OK;
    unsigned i;

    if (!name)
        return chex_fail_memory(err);
    for (i = 0; i < m->shard_count; i++)
        name[i] = m->shard[i].name;
    qsort(name, m->shard_count, sizeof(*name), compare_names);
    for (i = 1; i < m->shard_count && status == CHEX_OK; i++)
        if (strcmp(name[i - 1], name[i]) == 0)
            status = chex_fail(err, CHEX_ERR_DAMAGED, "shards: '%s' is there twice", name[i]);
    free(name);
    return status;
}

/* The shards of one split: each good, and its images the split's. */
static enum chex_status
check_shards_of(const struct manifest *m, unsigned i, struct chex_error *err)
{
    const struct manifest_split *split = &m->split[i];
    enum chex_status status = CHEX_OK;
    uint64_t images = 0;
    unsigned j;

    for (j = split->first_shard; j < split->first_shard + split->shard_count && status == CHEX_OK; j++) {
        if (m->shard[j].split != i)
            return chex_fail(err, CHEX_ERR_DAMAGED, "shards[%u].split: not '%s', which has this shard", j, split->name);
        status = check_shard(m, j, err);
        images += m->shard[j].images;
    }
    if (status == CHEX_OK && images != split->images)
        return chex_fail(err, CHEX_ERR_DAMAGED, "splits[%u].images: %llu, its shards have %llu", i,
                         (unsigned long long)split->images, (unsigned long long)images);
    if (status == CHEX_OK && split->patients > images)
        return chex_fail(err, CHEX_ERR_DAMAGED, "splits[%u].patients: more patients than images", i);
    return status;
}

enum chex_status
manifest_check(const struct manifest *m, struct chex_error *err)
{
    enum chex_status status = check_scalars(m, err);
    unsigned i, next = 0;

    if (status == CHEX_OK && (m->split_count == 0 || m->split_count > SPLIT_MAX))
        return chex_fail(err, CHEX_ERR_DAMAGED, "splits: not 1 to %d", SPLIT_MAX);
    if (status == CHEX_OK && (m->shard_count == 0 || m->shard_count > SHARDS_MAX))
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards: not 1 to %d", SHARDS_MAX);
    for (i = 0; i < m->split_count && status == CHEX_OK; i++) {
        status = check_split(m, i, next, err);
        if (status == CHEX_OK)
            status = check_shards_of(m, i, err);
        next += m->split[i].shard_count;
    }
    if (status == CHEX_OK && next != m->shard_count)
        return chex_fail(err, CHEX_ERR_DAMAGED, "shards: %u, the splits have %u", m->shard_count, next);
    return status == CHEX_OK ? check_names(m, err) : status;
}
