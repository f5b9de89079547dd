/*
 * diff.c - the command `diff`: compares two data sets; see diff.h
 *
 * The command matches images by name, never by position, so it can compare data sets with different shard sizes or
 * splits.  It compares pixels by a hash if the images have equal sizes.  If both manifests list the same shards with
 * the same SHA-256, it reads no records; `check --full` checks whether the files match their manifest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/diff.h"

#include "base/sha256.h"
#include "inspect/command.h"
#include "inspect/diff/predictions.h"
#include "inspect/diff/runs.h"
#include "plan/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(SPLIT_MAX == 16, "struct diff counts moves between at most 16 splits");

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct side_reading {
    struct diff_side *side;
    pthread_mutex_t lock;
};

/* Several threads call this; each record writes its own element. */
static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct side_reading *reading = context;
    struct diff_side *s = reading->side;
    struct diff_item *item = &s->item[r->number];
    const struct record_values *v = r->values;

    if (v->weight != 1)
        return CHEX_OK;
    *item = (struct diff_item){.age = v->age,
                               .shard = r->shard,
                               .index = r->index,
                               .split = (uint8_t)s->target.dataset->shard[r->shard].split,
                               .sex = v->sex};
    if (r->hash)
        memcpy(item->hash, r->hash, sizeof(item->hash));
    pthread_mutex_lock(&reading->lock);
    item->name = arena_copy(&s->strings, v->name.data, v->name.size);
    item->patient = arena_copy(&s->strings, v->patient.data, v->patient.size);
    item->view = arena_copy(&s->strings, v->view.data, v->view.size);
    item->label = (const uint8_t *)arena_copy(&s->strings, (const char *)v->label,
                                              s->target.dataset->info.finding_count);
    pthread_mutex_unlock(&reading->lock);
    return item->name && item->patient && item->view && item->label ? CHEX_OK : error_memory(err);
}

static int
by_name(const void *a, const void *b)
{
    const struct diff_item *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order != 0)
        return order;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static enum chex_status
read_side(struct diff *d, unsigned which, struct chex_error *err)
{
    struct diff_side *s = &d->side[which];
    struct side_reading r = {.side = s, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct walk w = {.in = d->in,
                     .target = &s->target,
                     .progress = which ? "B" : "A",
                     .depth = d->pixels ? WALK_XXH128 : WALK_TEXTS,
                     .record = on_record,
                     .context = &r,
                     .threads = d->in->common->threads};
    enum chex_status status;
    size_t records = dataset_records(s->target.dataset), i;

    s->item = calloc(records ? records : 1, sizeof(*s->item));
    status = s->item ? walk_run(&w, err) : error_memory(err);
    pthread_mutex_destroy(&r.lock);
    s->faults = w.faults;
    s->read_failed = w.read_failed;
    /* Remove the elements without an image. */
    for (i = 0; s->item && i < records; i++)
        if (s->item[i].name)
            s->item[s->count++] = s->item[i];
    if (s->count > 1)
        qsort(s->item, s->count, sizeof(*s->item), by_name);
    return status;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static void
on_count(void *context, enum diff_kind kind, const char *name, const char *a, const char *b)
{
    struct diff *d = context;

    (void)name;
    (void)a;
    (void)b;
    d->count[kind]++;
}

static void
find_findings(struct diff *d)
{
    const struct findings *a = &d->side[0].target.dataset->manifest.findings;
    const struct findings *b = &d->side[1].target.dataset->manifest.findings;

    for (unsigned f = 0; f < a->count; f++)
        d->finding_of_b[f] = finding_index(b, a->name[f], strlen(a->name[f]));
}

static void
count_finding(struct diff *d, unsigned finding, const struct diff_item *x, const struct diff_item *y)
{
    int other = d->finding_of_b[finding];

    if (other < 0)
        return;
    d->gained[finding] += x->label[finding] != 1 && y->label[other] == 1;
    d->lost[finding] += x->label[finding] == 1 && y->label[other] != 1;
}

/* Count moves between splits and changed findings of an image on both sides. */
static void
count_pairs(struct diff *d)
{
    const struct diff_side *a = &d->side[0], *b = &d->side[1];
    size_t i = 0, j = 0;
    unsigned f;

    while (i < a->count && j < b->count) {
        int order = strcmp(a->item[i].name, b->item[j].name);

        if (order == 0) {
            d->both++;
            d->moved[a->item[i].split][b->item[j].split]++;
            for (f = 0; f < a->target.dataset->info.finding_count; f++)
                count_finding(d, f, &a->item[i], &b->item[j]);
        }
        i += order <= 0;
        j += order >= 0;
    }
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static bool
same_shards(const struct chex_dataset *a, const struct chex_dataset *b)
{
    unsigned i;

    if (strcmp(a->info.id, b->info.id) != 0 || a->info.shard_count != b->info.shard_count)
        return false;
    for (i = 0; i < a->info.shard_count; i++)
        if (strcmp(a->shard[i].name, b->shard[i].name) != 0 || strcmp(a->shard[i].sha256, b->shard[i].sha256) != 0)
            return false;
    return true;
}

static enum chex_status
open_side(struct diff_side *s, const char *path, struct chex_error *err)
{
    enum chex_status status = target_open(path, &s->target, err);

    if (status == CHEX_OK && s->target.kind == TARGET_UNFINISHED)
        return error_set(err, CHEX_ERR_TRUNCATED, "'%s': %s", path, s->target.unfinished);
    if (status == CHEX_OK && s->target.kind != TARGET_DATASET && s->target.kind != TARGET_CHECKPOINT)
        return error_set(err, CHEX_ERR_USAGE,
                         "'diff' takes the folders of two data sets, or two checkpoints; '%s' is neither", path);
    return status;
}

static enum chex_status
open_both(struct diff *d, const char *const path[2], int *failed, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    int i;

    for (i = 0; i < 2 && status == CHEX_OK; i++) {
        status = open_side(&d->side[i], path[i], err);
        *failed = i;
    }
    if (status == CHEX_OK && d->side[0].target.kind != d->side[1].target.kind)
        return error_set(err, CHEX_ERR_USAGE, "'diff' takes two of a kind: '%s' is a data set, '%s' a checkpoint",
                         path[d->side[0].target.kind == TARGET_DATASET ? 0 : 1],
                         path[d->side[0].target.kind == TARGET_DATASET ? 1 : 0]);
    return status;
}

/* Compare two open data sets. */
static enum chex_status
compare_datasets(struct diff *d, int *failed, struct chex_error *err)
{
    const struct chex_dataset *a = d->side[0].target.dataset, *b = d->side[1].target.dataset;
    enum chex_status status = CHEX_OK;
    int i;

    d->same_shards = same_shards(a, b);
    find_findings(d);
    d->pixels = a->info.width == b->info.width && a->info.height == b->info.height;
    for (i = 0; i < 2 && status == CHEX_OK && !d->same_shards; i++) {
        status = read_side(d, (unsigned)i, err);
        *failed = i;
    }
    if (status == CHEX_OK) {
        diff_walk(d, on_count, d);
        count_pairs(d);
    }
    return status;
}

static int
compare_paths(struct inspect *in)
{
    const char *const *path = in->options->path;
    struct diff d = {.in = in};
    struct chex_error err;
    int code, failed = 0, i;
    enum chex_status status = open_both(&d, path, &failed, &err);
    bool checkpoints = status == CHEX_OK && d.side[0].target.kind == TARGET_CHECKPOINT;

    if (status == CHEX_OK && !checkpoints)
        status = compare_datasets(&d, &failed, &err);
    if (status != CHEX_OK) {
        code = inspect_fail(in, path[failed], &err);
    } else if (checkpoints) {
        code = inspect_checkpoint_diff(in, &d.side[0].target, &d.side[1].target);
    } else {
        inspect_print_result(in, &diff_result, &d);
        code = diff_is_same(&d) ? EXIT_GOOD : EXIT_DATA;
        if (code != EXIT_GOOD && d.side[0].faults + d.side[1].faults == 0)
            inspect_report_difference(in, path[0], path[1]);
        if (d.side[0].read_failed || d.side[1].read_failed)
            code = EXIT_MISSING;
    }
    for (i = 0; i < 2; i++) {
        target_close(&d.side[i].target);
        free(d.side[i].item);
        arena_release(&d.side[i].strings);
    }
    return code;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

#define DIFF_OPERANDS "two PATHs, A and B; with --split, two runs or more, up to 100"
_Static_assert(SCORED_RUNS == 100, "the text above names it");

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    if (!o->split && o->path_count > 2)
        return error_set(err, CHEX_ERR_USAGE, "'diff' takes %s", DIFF_OPERANDS);
    return inspect_wants_rows(o) && common->json ? error_set(err, CHEX_ERR_USAGE, "--json goes with --format json")
                                                 : CHEX_OK;
}

static int
compare_command(struct inspect *in)
{
    const struct inspect_options *o = in->options;

    if (o->split && o->path_count > 2)
        return inspect_runs_diff(in, o->path, (unsigned)o->path_count, o->split);
    return o->split ? inspect_predictions_diff(in, o->path[0], o->path[1], o->split) : compare_paths(in);
}

static const struct cli_option options[] = {
    {AT_TEXT(split), 0, "split", "NAME", NULL, NULL,
     "compare the predictions of runs on this split: difference of AUROC, with intervals and a test"},
    ROW_FORMAT,
    ROW_END};

const struct inspect_command inspect_diff_command = {
    .cli = {.name = "diff",
            .summary = "compare two data sets, checkpoints or runs",
            .usage = "[--format HOW] A B\n"
                     "--split NAME [--format HOW] A B [RUN...]",
            .examples = "chex-inspect diff shards-2017 shards-2020  # changes by the new label file\n"
                        "chex-inspect diff runs/a runs/b            # the newest checkpoints\n"
                        "chex-inspect diff --split test runs/a runs/b  # is B better than A?\n"
                        "chex-inspect diff --split test runs/seed*  # a table of runs",
            .notes = "The exit status is 1 if A and B differ; with --split, if they have other\n"
                     "images.",
            .options = options},
    .action = INSPECT_DIFF,
    .min = 2,
    .max = SCORED_RUNS,
    .operands = DIFF_OPERANDS,
    .check = check_options,
    .all = compare_command,
};
