/*
 * count.c - computes the figures of each split and reads the list of rejects; see report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/report.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REJECTS_NAME "rejects.jsonl"
#define REJECTS_MAX  (64u << 20)

/* ---- splits ------------------------------------------------------------------------------------------------------ */

static void
count_image(struct html_report *r, const struct seen *seen)
{
    const struct report_image *image = report_image_of(r, seen);
    struct report_split *s = &r->split[seen->split];
    unsigned i, j;

    s->images++;
    s->sex[image->sex]++;
    s->view[image->view]++;
    r->mean[image->view].images++;
    if (isnan(image->age) || image->age < 0)
        s->unknown_age++;
    else
        s->years[image->age < REPORT_YEARS - 1 ? (unsigned)image->age : REPORT_YEARS - 1]++;
    for (i = 0; i < r->dataset->info.finding_count; i++) {
        if (seen->label[i] != 1)
            continue;
        s->labels++;
        for (j = 0; j < r->dataset->info.finding_count; j++)
            r->together[i][j] += seen->label[j] == 1;
    }
}

/* n and y of each variable over the images of one patient in one split. */
struct one_patient {
    double n[REPORT_VARIABLES], y[REPORT_VARIABLES];
    uint64_t images;
};

static void
add_image(struct one_patient *p, const struct report_image *image, const uint8_t *label, unsigned findings)
{
    unsigned f;

    p->images++;
    for (f = 0; f < findings; f++) {
        p->n[f] += label[f] != CHEX_LABEL_UNKNOWN;
        p->y[f] += label[f] == 1;
    }
    p->n[VARIABLE_NONE]++;
    p->y[VARIABLE_NONE] += labels_are_none(label, findings);
    p->n[VARIABLE_FEMALE] += image->sex != SEX_U;
    p->y[VARIABLE_FEMALE] += image->sex == SEX_F;
    p->n[VARIABLE_AP] += image->view == VIEW_AP || image->view == VIEW_PA;
    p->y[VARIABLE_AP] += image->view == VIEW_AP;
    if (!isnan(image->age)) {
        p->n[VARIABLE_AGE]++;
        p->y[VARIABLE_AGE] += image->age;
    }
}

static unsigned
visits_class(uint64_t images)
{
    static const unsigned upper[REPORT_VISITS - 1] = {1, 2, 3, 5, 10, 20, 50};
    unsigned i;

    for (i = 0; i < REPORT_VISITS - 1; i++)
        if (images <= upper[i])
            break;
    return i;
}

static void
close_patient(struct html_report *r, const struct one_patient *of_split)
{
    unsigned s, v;

    for (s = 0; s < r->dataset->info.split_count; s++) {
        const struct one_patient *p = &of_split[s];

        if (p->images == 0)
            continue;
        r->split[s].patients++;
        r->split[s].visits[visits_class(p->images)]++;
        for (v = 0; v < REPORT_VARIABLES; v++)
            if (p->n[v] > 0)
                ratio_add(&r->split[s].variable[v], p->n[v], p->y[v]);
    }
}

static void
count_patients(struct html_report *r)
{
    const struct split_check *c = &r->check;
    size_t i, next;

    for (i = 0; i < c->count; i = next) {
        struct one_patient p[SPLIT_MAX];
        unsigned sexes = 0;

        memset(p, 0, r->dataset->info.split_count * sizeof(p[0]));
        for (next = i; next < c->count && strcmp(c->seen[i].patient, c->seen[next].patient) == 0; next++) {
            const struct report_image *image = report_image_of(r, &c->seen[next]);

            add_image(&p[c->seen[next].split], image, c->seen[next].label, r->dataset->info.finding_count);
            sexes |= image->sex == SEX_U ? 0 : 1u << image->sex;
        }
        r->two_sexes += sexes == (1u << SEX_F | 1u << SEX_M);
        close_patient(r, p);
    }
}

/* Returns the number of splits that have the images by_hash[i .. next - 1]. */
static size_t
splits_of(const struct split_check *c, size_t i, size_t next)
{
    bool in_split[SPLIT_MAX] = {false};
    size_t splits = 0;

    for (; i < next; i++) {
        splits += !in_split[c->by_hash[i]->split];
        in_split[c->by_hash[i]->split] = true;
    }
    return splits;
}

unsigned
report_equal_to(const struct html_report *r, size_t i, size_t *next)
{
    const struct split_check *c = &r->check;
    unsigned kind = split_check_image(c, i, next) ? EQUAL_SHARED : 0;
    size_t j;

    if (*next - i > splits_of(c, i, *next))
        kind |= EQUAL_REPEATED;
    for (j = i + 1; j < *next; j++)
        if (memcmp(c->by_hash[j]->label, c->by_hash[i]->label, r->dataset->info.finding_count) != 0 ||
            strcmp(c->by_hash[j]->patient, c->by_hash[i]->patient) != 0)
            kind |= EQUAL_UNLIKE;
    return kind;
}

static void
count_equal(struct html_report *r)
{
    size_t i, next;

    for (i = 0; i < r->check.count; i = next) {
        unsigned kind = report_equal_to(r, i, &next);

        r->equal_unlike += (kind & EQUAL_UNLIKE) != 0;
        r->repeated_group += (kind & EQUAL_REPEATED) != 0;
        r->repeated += next - i - splits_of(&r->check, i, next);
    }
}

void
report_count(struct html_report *r)
{
    const struct chex_dataset *ds = r->dataset;
    size_t cells = (size_t)r->mean_width * r->mean_height, k;
    unsigned i, v;

    for (k = 0; k < r->check.count; k++)
        count_image(r, &r->check.seen[k]);
    count_patients(r);
    count_equal(r);
    for (i = 0; i < ds->info.shard_count; i++)
        r->split[ds->shard[i].split].padding += r->shard[i].padding;
    for (v = 0; v < REPORT_VIEWS; v++) {
        r->mean_all.images += r->mean[v].images;
        for (k = 0; k < cells; k++)
            r->mean_all.sum[k] += r->mean[v].sum[k];
    }
    for (i = 0; i < ds->info.split_count; i++) {
        r->all.images += r->split[i].images;
        r->all.padding += r->split[i].padding;
        r->all.variable[VARIABLE_NONE].y += r->split[i].variable[VARIABLE_NONE].y;
        r->all.labels += r->split[i].labels;
        r->all.unknown_age += r->split[i].unknown_age;
        for (v = 0; v < REPORT_SEXES; v++)
            r->all.sex[v] += r->split[i].sex[v];
        for (v = 0; v < REPORT_VIEWS; v++)
            r->all.view[v] += r->split[i].view[v];
        for (v = 0; v < REPORT_YEARS; v++)
            r->all.years[v] += r->split[i].years[v];
    }
    r->all.patients = r->check.patients;
}

unsigned
report_next(const struct html_report *r, unsigned f)
{
    return f + 1 == r->dataset->info.finding_count ? VARIABLE_NONE : f + 1;
}

const char *
report_finding_name(const struct html_report *r, unsigned finding)
{
    const struct findings *findings = &r->dataset->manifest.findings;

    return finding < findings->count ? findings->name[finding] : inspect_none_name(findings);
}

/* ---- rejects.jsonl ----------------------------------------------------------------------------------------------- */

static const char *
text_of(struct html_report *r, const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    const char *text = json_is_string(value) ? json_string_value(value) : "";

    return arena_copy(&r->strings, text, json_is_string(value) ? json_string_length(value) : 0);
}

static enum chex_status
add_reject(struct html_report *r, const json_t *line, struct chex_error *err)
{
    struct report_reject *grown = array_grow(r->reject, &r->reject_capacity, r->reject_count, sizeof(*grown));
    struct report_reject *reject;

    if (!grown)
        return error_memory(err);
    r->reject = grown;
    reject = &grown[r->reject_count++];
    reject->kind = text_of(r, line, "kind");
    reject->name = text_of(r, line, "name");
    reject->reason = text_of(r, line, "reason");
    reject->detail = text_of(r, line, "detail");
    return reject->kind && reject->name && reject->reason && reject->detail ? CHEX_OK : error_memory(err);
}

/* Skip a line that is not a JSON object; the manifest has the true number of rejects. */
static enum chex_status
add_lines(struct html_report *r, const struct buffer *b, struct chex_error *err)
{
    const char *at = (const char *)b->data, *end = at + b->size;
    enum chex_status status = CHEX_OK;

    while (at < end && status == CHEX_OK) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = newline ? (size_t)(newline - at) : (size_t)(end - at);
        json_t *line = json_loadb(at, size, 0, NULL);

        if (json_is_object(line))
            status = add_reject(r, line, err);
        json_decref(line);
        at += size + 1;
    }
    return status;
}

enum chex_status
report_read_rejects(struct html_report *r, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = file_read(r->dataset->folder.fd, REJECTS_NAME, REJECTS_MAX, &b, err);

    if (status == CHEX_OK)
        status = add_lines(r, &b, err);
    else if (status == CHEX_ERR_MISSING)
        status = CHEX_OK;
    else
        error_context(err, status, "'%s/%s'", r->dataset->folder.path, REJECTS_NAME);
    buffer_release(&b);
    return status;
}
