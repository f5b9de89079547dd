/*
 * record.c - see record.h; schemas/example.proto defines the wire format
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/record.h"

#include "dataset/tfrecord.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Tags: field number * 8 + wire type 2 (length-delimited). */
enum { TAG_1 = 0x0a, TAG_2 = 0x12, TAG_3 = 0x1a };
/* The field of a Feature chooses its list: 1 bytes, 2 float, 3 int64. */
enum { LIST_BYTES = TAG_1, LIST_FLOAT = TAG_2, LIST_INT64 = TAG_3 };

#define PIXEL_ALIGN 64

/* ---- sizes ---------------------------------------------------------------------------------------------------- */

static size_t
varint_size(uint64_t v)
{
    size_t size = 1;

    for (; v >= 0x80; v >>= 7)
        size++;
    return size;
}

/* Returns the size of a length-delimited field: tag, length and content. */
static size_t
field_size(size_t content)
{
    return 1 + varint_size(content) + content;
}

/* Returns the size of a map entry: a key, and a Feature with one list of one field with this content size. */
static size_t
entry_size(const char *key, size_t content)
{
    return field_size(field_size(strlen(key)) + field_size(field_size(field_size(content))));
}

static size_t
int_entry_size(const char *key, uint64_t value)
{
    return entry_size(key, varint_size(value));
}

size_t
record_text_size(size_t view, size_t patient, size_t name)
{
    return entry_size("image/view", view) + entry_size("patient/id", patient) + entry_size("image/filename", name);
}

void
record_text_offsets(const struct record_layout *layout, size_t view, size_t patient, size_t name, size_t out[3])
{
    /* The content is at the end of each entry. */
    out[0] = layout->texts_offset + entry_size("image/view", view) - view;
    out[1] = out[0] + view + entry_size("patient/id", patient) - patient;
    out[2] = out[1] + patient + entry_size("image/filename", name) - name;
}

/*
 * Find the content size n with entry_size(key, n) == total.  Returns false if there is none because a varint grows
 * there.
 */
static bool
content_for_entry(const char *key, size_t total, size_t *content)
{
    size_t empty = entry_size(key, 0);
    size_t n;

    if (total < empty)
        return false;
    /* Four nested lengths grow by at most 4 bytes each. */
    for (n = total - empty; n + 16 >= total - empty; n--) {
        if (entry_size(key, n) == total) {
            *content = n;
            return true;
        }
        if (n == 0)
            break;
    }
    return false;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static uint8_t *
put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

/* Write a map entry up to its content, which has this size. */
static uint8_t *
put_entry_head(uint8_t *p, const char *key, uint8_t list, size_t content)
{
    size_t key_size = strlen(key);
    size_t in_list = field_size(content);
    size_t in_feature = field_size(in_list);

    *p++ = TAG_1;
    p = put_varint(p, field_size(key_size) + field_size(in_feature));
    *p++ = TAG_1;
    p = put_varint(p, key_size);
    memcpy(p, key, key_size);
    p += key_size;
    *p++ = TAG_2;
    p = put_varint(p, in_feature);
    *p++ = list;
    p = put_varint(p, in_list);
    *p++ = TAG_1;
    return put_varint(p, content);
}

static uint8_t *
put_bytes(uint8_t *p, const char *key, const void *data, size_t size)
{
    p = put_entry_head(p, key, LIST_BYTES, size);
    if (size > 0)
        memcpy(p, data, size);
    return p + size;
}

static uint8_t *
put_padding(uint8_t *p, const char *key, size_t size)
{
    p = put_entry_head(p, key, LIST_BYTES, size);
    memset(p, 0, size);
    return p + size;
}

static uint8_t *
put_int(uint8_t *p, const char *key, uint64_t value)
{
    return put_varint(put_entry_head(p, key, LIST_INT64, varint_size(value)), value);
}

/* Write everything before the pixels, without the frame: up to the end of the head of image/raw. */
static uint8_t *
put_head(const struct record_layout *l, uint8_t *p)
{
    *p++ = TAG_1;
    p = put_varint(p, l->features_size);
    p = put_padding(p, "_p0", l->front);
    return put_entry_head(p, "image/raw", LIST_BYTES, l->pixel_size);
}

/* Returns the bits of a float; all NaNs have the same bits. */
static uint32_t
float_bits(float value)
{
    uint32_t bits;

    if (isnan(value))
        return 0x7fc00000u;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Write everything after the pixels, up to the end of the data, to p. */
static void
put_tail(const struct record_layout *l, const struct record_values *v, uint8_t *p)
{
    const uint8_t *end = p + (l->stride - TFRECORD_FOOTER - l->pixel_offset - l->pixel_size);
    char slot[RECORD_SLOT + 16];
    size_t padding = 0;

    p = put_int(p, "image/height", l->height);
    p = put_int(p, "image/width", l->width);
    p = put_int(p, "image/channels", l->channels);
    p = put_entry_head(p, "image/label", l->labels.unknown ? LIST_BYTES : LIST_INT64, l->labels.count);
    memcpy(p, v->label, l->labels.count); /* in an int64 list, 0 and 1 are varints of one byte */
    p += l->labels.count;
    p = put_int(p, "image/weight", v->weight);
    p = put_entry_head(p, "patient/age", LIST_FLOAT, 4);
    put_u32le(p, float_bits(v->age));
    p = put_bytes(p + 4, "patient/sex", &v->sex, 1);
    snprintf(slot, sizeof(slot), "%.16s/%05u/%05u", v->dataset_id, v->shard % 100000, v->index % 100000);
    p = put_bytes(p, "record/slot", slot, RECORD_SLOT);
    p = put_bytes(p, "image/view", v->view.data, v->view.size);
    p = put_bytes(p, "patient/id", v->patient.data, v->patient.size);
    p = put_bytes(p, "image/filename", v->name.data, v->name.size);
    if (content_for_entry("_p1", (size_t)(end - p), &padding))
        put_padding(p, "_p1", padding);
}

void
record_encode(const struct record_layout *layout, const struct record_values *values, uint8_t *record)
{
    put_head(layout, record + TFRECORD_HEADER);
    put_tail(layout, values, record + layout->pixel_offset + layout->pixel_size);
}

void
record_seal(const struct record_layout *layout, uint8_t *record)
{
    tfrecord_frame(record, layout->stride - TFRECORD_FRAME);
}

/* ---- layout --------------------------------------------------------------------------------------------------- */

/* Compute all offsets from the sides and the stride.  Returns false if no record with this stride can be encoded. */
static bool
set_offsets(struct record_layout *l, size_t *room)
{
    size_t data_size = l->stride - TFRECORD_FRAME;
    size_t features = data_size - 1 - varint_size(data_size);
    size_t head, at, fixed;

    /* The length of the features may take one byte less than the length of the data. */
    if (field_size(features) != data_size)
        features++;
    if (field_size(features) != data_size)
        return false;
    head = TFRECORD_HEADER + (data_size - features) + entry_size("image/raw", l->pixel_size) - l->pixel_size;
    l->features_size = features;
    l->front = (PIXEL_ALIGN - (head + entry_size("_p0", 0)) % PIXEL_ALIGN) % PIXEL_ALIGN;
    l->pixel_offset = head + entry_size("_p0", l->front);

    at = l->pixel_offset + l->pixel_size;
    at += int_entry_size("image/height", l->height);
    at += int_entry_size("image/width", l->width);
    at += int_entry_size("image/channels", l->channels);
    at += entry_size("image/label", l->labels.count);
    l->label_offset = at - l->labels.count;
    at += int_entry_size("image/weight", 1);
    l->weight_offset = at - 1;
    at += entry_size("patient/age", 4);
    l->age_offset = at - 4;
    at += entry_size("patient/sex", 1);
    l->sex_offset = at - 1;
    at += entry_size("record/slot", RECORD_SLOT);
    l->slot_offset = at - RECORD_SLOT;
    l->texts_offset = at;
    fixed = at + TFRECORD_FOOTER;
    if (l->stride < fixed || l->stride - fixed > RECORD_MAX_TAIL - 1024)
        return false;
    *room = l->stride - fixed;
    return true;
}

static bool
all_fit(size_t room, const size_t *text_sizes, size_t text_count)
{
    size_t i, padding;

    for (i = 0; i < text_count; i++)
        if (text_sizes[i] > room || !content_for_entry("_p1", room - text_sizes[i], &padding))
            return false;
    return true;
}

static enum chex_status
set_form(struct record_layout *l, uint32_t height, uint32_t width, uint32_t align, struct label_form labels,
         struct chex_error *err)
{
    if (height == 0 || width == 0 || height > RECORD_MAX_SIDE || width > RECORD_MAX_SIDE)
        return error_set(err, CHEX_ERR_USAGE, "images of %ux%u: a side is 1 to %u pixels", width, height,
                         RECORD_MAX_SIDE);
    if (align != 64 && align != 512 && align != 4096)
        return error_set(err, CHEX_ERR_USAGE, "alignment %u: must be 64, 512 or 4096", align);
    if (labels.count == 0 || labels.count > FINDINGS_MAX)
        return error_set(err, CHEX_ERR_USAGE, "%u findings: must be 1 to %d", labels.count, FINDINGS_MAX);
    *l = (struct record_layout){.height = height, .width = width, .channels = 1, .labels = labels, .align = align};
    l->pixel_size = (size_t)height * width;
    return CHEX_OK;
}

enum chex_status
record_choose(uint32_t height, uint32_t width, uint32_t align, struct label_form labels, const size_t *text_sizes,
              size_t text_count, struct record_layout *out, struct chex_error *err)
{
    size_t room, limit;
    enum chex_status status = set_form(out, height, width, align, labels, err);

    if (status != CHEX_OK)
        return status;
    limit = out->pixel_size + RECORD_MAX_TAIL + 2 * (size_t)align;
    for (out->stride = (out->pixel_size / align + 1) * align; out->stride <= limit; out->stride += align)
        if (set_offsets(out, &room) && all_fit(room, text_sizes, text_count))
            return CHEX_OK;
    return error_set(err, CHEX_ERR_BUG, "no layout for %ux%u images", width, height);
}

enum chex_status
record_restore(uint32_t height, uint32_t width, uint32_t align, struct label_form labels, size_t stride,
               struct record_layout *out, struct chex_error *err)
{
    size_t room;
    enum chex_status status = set_form(out, height, width, align, labels, err);

    if (status != CHEX_OK)
        return error_context(err, CHEX_ERR_DAMAGED, "record layout");
    out->stride = stride;
    if (stride % align != 0 || stride <= out->pixel_size || stride > out->pixel_size + 2 * RECORD_MAX_TAIL ||
        !set_offsets(out, &room))
        return error_set(err, CHEX_ERR_DAMAGED, "stride %zu does not fit images of %ux%u", stride, width, height);
    return CHEX_OK;
}

/* ---- strict reading ------------------------------------------------------------------------------------------- */

struct cursor {
    const uint8_t *p, *end;
};

static bool
get_varint(struct cursor *c, uint64_t *out)
{
    unsigned shift;

    *out = 0;
    for (shift = 0; shift < 64 && c->p < c->end; shift += 7) {
        uint8_t byte = *c->p++;

        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Read a tag and the length after it, and check that the content fits into the remaining bytes. */
static bool
get_field(struct cursor *c, uint8_t tag, uint64_t *size)
{
    return c->p < c->end && *c->p++ == tag && get_varint(c, size) && *size <= (uint64_t)(c->end - c->p);
}

/* Read the text of a bytes entry.  The comparison of the whole tail checks its key. */
static bool
get_text(struct cursor *c, struct chex_bytes *out)
{
    uint64_t size;

    if (!get_field(c, TAG_1, &size) || !get_field(c, TAG_1, &size))
        return false;
    c->p += size;
    if (!get_field(c, TAG_2, &size) || !get_field(c, LIST_BYTES, &size) || !get_field(c, TAG_1, &size))
        return false;
    if (size > RECORD_MAX_TEXT)
        return false;
    *out = (struct chex_bytes){(const char *)c->p, (size_t)size};
    c->p += size;
    return true;
}

static bool
get_digits(const uint8_t *p, uint32_t *out)
{
    unsigned i;

    *out = 0;
    for (i = 0; i < 5; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        *out = *out * 10 + (uint32_t)(p[i] - '0');
    }
    return true;
}

/* Check a data set id: users see it, so it must not contain other bytes. */
static bool
is_id(const uint8_t *p)
{
    unsigned i;

    for (i = 0; i < CHEX_ID_LENGTH; i++)
        if (!(p[i] >= '0' && p[i] <= '9') && !(p[i] >= 'a' && p[i] <= 'f'))
            return false;
    return true;
}

/* Read the values.  The caller compares the bytes between them. */
static bool
get_values(const struct record_layout *l, const uint8_t *record, struct record_values *out)
{
    struct cursor c = {record + l->texts_offset, record + l->stride - TFRECORD_FOOTER};
    const uint8_t *slot = record + l->slot_offset;
    uint32_t bits = get_u32le(record + l->age_offset);
    unsigned i;

    *out = (struct record_values){
        .label = record + l->label_offset, .weight = record[l->weight_offset], .sex = (char)record[l->sex_offset]};
    for (i = 0; i < l->labels.count; i++)
        if (out->label[i] > 1 && !(l->labels.unknown && out->label[i] == CHEX_LABEL_UNKNOWN)) {
            out->label = NULL;
            return false;
        }
    memcpy(&out->age, &bits, sizeof(bits));
    memcpy(out->dataset_id, slot, CHEX_ID_LENGTH);
    return out->weight <= 1 && (out->sex == 'M' || out->sex == 'F' || out->sex == 'U') && is_id(slot) &&
           get_digits(slot + CHEX_ID_LENGTH + 1, &out->shard) && get_digits(slot + CHEX_ID_LENGTH + 7, &out->index) &&
           get_text(&c, &out->view) && get_text(&c, &out->patient) && get_text(&c, &out->name);
}

static size_t
first_difference(const uint8_t *a, const uint8_t *b, size_t size)
{
    size_t i;

    for (i = 0; i < size && a[i] == b[i]; i++)
        continue;
    return i;
}

enum chex_status
record_decode(const struct record_layout *layout, const uint8_t *record, struct record_values *out,
              struct chex_error *err)
{
    uint8_t head[RECORD_MAX_HEAD], tail[RECORD_MAX_TAIL];
    size_t data_size = layout->stride - TFRECORD_FRAME;
    size_t head_size = layout->pixel_offset - TFRECORD_HEADER;
    size_t tail_start = layout->pixel_offset + layout->pixel_size;
    size_t tail_size = layout->stride - TFRECORD_FOOTER - tail_start;
    size_t at, text_size, room;

    if (get_u64le(record) != data_size)
        return error_set(err, CHEX_ERR_DAMAGED, "length %llu differs from the manifest's stride %zu",
                         (unsigned long long)get_u64le(record), layout->stride);
    put_head(layout, head);
    at = first_difference(head, record + TFRECORD_HEADER, head_size);
    if (at < head_size)
        return error_set(err, CHEX_ERR_DAMAGED, "record header differs from the manifest at byte %zu",
                         TFRECORD_HEADER + at);
    if (!get_values(layout, record, out))
        return error_set(err, CHEX_ERR_DAMAGED, "record's values are not of the form that the manifest describes");
    /* The keys are not compared yet.  With the right keys, the texts may need more room than the record has. */
    text_size = record_text_size(out->view.size, out->patient.size, out->name.size);
    room = layout->stride - TFRECORD_FOOTER - layout->texts_offset;
    if (!all_fit(room, &text_size, 1))
        return error_set(err, CHEX_ERR_DAMAGED, "record's values are not of the form that the manifest describes");
    put_tail(layout, out, tail);
    at = first_difference(tail, record + tail_start, tail_size);
    if (at < tail_size)
        return error_set(err, CHEX_ERR_DAMAGED, "record differs from the form that the manifest describes at byte %zu",
                         tail_start + at);
    return CHEX_OK;
}
