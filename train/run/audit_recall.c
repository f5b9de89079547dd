/*
 * audit_recall.c - sets the options of an earlier run from its newest checkpoint and its run.json; see audit.h
 *
 * A checkpoint has the settings that change a number, as lines "NAME VALUE" (settings_keep()).  The table of settings
 * says where each value belongs.  A few settings are not in a checkpoint, because a resumed run may change them; they
 * are read from run.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/audit.h"

#include "base/ascii.h"
#include "base/member.h"
#include "base/number_format.h"
#include "checkpoint/checkpoint_private.h"
#include "log/run_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUDIT_PATH 4096
#define MAX_DECAY  1e3

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Returns a copy that lives as long as *r, or NULL. */
static const char *
keep(struct audit_recalled *r, const char *text)
{
    const char *copy = arena_copy(&r->strings, text, strlen(text));

    r->failed |= !copy;
    return copy;
}

static bool
parse_count(const char *text, uint64_t most, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out <= most;
}

static bool
parse_real(const char *text, double most, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out) && *out >= 0 && *out <= most;
}

/* Set the member of a setting; returns false if the text is no value of it. */
static bool
set_value(const struct setting *s, const char *text, void *at, struct audit_recalled *r)
{
    uint64_t most = s->max > 0 ? s->max : UINT32_MAX, number = 0;
    int choice;

    switch (s->type) {
    case SETTING_TEXT:
        *(const char **)at = s->none && strcmp(text, s->none) == 0 ? NULL : keep(r, text);
        return true;
    case SETTING_NUMBER:
    case SETTING_DIGITS:
        if (!parse_count(text, most, &number))
            return false;
        member_put(at, s->size, number);
        return true;
    case SETTING_REAL:
    case SETTING_TIME:
        return parse_real(text, s->most > 0 ? s->most : MAX_DECAY, at);
    case SETTING_FLAG:
        *(bool *)at = strcmp(text, "yes") == 0;
        return true;
    case SETTING_CHOICE:
        choice = name_index(s->names, text);
        if (choice >= 0)
            member_put(at, s->size, (uint64_t)choice);
        return choice >= 0;
    }
    return false;
}

/* ---- settings whose text is not that of one member --------------------------------------------------------------- */

static bool
set_optimizer(struct trainer_options *o, const char *text)
{
    int kind = name_index(optimizer_names, text);

    if (kind >= 0)
        o->optimizer = optimizer_default((enum optimizer_kind)kind);
    return kind >= 0;
}

static bool
set_average(struct trainer_options *o, const char *text)
{
    bool good = parse_real(text, 1, &o->optimizer.average);

    o->average = good && o->optimizer.average > 0;
    return good;
}

/* "500", "2epochs" */
static bool
set_warmup(struct trainer_options *o, const char *text)
{
    size_t digits = strspn(text, "0123456789");
    bool epochs = strncmp(text + digits, "epoch", 5) == 0;
    uint64_t number = strtoull(text, NULL, 10);

    o->warmup_epochs = epochs && number <= CHECKPOINT_MAX_EPOCHS ? (uint32_t)number : 0;
    o->schedule.warmup = epochs || number > CHECKPOINT_MAX_WARMUP ? 0 : number;
    return digits > 0 && (epochs || text[digits] == '\0');
}

/* Split the names of the findings, separated by commas, into given weights. */
static bool
set_given(struct trainer_options *o, struct audit_recalled *r, const char *numbers, const char *findings)
{
    o->given = r->given;
    o->given_path = "--audit";
    o->given_count = 0;
    while (*findings && o->given_count < CHEX_FINDINGS_MAX) {
        struct given_weight *given = &r->given[o->given_count++];
        size_t length = strcspn(findings, ",");
        char *end;

        if (length > FINDING_NAME_MAX)
            return false;
        memcpy(given->name, findings, length);
        given->name[length] = '\0';
        given->weight = strtod(numbers, &end);
        given->line = o->given_count;
        if (end == numbers || !isfinite(given->weight) || given->weight < 0)
            return false;
        numbers = end + (*end == ',');
        findings += length + (findings[length] == ',');
    }
    return *findings == '\0' && *numbers == '\0';
}

static bool
set_positive(struct trainer_options *o, struct audit_recalled *r, const char *text, const char *findings)
{
    int kind = name_index(positive_names, text);

    o->positive = kind >= 0 ? (enum positive_weight)kind : POSITIVE_GIVEN;
    return o->positive != POSITIVE_GIVEN || set_given(o, r, text, findings);
}

/* ---- the checkpoint ---------------------------------------------------------------------------------------------- */

/*
 * Set one setting.  The schedule of each pair is in the state of its checkpoint, so the rate needs no scale here, and
 * lr-factor, which depends on the number of ranks, is not compared.
 */
static bool
recall(struct trainer_options *o, struct audit_recalled *r, const struct setting *s, const char *text,
       const char *findings)
{
    if (strcmp(s->name, "optimizer") == 0)
        return set_optimizer(o, text);
    if (strcmp(s->name, "ema") == 0)
        return set_average(o, text);
    if (strcmp(s->name, "warmup") == 0)
        return set_warmup(o, text);
    if (strcmp(s->name, "pos-weight") == 0)
        return set_positive(o, r, text, findings);
    if (strcmp(s->name, "lr-scale") == 0 || s->offset + s->size > sizeof(*o))
        return true; /* a value that is derived from others */
    return set_value(s, text, (char *)o + s->offset, r);
}

static enum chex_status
recall_all(struct trainer_options *o, struct audit_recalled *r, const struct checkpoint_state *state,
           const char *findings, struct chex_error *err)
{
    const struct setting *s;
    char text[SETTINGS_TEXT];

    for (s = trainer_settings; s->name; s++) {
        bool kept = s->kind >= SETTING_FREE && settings_kept_text(state->settings, s->name, text, sizeof(text));

        if (kept && !recall(o, r, s, text, findings))
            return error_set(err, CHEX_ERR_INCOMPATIBLE, "its setting %s has a value that this program does not know",
                             s->name);
    }
    o->rate_scale = RATE_GIVEN;
    o->seed = state->seed;
    o->choose_window = false;
    o->window = state->window;
    return r->failed ? error_memory(err) : CHEX_OK;
}

/* The micro-batches of a step, divided among the ranks of this job. */
static enum chex_status
share_batches(struct trainer_options *o, const struct checkpoint_state *state, unsigned ranks, struct chex_error *err)
{
    uint64_t all = o->micro_batch > 0 ? state->global_batch / o->micro_batch : 0;

    if (all == 0 || state->global_batch % o->micro_batch != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "a step of %s images does not consist of micro-batches of %u",
                         COUNT_TEXT(state->global_batch), o->micro_batch);
    if (all % ranks != 0)
        return error_set(err, CHEX_ERR_USAGE,
                         "--audit: %u ranks cannot share equally the micro-batches of a step of '%s' (%s of %u images)",
                         ranks, o->audit, COUNT_TEXT(all), o->micro_batch);
    o->batch = o->micro_batch;
    o->accumulate = (unsigned)(all / ranks);
    return CHEX_OK;
}

static enum chex_status
recall_checkpoint(struct trainer_options *o, const struct folder *folder, unsigned ranks, struct audit_recalled *r,
                  struct chex_error *err)
{
    struct checkpoint_state *state = calloc(1, sizeof(*state));
    char name[CHECKPOINT_NAME], file[CHECKPOINT_FILE];
    struct safetensors s = {.fd = -1};
    const char *findings;
    uint64_t *step = NULL;
    size_t count = 0;
    enum chex_status status = state ? checkpoint_list_steps(folder, &step, &count, err) : error_memory(err);

    if (status == CHEX_OK && count == 0)
        status = error_set(err, CHEX_ERR_MISSING, "'%s' contains no checkpoint", folder->path);
    if (status == CHEX_OK) {
        checkpoint_name(step[0], name);
        checkpoint_file_name(name, CHECKPOINT_SUFFIX, file);
        status = safetensors_open(folder->fd, file, &s, err);
        if (status == CHEX_OK)
            status = checkpoint_parse_state(&s, state, err);
        findings = status == CHEX_OK ? safetensors_metadata(&s, "labels") : NULL;
        if (status == CHEX_OK)
            status = recall_all(o, r, state, findings ? findings : "", err);
        safetensors_close(&s);
        if (status == CHEX_OK)
            status = share_batches(o, state, ranks, err);
        else
            status = error_context(err, chex_status_is_data(status) ? CHEX_ERR_INCOMPATIBLE : status, "'%s/%s'",
                                   folder->path, file);
    }
    free(step);
    free(state);
    return status;
}

/* ---- run.json ---------------------------------------------------------------------------------------------------- */

/* Copy an option of run.json to *out; NULL if run.json does not have it. */
static enum chex_status
recall_option(const struct folder *folder, const char *name, struct audit_recalled *r, const char **out,
              struct chex_error *err)
{
    char text[AUDIT_PATH];
    enum chex_status status = run_file_option(folder, name, text, sizeof(text), err);

    *out = NULL;
    if (status == CHEX_OK && text[0])
        *out = keep(r, text);
    return status == CHEX_OK && r->failed ? error_memory(err) : status;
}

static enum chex_status
recall_run_file(struct trainer_options *o, const struct folder *folder, struct audit_recalled *r,
                struct chex_error *err)
{
    const char *data = NULL, *every = NULL, *bad = NULL;
    char init[AUDIT_PATH] = "";
    uint64_t number = 1;
    enum chex_status status = recall_option(folder, "data", r, &data, err);

    if (status == CHEX_OK)
        status = recall_option(folder, "eval-every", r, &every, err);
    if (status == CHEX_OK)
        status = recall_option(folder, "on-bad-record", r, &bad, err);
    if (status == CHEX_OK)
        status = run_file_init(folder, init, sizeof(init), err);
    if (status != CHEX_OK)
        return status;
    if (!every || !parse_count(every, CHECKPOINT_MAX_EPOCHS, &number))
        return error_set(err, CHEX_ERR_MISSING, "'%s' has no " RUN_FILE_NAME " of a training run", folder->path);
    o->evaluate_every = (uint32_t)number;
    o->skip_bad = bad && strcmp(bad, "skip") == 0;
    if (!o->data)
        o->data = data;
    o->init = NULL;
    if (init[0] && strcmp(init, "random") != 0)
        o->init = keep(r, init);
    return r->failed ? error_memory(err) : CHEX_OK;
}

enum chex_status
audit_recall(struct trainer_options *o, unsigned ranks, struct audit_recalled *r, struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    enum chex_status status = folder_open(o->audit, false, &folder, err);

    if (status == CHEX_OK)
        status = recall_checkpoint(o, &folder, ranks, r, err);
    if (status == CHEX_OK)
        status = recall_run_file(o, &folder, r, err);
    folder_close(&folder);
    o->run = NULL;
    o->resume = "none";
    o->replicates = 0;
    o->checkpoint_seconds = 0;
    o->checkpoint_steps = 0;
    o->audit_steps = o->max_steps;
    o->max_steps = 0;
    return status;
}

void
audit_recall_release(struct audit_recalled *r)
{
    arena_release(&r->strings);
}
