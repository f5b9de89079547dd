/*
 * plan.c - see plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plan/plan.h"

#include "base/number_format.h"
#include "dataset/tfrecord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spec
spec_default(void)
{
    return (struct spec){
        .size = 256,
        .resize = RESAMPLE_BILINEAR,
        .shard_size = 256,
        .tail = TAIL_PAD,
        .align = 64,
        .split = {.kind = SPLIT_PATIENT, .percent = {70, 10, 20}},
        .limits = {.max_pixels = 64u << 20, .min_side = 64},
    };
}

/* A line without this part has the findings of nih14. */
#define SPEC_FINDINGS ", findings "

void
spec_format(const struct spec *spec, char *out, size_t size)
{
    char rule[64], findings[FINDINGS_TEXT] = "";
    bool other = spec->findings.count > 0 && !findings_equal(&spec->findings, &findings_nih14);

    split_rule_format(&spec->split, rule, sizeof(rule));
    snprintf(out, size,
             "%ux%u %s, %u a shard, tail %s, align %u, split %s, seed %llu, at most %llu pixels, sides from "
             "%u%s%s%s%s%s%s%s",
             spec->size, spec->size, resample_names[spec->resize], spec->shard_size, tail_names[spec->tail],
             spec->align, rule, (unsigned long long)spec->seed, (unsigned long long)spec->limits.max_pixels,
             spec->limits.min_side, spec->limits.lenient ? ", lenient" : "", spec->from[0] ? ", from " : "", spec->from,
             spec->where[0] ? ", where " : "", spec->where, other ? SPEC_FINDINGS : "",
             other ? findings_describe(&spec->findings, findings) : "");
}

/* Write the parts of the line `of`, separated by ", ", that differ from the part of `other` at the same position. */
static void
differing_parts(const char *of, const char *other, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    while (*of) {
        size_t length = strcspn(of, ","), against = strcspn(other, ",");

        /* A comma without a following blank does not end a part: patient:70,10,20. */
        while (of[length] && of[length + 1] != ' ')
            length += 1 + strcspn(of + length + 1, ",");
        while (other[against] && other[against + 1] != ' ')
            against += 1 + strcspn(other + against + 1, ",");
        if ((length != against || memcmp(of, other, length) != 0) && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? ", " : "", (int)length, of);
        of += length + (of[length] ? 2 : 0);
        other += against + (other[against] ? 2 : 0);
    }
}

char *
spec_difference(const char *held, const char *wanted, char out[SPEC_DIFFERENCE])
{
    char a[SPEC_DIFFERENCE / 2 - 16], b[SPEC_DIFFERENCE / 2 - 16];
    bool named = strstr(held, SPEC_FINDINGS) || strstr(wanted, SPEC_FINDINGS);
    char x[SPEC_DIFFERENCE], y[SPEC_DIFFERENCE];

    snprintf(x, sizeof(x), "%s%s", held, named && !strstr(held, SPEC_FINDINGS) ? SPEC_FINDINGS "nih14" : "");
    snprintf(y, sizeof(y), "%s%s", wanted, named && !strstr(wanted, SPEC_FINDINGS) ? SPEC_FINDINGS "nih14" : "");
    differing_parts(x, y, a, sizeof(a));
    differing_parts(y, x, b, sizeof(b));
    if (!a[0] && !b[0])
        snprintf(out, SPEC_DIFFERENCE,
                 "the options are the same, but the label file, the lists or the excluded images differ");
    else
        snprintf(out, SPEC_DIFFERENCE, "it has %s, wanted is %s", a[0] ? a : "nothing", b[0] ? b : "nothing");
    return out;
}

/* ---- order ---------------------------------------------------------------------------------------------------- */

struct ordered {
    uint64_t key;
    uint32_t entry;
    uint8_t split;
};

static uint64_t
order_key(struct digest *d, uint64_t seed, const char *name)
{
    uint8_t hash[DIGEST_SIZE];
    char head[48];
    uint64_t key = 0;
    unsigned i;

    digest_start(d);
    digest_add(d, head, (size_t)snprintf(head, sizeof(head), "chex-order:%llu:", (unsigned long long)seed));
    digest_add(d, name, strlen(name));
    digest_finish(d, hash);
    for (i = 0; i < 8; i++)
        key = key << 8 | hash[i];
    return key;
}

/* Order by split, then by key.  Entries are sorted by name, so equal keys are ordered by name too. */
static int
compare_ordered(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    if (x->split != y->split)
        return x->split < y->split ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* List the images of all splits in order; *out has *count elements.  The caller frees *out. */
static enum chex_status
order_images(const struct slot_plan *plan, struct digest *d, struct ordered **out, size_t *count,
             struct chex_error *err)
{
    const struct labels *labels = plan->labels;
    struct ordered *image = calloc(labels->count ? labels->count : 1, sizeof(*image));
    size_t i;

    *out = image;
    *count = 0;
    if (!image)
        return error_memory(err);
    for (i = 0; i < labels->count; i++) {
        uint8_t split = plan->splits.of_entry[i];

        if (split != SPLIT_OUTSIDE)
            image[(*count)++] = (struct ordered){order_key(d, plan->spec.seed, labels->entry[i].name), (uint32_t)i,
                                                 split};
    }
    qsort(image, *count, sizeof(*image), compare_ordered);
    return CHEX_OK;
}

/* ---- shards --------------------------------------------------------------------------------------------------- */

static size_t
shards_for(const struct spec *spec, size_t images)
{
    size_t full = images / spec->shard_size;

    return spec->tail == TAIL_DROP || images % spec->shard_size == 0 ? full : full + 1;
}

/* Divide each split into shards.  Images of a dropped tail are not copied to plan->image. */
static enum chex_status
cut_shards(struct slot_plan *plan, const struct ordered *image, size_t count, struct chex_error *err)
{
    const struct spec *spec = &plan->spec;
    size_t at = 0, i;
    unsigned split;

    for (split = 0; split < plan->splits.count; split++)
        plan->shard_count += shards_for(spec, plan->splits.images[split]);
    if (plan->shard_count == 0 || plan->shard_count > SHARDS_MAX)
        return error_set(err, CHEX_ERR_USAGE,
                         plan->shard_count ? "%s shards are too many: choose a larger --shard-size"
                                           : "no split fills a shard: nothing is left to convert",
                         COUNT_TEXT(plan->shard_count));
    plan->shard = calloc(plan->shard_count, sizeof(*plan->shard));
    plan->image = malloc((count ? count : 1) * sizeof(*plan->image));
    if (!plan->shard || !plan->image)
        return error_memory(err);
    plan->shard_count = 0;
    for (split = 0; split < plan->splits.count; split++) {
        size_t images = plan->splits.images[split];
        size_t of = shards_for(spec, images), number;

        for (number = 0; number < of; number++) {
            struct plan_shard *s = &plan->shard[plan->shard_count++];
            size_t left = images - number * spec->shard_size;

            s->split = split;
            s->number = (uint32_t)number;
            s->of = (uint32_t)of;
            s->first = plan->image_count;
            s->images = left < spec->shard_size ? (uint32_t)left : spec->shard_size;
            s->records = spec->tail == TAIL_PAD ? spec->shard_size : s->images;
            shard_name_format(s->name, plan->splits.name[split], number, of);
            for (i = 0; i < s->images; i++)
                plan->image[plan->image_count++] = image[at + number * spec->shard_size + i].entry;
        }
        at += images;
    }
    plan->dropped = count - plan->image_count;
    return CHEX_OK;
}

/* ---- layout and identity -------------------------------------------------------------------------------------- */

static size_t
text_size_of(const struct entry *e)
{
    return record_text_size(strlen(e->view), strlen(e->patient), strlen(e->name));
}

static int
compare_sizes(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

/* Returns whether a label of an image of the plan is unknown. */
static bool
has_unknown(const struct slot_plan *plan)
{
    const struct labels *labels = plan->labels;

    for (size_t i = 0; i < plan->image_count; i++)
        if (memchr(labels->entry[plan->image[i]].label, CHEX_LABEL_UNKNOWN, labels->findings.count))
            return true;
    return false;
}

static enum chex_status
choose_layout(struct slot_plan *plan, struct chex_error *err)
{
    size_t *size = malloc((plan->image_count ? plan->image_count : 1) * sizeof(*size));
    size_t i, distinct = 0;
    enum chex_status status;

    if (!size)
        return error_memory(err);
    for (i = 0; i < plan->image_count; i++)
        size[i] = text_size_of(&plan->labels->entry[plan->image[i]]);
    qsort(size, plan->image_count, sizeof(*size), compare_sizes);
    for (i = 0; i < plan->image_count; i++)
        if (i == 0 || size[i] != size[distinct - 1])
            size[distinct++] = size[i];
    status = record_choose(plan->spec.size, plan->spec.size, plan->spec.align,
                           (struct label_form){plan->labels->findings.count, has_unknown(plan)}, size, distinct,
                           &plan->layout, err);
    free(size);
    return status;
}

/* Compute the SHA-256 of the names in each split; the entries are sorted by name. */
static void
hash_members(struct slot_plan *plan, struct digest *d)
{
    uint8_t hash[DIGEST_SIZE];
    unsigned split;
    size_t i;

    for (split = 0; split < plan->splits.count; split++) {
        digest_start(d);
        for (i = 0; i < plan->labels->count; i++) {
            const char *name = plan->labels->entry[i].name;

            if (plan->splits.of_entry[i] != split)
                continue;
            digest_add(d, name, strlen(name));
            digest_add(d, "\n", 1);
        }
        digest_finish(d, hash);
        digest_hex(hash, DIGEST_SIZE, plan->members_sha256[split]);
    }
}

/* Write the labels for the id: a mask of four hexadecimal digits for the default list, otherwise one digit for each. */
static const char *
labels_line(const uint8_t *label, unsigned count, bool default_list, char out[FINDINGS_MAX + 1])
{
    unsigned mask = 0, i;

    for (i = 0; i < count; i++) {
        out[i] = (char)('0' + (label[i] == CHEX_LABEL_UNKNOWN ? 2 : label[i]));
        mask |= default_list && label[i] == 1 ? 1u << i : 0;
    }
    out[count] = '\0';
    if (default_list)
        snprintf(out, 9, "%04x", mask);
    return out;
}

static void
identify(struct slot_plan *plan, struct digest *d)
{
    const struct findings *findings = &plan->labels->findings;
    bool default_list = findings_equal(findings, &findings_nih14) && !plan->layout.labels.unknown;
    uint8_t hash[DIGEST_SIZE];
    char line[1024 + FINDINGS_MAX], labels[FINDINGS_MAX + 16];
    size_t shard;
    uint32_t i;

    digest_start(d);
    digest_add(d, line, (size_t)snprintf(line, sizeof(line), "chex-shard %d\n", FORMAT_VERSION));
    spec_format(&plan->spec, line, sizeof(line));
    digest_add(d, line, strlen(line));
    digest_add(d, "\n", 1);
    for (i = 0; !default_list && i < findings->count; i++)
        digest_add(d, findings->name[i], strlen(findings->name[i]) + 1);
    for (shard = 0; shard < plan->shard_count; shard++) {
        const struct plan_shard *s = &plan->shard[shard];

        for (i = 0; i < s->images; i++) {
            const struct entry *e = &plan->labels->entry[plan->image[s->first + i]];
            uint32_t age;
            int length;

            memcpy(&age, &e->age, sizeof(age));
            if (e->age != e->age)
                age = 0x7fc00000u;
            length = snprintf(line, sizeof(line), "%s %u %s %08x %c %s %s\t%s\n", s->name, i,
                              labels_line(e->label, findings->count, default_list, labels), age, e->sex, e->view,
                              e->patient, e->name);
            digest_add(d, line, (size_t)length);
        }
    }
    digest_finish(d, hash);
    digest_hex(hash, CHEX_ID_LENGTH / 2, plan->dataset_id);
}

enum chex_status
plan_make(const struct spec *spec, const struct labels *labels, const bool *skip, struct slot_plan *out,
          struct chex_error *err)
{
    struct ordered *image = NULL;
    struct digest *d = digest_new();
    size_t count;
    enum chex_status status;

    *out = (struct slot_plan){.spec = *spec, .labels = labels};
    out->spec.findings = labels->findings;
    if (!d)
        return error_memory(err);
    status = split_assign(&spec->split, labels, skip, &out->splits, err);
    if (status == CHEX_OK)
        status = order_images(out, d, &image, &count, err);
    if (status == CHEX_OK)
        status = cut_shards(out, image, count, err);
    if (status == CHEX_OK)
        status = choose_layout(out, err);
    if (status == CHEX_OK) {
        hash_members(out, d);
        identify(out, d);
    }
    free(image);
    digest_free(d);
    return status;
}

void
plan_release(struct slot_plan *plan)
{
    split_set_release(&plan->splits);
    free(plan->image);
    free(plan->shard);
    *plan = (struct slot_plan){0};
}

void
plan_values(const struct slot_plan *plan, const struct entry *entry, uint32_t shard, uint32_t index, uint8_t weight,
            struct record_values *out)
{
    entry_values(entry, out);
    out->weight = weight;
    out->shard = shard;
    out->index = index;
    memcpy(out->dataset_id, plan->dataset_id, sizeof(out->dataset_id));
}

uint64_t
plan_size(const struct slot_plan *plan)
{
    uint64_t records = 0;
    size_t i;

    for (i = 0; i < plan->shard_count; i++)
        records += plan->shard[i].records;
    return records * plan->layout.stride;
}

size_t
plan_shard_of(const struct slot_plan *plan, size_t item)
{
    size_t low = 0, high = plan->shard_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (plan->shard[middle].first <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}
