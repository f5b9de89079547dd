/*
 * example.c - see example.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/example.h"

#include "dataset/record.h"
#include "schemas/example.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct example {
    Chex__Example *message;
    uint8_t label[FINDINGS_MAX];
};

void
example_free(struct example *e)
{
    if (e)
        chex__example__free_unpacked(e->message, NULL);
    free(e);
}

/* If a key occurs twice, the last value counts, as in every protocol buffer map and in TensorFlow. */
static const Chex__Feature *
find(const Chex__Example *m, const char *key)
{
    size_t i;

    for (i = m->features ? m->features->n_feature : 0; i > 0; i--)
        if (strcmp(m->features->feature[i - 1]->key, key) == 0)
            return m->features->feature[i - 1]->value;
    return NULL;
}

static bool
get_bytes(const Chex__Example *m, const char *key, struct chex_bytes *out)
{
    const Chex__Feature *f = find(m, key);

    if (!f || f->kind_case != CHEX__FEATURE__KIND_BYTES_LIST || f->bytes_list->n_value != 1)
        return false;
    *out = (struct chex_bytes){(const char *)f->bytes_list->value[0].data, f->bytes_list->value[0].len};
    return true;
}

static bool
get_int(const Chex__Example *m, const char *key, int64_t max, int64_t *out)
{
    const Chex__Feature *f = find(m, key);

    if (!f || f->kind_case != CHEX__FEATURE__KIND_INT64_LIST || f->int64_list->n_value != 1)
        return false;
    *out = f->int64_list->value[0];
    return *out >= 0 && *out <= max;
}

/* Get an int64 list of 0 and 1, or one bytes value of 0, 1 and CHEX_LABEL_UNKNOWN. */
static const char *
get_labels(const Chex__Example *m, uint8_t label[FINDINGS_MAX], struct chex_record *r)
{
    const Chex__Feature *f = find(m, "image/label");
    struct chex_bytes bytes = {NULL, 0};
    bool packed = get_bytes(m, "image/label", &bytes);
    size_t count = packed ? bytes.size : 0, i;

    if (f && f->kind_case == CHEX__FEATURE__KIND_INT64_LIST)
        count = f->int64_list->n_value;
    if (count == 0 || count > FINDINGS_MAX)
        return "image/label";
    for (i = 0; i < count; i++) {
        int64_t value = packed ? (uint8_t)bytes.data[i] : f->int64_list->value[i];

        if (value != 0 && value != 1 && !(packed && value == CHEX_LABEL_UNKNOWN))
            return packed ? "image/label (a value is not 0, 1 or 255)" : "image/label (a value is not 0 or 1)";
        label[i] = (uint8_t)value;
    }
    r->finding_count = (unsigned)count;
    r->label = label;
    return NULL;
}

/*
 * Parse "7f3c9a12d0e4b5c6/00311/00037", see record.h.  sscanf() would also accept signs and blanks, so check the
 * digits.
 */
static bool
get_slot(struct chex_bytes slot, struct chex_record *r)
{
    static const char digits[] = "0123456789";
    char text[RECORD_SLOT + 1];
    const char *shard = text + CHEX_ID_LENGTH + 1, *index = shard + 6;

    if (slot.size != RECORD_SLOT)
        return false;
    memcpy(text, slot.data, RECORD_SLOT);
    text[RECORD_SLOT] = '\0';
    return strspn(text, "0123456789abcdef") == CHEX_ID_LENGTH && strspn(shard, digits) == 5 &&
           strspn(index, digits) == 5 && sscanf(text, "%16[0-9a-f]/%5u/%5u", r->dataset_id, &r->shard, &r->index) == 3;
}

/* Fill r.  Returns the first key that is missing or wrong, or NULL. */
static const char *
fill(const Chex__Example *m, uint8_t label[FINDINGS_MAX], struct chex_record *r)
{
    struct chex_bytes pixels, sex, slot;
    const Chex__Feature *age = find(m, "patient/age");
    int64_t height, width, channels, weight;

    /* None may be 0: then the sizes would not be bounded by the bytes of the pixels. */
    if (!get_int(m, "image/height", RECORD_MAX_SIDE, &height) || height == 0)
        return "image/height";
    if (!get_int(m, "image/width", RECORD_MAX_SIDE, &width) || width == 0)
        return "image/width";
    if (!get_int(m, "image/channels", 4, &channels) || channels == 0)
        return "image/channels";
    if (!get_bytes(m, "image/raw", &pixels) || pixels.size != (size_t)height * (size_t)width * (size_t)channels)
        return "image/raw";
    if (!get_int(m, "image/weight", 1, &weight))
        return "image/weight";
    if (!age || age->kind_case != CHEX__FEATURE__KIND_FLOAT_LIST || age->float_list->n_value != 1)
        return "patient/age";
    if (!get_bytes(m, "patient/sex", &sex) || sex.size != 1)
        return "patient/sex";
    if (!get_bytes(m, "record/slot", &slot) || !get_slot(slot, r))
        return "record/slot";
    if (!get_bytes(m, "image/view", &r->view))
        return "image/view";
    if (!get_bytes(m, "patient/id", &r->patient))
        return "patient/id";
    if (!get_bytes(m, "image/filename", &r->name))
        return "image/filename";
    r->pixels = (const uint8_t *)pixels.data;
    r->height = (uint32_t)height;
    r->width = (uint32_t)width;
    r->channels = (uint32_t)channels;
    r->weight = (uint8_t)weight;
    r->age = age->float_list->value[0];
    r->sex = sex.data[0];
    return get_labels(m, label, r);
}

/*
 * protobuf-c returns NULL for damage and for a failed allocation, so the allocator records the cause.  It also limits
 * memory: two bytes of input can become a list entry of more than 50 bytes.  An Example with an image needs about its
 * own size.
 */
#define MEMORY_LEAST 65536

struct memory {
    size_t left; /* freed memory is not added back */
    bool none, too_much;
};

static void *
allocate(void *context, size_t size)
{
    struct memory *memory = context;
    void *p;

    if (size > memory->left) {
        memory->too_much = true;
        return NULL;
    }
    memory->left -= size;
    p = malloc(size);
    if (!p)
        memory->none = true;
    return p;
}

static void
release(void *memory, void *p)
{
    (void)memory;
    free(p);
}

static enum chex_status
fail_unpack(const struct memory *memory, struct chex_error *err)
{
    if (memory->none)
        return error_memory(err);
    if (memory->too_much)
        return error_set(err, CHEX_ERR_LIMIT, "a tf.train.Example of too many parts for an image");
    return error_set(err, CHEX_ERR_DAMAGED, "not a tf.train.Example");
}

enum chex_status
example_parse(const uint8_t *data, size_t size, struct example **out, struct chex_record *record,
              struct chex_error *err)
{
    struct memory memory = {.left = size < SIZE_MAX / 4 ? 2 * size + MEMORY_LEAST : SIZE_MAX};
    ProtobufCAllocator allocator = {.alloc = allocate, .free = release, .allocator_data = &memory};
    Chex__Example *m = chex__example__unpack(&allocator, size, data);
    struct example *e;
    const char *wrong;

    *out = NULL;
    if (!m)
        return fail_unpack(&memory, err);
    e = malloc(sizeof(*e));
    if (!e) {
        chex__example__free_unpacked(m, NULL);
        return error_memory(err);
    }
    e->message = m;
    *record = (struct chex_record){0};
    wrong = fill(m, e->label, record);
    if (wrong) {
        example_free(e);
        return error_set(err, CHEX_ERR_DAMAGED, "missing or wrong key %s", wrong);
    }
    *out = e;
    return CHEX_OK;
}
