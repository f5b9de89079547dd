/*
 * audit_predictions.c - evaluates the best model of the audited run again and compares the results: predictions,
 * numbers, and the operating points in the model; see audit.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/audit_private.h"

#include "base/ascii.h"
#include "base/json.h"
#include "checkpoint/torch_file.h"
#include "math/loss.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUDIT_FILE      64
#define NUMBERS_MAX     (64u << 20) /* bytes of metrics-SPLIT.json */
#define REPLICATES_MOST 1000000

/* Files of a split. */
enum { CSV, NUMBERS, FILES };

static const char *
file_of(unsigned kind, const char *split, char out[AUDIT_FILE])
{
    snprintf(out, AUDIT_FILE, kind == CSV ? "predictions-%.31s.csv" : "metrics-%.31s.json", split);
    return out;
}

/* ---- before the evaluation --------------------------------------------------------------------------------------- */

/*
 * Rank 0: evaluate as the file says: a resumed run may have another --bootstrap, and --eval-only other views or
 * another seed.  Values that no run has are not used; then the comparison shows them.
 */
static void
read_options(const struct audit *a, const char *split, struct audit_order *order)
{
    static const struct parse_bounds bounds = {.size = NUMBERS_MAX, .depth = 8, .values = 1000000};
    struct buffer text = {0};
    json_t *document = NULL, *replicates, *seed;
    char name[AUDIT_FILE];
    const char *tta;
    int i;

    if (file_read(a->folder.fd, file_of(NUMBERS, split, name), NUMBERS_MAX, &text, NULL) == CHEX_OK &&
        parse_json(text.data, text.size, &bounds, &document, NULL) == CHEX_OK) {
        replicates = json_object_get(json_object_get(document, "bootstrap"), "replicates");
        if (json_is_integer(replicates) && json_integer_value(replicates) >= 0 &&
            json_integer_value(replicates) <= REPLICATES_MOST)
            order->replicates = (uint64_t)json_integer_value(replicates);
        seed = json_object_get(json_object_get(document, "bootstrap"), "seed");
        if (json_is_integer(seed) && json_integer_value(seed) >= 0)
            order->seed = (uint64_t)json_integer_value(seed);
        if (json_is_real(json_object_get(document, "loss")))
            order->loss = json_real_value(json_object_get(document, "loss"));
        tta = json_string_value(json_object_get(json_object_get(document, "views"), "tta"));
        i = tta ? name_index(tta_names, tta) : -1;
        if (i >= 0)
            order->tta = (uint64_t)i;
    }
    json_decref(document);
    buffer_release(&text);
}

static bool
has_file(const struct audit *a, unsigned kind, const char *split)
{
    char name[AUDIT_FILE];

    return faccessat(a->folder.fd, file_of(kind, split, name), F_OK, 0) == 0;
}

/* Rank 0: read the best model and its operating points; with the marks of the newest checkpoint. */
static enum chex_status
read_best(struct audit *a, unsigned split, struct chex_error *err)
{
    struct trainer *t = a->t;
    struct weights_report report;
    struct chex_error none; /* damaged operating points differ from those of val */
    enum chex_status status = trainer_read_model(&t->task, a->folder.fd, TRAINER_BEST, false, &t->host, &report, err);

    if (trainer_read_operating(&t->task, a->folder.fd, TRAINER_BEST, &t->best.operating, &none) != CHEX_OK)
        t->best.operating.there = false;
    t->state = a->best;
    t->state.leaky = a->was.leaky;
    if ((int)split != t->task.validation)
        memcpy(t->state.short_run, a->was.short_run, sizeof(t->state.short_run));
    return status;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* Rank 0: the text of a file, as the run would write it; unmarked: see struct evaluation_source. */
static enum chex_status
make_text(const struct audit *a, const struct evaluation *e, unsigned kind, bool unmarked, struct buffer *text,
          struct chex_error *err)
{
    const struct trainer_task *task = &a->t->task;
    const struct evaluation_source source = {.ds = task->ds,
                                             .certificate = &task->certificate,
                                             .model = task->graph->model,
                                             .side = task->side,
                                             .checkpoint = TRAINER_BEST,
                                             .checkpoint_sha256 = a->best_hash,
                                             .step = a->best.step,
                                             .operating = &a->t->best.operating,
                                             .epochs = a->best.epoch,
                                             .unmarked = unmarked};

    text->size = 0;
    return kind == CSV ? predictions_text(e, &source, text, err) : metrics_text(e, &source, text, err);
}

/* Returns whether the header of a CSV file ends with RESEARCH_COLUMN; files of versions before it do not. */
static bool
is_marked(const struct buffer *csv)
{
    static const char mark[] = "," RESEARCH_COLUMN;
    const char *end = csv->size > 0 ? memchr(csv->data, '\n', csv->size) : NULL;
    size_t length = end ? (size_t)(end - (const char *)csv->data) : 0;

    return length >= sizeof(mark) - 1 && memcmp(end - (sizeof(mark) - 1), mark, sizeof(mark) - 1) == 0;
}

/* Change line ends CRLF to LF; returns whether there were any. */
static bool
drop_carriage_returns(struct buffer *csv)
{
    uint8_t *text = csv->data;
    size_t from, to = 0;
    bool found;

    for (from = 0; from < csv->size; from++)
        if (text[from] != '\r' || from + 1 == csv->size || text[from + 1] != '\n')
            text[to++] = text[from];
    found = to < csv->size;
    csv->size = to;
    return found;
}

/* Rank 0: compare predictions; a file with other line ends differs, but a difference of its cells comes first. */
static enum chex_status
compare_csv(struct audit *a, const struct evaluation *e, struct buffer *was, struct buffer *now, struct chex_error *err)
{
    const bool crlf = drop_carriage_returns(was);
    enum chex_status status = is_marked(was) ? CHEX_OK : make_text(a, e, CSV, true, now, err);

    if (status == CHEX_OK)
        status = audit_compare_csv(&a->part, was, now, err);
    if (status == CHEX_OK && crlf && a->part.outcome == AUDIT_EQUAL)
        audit_differ(&a->part, "", "only the line ends", "CRLF", "LF");
    return status;
}

/* Rank 0: compare one file; e: NULL without an evaluation.  A run that is complete has every file. */
static enum chex_status
compare_file(struct audit *a, const char *split, unsigned kind, const struct evaluation *e, struct chex_error *err)
{
    struct buffer was = {0}, now = {0};
    struct chex_error why;
    enum chex_status status = CHEX_OK, read = CHEX_OK;
    bool there = has_file(a, kind, split);

    a->part = (struct audit_part){.outcome = AUDIT_EQUAL, .from = TRAINER_BEST};
    file_of(kind, split, a->part.to);
    audit_begin_part(a);
    if (!there && !trainer_is_complete(&a->t->job, &a->was)) {
        audit_skip(a, "there is no such file, and the run is not complete");
    } else if (!there) {
        audit_differ(&a->part, "", "the file is missing", "", "");
    } else if (!e) {
        audit_differ(&a->part, "", "there is no " TRAINER_BEST " that it could be of", "", "");
    } else {
        status = make_text(a, e, kind, false, &now, err);
        if (status == CHEX_OK)
            read = file_read(a->folder.fd, a->part.to, 2 * now.size + NUMBERS_MAX, &was, &why);
        if (read == CHEX_ERR_MEMORY)
            status = error_memory(err);
        else if (read != CHEX_OK)
            audit_differ(&a->part, "", why.text, "", "");
        else if (status == CHEX_OK && kind == CSV)
            status = compare_csv(a, e, &was, &now, err);
        else if (status == CHEX_OK)
            status = audit_compare_json(&a->part, "", true, &was, &now, err);
    }
    if (status == CHEX_OK)
        audit_end_part(a);
    buffer_release(&was);
    buffer_release(&now);
    return status;
}

/* Rank 0: compute the operating points from the evaluation of val, as text; empty: there are none. */
static enum chex_status
choose_operating(const struct audit *a, const struct evaluation *e, struct buffer *text, struct chex_error *err)
{
    const struct trainer *t = a->t;
    struct operating *o = calloc(1, sizeof(*o));
    struct chex_error none;
    enum chex_status status = o ? CHEX_OK : error_memory(err);

    if (status == CHEX_OK)
        status = operating_choose(e, chex_dataset_split(t->task.ds, e->split), t->engine.facts.precision, o, err);
    if (status == CHEX_OK && o->there && trainer_fit_gate(&t->task, &o->gate, &none) != CHEX_OK)
        o->gate.there = false; /* as in a run */
    if (status == CHEX_OK && o->there)
        status = operating_format(o, e->findings, text, err);
    if (text->size > 0)
        text->size--; /* the terminator */
    free(o);
    return status;
}

/* Rank 0: compare the operating points in the metadata of the best model with those of this evaluation of val. */
static enum chex_status
compare_operating(struct audit *a, const struct evaluation *e, struct chex_error *err)
{
    struct buffer now = {0}, was = {0};
    struct safetensors s = {.fd = -1};
    const char *text = NULL;
    enum chex_status status = weights_open(a->folder.fd, TRAINER_BEST, &s, err);

    a->part = (struct audit_part){.outcome = AUDIT_EQUAL, .to = TRAINER_BEST};
    snprintf(a->part.from, sizeof(a->part.from), "%.40s", chex_dataset_split(a->t->task.ds, e->split)->name);
    if (status == CHEX_OK)
        status = choose_operating(a, e, &now, err);
    if (status == CHEX_OK)
        text = safetensors_metadata(&s, WEIGHTS_OPERATING);
    if (status == CHEX_OK && (!text || now.size == 0)) {
        if (text || now.size > 0)
            audit_differ(&a->part, "", "operating points", text ? "some" : "none", text ? "none" : "some");
    } else if (status == CHEX_OK) {
        status = buffer_append(&was, text, strlen(text), err);
        if (status == CHEX_OK)
            status = audit_compare_json(&a->part, "operating", false, &was, &now, err);
    }
    if (status == CHEX_OK)
        audit_end_part(a);
    safetensors_close(&s);
    buffer_release(&was);
    buffer_release(&now);
    return status;
}

/* ---- a split ----------------------------------------------------------------------------------------------------- */

/* Evaluate with these options.  All ranks. */
static enum chex_status
evaluate_again(struct audit *a, unsigned split, const struct audit_order *order, struct evaluation *e,
               struct chex_error *err)
{
    struct trainer *t = a->t;
    enum chex_status status;

    t->job.tta = (enum tta)order->tta;
    t->job.replicates = (unsigned)order->replicates;
    t->job.seed = order->seed;
    status = trainer_evaluate_split(t, (int)split, false, e, err);
    t->job.tta = t->job.o->tta;
    t->job.replicates = t->job.o->replicates;
    t->job.seed = t->job.o->seed;
    return status;
}

/* --eval-only does not weigh positives, so its loss is the plain one, and as good as that of the run. */
static void
accept_plain_loss(struct evaluation *e, double loss)
{
    static const struct loss_options plain = {.kind = LOSS_BCE};
    const struct label_count labels = loss_count(e->count, e->outputs, e->label, NULL);
    double sum = 0;

    for (size_t i = 0; i < e->count; i++)
        sum += loss_sum(&plain, 1, e->outputs, e->logit + i * e->outputs, e->label + i * e->outputs, NULL, NULL, 1,
                        NULL);
    if (labels.known > 0 && e->not_finite == 0 && sum / (double)labels.known == loss)
        e->loss = loss;
}

static enum chex_status
compare_split(struct audit *a, unsigned split, const struct evaluation *e, struct chex_error *err)
{
    const char *name = chex_dataset_split(a->t->task.ds, split)->name;
    enum chex_status status = compare_file(a, name, CSV, e, err);

    return status == CHEX_OK ? compare_file(a, name, NUMBERS, e, err) : status;
}

/* Evaluate and compare.  Operating points are of the views of the run, also if the files are of others. */
static enum chex_status
audit_evaluated(struct audit *a, unsigned split, const struct audit_order *order, struct chex_error *err)
{
    struct trainer *t = a->t;
    const bool val = (int)split == t->task.validation, own = order->tta == (uint64_t)t->job.o->tta;
    const struct audit_order of_run = {.tta = (uint64_t)t->job.o->tta, .seed = t->job.o->seed};
    struct evaluation e = {.count = 0};
    enum chex_status status = audit_spread(a, err);

    if (status == CHEX_OK && val && !own) {
        status = evaluate_again(a, split, &of_run, &e, err);
        if (status == CHEX_OK && t->job.is_rank_0)
            status = compare_operating(a, &e, err);
        evaluation_release(&e);
        status = collective_agree(t->job.all, status, NULL, err);
    }
    if (status == CHEX_OK)
        status = evaluate_again(a, split, order, &e, err);
    if (status == CHEX_OK)
        accept_plain_loss(&e, order->loss);
    if (status == CHEX_OK && t->job.is_rank_0 && val && own)
        status = compare_operating(a, &e, err);
    if (status == CHEX_OK && t->job.is_rank_0)
        status = compare_split(a, split, &e, err);
    evaluation_release(&e);
    return status;
}

enum chex_status
audit_split(struct audit *a, unsigned split, struct chex_error *err)
{
    struct trainer *t = a->t;
    const char *name = chex_dataset_split(t->task.ds, split)->name;
    struct audit_order order = {.tta = (uint64_t)t->job.o->tta,
                                .replicates = t->job.o->replicates,
                                .seed = t->job.o->seed,
                                .loss = (double)NAN};
    enum chex_status status = CHEX_OK;

    if (t->job.is_rank_0) {
        order.skipped = !a->has_best ||
                        ((int)split != t->task.validation && !has_file(a, CSV, name) && !has_file(a, NUMBERS, name));
        read_options(a, name, &order);
        if (!order.skipped)
            status = read_best(a, split, err);
    }
    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK)
        status = collective_broadcast(t->job.all, &order, sizeof(order), err);
    if (status == CHEX_OK && !order.skipped)
        status = audit_evaluated(a, split, &order, err);
    else if (status == CHEX_OK && t->job.is_rank_0)
        status = compare_split(a, split, NULL, err);
    return collective_agree(t->job.all, status, NULL, err);
}
