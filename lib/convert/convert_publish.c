/*
 * convert_publish.c - writes rejects.jsonl and the manifest when all shards are finished
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/json.h"
#include "dataset/manifest_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- rejects.jsonl -------------------------------------------------------------------------------------------- */

static enum chex_status
append_line(struct buffer *b, json_t *object, struct chex_error *err)
{
    enum chex_status status = append_json(object, JSON_COMPACT | JSON_ENSURE_ASCII, b, err);

    json_decref(object);
    return status;
}

/*
 * Format rejected images in the order of their slots, then rejected rows in the order of the label file, then images
 * without a row.
 */
static enum chex_status
format_rejects(const struct convert *c, const struct shard_result *result, struct buffer *b, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i, k;

    for (i = 0; i < c->plan.shard_count; i++) {
        const struct plan_shard *s = &c->plan.shard[i];

        for (k = 0; status == CHEX_OK && k < result[i].reject_count; k++) {
            const struct reject *r = &result[i].reject[k];
            const struct entry *e = &c->labels.entry[c->plan.image[s->first + r->index]];

            status = append_line(b,
                                 json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "kind", "image", "name", e->name, "reason",
                                           chex_status_name(r->status), "detail", r->text, "shard", s->name, "index",
                                           (json_int_t)r->index),
                                 err);
        }
    }
    for (i = 0; status == CHEX_OK && i < c->labels.reject_count; i++) {
        const struct label_reject *r = &c->labels.reject[i];

        status = append_line(b,
                             json_pack("{s:s,s:s,s:s,s:s,s:I}", "kind", "row", "name", r->name, "reason",
                                       chex_status_name(r->status), "detail", r->reason, "line", (json_int_t)r->line),
                             err);
    }
    for (i = 0; status == CHEX_OK && i < c->unlabeled.count; i++) {
        /* JSON cannot contain a name that is not UTF-8: it is counted but not listed. */
        json_t *text = json_string(c->unlabeled.name[i]);

        if (text)
            status = append_line(b,
                                 json_pack("{s:s,s:o,s:s,s:s}", "kind", "unlabelled", "name", text, "reason",
                                           "unlabelled", "detail", "the image has no row in the label file"),
                                 err);
    }
    return status;
}

/* ---- counts --------------------------------------------------------------------------------------------------- */

static int
compare_index(const void *index, const void *reject)
{
    uint32_t x = *(const uint32_t *)index, y = ((const struct reject *)reject)->index;

    return x < y ? -1 : x > y;
}

static bool
was_rejected(const struct shard_result *r, uint32_t index)
{
    return bsearch(&index, r->reject, r->reject_count, sizeof(*r->reject), compare_index) != NULL;
}

struct patient_sum {
    uint16_t splits; /* bit mask */
    uint64_t images;
};

/* Count the images, patients and findings of weight 1 in a split, and add them to patient[patient_no]. */
static void
count_split(const struct convert *c, const struct shard_result *result, unsigned split, struct patient_sum *patient,
            struct manifest_split *out)
{
    size_t shard;
    uint32_t i;
    unsigned f;

    for (shard = out->first_shard; shard < out->first_shard + out->shard_count; shard++) {
        const struct plan_shard *s = &c->plan.shard[shard];

        for (i = 0; i < s->images; i++) {
            const struct entry *e = &c->labels.entry[c->plan.image[s->first + i]];
            struct patient_sum *sum = &patient[e->patient_no];

            if (result[shard].reject_count > 0 && was_rejected(&result[shard], i))
                continue;
            out->images++;
            out->patients += (sum->splits >> split & 1) == 0;
            sum->splits |= (uint16_t)(1u << split);
            sum->images++;
            for (f = 0; f < c->labels.findings.count; f++) {
                out->positives[f] += e->label[f] == 1;
                out->known[f] += e->label[f] != CHEX_LABEL_UNKNOWN;
            }
        }
    }
    out->name = c->plan.splits.name[split];
    out->members_sha256 = c->plan.members_sha256[split];
}

static void
count_leaks(const struct convert *c, const struct patient_sum *patient, struct manifest_leaks *out)
{
    size_t i;

    for (i = 0; i < c->labels.patient_count; i++) {
        if ((patient[i].splits & (patient[i].splits - 1)) == 0)
            continue;
        out->patients++;
        out->images += patient[i].images;
    }
}

/*
 * Compute mean and standard deviation from exact sums.  Each is rounded once, so the results are the same on all
 * machines.
 */
void
convert_pixel_statistics(const struct shard_result *result, struct manifest *m)
{
    unsigned __int128 sum = 0, squares = 0, n = 0, spread;
    unsigned i;

    for (i = 0; i < m->shard_count; i++) {
        sum += result[i].sum;
        squares += result[i].squares;
        n += (uint64_t)result[i].images * m->layout.pixel_size;
    }
    if (n == 0)
        return;
    spread = n * squares - sum * sum;
    m->pixel_mean = (double)sum / (double)n;
    m->pixel_deviation = sqrt((double)spread) / (double)n;
}

/* Returns the length of a text if all planned images have equal lengths, otherwise 0. */
static uint32_t
common_size(const struct convert *c, const char *(*text_of)(const struct entry *))
{
    size_t i, size = strlen(text_of(&c->labels.entry[c->plan.image[0]]));

    for (i = 1; i < c->plan.image_count; i++)
        if (strlen(text_of(&c->labels.entry[c->plan.image[i]])) != size)
            return 0;
    return (uint32_t)size;
}

static const char *
view_of(const struct entry *e)
{
    return e->view;
}

static const char *
patient_of(const struct entry *e)
{
    return e->patient;
}

static const char *
name_of(const struct entry *e)
{
    return e->name;
}

/* ---- manifest ------------------------------------------------------------------------------------------------- */

static void
list_shards(const struct convert *c, const struct shard_result *result, struct manifest *m)
{
    size_t i;

    m->shard_count = (unsigned)c->plan.shard_count;
    for (i = 0; i < c->plan.shard_count; i++) {
        const struct plan_shard *s = &c->plan.shard[i];

        m->shard[i] = (struct manifest_shard){s->name,    result[i].sha256, s->split,       s->number,       s->of,
                                              s->records, result[i].images, result[i].size, result[i].crc32c};
        if (m->split[s->split].shard_count++ == 0)
            m->split[s->split].first_shard = (unsigned)i;
        m->rejects += result[i].reject_count;
    }
}

/* Remove splits without a shard, which --tail drop can cause. */
static void
drop_empty_splits(struct manifest *m, unsigned *new_index)
{
    unsigned i, kept = 0;

    for (i = 0; i < m->split_count; i++) {
        new_index[i] = kept;
        if (m->split[i].shard_count > 0)
            m->split[kept++] = m->split[i];
    }
    m->split_count = kept;
    for (i = 0; i < m->shard_count; i++)
        m->shard[i].split = new_index[m->shard[i].split];
}

/* Count the rows without a record.  Rows that --exclude, --view and --where did not exclude had no image. */
static struct manifest_left_out
left_out(const struct convert *c)
{
    struct manifest_left_out out = {
        .views = "", .other_views = c->filtered, .excluded = c->excluded, .not_selected = c->unselected};
    size_t i;

    for (i = 0; i < c->labels.count; i++)
        out.missing += c->skip[i];
    out.missing -= c->filtered + c->excluded + c->unselected;
    if (c->filtered > 0)
        out.views = c->options->views;
    if (c->plan.spec.where[0])
        out.where = c->plan.spec.where;
    return out;
}

static bool
is_jpeg_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

/*
 * Returns the rule by which image files became gray, or NULL if they are NIH's 8-bit PNGs.  The label file and the
 * names in the plan decide, not the files: a resumed run does not read all files.
 */
static const char *
gray_rule(const struct convert *c)
{
    size_t i;

    if (c->source.dataset_count > 0)
        return NULL; /* see convert_stored_describe() */
    if (c->labels.kind != &label_kind_nih)
        return IMAGE_GRAY_RULE;
    for (i = 0; i < c->plan.image_count; i++)
        if (is_jpeg_name(c->labels.entry[c->plan.image[i]].name))
            return IMAGE_GRAY_RULE;
    return NULL;
}

static enum chex_status
fill_manifest(const struct convert *c, const struct shard_result *result, struct manifest *m, char *rule,
              size_t rule_size, struct chex_error *err)
{
    const struct spec *spec = &c->plan.spec;
    struct patient_sum *patient = calloc(c->labels.patient_count + 1, sizeof(*patient));
    unsigned new_index[SPLIT_MAX], i;

    split_rule_format(&spec->split, rule, rule_size);
    *m = (struct manifest){
        .tool_version = chex_version(),
        .layout = c->plan.layout,
        .shard_size = spec->shard_size,
        .tail = tail_names[spec->tail],
        .resize = resample_names[spec->resize],
        .split_rule = rule,
        .seed = spec->seed,
        .max_pixels = spec->limits.max_pixels,
        .min_side = spec->limits.min_side,
        .lenient = spec->limits.lenient,
        .findings = c->labels.findings,
        .labels_sha256 = c->labels.sha256,
        .view_size = common_size(c, view_of),
        .patient_size = common_size(c, patient_of),
        .name_size = common_size(c, name_of),
        .split = calloc(SPLIT_MAX, sizeof(*m->split)),
        .shard = calloc(c->plan.shard_count, sizeof(*m->shard)),
        .split_count = c->plan.splits.count,
    };
    m->synthetic = c->synthetic;
    m->gray_rule = gray_rule(c);
    m->empty_labels = c->labels.empty_labels;
    m->left_out = left_out(c);
    convert_stored_describe(c, m);
    memcpy(m->dataset_id, c->plan.dataset_id, sizeof(m->dataset_id));
    if (!patient || !m->split || !m->shard) {
        free(patient);
        return error_memory(err);
    }
    list_shards(c, result, m);
    for (i = 0; i < m->split_count; i++)
        count_split(c, result, i, patient, &m->split[i]);
    count_leaks(c, patient, &m->leaks);
    free(patient);
    drop_empty_splits(m, new_index);
    convert_pixel_statistics(result, m);
    return CHEX_OK;
}

static void
count_outcome(struct convert *c, const struct shard_result *result)
{
    size_t i, k;

    c->counts.rejects = 0;
    for (i = 0; i < c->plan.shard_count; i++) {
        c->counts.converted += result[i].images;
        c->counts.rejects += result[i].reject_count;
        for (k = 0; k < result[i].reject_count; k++)
            c->counts.reject_of[result[i].reject[k].status]++;
    }
}

void
convert_count_part(struct convert *c, const struct store *store)
{
    count_outcome(c, store_results(store));
}

enum chex_status
convert_publish(struct convert *c, struct store *store, struct chex_error *err)
{
    const struct shard_result *result = store_results(store);
    struct buffer rejects = {0}, text = {0};
    struct manifest manifest = {0};
    char rule[64];
    enum chex_status status = format_rejects(c, result, &rejects, err);

    if (status == CHEX_OK)
        status = fill_manifest(c, result, &manifest, rule, sizeof(rule), err);
    if (status == CHEX_OK)
        status = manifest_format(&manifest, &text, err);
    if (status == CHEX_OK)
        status = store_publish(store, rejects.data, rejects.size, text.data, text.size, err);
    if (status == CHEX_OK)
        count_outcome(c, result);
    free(manifest.split);
    free(manifest.shard);
    buffer_release(&text);
    buffer_release(&rejects);
    return status;
}
