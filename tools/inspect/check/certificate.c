/*
 * certificate.c - check --certificate: writes the certificate of a split; see dataset/certificate.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/ascii.h"
#include "base/json_sum.h"
#include "dataset/certificate.h"
#include "inspect/check/near.h"

#include <stdlib.h>
#include <string.h>

#define LISTED 10000 /* patients, groups of images, images of a group, and pairs */

/* Compute the SHA-256 of the distinct texts, sorted, each followed by a newline. */
static enum chex_status
hash_texts(const char **text, size_t count, char out[DIGEST_HEX], struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = CHEX_OK;
    size_t i;

    if (count > 1)
        qsort(text, count, sizeof(*text), compare_texts);
    for (i = 0; i < count && status == CHEX_OK; i++) {
        if (i > 0 && strcmp(text[i - 1], text[i]) == 0)
            continue;
        status = buffer_append(&b, text[i], strlen(text[i]), err);
        if (status == CHEX_OK)
            status = buffer_append(&b, "\n", 1, err);
    }
    if (status == CHEX_OK && !digest_data(b.data, b.size, out))
        status = error_memory(err);
    buffer_release(&b);
    return status;
}

static enum chex_status
add_split(const struct split_check *c, unsigned s, const char **text, json_t **list, struct chex_error *err)
{
    const struct chex_split_info *split = &c->dataset->split[s];
    char images[DIGEST_HEX], patients[DIGEST_HEX];
    enum chex_status status;
    size_t i, count = 0;

    for (i = 0; i < c->count; i++)
        if (c->seen[i].split == s)
            text[count++] = c->seen[i].name;
    status = hash_texts(text, count, images, err);
    for (i = 0, count = 0; i < c->count && status == CHEX_OK; i++)
        if (c->seen[i].split == s)
            text[count++] = c->seen[i].patient;
    if (status == CHEX_OK)
        status = hash_texts(text, count, patients, err);
    if (status == CHEX_OK)
        inspect_json_push(list,
                          json_pack("{s:s, s:o, s:o, s:s, s:s, s:s}", "name", split->name, "images", count_json(count),
                                    "patients", count_json(c->sums[s].patients), "members_sha256",
                                    split->members_sha256, "images_sha256", images, "patients_sha256", patients));
    return status;
}

static enum chex_status
splits_json(const struct split_check *c, json_t **out, struct chex_error *err)
{
    const char **text = calloc(c->count + 1, sizeof(*text));
    enum chex_status status = text ? CHEX_OK : error_memory(err);
    unsigned s;

    *out = json_array();
    for (s = 0; s < c->dataset->info.split_count && status == CHEX_OK; s++)
        status = add_split(c, s, text, out, err);
    free(text);
    return status;
}

static json_t *
document(const struct split_check *c, const char *shards, json_t *splits)
{
    const struct near_search *near = c->near;

    return json_pack("{s:i, s:{s:s, s:s}, s:s, s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:f, s:i, s:o, s:o, s:o}",
                     "format", CERTIFICATE_FORMAT, "tool", "name", "chex-tools", "version", chex_version(),
                     "dataset_id", c->dataset->info.id, "shards_sha256", shards, "rule",
                     c->dataset->manifest.split_rule, "splits", splits, "images", count_json(c->count), "patients",
                     count_json(c->patients), "leaky", c->shared_patients > 0 || c->shared_images > 0, "leaky_patients",
                     count_json(c->shared_patients), "leaky_images", count_json(c->shared_images), "near_pairs",
                     near->too_many ? json_null() : count_json(near->pair_count), "near_threshold", NEAR_LEAST,
                     "listed", LISTED, "patients_in_two_splits", split_check_patients_json(c, LISTED),
                     "images_in_two_splits", split_check_images_json(c, LISTED), "near_in_two_splits",
                     split_check_near_json(c, LISTED));
}

enum chex_status
certificate_write(const struct split_check *c, const char *path, char sha256[DIGEST_HEX], struct chex_error *err)
{
    char shards[DIGEST_HEX];
    struct buffer text = {0};
    json_t *splits = NULL, *top;
    enum chex_status status;

    if (c->faults > 0)
        return error_set(err, CHEX_ERR_DAMAGED,
                         "no certificate: records are damaged (chex-inspect check --full names all)");
    status = certificate_shards(c->dataset, shards, err);
    if (status == CHEX_OK)
        status = splits_json(c, &splits, err);
    if (status != CHEX_OK) {
        json_decref(splits);
        return status;
    }
    top = document(c, shards, splits);
    status = append_json(top, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &text, err);
    json_decref(top);
    if (status == CHEX_OK)
        status = json_sum_add(&text, CERTIFICATE_SUM_KEY, err);
    if (status == CHEX_OK && text.size > CERTIFICATE_MAX)
        status = error_set(err, CHEX_ERR_LIMIT, "the certificate has more than %u bytes", CERTIFICATE_MAX);
    if (status == CHEX_OK && !digest_data(text.data, text.size, sha256))
        status = error_memory(err);
    if (status == CHEX_OK)
        status = inspect_put_file(path, &text, err);
    buffer_release(&text);
    return status;
}
