/*
 * walk.c - calls a function for each difference of two data sets; see diff.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/diff.h"

#include "base/sha256.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *
diff_kind_name(enum diff_kind kind)
{
    static const char *const names[DIFF_KINDS] = {"spec", "only_a", "only_b", "split",  "labels", "patient",
                                                  "age",  "sex",    "view",   "pixels", "place"};

    return names[kind];
}

struct diff_visit {
    struct diff *d;
    diff_fn *fn;
    void *context;
};

static void
visit(const struct diff_visit *t, enum diff_kind kind, const char *name, const char *a, const char *b)
{
    t->fn(t->context, kind, name, a, b);
}

static void
visit_number(const struct diff_visit *t, const char *name, uint64_t a, uint64_t b)
{
    char x[32], y[32];

    if (a == b)
        return;
    snprintf(x, sizeof(x), "%llu", (unsigned long long)a);
    snprintf(y, sizeof(y), "%llu", (unsigned long long)b);
    visit(t, DIFF_SPEC, name, x, y);
}

static void
visit_word(const struct diff_visit *t, const char *name, const char *a, const char *b)
{
    char x[INSPECT_TEXT], y[INSPECT_TEXT];

    if (strcmp(a, b) != 0)
        visit(t, DIFF_SPEC, name, inspect_text((struct chex_bytes){a, strnlen(a, RECORD_MAX_TEXT)}, x),
              inspect_text((struct chex_bytes){b, strnlen(b, RECORD_MAX_TEXT)}, y));
}

/* "14: Atelectasis, Cardiomegaly, ..." */
static const char *
findings_text(const struct findings *findings, char out[INSPECT_TEXT])
{
    int used = snprintf(out, INSPECT_TEXT, "%u:", findings->count);
    unsigned i;

    for (i = 0; i < findings->count && used < INSPECT_TEXT - FINDING_NAME_MAX - 8; i++)
        used += snprintf(out + used, INSPECT_TEXT - (size_t)used, "%s %s", i ? "," : "", findings->name[i]);
    snprintf(out + used, INSPECT_TEXT - (size_t)used, "%s", i < findings->count ? ", ..." : "");
    return out;
}

/* Compare the fields that determine the data set id, and the id. */
static void
compare_specs(const struct diff_visit *t)
{
    const struct chex_dataset *a = t->d->side[0].target.dataset, *b = t->d->side[1].target.dataset;
    const struct manifest *m = &a->manifest, *n = &b->manifest;
    char from[2][MANIFEST_FROM];
    unsigned i;

    visit_word(t, "dataset_id", a->info.id, b->info.id);
    visit_number(t, "format", a->info.format_version, b->info.format_version);
    visit_number(t, "width", m->layout.width, n->layout.width);
    visit_number(t, "height", m->layout.height, n->layout.height);
    visit_word(t, "resize", m->resize, n->resize);
    visit_word(t, "gray_rule", m->gray_rule ? m->gray_rule : "", n->gray_rule ? n->gray_rule : "");
    manifest_from(m->source, m->source_count, m->layout.height, from[0]);
    manifest_from(n->source, n->source_count, n->layout.height, from[1]);
    visit_word(t, "from", from[0], from[1]);
    visit_word(t, "split_rule", m->split_rule, n->split_rule);
    visit_number(t, "seed", m->seed, n->seed);
    visit_number(t, "shard_size", m->shard_size, n->shard_size);
    visit_word(t, "tail", m->tail, n->tail);
    visit_number(t, "align", m->layout.align, n->layout.align);
    visit_number(t, "stride", m->layout.stride, n->layout.stride);
    visit_number(t, "max_pixels", m->max_pixels, n->max_pixels);
    visit_number(t, "min_side", m->min_side, n->min_side);
    visit_number(t, "lenient", m->lenient, n->lenient);
    visit_word(t, "labels_sha256", m->labels_sha256, n->labels_sha256);
    if (!findings_equal(&m->findings, &n->findings)) {
        char x[INSPECT_TEXT], y[INSPECT_TEXT];

        visit(t, DIFF_SPEC, "findings", findings_text(&m->findings, x), findings_text(&n->findings, y));
    }
    visit_number(t, "splits", a->info.split_count, b->info.split_count);
    visit_number(t, "shards", a->info.shard_count, b->info.shard_count);
    visit_number(t, "images", a->info.image_count, b->info.image_count);
    visit_number(t, "rejects", m->rejects, n->rejects);
    visit_number(t, "other_views", m->left_out.other_views, n->left_out.other_views);
    visit_number(t, "excluded", m->left_out.excluded, n->left_out.excluded);
    visit_number(t, "missing", m->left_out.missing, n->left_out.missing);
    visit_word(t, "where", m->left_out.where ? m->left_out.where : "", n->left_out.where ? n->left_out.where : "");
    visit_number(t, "not_selected", m->left_out.not_selected, n->left_out.not_selected);
    for (i = 0; i < a->info.split_count; i++) {
        int other = chex_dataset_find_split(b, a->split[i].name);
        char name[64];

        snprintf(name, sizeof(name), "members of %.40s", a->split[i].name);
        visit_word(t, name, a->split[i].members_sha256, other < 0 ? "-" : b->split[other].members_sha256);
    }
    for (i = 0; i < b->info.split_count; i++)
        if (chex_dataset_find_split(a, b->split[i].name) < 0) {
            char name[64];

            snprintf(name, sizeof(name), "members of %.40s", b->split[i].name);
            visit_word(t, name, "-", b->split[i].members_sha256);
        }
}

static const char *
split_of(const struct diff_side *s, const struct diff_item *item)
{
    return s->target.dataset->split[item->split].name;
}

static void
age_text(float age, char out[32])
{
    if (isnan(age))
        snprintf(out, 32, "unknown");
    else
        snprintf(out, 32, "%.9g", (double)age);
}

/* Compare the findings that both lists have. */
static bool
labels_differ(const struct diff *d, const struct diff_item *x, const struct diff_item *y)
{
    for (unsigned f = 0; f < d->side[0].target.dataset->info.finding_count; f++)
        if (d->finding_of_b[f] >= 0 && x->label[f] != y->label[d->finding_of_b[f]])
            return true;
    return false;
}

/* Compare an image that is on both sides. */
static void
compare_items(const struct diff_visit *t, const char *name, const struct diff_item *x, const struct diff_item *y)
{
    struct diff *d = t->d;
    const char *a = split_of(&d->side[0], x), *b = split_of(&d->side[1], y);
    char left[INSPECT_LABELS_TEXT], right[INSPECT_LABELS_TEXT], p[INSPECT_TEXT], q[INSPECT_TEXT];

    if (strcmp(a, b) != 0)
        visit(t, DIFF_SPLIT, name, a, b);
    if (labels_differ(d, x, y))
        visit(t, DIFF_LABELS, name, inspect_labels_text(&d->side[0].target.dataset->manifest.findings, x->label, left),
              inspect_labels_text(&d->side[1].target.dataset->manifest.findings, y->label, right));
    if (strcmp(x->patient, y->patient) != 0)
        visit(t, DIFF_PATIENT, name, inspect_text(inspect_bytes(x->patient), p),
              inspect_text(inspect_bytes(y->patient), q));
    age_text(x->age, left);
    age_text(y->age, right);
    if (strcmp(left, right) != 0)
        visit(t, DIFF_AGE, name, left, right);
    if (x->sex != y->sex)
        visit(t, DIFF_SEX, name, (char[]){x->sex, '\0'}, (char[]){y->sex, '\0'});
    if (strcmp(x->view, y->view) != 0)
        visit(t, DIFF_VIEW, name, inspect_text(inspect_bytes(x->view), p), inspect_text(inspect_bytes(y->view), q));
    if (d->pixels && memcmp(x->hash, y->hash, sizeof(x->hash)) != 0) {
        digest_hex(x->hash, 8, left);
        digest_hex(y->hash, 8, right);
        visit(t, DIFF_PIXELS, name, left, right);
    }
    if (strcmp(a, b) == 0 && (x->shard != y->shard || x->index != y->index)) {
        snprintf(left, sizeof(left), "%u:%u", x->shard, x->index);
        snprintf(right, sizeof(right), "%u:%u", y->shard, y->index);
        visit(t, DIFF_PLACE, name, left, right);
    }
}

void
diff_walk(struct diff *d, diff_fn *fn, void *context)
{
    const struct diff_visit t = {d, fn, context};
    const struct diff_side *a = &d->side[0], *b = &d->side[1];
    char name[INSPECT_TEXT];
    size_t i = 0, j = 0;

    compare_specs(&t);
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : strcmp(a->item[i].name, b->item[j].name);
        const char *raw = order <= 0 ? a->item[i].name : b->item[j].name;

        inspect_text(inspect_bytes(raw), name);
        if (order < 0)
            visit(&t, DIFF_ONLY_A, name, split_of(a, &a->item[i]), "");
        else if (order > 0)
            visit(&t, DIFF_ONLY_B, name, "", split_of(b, &b->item[j]));
        else
            compare_items(&t, name, &a->item[i], &b->item[j]);
        i += order <= 0;
        j += order >= 0;
    }
}

bool
diff_is_same(const struct diff *d)
{
    unsigned i;

    for (i = 0; i < DIFF_KINDS; i++)
        if (d->count[i] > 0)
            return false;
    return d->side[0].faults == 0 && d->side[1].faults == 0;
}
