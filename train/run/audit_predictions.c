/*
 * audit_predictions.c - evaluates the best model of the audited run again and compares its predictions; see audit.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/audit_private.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AUDIT_FILE  64
#define AUDIT_PATH  4096
#define NUMBERS_MAX (64u << 20) /* bytes of metrics-SPLIT.json */

/* Rank 0: returns why these predictions cannot be compared, or NULL.  metrics-SPLIT.json names their weights. */
static const char *
find_obstacle(const struct audit *a, const char *split)
{
    static const struct parse_bounds bounds = {.size = NUMBERS_MAX, .depth = 8, .values = 1000000};
    const char *hash, *tta, *why = NULL;
    struct buffer text = {0};
    json_t *document = NULL;
    char name[AUDIT_FILE];

    snprintf(name, sizeof(name), "metrics-%.31s.json", split);
    if (file_read(a->folder.fd, name, NUMBERS_MAX, &text, NULL) != CHEX_OK ||
        parse_json(text.data, text.size, &bounds, &document, NULL) != CHEX_OK)
        why = "there is no metrics-SPLIT.json, which names their weights";
    hash = json_string_value(json_object_get(json_object_get(document, "model"), "checkpoint_sha256"));
    tta = json_string_value(json_object_get(json_object_get(document, "views"), "tta"));
    if (!why && (!hash || strcmp(hash, a->best_hash) != 0))
        why = "they are of other weights than " TRAINER_BEST;
    else if (!why && (!tta || strcmp(tta, tta_names[a->t->job.o->tta]) != 0))
        why = "they are of other views (--tta) than those of the run";
    json_decref(document);
    buffer_release(&text);
    return why;
}

/* Rank 0: read the best model into the host arrays, for the evaluation. */
static enum chex_status
read_best(struct audit *a, struct chex_error *err)
{
    struct weights_report report;
    enum chex_status status = trainer_read_model(&a->t->task, a->folder.fd, TRAINER_BEST, false, &a->t->host, &report,
                                                 err);

    a->t->state = a->best;
    return status;
}

static enum chex_status
compare_predictions(struct audit *a, const struct evaluation *e, struct chex_error *err)
{
    struct predictions was = {.count = 0};
    char path[AUDIT_PATH];
    enum chex_status status;

    snprintf(path, sizeof(path), "%s/%s", a->folder.path, a->part.to);
    status = predictions_read(path, &was, err);
    if (status == CHEX_OK)
        audit_compare_predictions(&a->part, &was, e);
    predictions_release(&was);
    return status;
}

/* Rank 0: returns whether RUN has predictions of this split. */
static bool
begin_predictions(struct audit *a, unsigned split, struct audit_order *order)
{
    const char *name = chex_dataset_split(a->t->task.ds, split)->name, *obstacle;

    a->part = (struct audit_part){.outcome = AUDIT_EQUAL, .from = TRAINER_BEST};
    snprintf(a->part.to, sizeof(a->part.to), "predictions-%.31s.csv", name);
    *order = (struct audit_order){.skipped = 1};
    if (faccessat(a->folder.fd, a->part.to, F_OK, 0) != 0)
        return false;
    obstacle = a->has_best ? find_obstacle(a, name) : "there is no " TRAINER_BEST;
    if (obstacle)
        audit_skip(a, obstacle);
    else
        order->skipped = 0;
    return true;
}

enum chex_status
audit_split(struct audit *a, unsigned split, struct chex_error *err)
{
    struct trainer *t = a->t;
    struct audit_order order = {.skipped = 1};
    struct evaluation e = {.count = 0};
    bool there = t->job.is_rank_0 && begin_predictions(a, split, &order);
    enum chex_status status = there && !order.skipped ? read_best(a, err) : CHEX_OK;

    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK)
        status = collective_broadcast(t->job.all, &order, sizeof(order), err);
    if (there && status == CHEX_OK)
        audit_begin_part(a);
    if (status == CHEX_OK && !order.skipped)
        status = audit_spread(a, err);
    if (status == CHEX_OK && !order.skipped)
        status = trainer_evaluate_split(t, (int)split, false, &e, err);
    if (status == CHEX_OK && !order.skipped && t->job.is_rank_0)
        status = compare_predictions(a, &e, err);
    if (status == CHEX_OK && there)
        audit_end_part(a);
    evaluation_release(&e);
    return collective_agree(t->job.all, status, NULL, err);
}
