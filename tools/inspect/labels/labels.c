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

#include <string.h>

#define SPLITS_A_TABLE 3 /* 20 characters each; with the names a line has 80 */

struct counts {
    uint64_t images, none; /* none: No Finding */
    uint64_t labels;       /* over all findings */
    uint64_t with[CHEX_FINDINGS];
    uint64_t together[CHEX_FINDINGS][CHEX_FINDINGS];
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
count(struct counts *c, uint16_t findings)
{
    unsigned i, j;

    c->images++;
    c->none += findings == 0;
    for (i = 0; i < CHEX_FINDINGS; i++) {
        if (!(findings >> i & 1))
            continue;
        c->labels++;
        c->with[i]++;
        for (j = 0; j < CHEX_FINDINGS; j++)
            c->together[i][j] += findings >> j & 1;
    }
}

static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct tally *t = context;

    (void)err;
    if (r->values->weight != 1 || !where_holds(&t->in->options->where, r->values))
        return CHEX_OK;
    count(&t->split[t->dataset->shard[r->shard].split], labels_mask(r->values->label, CHEX_FINDINGS));
    count(&t->all, labels_mask(r->values->label, CHEX_FINDINGS));
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

static void
print_row(const struct tally *t, const char *name, const unsigned *split, unsigned splits, unsigned finding)
{
    unsigned i;

    printf("%-18s", name);
    for (i = 0; i < splits; i++) {
        const struct counts *c = &t->split[split[i]];

        print_cell(finding < CHEX_FINDINGS ? c->with[finding] : c->none, c->images);
    }
    printf("\n");
}

/* Prevalence of up to SPLITS_A_TABLE splits. */
static void
print_prevalence(const struct tally *t, const unsigned *split, unsigned splits)
{
    char text[FORMAT_TEXT];
    unsigned i;

    printf("%s%-18s", t->in->color.bold, "");
    for (i = 0; i < splits; i++)
        printf(" %19.19s", t->dataset->split[split[i]].name);
    printf("%s\n", t->in->color.off);
    for (i = 0; i < CHEX_FINDINGS; i++)
        print_row(t, chex_finding_name(i), split, splits, i);
    print_row(t, "No Finding", split, splits, CHEX_FINDINGS);
    printf("%-18s", "images");
    for (i = 0; i < splits; i++)
        printf(" %10s%*s", format_count(t->split[split[i]].images, text), i + 1 < splits ? 9 : 0, "");
    printf("\n%-18s", "findings an image");
    for (i = 0; i < splits; i++)
        printf(" %10.2f%*s", (double)t->split[split[i]].labels / (double)t->split[split[i]].images,
               i + 1 < splits ? 9 : 0, "");
    printf("\n");
}

/* The names in four letters. */
static const char *const short_names[CHEX_FINDINGS] = {"Atel", "Card", "Effu", "Infi", "Mass", "Nodu", "Pnmn",
                                                       "Pnth", "Cons", "Edem", "Emph", "Fibr", "PlTh", "Hern"};

/* "Atel = Atelectasis, ..." */
static void
print_key(void)
{
    struct wrap w = {.out = stdout};
    unsigned i;

    wrap_put(&w, "", "         ");
    for (i = 0; i < CHEX_FINDINGS; i++)
        wrap_put(&w, i ? ", " : "", "%s = %s", short_names[i], chex_finding_name(i));
    wrap_end(&w);
}

/* Returns the width of a column of pairs: four letters, or its longest number. */
static int
pair_width(const struct tally *t, unsigned column)
{
    char text[FORMAT_TEXT];
    int width = 4;
    unsigned i;

    for (i = column + 1; i < CHEX_FINDINGS; i++) {
        int length = (int)strlen(format_count(t->all.together[i][column], text));

        width = length > width ? length : width;
    }
    return width;
}

/* Print only the part below the diagonal: the matrix is symmetric, and the previous table has the diagonal. */
static void
print_together(const struct tally *t)
{
    char text[FORMAT_TEXT];
    unsigned i, j;

    printf("\n%simages with both%s\n%4s", t->in->color.bold, t->in->color.off, "");
    for (j = 0; j + 1 < CHEX_FINDINGS; j++)
        printf(" %*s", pair_width(t, j), short_names[j]);
    printf("\n");
    for (i = 1; i < CHEX_FINDINGS; i++) {
        printf("%4s", short_names[i]);
        for (j = 0; j < i; j++)
            printf(" %*s", pair_width(t, j), format_count(t->all.together[i][j], text));
        printf("\n");
    }
    print_key();
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
    print_together(t);
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
        for (i = 0; i < CHEX_FINDINGS; i++)
            put_row(table, name, chex_finding_name(i), NULL, c->with[i], c->images);
        put_row(table, name, "No Finding", NULL, c->none, c->images);
        for (i = 0; i < CHEX_FINDINGS; i++)
            for (j = 0; j < CHEX_FINDINGS; j++)
                if (i != j)
                    put_row(table, name, chex_finding_name(i), chex_finding_name(j), c->together[i][j], c->with[i]);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
counts_json(const char *name, const struct counts *c)
{
    json_t *findings = json_object();
    unsigned i, j;

    for (i = 0; i < CHEX_FINDINGS; i++) {
        json_t *with = json_object();

        for (j = 0; j < CHEX_FINDINGS; j++)
            if (i != j)
                inspect_json_set(&with, chex_finding_name(j), count_json(c->together[i][j]));
        inspect_json_set(&findings, chex_finding_name(i),
                         json_pack("{s:o, s:f, s:o}", "images", count_json(c->with[i]), "prevalence",
                                   c->images ? (double)c->with[i] / (double)c->images : 0.0, "together_with", with));
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
            inspect_json_push(&splits, counts_json(t->dataset->split[i].name, &t->split[i]));
    return json_pack("{s:o, s:o, s:o}", "path", text_json(t->path), "splits", splits, "faults", count_json(t->faults));
}

static int
count_labels(struct inspect *in, struct target *t)
{
    static const struct inspect_result how = {columns, put_rows, tally_json, print_tables};
    struct tally tally = {.in = in, .dataset = t->dataset, .path = t->path};
    struct walk w = {.in = in, .target = t, .record = on_record, .context = &tally, .threads = 1};
    struct chex_error err;

    if (walk_run(&w, &err) != CHEX_OK)
        return inspect_fail(in, t->path, &err);
    if (in->options->where.text_count > 0 && tally.all.images == 0) {
        inspect_no_image(t, &err);
        return inspect_fail(in, t->path, &err);
    }
    tally.faults = w.faults;
    inspect_print_result(in, &how, &tally);
    return inspect_walk_code(&w);
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
