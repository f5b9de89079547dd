/*
 * manifest_check.c - checks fields of a manifest against each other; see manifest_json.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/manifest_json.h"

#include "base/ascii.h"
#include "base/number_format.h"
#include "base/sha256.h"
#include "dataset/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum chex_status
check_record(const struct manifest *m, struct chex_error *err)
{
    const struct manifest_left_out *l = &m->left_out;
    size_t at[3];

    record_text_offsets(&m->layout, m->view_size, m->patient_size, m->name_size, at);
    if (at[2] + m->name_size > m->layout.stride)
        return error_set(err, CHEX_ERR_DAMAGED, "record.text_sizes: more than fits into a record");
    if ((l->views && l->views[0]) != (l->other_views > 0))
        return error_set(err, CHEX_ERR_DAMAGED, "left_out.views: not a list such as PA,AP where others were left out");
    if (l->not_selected > 0 && !l->where)
        return error_set(err, CHEX_ERR_DAMAGED, "left_out.where: not a selection where rows were left out");
    return CHEX_OK;
}

static bool
from_source(const struct manifest_source *s, uint32_t size, char out[MANIFEST_FROM])
{
    const char *from = s->from ? s->from : "";
    int length;

    if (s->size == size)
        length = snprintf(out, MANIFEST_FROM, "%s", from);
    else
        length = snprintf(out, MANIFEST_FROM, "%ux%u %s%s%s", s->size, s->size, s->resize, from[0] ? " of " : "", from);
    return length >= 0 && length < MANIFEST_FROM;
}

bool
manifest_from(const struct manifest_source *source, unsigned count, uint32_t size, char out[MANIFEST_FROM])
{
    char each[MANIFEST_FROM] = "", hash[DIGEST_HEX];
    struct buffer all = {0};
    bool good = true, same = true;
    unsigned i;

    out[0] = '\0';
    for (i = 0; good && i < count; i++) {
        good = from_source(&source[i], size, i == 0 ? out : each);
        same = same && (i == 0 || strcmp(out, each) == 0);
        good = good && buffer_printf(&all, NULL, "%s %s\n", source[i].dataset_id, i == 0 ? out : each) == CHEX_OK;
    }
    if (good && !same) {
        good = digest_data(all.data, all.size, hash);
        if (good)
            snprintf(out, MANIFEST_FROM, "mixed %.8s", hash);
    }
    buffer_release(&all);
    return good;
}

const char *
manifest_record_id(const struct manifest *m)
{
    return m->withdrawal_count > 0 ? m->withdrawal[0].dataset_id : m->dataset_id;
}

bool
manifest_had_id(const struct manifest *m, const char *id)
{
    unsigned i;

    for (i = 0; i < m->withdrawal_count; i++)
        if (strcmp(m->withdrawal[i].dataset_id, id) == 0)
            return true;
    return false;
}

uint64_t
manifest_withdrawn(const struct manifest *m)
{
    uint64_t slots = 0;
    unsigned i;

    for (i = 0; i < m->withdrawal_count; i++)
        slots += m->withdrawal[i].slots;
    return slots;
}

static enum chex_status
check_sources(const struct manifest *m, struct chex_error *err)
{
    char from[MANIFEST_FROM];
    unsigned i;

    for (i = 0; i < m->source_count; i++) {
        if (m->source[i].size < m->layout.height)
            return error_set(err, CHEX_ERR_DAMAGED, "sources: not images from which these can be made");
        if (i > 0 && strcmp(m->source[i - 1].dataset_id, m->source[i].dataset_id) >= 0)
            return error_set(err, CHEX_ERR_DAMAGED, "sources: not in the order of their ids");
    }
    if (!manifest_from(m->source, m->source_count, m->layout.height, from))
        return error_set(err, CHEX_ERR_DAMAGED, "sources: not images from which these can be made");
    return CHEX_OK;
}

/* Each leaky patient is counted in two splits or more, and has an image in each of them. */
static enum chex_status
check_leaks(const struct manifest *m, struct chex_error *err)
{
    uint64_t images = 0, patients = 0;
    unsigned i;

    for (i = 0; i < m->split_count; i++) {
        images += m->split[i].images;
        patients += m->split[i].patients;
    }
    if (m->leaks.patients > patients / 2 || m->leaks.images > images || m->leaks.images / 2 < m->leaks.patients)
        return error_set(err, CHEX_ERR_DAMAGED,
                         "leaks: %s patients in two splits with %s images, which the splits lack",
                         COUNT_TEXT(m->leaks.patients), COUNT_TEXT(m->leaks.images));
    return CHEX_OK;
}

/* Check one split; it must begin with shard `next`. */
static enum chex_status
check_split(const struct manifest *m, unsigned i, unsigned next, struct chex_error *err)
{
    const struct manifest_split *split = &m->split[i];
    unsigned j;

    for (j = 0; j < i; j++)
        if (strcmp(split->name, m->split[j].name) == 0)
            return error_set(err, CHEX_ERR_DAMAGED, "splits[%u].name: '%s' occurs twice", i, split->name);
    if (split->first_shard != next || split->shard_count == 0 || split->shard_count > m->shard_count - next)
        return error_set(err, CHEX_ERR_DAMAGED, "splits[%u]: shards %u + %u do not follow those before it", i,
                         split->first_shard, split->shard_count);
    for (j = 0; j < m->findings.count; j++) {
        uint64_t known = m->layout.labels.unknown ? split->known[j] : split->images;

        if (known > split->images)
            return error_set(err, CHEX_ERR_DAMAGED, "splits[%u].known: more labels of %s than images", i,
                             m->findings.name[j]);
        if (split->positives[j] > known)
            return error_set(err, CHEX_ERR_DAMAGED, "splits[%u].positives: more images with %s than %s", i,
                             m->findings.name[j], m->layout.labels.unknown ? "known labels" : "images");
    }
    return CHEX_OK;
}

static enum chex_status
check_shard(const struct manifest *m, unsigned i, struct chex_error *err)
{
    const struct manifest_shard *shard = &m->shard[i];
    const struct manifest_split *split = &m->split[shard->split];
    bool may_be_short = strcmp(m->tail, tail_names[TAIL_SHORT]) == 0 && shard->number + 1 == split->shard_count;
    size_t size;

    if (shard->name[0] == '.' || strcmp(shard->name, MANIFEST_NAME) == 0)
        return error_set(err, CHEX_ERR_DAMAGED, "shards[%u].name: not a plain file name", i);
    if (shard->number != i - split->first_shard || shard->of != split->shard_count)
        return error_set(err, CHEX_ERR_DAMAGED, "shards[%u]: number %u of %u, its split has it as %u of %u", i,
                         shard->number, shard->of, i - split->first_shard, split->shard_count);
    if (shard->records == 0 || shard->records > m->shard_size || (shard->records < m->shard_size && !may_be_short))
        return error_set(err, CHEX_ERR_DAMAGED, "shards[%u].records: %u, where the size of shards is %u", i,
                         shard->records, m->shard_size);
    if (shard->images > shard->records)
        return error_set(err, CHEX_ERR_DAMAGED, "shards[%u].images: more than records", i);
    if (!size_mul(shard->records, m->layout.stride, &size) || size != shard->size)
        return error_set(err, CHEX_ERR_DAMAGED, "shards[%u].size: not %u records of %zu bytes", i, shard->records,
                         m->layout.stride);
    return CHEX_OK;
}

/* Check that shard names are unique. */
static enum chex_status
check_names(const struct manifest *m, struct chex_error *err)
{
    const char **name = calloc(m->shard_count, sizeof(*name));
    enum chex_status status = CHEX_OK;
    unsigned i;

    if (!name)
        return error_memory(err);
    for (i = 0; i < m->shard_count; i++)
        name[i] = m->shard[i].name;
    qsort(name, m->shard_count, sizeof(*name), compare_texts);
    for (i = 1; i < m->shard_count && status == CHEX_OK; i++)
        if (strcmp(name[i - 1], name[i]) == 0)
            status = error_set(err, CHEX_ERR_DAMAGED, "shards: '%s' occurs twice", name[i]);
    free(name);
    return status;
}

/* Check the shards of one split and the sum of their images. */
static enum chex_status
check_shards_of(const struct manifest *m, unsigned i, struct chex_error *err)
{
    const struct manifest_split *split = &m->split[i];
    enum chex_status status = CHEX_OK;
    uint64_t images = 0;
    unsigned j;

    for (j = split->first_shard; j < split->first_shard + split->shard_count && status == CHEX_OK; j++) {
        if (m->shard[j].split != i)
            return error_set(err, CHEX_ERR_DAMAGED, "shards[%u].split: not '%s', which has this shard", j, split->name);
        status = check_shard(m, j, err);
        images += m->shard[j].images;
    }
    if (status == CHEX_OK && images != split->images)
        return error_set(err, CHEX_ERR_DAMAGED, "splits[%u].images: %llu, its shards have %llu", i,
                         (unsigned long long)split->images, (unsigned long long)images);
    if (status == CHEX_OK && split->patients > images)
        return error_set(err, CHEX_ERR_DAMAGED, "splits[%u].patients: more patients than images", i);
    return status;
}

enum chex_status
manifest_check(const struct manifest *m, struct chex_error *err)
{
    enum chex_status status = check_record(m, err);
    unsigned i, next = 0;

    if (status == CHEX_OK)
        status = check_sources(m, err);
    if (status == CHEX_OK)
        status = check_leaks(m, err);
    for (i = 0; i < m->split_count && status == CHEX_OK; i++) {
        status = check_split(m, i, next, err);
        if (status == CHEX_OK)
            status = check_shards_of(m, i, err);
        next += m->split[i].shard_count;
    }
    if (status == CHEX_OK && next != m->shard_count)
        return error_set(err, CHEX_ERR_DAMAGED, "shards: %u, the splits have %u", m->shard_count, next);
    return status == CHEX_OK ? check_names(m, err) : status;
}
