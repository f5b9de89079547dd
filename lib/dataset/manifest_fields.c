/*
 * manifest_fields.c - the table of the manifest's fields; see manifest_json.h and schemas/README.md
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/manifest_json.h"

#include "base/sha256.h"
#include "dataset/format.h"
#include "dataset/where.h"
#include "image/image.h"
#include "image/resample.h"

#include <stdio.h>

/* ---- fields derived from other fields ---------------------------------------------------------------------------- */

static json_t *
derive_format(const struct manifest *m)
{
    (void)m;
    return json_integer(MANIFEST_FORMAT);
}

static json_t *
derive_labels(const struct manifest *m)
{
    json_t *names = json_array();
    unsigned i;

    for (i = 0; i < m->findings.count; i++) {
        if (json_array_append_new(names, json_string(m->findings.name[i])) != 0) {
            json_decref(names);
            return NULL;
        }
    }
    return names;
}

/*
 * Make the argument of np.dtype() for a structured type that maps a shard without copying.  The type contains a text
 * only if all records have it at one offset: a text of varying length moves the texts after it.
 */
static json_t *
derive_dtype(const struct manifest *m)
{
    const struct record_layout *l = &m->layout;
    const size_t size[] = {m->view_size, m->patient_size, m->name_size};
    struct {
        const char *name;
        char format[32];
        size_t offset;
    } field[] = {{"image", "", l->pixel_offset},
                 {"label", "", l->label_offset},
                 {"weight", "u1", l->weight_offset},
                 {"age", "<f4", l->age_offset},
                 {"sex", "S1", l->sex_offset},
                 {"slot", "", l->slot_offset},
                 {.name = "view"},
                 {.name = "patient"},
                 {.name = "filename"}};
    json_t *names = json_array(), *formats = json_array(), *offsets = json_array();
    size_t at[3], count = 6, i;
    bool failed = false;

    snprintf(field[0].format, sizeof(field[0].format), "(%u,%u)u1", l->height, l->width);
    snprintf(field[1].format, sizeof(field[1].format), "(%u,)u1", l->labels.count);
    snprintf(field[5].format, sizeof(field[5].format), "S%d", RECORD_SLOT);
    record_text_offsets(l, size[0], size[1], size[2], at);
    for (i = 0; i < 3 && size[i] > 0; i++, count++) {
        snprintf(field[count].format, sizeof(field[count].format), "S%zu", size[i]);
        field[count].offset = at[i];
    }
    for (i = 0; i < count; i++) /* appending to a list that is NULL (out of memory) fails */
        failed = failed || json_array_append_new(names, json_string(field[i].name)) != 0 ||
                 json_array_append_new(formats, json_string(field[i].format)) != 0 ||
                 json_array_append_new(offsets, json_integer((json_int_t)field[i].offset)) != 0;
    if (failed) {
        json_decref(names);
        json_decref(formats);
        json_decref(offsets);
        return NULL;
    }
    return json_pack("{s:o, s:o, s:o, s:I}", "names", names, "formats", formats, "offsets", offsets, "itemsize",
                     (json_int_t)l->stride);
}

static enum chex_status
restore_layout(struct manifest *m, struct chex_error *err)
{
    const struct record_layout read = m->layout;
    const struct label_form labels = {m->findings.count, read.labels.unknown};
    enum chex_status status = record_restore(read.height, read.width, read.align, labels, read.stride, &m->layout, err);

    if (status == CHEX_OK && (read.channels != m->layout.channels || read.pixel_offset != m->layout.pixel_offset))
        status = error_set(err, CHEX_ERR_DAMAGED, "record: pixels at %zu, in this layout they are at %zu",
                           read.pixel_offset, m->layout.pixel_offset);
    return status;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define AT(type, member)   .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define M(member)          AT(struct manifest, member)
#define LIST(type, member) M(member), .count = offsetof(struct manifest, member##_count), .element = sizeof(type)

#define LOWER             "abcdefghijklmnopqrstuvwxyz"
#define UPPER             "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS            "0123456789"
#define HEX(n)            .letters = DIGITS "abcdef", .min = n, .max = n, .wanted = #n " hexadecimal digits"
#define PRINTABLE_LETTERS " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" DIGITS UPPER LOWER
#define PRINTABLE         .letters = PRINTABLE_LETTERS, .min = 1, .max = 128, .wanted = "a short printable text"
#define WHERE_FIELD       .letters = PRINTABLE_LETTERS, .min = 1, .max = WHERE_TEXT - 1, .wanted = "a selection"

_Static_assert(2 * DIGEST_SIZE == 64 && CHEX_ID_LENGTH == 16 && CRC_HEX - 1 == 8, "HEX() has numbers for its error");

static const struct manifest_field tool_fields[] = {
    {"name", MANIFEST_DERIVED, .fixed = "chex-tools", .any = true, .wanted = "a text"},
    {"version", MANIFEST_TEXT, M(tool_version), PRINTABLE},
    {.key = NULL},
};

/* The length of each text if all records have equal lengths, otherwise 0. */
static const struct manifest_field text_size_fields[] = {
    {"view", MANIFEST_NUMBER, M(view_size), .max = RECORD_MAX_TEXT},
    {"patient", MANIFEST_NUMBER, M(patient_size), .max = RECORD_MAX_TEXT},
    {"filename", MANIFEST_NUMBER, M(name_size), .max = RECORD_MAX_TEXT},
    {.key = NULL},
};

static const struct manifest_field record_fields[] = {
    {"stride", MANIFEST_NUMBER, M(layout.stride), .max = (uint64_t)RECORD_MAX_SIDE * RECORD_MAX_SIDE * 2},
    {"pixel_offset", MANIFEST_NUMBER, M(layout.pixel_offset), .max = RECORD_MAX_HEAD},
    {"height", MANIFEST_NUMBER, M(layout.height), .max = RECORD_MAX_SIDE},
    {"width", MANIFEST_NUMBER, M(layout.width), .max = RECORD_MAX_SIDE},
    {"channels", MANIFEST_NUMBER, M(layout.channels), .max = 1},
    {"align", MANIFEST_NUMBER, M(layout.align), .max = 4096},
    {"shard_size", MANIFEST_NUMBER, M(shard_size), .min = 1, .max = MANIFEST_MAX_SHARD_SIZE},
    {"tail", MANIFEST_TEXT, M(tail), .names = tail_names, .wanted = "pad, short or drop"},
    {"text_sizes", MANIFEST_OBJECT, .fields = text_size_fields},
    {"unknown_labels", MANIFEST_BOOL, M(layout.labels.unknown), .optional = true},
    {.key = NULL},
};

static const char *const gray_rules[] = {IMAGE_GRAY_RULE, NULL};

static const struct manifest_field decode_fields[] = {
    {"resize", MANIFEST_TEXT, M(resize), .names = resample_names, .wanted = "a known method"},
    {"luma", MANIFEST_DERIVED, .fixed = MANIFEST_LUMA, .wanted = MANIFEST_LUMA},
    {"max_pixels", MANIFEST_NUMBER, M(max_pixels), .min = 1, .max = INT64_MAX},
    {"min_side", MANIFEST_NUMBER, M(min_side), .max = UINT32_MAX},
    {"lenient", MANIFEST_BOOL, M(lenient)},
    {.key = NULL},
};

static const struct manifest_field rule_fields[] = {
    {"rule", MANIFEST_TEXT, M(split_rule), PRINTABLE},
    {"order_seed", MANIFEST_NUMBER, M(seed), .max = INT64_MAX},
    {.key = NULL},
};

#define S(member) AT(struct manifest_split, member)

static const struct manifest_field split_fields[] = {
    {"name", MANIFEST_TEXT, S(name), .letters = LOWER DIGITS "_", .min = 1, .max = SPLIT_NAME_MAX - 1,
     .wanted = "of the form [a-z0-9_]{1,23}"},
    {"first_shard", MANIFEST_NUMBER, S(first_shard), .max = UINT32_MAX / 2},
    {"shards", MANIFEST_NUMBER, S(shard_count), .max = UINT32_MAX / 2},
    {"images", MANIFEST_NUMBER, S(images), .max = INT64_MAX},
    {"patients", MANIFEST_NUMBER, S(patients), .max = INT64_MAX},
    {"members_sha256", MANIFEST_TEXT, S(members_sha256), HEX(64)},
    {"positives", MANIFEST_FINDINGS, S(positives), .max = INT64_MAX},
    {"known", MANIFEST_FINDINGS, S(known), .max = INT64_MAX, .optional = true},
    {.key = NULL},
};

#undef S
#define S(member) AT(struct manifest_shard, member)

static const struct manifest_field shard_fields[] = {
    {"name", MANIFEST_TEXT, S(name), .letters = UPPER LOWER DIGITS "._-", .min = 1, .max = SHARD_NAME_MAX - 1,
     .wanted = "a plain file name"},
    {"split", MANIFEST_SPLIT, S(split), .wanted = "the name of a split"},
    {"number", MANIFEST_NUMBER, S(number), .max = UINT32_MAX / 2},
    {"of", MANIFEST_NUMBER, S(of), .max = UINT32_MAX / 2},
    {"records", MANIFEST_NUMBER, S(records), .max = UINT32_MAX / 2},
    {"images", MANIFEST_NUMBER, S(images), .max = UINT32_MAX / 2},
    {"size", MANIFEST_NUMBER, S(size), .max = INT64_MAX},
    {"sha256", MANIFEST_TEXT, S(sha256), HEX(64)},
    {"crc32c", MANIFEST_TEXT, S(crc32c), HEX(8), .optional = true},
    {.key = NULL},
};

static const struct manifest_field pixel_fields[] = {
    {"mean", MANIFEST_REAL, M(pixel_mean), .most = 255},
    {"deviation", MANIFEST_REAL, M(pixel_deviation), .most = 127.5},
    {.key = NULL},
};

#undef S
#define S(member) AT(struct manifest_source, member)

static const struct manifest_field source_fields[] = {
    {"dataset_id", MANIFEST_TEXT, S(dataset_id), HEX(16)},
    {"size", MANIFEST_NUMBER, S(size), .min = 1, .max = RECORD_MAX_SIDE},
    {"resize", MANIFEST_TEXT, S(resize), .names = resample_names, .wanted = "a known method"},
    {"from", MANIFEST_TEXT, S(from), .letters = LOWER DIGITS " ", .min = 1, .max = MANIFEST_FROM - 1,
     .wanted = "of the form '256x256 bilinear'", .optional = true},
    {"withdrawn", MANIFEST_NUMBER, S(withdrawn), .max = INT64_MAX, .optional = true},
    {"left_out", MANIFEST_NUMBER, S(left_out), .max = INT64_MAX, .optional = true},
    {"where", MANIFEST_TEXT, S(where), WHERE_FIELD, .optional = true},
    {"id_prefix", MANIFEST_TEXT, S(id_prefix), .letters = ID_PREFIX_LETTERS, .min = 1, .max = ID_PREFIX_MAX,
     .wanted = "of the form [A-Za-z0-9._-]{1,32}", .optional = true},
    {.key = NULL},
};

#undef S
#define S(member) AT(struct manifest_withdrawal, member)

static const struct manifest_field withdrawal_fields[] = {
    {"dataset_id", MANIFEST_TEXT, S(dataset_id), HEX(16)},
    {"slots", MANIFEST_NUMBER, S(slots), .max = INT64_MAX / WITHDRAWALS_MAX},
    {"time", MANIFEST_TEXT, S(time), .letters = DIGITS "-:TZ", .min = MANIFEST_TIME - 1, .max = MANIFEST_TIME - 1,
     .wanted = "of the form '2026-11-23T22:30:00Z'"},
    {.key = NULL},
};

static const struct manifest_field left_out_fields[] = {
    {"views", MANIFEST_TEXT, M(left_out.views), .letters = UPPER DIGITS ",", .max = 128,
     .wanted = "a list such as PA,AP where others were left out"},
    {"other_views", MANIFEST_NUMBER, M(left_out.other_views), .max = INT64_MAX / 4},
    {"excluded", MANIFEST_NUMBER, M(left_out.excluded), .max = INT64_MAX / 4},
    {"missing", MANIFEST_NUMBER, M(left_out.missing), .max = INT64_MAX / 4},
    {"where", MANIFEST_TEXT, M(left_out.where), WHERE_FIELD, .optional = true},
    {"not_selected", MANIFEST_NUMBER, M(left_out.not_selected), .max = INT64_MAX / 4, .optional = true},
    {.key = NULL},
};

static const struct manifest_field leaks_fields[] = {
    {"patients", MANIFEST_NUMBER, M(leaks.patients), .min = 1, .max = INT64_MAX / 4},
    {"images", MANIFEST_NUMBER, M(leaks.images), .min = 2, .max = INT64_MAX / 4},
    {.key = NULL},
};

const struct manifest_field manifest_fields[] = {
    {"format", MANIFEST_DERIVED, .derive = derive_format, .wanted = "the number of this format"},
    {"dataset_id", MANIFEST_TEXT, M(dataset_id), HEX(16)},
    {"tool", MANIFEST_OBJECT, .fields = tool_fields},
    {"record", MANIFEST_OBJECT, .fields = record_fields, .then = restore_layout},
    {"dtype", MANIFEST_DERIVED, .derive = derive_dtype, .wanted = "that of the record"},
    {"labels", MANIFEST_DERIVED, .derive = derive_labels, .wanted = "a list of findings"},
    {"decode", MANIFEST_OBJECT, .fields = decode_fields},
    {"split", MANIFEST_OBJECT, .fields = rule_fields},
    {"splits", MANIFEST_LIST, LIST(struct manifest_split, split), .min = 1, .max = SPLIT_MAX, .fields = split_fields},
    {"shards", MANIFEST_LIST, LIST(struct manifest_shard, shard), .min = 1, .max = SHARDS_MAX, .fields = shard_fields},
    {"pixels", MANIFEST_OBJECT, .fields = pixel_fields},
    {"labels_sha256", MANIFEST_TEXT, M(labels_sha256), HEX(64)},
    {"rejects", MANIFEST_NUMBER, M(rejects), .max = INT64_MAX},
    {"synthetic", MANIFEST_BOOL, M(synthetic), .optional = true},
    {"gray_rule", MANIFEST_TEXT, M(gray_rule), .names = gray_rules, .wanted = "a known rule", .optional = true},
    {"empty_labels", MANIFEST_NUMBER, M(empty_labels), .max = INT64_MAX, .optional = true},
    {"leaks", MANIFEST_OBJECT, .fields = leaks_fields, .optional = true},
    {"left_out", MANIFEST_OBJECT, .fields = left_out_fields, .optional = true},
    {"sources", MANIFEST_LIST, LIST(struct manifest_source, source), .min = 1, .max = SOURCES_MAX,
     .fields = source_fields, .optional = true},
    {"withdrawals", MANIFEST_LIST, LIST(struct manifest_withdrawal, withdrawal), .min = 1, .max = WITHDRAWALS_MAX,
     .fields = withdrawal_fields, .optional = true},
    {.key = NULL},
};
