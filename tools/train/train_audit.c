/*
 * train_audit.c - see train_audit.h; run/audit.h has the work
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_audit.h"

#include "base/ascii.h"
#include "base/json.h"
#include "common/wrap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* The options that change neither a number nor RUN, and max-steps, which limits the audit. */
static const char *const used[] = {"audit", "data", "max-steps", "stage", "cache", "crc", "timeout", NULL};

void
train_audit_note_option(struct train_cli *cli, const char *name)
{
    size_t i = 0;

    while (used[i] && strcmp(used[i], name) != 0)
        i++;
    if (!used[i] && !cli->not_audit)
        cli->not_audit = name;
}

enum chex_status
train_audit_check_options(const struct train_cli *cli, struct chex_error *err)
{
    const char *other = cli->dry_run ? "dry-run" : cli->trace ? "trace" : cli->not_audit;

    if (other)
        return error_set(err, CHEX_ERR_USAGE,
                         "--%s does not go with --audit, which trains with the settings of the run and writes nothing",
                         other);
    return CHEX_OK;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

#define ESCAPED(size) (4 * (size) + 4)

/* Names and texts may come from files. */
static const char *
escape(const char *text, char out[ESCAPED(CHEX_ERROR_TEXT)])
{
    return ascii_escape(text, strlen(text), out, ESCAPED(CHEX_ERROR_TEXT));
}

/* Puts what differs: "conv0.weight: 0.1 in the file, 0.2 again; 3 of 9,408 values differ, by at most 0.1" */
static void
put_difference(struct wrap *w, const struct audit_part *p)
{
    char text[ESCAPED(CHEX_ERROR_TEXT)];

    wrap_put(w, ": ", "%s", escape(p->name, text));
    if (!p->was[0] && !p->now[0]) /* the name says it all */
        return;
    wrap_put(w, ": ", "%s in the file,", escape(p->was, text));
    wrap_put(w, " ", "%s again", escape(p->now, text));
    if (p->differing > 0)
        wrap_put(w, "; ", "%s of %s values differ,", COUNT_TEXT(p->differing), COUNT_TEXT(p->values));
    if (p->differing > 0 && isnan(p->largest))
        wrap_put(w, " ", "not all of them finite");
    else if (p->differing > 0)
        wrap_put(w, " ", "by at most %.3g", p->largest);
    if (p->others > 0)
        wrap_put(w, "; ", "%s more tensors or values differ", COUNT_TEXT(p->others));
}

static void
print_part(const struct audit_part *p)
{
    struct wrap w = {.out = stderr};
    char steps[FORMAT_THINGS], text[ESCAPED(CHEX_ERROR_TEXT)];

    wrap_put(&w, "", "audit    %s -> %s", p->from, p->to);
    if (p->steps > 0)
        wrap_put(&w, ", ", "%s", format_things(p->steps, "step", steps));
    wrap_put(&w, ": ", "%s", p->outcome == AUDIT_DIFFERS ? "DIFFERS" : audit_outcome_names[p->outcome]);
    if (p->outcome == AUDIT_DIFFERS)
        put_difference(&w, p);
    else if (p->outcome == AUDIT_EQUAL && p->reduced)
        wrap_put(&w, " ", "without running statistics, because of another number of ranks");
    wrap_end(&w);
    if (p->outcome == AUDIT_SKIPPED)
        wrap_line(stderr, "", "%s", escape(p->text, text));
}

void
train_audit_end(const struct train_report *r, const struct trainer *t)
{
    const struct audit_result *result = &r->audit.result;
    const uint64_t compared = result->parts[AUDIT_EQUAL] + result->parts[AUDIT_DIFFERS];
    char pairs[FORMAT_THINGS], steps[FORMAT_THINGS];
    struct wrap w = {.out = stderr};
    size_t i;

    (void)t;
    if (!r->audit.ended)
        return;
    if (r->common->quiet) {
        for (i = 0; i < r->audit.count; i++)
            if (r->audit.part[i].outcome == AUDIT_DIFFERS)
                print_part(&r->audit.part[i]);
        return;
    }
    wrap_put(&w, "", "done     %s of checkpoints, %s trained again", format_things(result->pairs, "pair", pairs),
             format_things(result->steps, "step", steps));
    if (result->parts[AUDIT_DIFFERS] > 0)
        wrap_put(&w, ": ", "%s of %s comparisons DIFFER", COUNT_TEXT(result->parts[AUDIT_DIFFERS]),
                 COUNT_TEXT(compared));
    else if (compared == 1)
        wrap_put(&w, ": ", "the comparison is equal");
    else
        wrap_put(&w, ": ", "all %s comparisons are equal", COUNT_TEXT(compared));
    if (result->parts[AUDIT_SKIPPED] > 0)
        wrap_put(&w, "; ", "%s skipped", COUNT_TEXT(result->parts[AUDIT_SKIPPED]));
    if (result->left_out > 0)
        wrap_put(&w, "; ", "--max-steps left out %s", format_things(result->left_out, "pair", pairs));
    wrap_end(&w);
}

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

static void
on_begun(void *context, const struct trainer *t, const struct audit_part *part)
{
    struct train_report *r = context;

    r->audit.now = *part;
    r->audit.first_step = trainer_state(t)->step;
}

void
train_audit_stepped(void *context, const struct trainer *t, const struct trainer_step *step)
{
    struct train_report *r = context;
    const struct audit_part *p = &r->audit.now;
    char text[2 * CHECKPOINT_NAME + 80], done[FORMAT_TEXT], all[FORMAT_TEXT];

    (void)step;
    if (!progress_line_due(&r->line))
        return;
    snprintf(text, sizeof(text), "audit    %s -> %s  %s of %s steps", p->from, p->to,
             format_count(trainer_state(t)->step - r->audit.first_step, done), format_count(p->steps, all));
    progress_line_update(&r->line, text);
}

static void
on_ended(void *context, const struct trainer *t, const struct audit_part *part)
{
    struct train_report *r = context;
    struct train_audit *a = &r->audit;
    struct audit_part *grown = array_grow(a->part, &a->capacity, a->count, sizeof(*grown));

    (void)t;
    if (grown) {
        a->part = grown;
        a->part[a->count++] = *part;
    }
    a->lost |= !grown;
    progress_line_clear(&r->line);
    if (!r->common->quiet)
        print_part(part);
}

enum chex_status
train_audit_run(struct train_report *r, struct trainer *t, struct chex_error *err)
{
    const struct audit_watch watch = {.context = r, .begun = on_begun, .ended = on_ended};
    enum chex_status status = trainer_audit(t, &watch, &r->audit.result, err);

    if (status == CHEX_OK && r->audit.lost)
        status = error_set(err, CHEX_ERR_MEMORY, "out of memory");
    r->audit.ended = status == CHEX_OK;
    return status;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
part_json(const struct audit_part *p)
{
    const bool differs = p->outcome == AUDIT_DIFFERS;

    return json_pack("{s:s,s:s,s:o,s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "from", p->from, "to", p->to, "steps",
                     count_json(p->steps), "outcome", audit_outcome_names[p->outcome], "statistics", !p->reduced,
                     "name", differs ? text_json(p->name) : json_null(), "was",
                     differs ? text_json(p->was) : json_null(), "now", differs ? text_json(p->now) : json_null(),
                     "differing", count_json(p->differing), "values", count_json(p->values), "largest_difference",
                     p->differing > 0 ? real_json(p->largest) : json_null(), "others", count_json(p->others), "reason",
                     p->outcome == AUDIT_SKIPPED ? text_json(p->text) : json_null());
}

json_t *
train_audit_json(const struct train_report *r)
{
    const struct audit_result *result = &r->audit.result;
    json_t *parts = json_array();
    size_t i;

    for (i = 0; i < r->audit.count; i++)
        json_array_append_new(parts, part_json(&r->audit.part[i]));
    return json_pack("{s:o,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "run", text_json(r->cli->train.audit), "complete",
                     r->audit.ended, "pairs", count_json(result->pairs), "left_out", count_json(result->left_out),
                     "steps", count_json(result->steps), "equal", count_json(result->parts[AUDIT_EQUAL]), "different",
                     count_json(result->parts[AUDIT_DIFFERS]), "skipped", count_json(result->parts[AUDIT_SKIPPED]),
                     "comparisons", parts);
}

void
train_audit_release(struct train_audit *a)
{
    free(a->part);
    *a = (struct train_audit){.count = 0};
}
