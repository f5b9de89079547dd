/*
 * predictions.c - `diff --split NAME A B`: AUROC of two runs on the same images, with intervals and a test; see
 * eval/compare.h
 *
 * Both runs must have evaluated the same split: the hashes of its members, in metrics-SPLIT.json, are equal.  Images
 * are matched by name.  An image may be missing in one of the runs, because it was damaged there; it is left out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/predictions.h"

#include "base/json.h"
#include "common/printable.h"
#include "eval/compare.h"
#include "eval/predictions_read.h"
#include "io/file.h"
#include "labels/patient_ids.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS         1000
#define SEED          1
#define CHANGED       20          /* images in the list of the largest changes */
#define NUMBERS_MAX   (64u << 20) /* bytes of metrics-SPLIT.json */
#define FILE_PATH     4096
#define PATH_LONGEST  3000
#define SPLIT_LONGEST 64

struct change {
    size_t image; /* of the pair */
    unsigned finding;
    float by;
};

struct predictions_diff {
    struct inspect *in;
    const char *path[2], *split;
    char file[2][FILE_PATH], members[2][80];
    struct predictions side[2];
    size_t only[2]; /* images that the other run lacks */

    struct score_pair pair;
    float *score[2];
    uint8_t *label;
    uint32_t *patient;
    size_t *row[2]; /* of the CSV file, for each image of the pair */
    struct comparison result;
    struct change *change;
    struct arena strings;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Read the hash of the members of the split from metrics-SPLIT.json. */
static enum chex_status
read_members(struct predictions_diff *d, unsigned i, struct chex_error *err)
{
    static const struct parse_bounds bounds = {.size = NUMBERS_MAX, .depth = 8, .values = 1000000, .reals = true};
    char name[FILE_PATH];
    struct buffer text = {0};
    json_t *top = NULL;
    const char *hash;
    enum chex_status status;

    snprintf(name, sizeof(name), "%.3000s/metrics-%.64s.json", d->path[i], d->split);
    status = file_read(AT_FDCWD, name, NUMBERS_MAX, &text, err);
    if (status != CHEX_OK)
        error_context(err, status, "'%s'", name);
    if (status == CHEX_OK)
        status = parse_json(text.data, text.size, &bounds, &top, err);
    hash = json_string_value(json_object_get(json_object_get(top, "split"), "members_sha256"));
    if (status == CHEX_OK && (!hash || strlen(hash) >= sizeof(d->members[i])))
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has no hash of its split", name);
    if (status == CHEX_OK)
        snprintf(d->members[i], sizeof(d->members[i]), "%s", hash);
    json_decref(top);
    buffer_release(&text);
    return chex_status_is_data(status) ? error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is not a file of chex-train", name)
                                       : status;
}

static enum chex_status
read_sides(struct predictions_diff *d, unsigned *failed, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; i < 2 && status == CHEX_OK; i++) {
        *failed = i;
        if (strlen(d->path[i]) > PATH_LONGEST || strlen(d->split) > SPLIT_LONGEST)
            return error_set(err, CHEX_ERR_USAGE, "the path or the name of the split is too long");
        snprintf(d->file[i], FILE_PATH, "%s/predictions-%s.csv", d->path[i], d->split);
        status = read_members(d, i, err);
    }
    if (status == CHEX_OK && strcmp(d->members[0], d->members[1]) != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "the runs have different splits '%s': members %.64s in A, %.64s in B", d->split, d->members[0],
                         d->members[1]);
    for (i = 0; i < 2 && status == CHEX_OK; i++) {
        *failed = i;
        status = predictions_read(d->file[i], &d->side[i], err);
    }
    return status;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

struct named_row {
    const char *name;
    size_t row;
};

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct named_row *)a)->name, ((const struct named_row *)b)->name);
}

/* Sort the rows of a file by image.  CHEX_ERR_INCOMPATIBLE: an image is in two of them. */
static enum chex_status
sort_rows(const struct predictions_diff *d, unsigned side, struct named_row **out, struct chex_error *err)
{
    const struct predictions *p = &d->side[side];
    struct named_row *row = malloc(p->count * sizeof(*row));
    char name[INSPECT_TEXT];
    size_t i;

    *out = row;
    if (!row)
        return error_memory(err);
    for (i = 0; i < p->count; i++)
        row[i] = (struct named_row){p->image[i], i};
    qsort(row, p->count, sizeof(*row), by_name);
    for (i = 1; i < p->count; i++)
        if (strcmp(row[i - 1].name, row[i].name) == 0)
            return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has the image '%.200s' twice", d->file[side],
                             inspect_text(inspect_bytes(row[i].name), name));
    return CHEX_OK;
}

static enum chex_status
compare_findings(const struct predictions_diff *d, struct chex_error *err)
{
    const struct predictions *a = &d->side[0], *b = &d->side[1];
    unsigned k;

    for (k = 0; k < a->outputs && k < b->outputs && strcmp(a->finding[k], b->finding[k]) == 0; k++)
        ;
    if (k == a->outputs && k == b->outputs)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_INCOMPATIBLE,
                     "the runs have different findings: number %u is '%.60s' in A, '%.60s' in B", k + 1,
                     k < a->outputs ? a->finding[k] : "", k < b->outputs ? b->finding[k] : "");
}

/* Check that both runs have the same patient and labels for an image. */
static enum chex_status
check_image(const struct predictions_diff *d, size_t i, size_t j, struct chex_error *err)
{
    const struct predictions *a = &d->side[0], *b = &d->side[1];
    char name[INSPECT_TEXT];
    unsigned k;

    inspect_text(inspect_bytes(a->image[i]), name);
    if (strcmp(a->patient[i], b->patient[j]) != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "the image '%.200s' has different patients in A and B", name);
    for (k = 0; k < a->outputs; k++)
        if (a->label[i * a->outputs + k] != b->label[j * a->outputs + k])
            return error_set(err, CHEX_ERR_INCOMPATIBLE,
                             "the image '%.200s' has different labels of '%.60s' in A and B", name, a->finding[k]);
    return CHEX_OK;
}

static enum chex_status
add_image(struct predictions_diff *d, size_t i, size_t j, struct patients *patients, struct chex_error *err)
{
    const struct predictions *a = &d->side[0], *b = &d->side[1];
    size_t outputs = a->outputs, at = d->pair.count * outputs;
    enum chex_status status = check_image(d, i, j, err);

    if (status == CHEX_OK)
        status = patients_add(patients, a->patient[i], &d->strings, &d->patient[d->pair.count], err);
    if (status != CHEX_OK)
        return status;
    memcpy(d->score[0] + at, a->probability + i * outputs, outputs * sizeof(float));
    memcpy(d->score[1] + at, b->probability + j * outputs, outputs * sizeof(float));
    memcpy(d->label + at, a->label + i * outputs, outputs);
    d->row[0][d->pair.count] = i;
    d->row[1][d->pair.count] = j;
    d->pair.count++;
    return CHEX_OK;
}

static bool
make_room(struct predictions_diff *d)
{
    size_t images = d->side[0].count, values = images * d->side[0].outputs;
    unsigned i;

    for (i = 0; i < 2; i++) {
        d->score[i] = malloc(values * sizeof(float));
        d->row[i] = malloc(images * sizeof(size_t));
    }
    d->label = malloc(values);
    d->patient = malloc(images * sizeof(*d->patient));
    return d->score[0] && d->score[1] && d->row[0] && d->row[1] && d->label && d->patient;
}

/* Match the images, in the order of A's file: with this order the draws are those of the run's own intervals. */
static enum chex_status
match_images(struct predictions_diff *d, struct chex_error *err)
{
    struct named_row *other = NULL, *own = NULL;
    struct patients patients = {0};
    enum chex_status status = compare_findings(d, err);
    size_t i;

    if (status == CHEX_OK)
        status = make_room(d) ? sort_rows(d, 0, &own, err) : error_memory(err);
    if (status == CHEX_OK)
        status = sort_rows(d, 1, &other, err);
    for (i = 0; i < d->side[0].count && status == CHEX_OK; i++) {
        const struct named_row key = {.name = d->side[0].image[i]};
        const struct named_row *found = bsearch(&key, other, d->side[1].count, sizeof(key), by_name);

        if (found)
            status = add_image(d, i, found->row, &patients, err);
    }
    d->only[0] = d->side[0].count - d->pair.count;
    d->only[1] = d->side[1].count - d->pair.count;
    if (status == CHEX_OK && d->pair.count == 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "no image is in both runs");
    d->pair.outputs = d->side[0].outputs;
    d->pair.score[0] = d->score[0];
    d->pair.score[1] = d->score[1];
    d->pair.label = d->label;
    d->pair.patient = d->patient;
    d->pair.patients = (uint32_t)patients.count;
    patients_release(&patients);
    free(own);
    free(other);
    return status;
}

/* ---- images that changed most ------------------------------------------------------------------------------------ */

static int
by_change(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->by != y->by)
        return x->by < y->by ? 1 : -1;
    return x->image < y->image ? -1 : x->image > y->image;
}

/* For each image, the finding whose probability changed most; the largest changes first. */
static enum chex_status
find_changes(struct predictions_diff *d, struct chex_error *err)
{
    const struct score_pair *p = &d->pair;
    size_t i;
    unsigned k;

    d->change = calloc(p->count, sizeof(*d->change));
    if (!d->change)
        return error_memory(err);
    for (i = 0; i < p->count; i++) {
        struct change *c = &d->change[i];

        c->image = i;
        for (k = 0; k < p->outputs; k++) {
            float by = fabsf(p->score[1][i * p->outputs + k] - p->score[0][i * p->outputs + k]);

            if (by > c->by)
                *c = (struct change){i, k, by};
        }
    }
    qsort(d->change, p->count, sizeof(*d->change), by_change);
    return CHEX_OK;
}

static size_t
changes(const struct predictions_diff *d)
{
    size_t count = 0;

    while (count < CHANGED && count < d->pair.count && d->change[count].by > 0)
        count++;
    return count;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

#define NUMBER_TEXT 40

static const char *
p_text(double p, char out[NUMBER_TEXT])
{
    if (isnan(p))
        return "";
    snprintf(out, NUMBER_TEXT, "%.3f", p);
    return out;
}

static const char *
difference_text(const struct compared *c, char out[NUMBER_TEXT])
{
    if (isnan(c->difference.low))
        snprintf(out, NUMBER_TEXT, "%+.4f [too few]", c->difference.value);
    else
        snprintf(out, NUMBER_TEXT, "%+.4f [%+.4f, %+.4f]", c->difference.value, c->difference.low, c->difference.high);
    return out;
}

static void
print_row(int width, const char *name, const char *positives, const struct compared *c)
{
    char difference[NUMBER_TEXT], p[NUMBER_TEXT], holm[NUMBER_TEXT];

    if (isnan(c->auroc[0]))
        printf("%-*s %9s  n/a\n", width, name, positives);
    else
        printf("%-*s %9s  %.4f  %.4f  %-27s %6s %6s\n", width, name, positives, c->auroc[0], c->auroc[1],
               difference_text(c, difference), p_text(c->p, p), p_text(c->holm, holm));
}

static void
print_changes(const struct predictions_diff *d)
{
    char name[INSPECT_TEXT], finding[INSPECT_TEXT];
    size_t i, count = changes(d);

    for (i = 0; i < count; i++) {
        const struct change *c = &d->change[i];
        size_t at = c->image * d->pair.outputs + c->finding;
        const char *label = d->label[at] == 1 ? "1" : d->label[at] == 0 ? "0" : "unknown";

        printf("%-8s %s  %s %.3f -> %.3f, label %s\n", i == 0 ? "changed" : "",
               inspect_text(inspect_bytes(d->side[0].image[d->row[0][c->image]]), name),
               inspect_text(inspect_bytes(d->side[0].finding[c->finding]), finding), (double)d->score[0][at],
               (double)d->score[1][at], label);
    }
}

static void
print_marks(const struct predictions_diff *d)
{
    char name[INSPECT_TEXT];
    int i;

    for (i = 0; i < 2; i++) {
        if (d->side[i].leaky)
            printf("leaky    %c is of a leaky run: its results are too good\n", 'A' + i);
        if (d->side[i].short_run[0])
            printf("short    %c is of a short run: %s\n", 'A' + i,
                   inspect_text(inspect_bytes(d->side[i].short_run), name));
    }
}

static void
print_text(void *result)
{
    const struct predictions_diff *d = result;
    char file[PRINTABLE_TEXT], both[FORMAT_THINGS], patients[FORMAT_THINGS], a[FORMAT_TEXT], b[FORMAT_TEXT],
        mean[NUMBER_TEXT], name[INSPECT_TEXT];
    int width = 20, i;
    unsigned k;

    if (d->in->common->quiet)
        return;
    for (i = 0; i < 2; i++)
        printf("%c        %s\n", 'A' + i, printable_text(d->file[i], file));
    printf("images   %s of %s in both, %s only in A, %s only in B\n", format_things(d->pair.count, "image", both),
           format_things(d->pair.patients, "patient", patients), format_count(d->only[0], a),
           format_count(d->only[1], b));
    print_marks(d);
    for (k = 0; k < d->pair.outputs; k++) {
        int length = (int)strlen(inspect_text(inspect_bytes(d->side[0].finding[k]), name));

        width = length > width ? length : width;
    }
    printf("%-*s %9s  %-6s  %-6s  %-27s %6s %6s\n", width, "AUROC", "positives", "A", "B", "B - A", "p", "Holm");
    for (k = 0; k < d->pair.outputs; k++)
        print_row(width, inspect_text(inspect_bytes(d->side[0].finding[k]), name),
                  format_count(d->result.positives[k], a), &d->result.finding[k]);
    snprintf(mean, sizeof(mean), "mean of %u", d->result.defined);
    print_row(width, mean, "", &d->result.mean);
    print_changes(d);
    printf("         research use only, not for diagnosis\n");
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static const struct table_column columns[] = {{.name = "finding"}, {.name = "positives"}, {.name = "negatives"},
                                              {.name = "a"},       {.name = "b"},         {.name = "difference"},
                                              {.name = "low"},     {.name = "high"},      {.name = "p"},
                                              {.name = "holm"},    {.name = NULL}};

static struct cell
number_cell(double x)
{
    return isnan(x) ? cell_none() : cell_number(x);
}

static void
put_rows(struct table_writer *t, void *result)
{
    const struct predictions_diff *d = result;
    char name[INSPECT_TEXT];
    unsigned k;

    for (k = 0; k < d->pair.outputs; k++) {
        const struct compared *c = &d->result.finding[k];

        table_row(t, (struct cell[]){inspect_name(t, d->side[0].finding[k], name, sizeof(name)),
                                     cell_count(d->result.positives[k]), cell_count(d->result.negatives[k]),
                                     number_cell(c->auroc[0]), number_cell(c->auroc[1]),
                                     number_cell(c->difference.value), number_cell(c->difference.low),
                                     number_cell(c->difference.high), number_cell(c->p), number_cell(c->holm)});
    }
}

static json_t *
changes_json(const struct predictions_diff *d)
{
    json_t *list = json_array();
    size_t i, count = changes(d);

    for (i = 0; i < count; i++) {
        const struct change *c = &d->change[i];
        size_t at = c->image * d->pair.outputs + c->finding, row = d->row[0][c->image];

        inspect_json_push(&list, json_pack("{s:o, s:o, s:o, s:f, s:f, s:o}", "image", text_json(d->side[0].image[row]),
                                           "patient", text_json(d->side[0].patient[row]), "finding",
                                           text_json(d->side[0].finding[c->finding]), "a", (double)d->score[0][at], "b",
                                           (double)d->score[1][at], "label",
                                           d->label[at] > 1 ? json_null() : json_integer(d->label[at])));
    }
    return list;
}

static json_t *
marks_json(const struct predictions_diff *d, bool leaky)
{
    if (leaky)
        return json_pack("[b, b]", d->side[0].leaky, d->side[1].leaky);
    return json_pack("[o, o]", text_json(d->side[0].short_run), text_json(d->side[1].short_run));
}

static json_t *
result_json(void *result)
{
    struct predictions_diff *d = result;
    const struct compared *m = &d->result.mean;
    json_t *mean = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "findings", count_json(d->result.defined), "a",
                             real_json(m->auroc[0]), "b", real_json(m->auroc[1]), "difference",
                             real_json(m->difference.value), "low", real_json(m->difference.low), "high",
                             real_json(m->difference.high), "p", real_json(m->p));

    return json_pack("{s:s, s:s, s:[o, o], s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o}",
                     "kind", "predictions", "use", "research only, not for diagnosis", "paths", text_json(d->path[0]),
                     text_json(d->path[1]), "split", text_json(d->split), "members_sha256", d->members[0], "images",
                     count_json(d->pair.count), "patients", count_json(d->pair.patients), "only_a",
                     count_json(d->only[0]), "only_b", count_json(d->only[1]), "leaky", marks_json(d, true),
                     "short_run", marks_json(d, false), "replicates", DRAWS, "swaps", DRAWS, "seed", SEED, "findings",
                     inspect_rows_json(columns, put_rows, d), "mean", mean, "changed", changes_json(d));
}

static const struct inspect_result how = {columns, put_rows, result_json, print_text};

static void
release(struct predictions_diff *d)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        predictions_release(&d->side[i]);
        free(d->score[i]);
        free(d->row[i]);
    }
    free(d->label);
    free(d->patient);
    free(d->change);
    arena_release(&d->strings);
}

int
inspect_predictions_diff(struct inspect *in, const char *a, const char *b, const char *split)
{
    struct predictions_diff d = {.in = in, .path = {a, b}, .split = split};
    const struct compare_options options = {
        .replicates = DRAWS, .swaps = DRAWS, .seed = SEED, .threads = in->common->threads};
    struct chex_error err;
    unsigned failed = 1;
    enum chex_status status = read_sides(&d, &failed, &err);
    int code;

    if (status == CHEX_OK)
        status = match_images(&d, &err);
    if (status == CHEX_OK)
        status = compare_scores(&d.pair, &options, &d.result, &err);
    if (status == CHEX_OK)
        status = find_changes(&d, &err);
    if (status == CHEX_OK)
        inspect_print_result(in, &how, &d);
    code = status != CHEX_OK           ? inspect_fail(in, d.path[failed], &err)
           : d.only[0] + d.only[1] > 0 ? EXIT_DATA
                                       : EXIT_GOOD;
    release(&d);
    return code;
}
