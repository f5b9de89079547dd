/*
 * labels.c - the command `labels`: counts findings and pairs of findings per split; see inspect/command.h
 *
 * It counts the records and skips padding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/command.h"

#include "base/number_format.h"
#include "common/wrap.h"
#include "plan/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATRIX_MAX     14 /* findings whose matrix fits into 80 columns */
#define PAIRS          20
#define SPLITS_A_TABLE 3 /* 20 characters each; with the names a line has 80 */

struct counts {
    uint64_t images, none; /* none: No Finding */
    uint64_t labels;       /* over all findings */
    uint64_t known[FINDINGS_MAX], with[FINDINGS_MAX];
    uint64_t together[FINDINGS_MAX][FINDINGS_MAX];
};

struct tally {
    struct inspect *in;
    const struct chex_dataset *dataset;
    const char *path;
    uint64_t faults;
    struct counts split[SPLIT_MAX];
    struct counts all;
};

static void
count(struct counts *c, const uint8_t *label, unsigned findings)
{
    unsigned i, j;

    c->images++;
    c->none += labels_are_none(label, findings);
    for (i = 0; i < findings; i++) {
        c->known[i] += label[i] != CHEX_LABEL_UNKNOWN;
        if (label[i] != 1)
            continue;
        c->labels++;
        c->with[i]++;
        for (j = 0; j < findings; j++)
            c->together[i][j] += label[j] == 1;
    }
}

static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct tally *t = context;

    (void)err;
    if (r->values->weight != 1 || !r->selected)
        return CHEX_OK;
    count(&t->split[t->dataset->shard[r->shard].split], r->values->label, t->dataset->info.finding_count);
    count(&t->all, r->values->label, t->dataset->info.finding_count);
    return CHEX_OK;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void
print_cell(uint64_t n, uint64_t of)
{
    char text[FORMAT_TEXT];

    printf(" %10s", format_count(n, text));
    if (of > 0)
        printf(" %6.2f %%", 100 * (double)n / (double)of);
    else
        printf(" %6s  ", "-");
}

static const char *
name_of(const struct tally *t, unsigned finding)
{
    const struct findings *findings = &t->dataset->manifest.findings;

    return finding < findings->count ? findings->name[finding] : inspect_none_name(findings);
}

/* Returns the width of the column of names: 18, or that of the longest name. */
static int
name_width(const struct tally *t)
{
    int width = 18;

    for (unsigned i = 0; i < t->dataset->info.finding_count; i++)
        width = (int)strlen(name_of(t, i)) > width ? (int)strlen(name_of(t, i)) : width;
    return width;
}

static void
print_row(const struct tally *t, const char *name, const unsigned *split, unsigned splits, unsigned finding)
{
    unsigned i;

    printf("%-*s", name_width(t), name);
    for (i = 0; i < splits; i++) {
        const struct counts *c = &t->split[split[i]];

        if (finding < t->dataset->info.finding_count)
            print_cell(c->with[finding], c->known[finding]);
        else
            print_cell(c->none, c->images);
    }
    printf("\n");
}

/* Prevalence of up to SPLITS_A_TABLE splits. */
static void
print_prevalence(const struct tally *t, const unsigned *split, unsigned splits)
{
    char text[FORMAT_TEXT];
    unsigned i;

    printf("%s%-*s", t->in->color.bold, name_width(t), "");
    for (i = 0; i < splits; i++)
        printf(" %19.19s", t->dataset->split[split[i]].name);
    printf("%s\n", t->in->color.off);
    for (i = 0; i <= t->dataset->info.finding_count; i++)
        print_row(t, name_of(t, i), split, splits, i);
    printf("%-*s", name_width(t), "images");
    for (i = 0; i < splits; i++)
        printf(" %10s%*s", format_count(t->split[split[i]].images, text), i + 1 < splits ? 9 : 0, "");
    printf("\n%-*s", name_width(t), "findings an image");
    for (i = 0; i < splits; i++)
        printf(" %10.2f%*s", (double)t->split[split[i]].labels / (double)t->split[split[i]].images,
               i + 1 < splits ? 9 : 0, "");
    printf("\n");
}

/* The names of nih14 in four letters. */
static const char *const short_names[] = {"Atel", "Card", "Effu", "Infi", "Mass", "Nodu", "Pnmn",
                                          "Pnth", "Cons", "Edem", "Emph", "Fibr", "PlTh", "Hern"};

/* Returns the name of a column of pairs: four letters, or the number of the finding from 1. */
static const char *
short_name(const struct tally *t, unsigned finding, char out[16])
{
    if (findings_equal(&t->dataset->manifest.findings, &findings_nih14))
        return short_names[finding];
    snprintf(out, 16, "%u", finding + 1);
    return out;
}

/* "Atel = Atelectasis, ..." */
static void
print_key(const struct tally *t)
{
    struct wrap w = {.out = stdout};
    char text[16];
    unsigned i;

    wrap_put(&w, "", "         ");
    for (i = 0; i < t->dataset->info.finding_count; i++)
        wrap_put(&w, i ? ", " : "", "%s = %s", short_name(t, i, text), name_of(t, i));
    wrap_end(&w);
}

/* Returns the width of a column of pairs: four letters, or its longest number. */
static int
pair_width(const struct tally *t, unsigned column)
{
    char text[FORMAT_TEXT];
    int width = 4;
    unsigned i;

    for (i = column + 1; i < t->dataset->info.finding_count; i++) {
        int length = (int)strlen(format_count(t->all.together[i][column], text));

        width = length > width ? length : width;
    }
    return width;
}

/* Print only the part below the diagonal: the matrix is symmetric, and the previous table has the diagonal. */
static void
print_matrix(const struct tally *t)
{
    const unsigned findings = t->dataset->info.finding_count;
    char text[FORMAT_TEXT], name[16];
    unsigned i, j;

    printf("\n%simages with both%s\n%4s", t->in->color.bold, t->in->color.off, "");
    for (j = 0; j + 1 < findings; j++)
        printf(" %*s", pair_width(t, j), short_name(t, j, name));
    printf("\n");
    for (i = 1; i < findings; i++) {
        printf("%4s", short_name(t, i, name));
        for (j = 0; j < i; j++)
            printf(" %*s", pair_width(t, j), format_count(t->all.together[i][j], text));
        printf("\n");
    }
    print_key(t);
}

/* Print the PAIRS most frequent pairs, most frequent first; the rows of --format csv have all. */
static void
print_pairs(const struct tally *t)
{
    uint64_t last = UINT64_MAX;
    char text[FORMAT_TEXT];
    unsigned shown = 0, i, j;

    printf("\n%simages with both%s, the most frequent pairs\n", t->in->color.bold, t->in->color.off);
    while (shown < PAIRS && last > 0) {
        uint64_t most = 0;

        for (i = 1; i < t->dataset->info.finding_count; i++)
            for (j = 0; j < i; j++)
                if (t->all.together[i][j] < last && t->all.together[i][j] > most)
                    most = t->all.together[i][j];
        for (i = 1; most > 0 && i < t->dataset->info.finding_count; i++)
            for (j = 0; j < i && shown < PAIRS; j++)
                if (t->all.together[i][j] == most && shown++ < PAIRS)
                    printf("%10s  %s, %s\n", format_count(most, text), name_of(t, j), name_of(t, i));
        last = most;
    }
    if (shown == 0)
        printf("      none\n");
}

static void
print_tables(void *result)
{
    const struct tally *t = result;
    unsigned split[SPLITS_A_TABLE], used = 0, i;

    for (i = 0; i < t->dataset->info.split_count; i++) {
        if (t->split[i].images > 0)
            split[used++] = i;
        if (used == SPLITS_A_TABLE || (i + 1 == t->dataset->info.split_count && used > 0)) {
            print_prevalence(t, split, used);
            used = 0;
        }
    }
    if (t->dataset->info.finding_count > MATRIX_MAX)
        print_pairs(t);
    else if (t->dataset->info.finding_count > 1)
        print_matrix(t);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const struct table_column columns[] = {{.name = "split"},  {.name = "finding"}, {.name = "together_with"},
                                              {.name = "images"}, {.name = "of"},      {.name = "share"},
                                              {.name = NULL}};

static void
put_row(struct table_writer *t, const char *split, const char *finding, const char *with, uint64_t n, uint64_t of)
{
    table_row(t, (struct cell[]){cell_text(split), cell_text(finding), with ? cell_text(with) : cell_none(),
                                 cell_count(n), cell_count(of), cell_number(of > 0 ? (double)n / (double)of : 0)});
}

/* Each finding, of the images; then each pair, of the images with the first finding. */
static void
put_rows(struct table_writer *table, void *result)
{
    const struct tally *t = result;
    unsigned s, i, j;

    for (s = 0; s < t->dataset->info.split_count; s++) {
        const struct counts *c = &t->split[s];
        const char *name = t->dataset->split[s].name;

        if (c->images == 0)
            continue;
        for (i = 0; i < t->dataset->info.finding_count; i++)
            put_row(table, name, name_of(t, i), NULL, c->with[i], c->known[i]);
        put_row(table, name, inspect_none_name(&t->dataset->manifest.findings), NULL, c->none, c->images);
        for (i = 0; i < t->dataset->info.finding_count; i++)
            for (j = 0; j < t->dataset->info.finding_count; j++)
                if (i != j)
                    put_row(table, name, name_of(t, i), name_of(t, j), c->together[i][j], c->with[i]);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
counts_json(const struct tally *t, const char *name, const struct counts *c)
{
    json_t *findings = json_object();
    unsigned i, j;

    for (i = 0; i < t->dataset->info.finding_count; i++) {
        json_t *with = json_object();

        for (j = 0; j < t->dataset->info.finding_count; j++)
            if (i != j)
                inspect_json_set(&with, name_of(t, j), count_json(c->together[i][j]));
        inspect_json_set(&findings, name_of(t, i),
                         json_pack("{s:o, s:o, s:o, s:f, s:o}", "images", count_json(c->with[i]), "known",
                                   count_json(c->known[i]), "unknown", count_json(c->images - c->known[i]),
                                   "prevalence", c->known[i] ? (double)c->with[i] / (double)c->known[i] : 0.0,
                                   "together_with", with));
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "name", name, "images", count_json(c->images), "no_finding",
                     count_json(c->none), "findings", findings);
}

static json_t *
tally_json(void *result)
{
    const struct tally *t = result;
    json_t *splits = json_array();
    unsigned i;

    for (i = 0; i < t->dataset->info.split_count; i++)
        if (t->split[i].images > 0)
            inspect_json_push(&splits, counts_json(t, t->dataset->split[i].name, &t->split[i]));
    return json_pack("{s:o, s:o, s:o}", "path", text_json(t->path), "splits", splits, "faults", count_json(t->faults));
}

static int
count_records(struct inspect *in, struct target *t, struct tally *tally)
{
    static const struct inspect_result how = {columns, put_rows, tally_json, print_tables};
    struct walk w = {.in = in, .target = t, .record = on_record, .context = tally, .threads = 1};
    struct chex_error err;

    if (walk_run(&w, &err) != CHEX_OK)
        return inspect_fail(in, t->path, &err);
    if (in->options->where.text_count > 0 && tally->all.images == 0) {
        inspect_no_image(t, &err);
        return inspect_fail(in, t->path, &err);
    }
    tally->faults = w.faults;
    inspect_print_result(in, &how, tally);
    return inspect_walk_code(&w);
}

static int
count_labels(struct inspect *in, struct target *t)
{
    struct tally *tally = calloc(1, sizeof(*tally)); /* 9 MB: a matrix for each split */
    struct chex_error err;
    int code;

    if (!tally) {
        error_memory(&err);
        return inspect_fail(in, t->path, &err);
    }
    tally->in = in;
    tally->dataset = t->dataset;
    tally->path = t->path;
    code = count_records(in, t, tally);
    free(tally);
    return code;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static const struct cli_option options[] = {ROW_SPLIT, ROW_WHERE, ROW_FORMAT, ROW_END};

const struct inspect_command inspect_labels_command = {
    .cli = {.name = "labels",
            .summary = "count findings, and pairs of findings, by split",
            .usage = "[--where TERMS]... [--split NAME]\n"
                     "  [--format HOW] PATH...",
            .examples = "chex-inspect labels shards\n"
                        "chex-inspect labels --where sex=F --where age=60-120 shards",
            .options = options},
    .action = INSPECT_LABELS,
    .min = 1,
    .max = UINT_MAX,
    .check = inspect_check_format,
    .each = count_labels,
};
