/*
 * manifest_format.c - the text of a manifest; see manifest.h and schemas/README.md
 *
 * Canonical: the keys come in one order, indented by 2, reals with 17 digits, a newline at the end.  jansson writes
 * numbers without the locale's decimal comma.  So equal data sets have equal manifests, to the byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/json.h"
#include "dataset/manifest_json.h"

#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

/* ---- dtype ----------------------------------------------------------------------------------------------------- */

struct dtype {
    json_t *names, *formats, *offsets;
    bool failed;
};

static void
add_field(struct dtype *d, const char *name, const char *format, size_t offset)
{
    if (json_array_append_new(d->names, json_string(name)) != 0 ||
        json_array_append_new(d->formats, json_string(format)) != 0 ||
        json_array_append_new(d->offsets, json_integer((json_int_t)offset)) != 0)
        d->failed = true;
}

static void
add_text(struct dtype *d, const char *name, uint32_t size, size_t offset)
{
    char format[16];

    snprintf(format, sizeof(format), "S%u", size);
    add_field(d, name, format, offset);
}

static void
add_fields(struct dtype *d, const struct manifest *m)
{
    const struct record_layout *l = &m->layout;
    char image[64], label[16];
    size_t at[3];

    snprintf(image, sizeof(image), "(%u,%u)u1", l->height, l->width);
    snprintf(label, sizeof(label), "(%d,)u1", CHEX_FINDINGS);
    add_field(d, "image", image, l->pixel_offset);
    add_field(d, "label", label, l->label_offset);
    add_field(d, "weight", "u1", l->weight_offset);
    add_field(d, "age", "<f4", l->age_offset);
    add_field(d, "sex", "S1", l->sex_offset);
    add_text(d, "slot", RECORD_SLOT, l->slot_offset);
    /* A text of changing size moves those behind it. */
    record_text_offsets(l, m->view_size, m->patient_size, m->name_size, at);
    if (m->view_size > 0)
        add_text(d, "view", m->view_size, at[0]);
    if (m->view_size > 0 && m->patient_size > 0)
        add_text(d, "patient", m->patient_size, at[1]);
    if (m->view_size > 0 && m->patient_size > 0 && m->name_size > 0)
        add_text(d, "filename", m->name_size, at[2]);
}

json_t *
manifest_dtype(const struct manifest *m)
{
    struct dtype d = {.names = json_array(), .formats = json_array(), .offsets = json_array()};

    /* A list that could not be made refuses its first element. */
    add_fields(&d, m);
    if (d.failed) {
        json_decref(d.names);
        json_decref(d.formats);
        json_decref(d.offsets);
        return NULL;
    }
    return json_pack("{s:o, s:o, s:o, s:I}", "names", d.names, "formats", d.formats, "offsets", d.offsets, "itemsize",
                     (json_int_t)m->layout.stride);
}

/* ---- parts; each returns NULL when out of memory --------------------------------------------------------------- */

static json_t *
record_part(const struct manifest *m)
{
    const struct record_layout *l = &m->layout;

    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:{s:I, s:I, s:I}}", "stride", (json_int_t)l->stride,
                     "pixel_offset", (json_int_t)l->pixel_offset, "height", (json_int_t)l->height, "width",
                     (json_int_t)l->width, "channels", (json_int_t)l->channels, "align", (json_int_t)l->align,
                     "shard_size", (json_int_t)m->shard_size, "tail", m->tail, "text_sizes", "view",
                     (json_int_t)m->view_size, "patient", (json_int_t)m->patient_size, "filename",
                     (json_int_t)m->name_size);
}

static json_t *
labels_part(void)
{
    json_t *names = json_array();
    unsigned i;

    for (i = 0; names && i < CHEX_FINDINGS; i++) {
        if (json_array_append_new(names, json_string(chex_finding_name(i))) != 0) {
            json_decref(names);
            return NULL;
        }
    }
    return names;
}

static json_t *
decode_part(const struct manifest *m)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:b}", "resize", m->resize, "luma", MANIFEST_LUMA, "max_pixels",
                     (json_int_t)m->max_pixels, "min_side", (json_int_t)m->min_side, "lenient", (int)m->lenient);
}

static json_t *
split_part(const struct manifest_split *split)
{
    json_t *positives = json_object();
    unsigned i;

    for (i = 0; positives && i < CHEX_FINDINGS; i++) {
        if (json_object_set_new(positives, chex_finding_name(i), json_integer((json_int_t)split->positives[i])) != 0) {
            json_decref(positives);
            return NULL;
        }
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:o}", "name", split->name, "first_shard",
                     (json_int_t)split->first_shard, "shards", (json_int_t)split->shard_count, "images",
                     (json_int_t)split->images, "patients", (json_int_t)split->patients, "members_sha256",
                     split->members_sha256, "positives", positives);
}

static json_t *
splits_part(const struct manifest *m)
{
    json_t *array = json_array();
    unsigned i;

    for (i = 0; array && i < m->split_count; i++) {
        if (json_array_append_new(array, split_part(&m->split[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *
shard_part(const struct manifest *m, const struct manifest_shard *shard)
{
    json_t *part = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s}", "name", shard->name, "split",
                             m->split[shard->split].name, "number", (json_int_t)shard->number, "of",
                             (json_int_t)shard->of, "records", (json_int_t)shard->records, "images",
                             (json_int_t)shard->images, "size", (json_int_t)shard->size, "sha256", shard->sha256);

    if (part && shard->crc32c && json_object_set_new(part, "crc32c", json_string(shard->crc32c)) != 0) {
        json_decref(part);
        return NULL;
    }
    return part;
}

static json_t *
shards_part(const struct manifest *m)
{
    json_t *array = json_array();
    unsigned i;

    for (i = 0; array && i < m->shard_count; i++) {
        if (json_array_append_new(array, shard_part(m, &m->shard[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

/* Like all of jansson's setters this takes the value over, and takes NULL as a failure. */
static bool
set(json_t *top, const char *key, json_t *value)
{
    return json_object_set_new(top, key, value) == 0;
}

/* Only where there is something to say: all else has the text that it had before there was this key. */
static bool
set_left_out(json_t *top, const struct manifest_left_out *l)
{
    if (l->other_views + l->excluded + l->missing == 0)
        return true;
    return set(top, "left_out",
               json_pack("{s:s, s:I, s:I, s:I}", "views", l->views, "other_views", (json_int_t)l->other_views,
                         "excluded", (json_int_t)l->excluded, "missing", (json_int_t)l->missing));
}

static bool
fill(json_t *top, const struct manifest *m)
{
    return set(top, "format", json_integer(MANIFEST_FORMAT)) && set(top, "dataset_id", json_string(m->dataset_id)) &&
           set(top, "tool", json_pack("{s:s, s:s}", "name", "chex-tools", "version", m->tool_version)) &&
           set(top, "record", record_part(m)) && set(top, "dtype", manifest_dtype(m)) &&
           set(top, "labels", labels_part()) && set(top, "decode", decode_part(m)) &&
           set(top, "split", json_pack("{s:s, s:I}", "rule", m->split_rule, "order_seed", (json_int_t)m->seed)) &&
           set(top, "splits", splits_part(m)) && set(top, "shards", shards_part(m)) &&
           set(top, "pixels", json_pack("{s:f, s:f}", "mean", m->pixel_mean, "deviation", m->pixel_deviation)) &&
           set(top, "labels_sha256", json_string(m->labels_sha256)) &&
           set(top, "rejects", json_integer((json_int_t)m->rejects)) && set_left_out(top, &m->left_out);
}

enum chex_status
manifest_sum(const void *text, size_t size, char out[MANIFEST_SUM_ROOM], struct chex_error *err)
{
    struct digest *digest = digest_new();
    uint8_t hash[DIGEST_SIZE];
    char hex[DIGEST_HEX];

    if (!digest)
        return chex_fail_memory(err);
    digest_start(digest);
    digest_add(digest, text, size);
    digest_finish(digest, hash);
    digest_free(digest);
    digest_hex(hash, sizeof(hash), hex);
    snprintf(out, MANIFEST_SUM_ROOM, "  \"" MANIFEST_SUM_KEY "\": \"%s\"\n}\n", hex);
    return CHEX_OK;
}

/* The text in b ends with "\n}\n": make room there for one more key. */
static enum chex_status
add_sum(struct buffer *b, struct chex_error *err)
{
    char sum[MANIFEST_SUM_ROOM];
    enum chex_status status;

    b->size -= strlen("\n}\n");
    status = buffer_append(b, ",\n", 2, err);
    if (status == CHEX_OK)
        status = manifest_sum(b->data, b->size, sum, err);
    return status == CHEX_OK ? buffer_append(b, sum, strlen(sum), err) : status;
}

enum chex_status
manifest_format(const struct manifest *m, struct buffer *b, struct chex_error *err)
{
    enum chex_status status = manifest_check(m, err);
    struct buffer text = {0};
    json_t *top;

    if (status == CHEX_ERR_DAMAGED)
        return chex_context(err, CHEX_ERR_BUG, "the manifest to be written");
    if (status != CHEX_OK)
        return status;
    top = json_object();
    if (top && fill(top, m))
        status = json_append(top, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &text, err);
    else
        status = chex_fail_memory(err);
    if (status == CHEX_OK)
        status = add_sum(&text, err);
    if (status == CHEX_OK)
        status = buffer_append(b, text.data, text.size, err);
    buffer_release(&text);
    json_decref(top);
    return status;
}
