/*
 * certificate.c - see certificate.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/certificate.h"

#include "base/json.h"
#include "base/json_sum.h"
#include "base/number_format.h"
#include "dataset/dataset.h"

#include <stdio.h>
#include <string.h>

/* chex-inspect lists up to 10,000 patients, images and pairs. */
static const struct parse_bounds bounds = {.size = CERTIFICATE_MAX, .depth = 8, .values = 2000000};

enum chex_status
certificate_shards(const struct chex_dataset *ds, char out[DIGEST_HEX], struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; status == CHEX_OK && i < ds->info.shard_count; i++) {
        status = buffer_append(&text, ds->shard[i].sha256, DIGEST_HEX - 1, err);
        if (status == CHEX_OK)
            status = buffer_append(&text, "\n", 1, err);
    }
    if (status == CHEX_OK && !digest_data(text.data, text.size, out))
        status = error_memory(err);
    buffer_release(&text);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static bool
is_text(const json_t *object, const char *key, const char *wanted)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && strcmp(text, wanted) == 0;
}

static bool
is_count(const json_t *object, const char *key, uint64_t wanted)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) && (uint64_t)json_integer_value(value) == wanted;
}

static bool
get_count(const json_t *object, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(object, key);

    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

/* Check that the certificate names this data set: its id, its split and its shards. */
static enum chex_status
check_dataset(const json_t *top, const struct chex_dataset *ds, struct chex_error *err)
{
    const json_t *splits = json_object_get(top, "splits"), *format = json_object_get(top, "format");
    char shards[DIGEST_HEX];
    unsigned i;
    bool same;
    enum chex_status status = certificate_shards(ds, shards, err);

    if (status != CHEX_OK)
        return status;
    if (!json_is_integer(format) || json_integer_value(format) < 1)
        return error_set(err, CHEX_ERR_DAMAGED, "not the certificate of a split");
    if (json_integer_value(format) > CERTIFICATE_FORMAT)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "a newer format");
    if (!json_object_get(top, CERTIFICATE_SUM_KEY))
        return error_set(err, CHEX_ERR_DAMAGED, "%s is missing", CERTIFICATE_SUM_KEY);
    same = is_text(top, "dataset_id", ds->info.id) && is_text(top, "shards_sha256", shards) &&
           is_text(top, "rule", ds->manifest.split_rule) && json_array_size(splits) == ds->info.split_count;
    for (i = 0; same && i < ds->info.split_count; i++) {
        const json_t *split = json_array_get(splits, i);

        same = is_text(split, "name", ds->split[i].name) &&
               is_text(split, "members_sha256", ds->split[i].members_sha256) &&
               is_count(split, "images", ds->split[i].image_count) &&
               is_count(split, "patients", ds->split[i].patient_count);
    }
    return same ? CHEX_OK : error_set(err, CHEX_ERR_INCOMPATIBLE, "of another data set");
}

static enum chex_status
take_counts(const json_t *top, const struct chex_dataset *ds, struct certificate *c, struct chex_error *err)
{
    const json_t *near = json_object_get(top, "near_pairs"), *leaky = json_object_get(top, "leaky");

    if (!get_count(top, "leaky_patients", &c->patients) || !get_count(top, "leaky_images", &c->images) ||
        !json_is_boolean(leaky) || (!json_is_null(near) && !get_count(top, "near_pairs", &c->near)))
        return error_set(err, CHEX_ERR_DAMAGED, "not the form of format %d", CERTIFICATE_FORMAT);
    c->near_known = !json_is_null(near);
    if (c->patients != ds->manifest.leaks.patients || json_is_true(leaky) != (c->patients > 0 || c->images > 0))
        return error_set(err, CHEX_ERR_DAMAGED, "its patients in two splits are not those of the manifest");
    return CHEX_OK;
}

enum chex_status
certificate_read(const struct chex_dataset *ds, struct certificate *out, struct chex_error *err)
{
    struct buffer text = {0};
    json_t *top = NULL;
    enum chex_status status = file_read(ds->folder.fd, CERTIFICATE_NAME, CERTIFICATE_MAX, &text, err);

    *out = (struct certificate){.near = 0};
    if (status == CHEX_OK)
        status = parse_json(text.data, text.size, &bounds, &top, err);
    if (status == CHEX_OK)
        status = check_dataset(top, ds, err);
    if (status == CHEX_OK)
        status = json_sum_check(top, CERTIFICATE_SUM_KEY, text.data, text.size, err);
    if (status == CHEX_OK)
        status = take_counts(top, ds, out, err);
    if (status == CHEX_OK && !digest_data(text.data, text.size, out->sha256))
        status = error_memory(err);
    json_decref(top);
    buffer_release(&text);
    if (status == CHEX_OK)
        return CHEX_OK;
    *out = (struct certificate){.near = 0};
    return error_context(err, status, "'%s/%s'", ds->folder.path, CERTIFICATE_NAME);
}

/* ---- names of it ------------------------------------------------------------------------------------------------ */

json_t *
certificate_json(const struct certificate *c)
{
    if (!c || !c->sha256[0])
        return json_null();
    return json_pack("{s:s, s:o, s:o, s:o}", "sha256", c->sha256, "leaky_patients", count_json(c->patients),
                     "leaky_images", count_json(c->images), "near_pairs",
                     c->near_known ? count_json(c->near) : json_null());
}

const char *
certificate_text(const struct certificate *c, char out[CERTIFICATE_TEXT])
{
    char patients[FORMAT_THINGS], images[FORMAT_THINGS], pairs[FORMAT_THINGS];

    snprintf(out, CERTIFICATE_TEXT, "%s and %s in two splits, %s", format_things(c->patients, "patient", patients),
             format_things(c->images, "image", images),
             c->near_known ? format_things(c->near, "nearly equal pair", pairs) : "too many nearly equal pairs");
    return out;
}
