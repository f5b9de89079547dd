/*
 * run_log_lines.c - see run_log_private.h; the keys are described in schemas/metrics.schema.json
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/run_log_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define METRICS_MAX (256u << 20) /* for metrics.jsonl: a million lines of steps */
#define LINE_FLAGS  (JSON_COMPACT | JSON_REAL_PRECISION(RUN_JSON_DIGITS))

static const struct parse_bounds bounds = {.size = 1u << 20, .depth = 8, .values = 100000};

double
run_log_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

const struct step_number step_number[STEP_NUMBERS] = {
    {"loss", offsetof(struct run_log_step, loss)},
    {"learning_rate", offsetof(struct run_log_step, rate)},
    {"gradient_norm", offsetof(struct run_log_step, norm)},
};

double
step_number_of(const struct run_log_step *s, unsigned number)
{
    double value;

    memcpy(&value, (const char *)s + step_number[number].offset, sizeof(value));
    return value;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Start an object with the members of every line. */
static struct run_json
begin(const char *kind, struct line_head head, uint64_t step, uint32_t epoch)
{
    struct run_json j = run_json_object();

    run_json_text(&j, "kind", kind);
    run_json_real(&j, "time", head.time);
    run_json_count(&j, "step", step);
    run_json_count(&j, "epoch", epoch);
    j.failed |= !metrics_json_mark(j.object, head.leaky, head.short_run);
    return j;
}

static enum chex_status
end(struct run_json *j, struct buffer *b, struct chex_error *err)
{
    json_t *line = run_json_take(j);
    size_t before = b->size;
    enum chex_status status = append_json(line, LINE_FLAGS, b, err);

    if (status != CHEX_OK)
        b->size = before;
    json_decref(line);
    return status;
}

static void
add_speed(struct run_json *j, uint64_t images, double seconds, const struct step_times *times)
{
    struct run_json parts = run_json_object();
    unsigned i;

    run_json_count(j, "images", images);
    run_json_real(j, "seconds", seconds);
    run_json_real(j, "images_per_second", seconds > 0 ? (double)images / seconds : 0);
    for (i = 0; i < PART_COUNT; i++)
        run_json_real(&parts, step_part_name[i], times->seconds[i]);
    run_json_add(j, "parts", run_json_take(&parts));
}

static void
add_scale(struct run_json *j, double loss_scale, uint64_t steps_skipped)
{
    run_json_real(j, "loss_scale", loss_scale);
    run_json_count(j, "steps_skipped", steps_skipped);
}

enum chex_status
run_log_step_line(const struct run_log_step *s, struct line_head head, struct buffer *b, struct chex_error *err)
{
    struct run_json j = begin("step", head, s->step, s->epoch);
    unsigned i;

    for (i = 0; i < STEP_NUMBERS; i++)
        run_json_real(&j, step_number[i].name, step_number_of(s, i));
    add_speed(&j, s->images, s->seconds, &s->times);
    run_json_count(&j, "skipped", s->skipped);
    add_scale(&j, s->loss_scale, s->steps_skipped);
    return end(&j, b, err);
}

enum chex_status
run_log_epoch_line(const struct run_log_epoch *e, struct line_head head, struct buffer *b, struct chex_error *err)
{
    struct run_json j = begin("epoch", head, e->step, e->epoch);

    run_json_real(&j, "loss", e->loss);
    run_json_real(&j, "learning_rate", e->rate);
    add_speed(&j, e->images, e->seconds, &e->times);
    run_json_count(&j, "skipped", e->skipped);
    add_scale(&j, e->loss_scale, e->steps_skipped);
    run_json_text(&j, "order", e->order);
    return end(&j, b, err);
}

enum chex_status
run_log_times_line(uint64_t step, uint32_t epoch, const char *over, const struct rank_times *times,
                   struct line_head head, struct buffer *b, struct chex_error *err)
{
    struct run_json j = begin("times", head, step, epoch);

    run_json_text(&j, "over", over);
    j.failed |= !rank_times_json_add(j.object, times);
    return end(&j, b, err);
}

enum chex_status
run_log_evaluation_line(const struct run_log_evaluation *e, struct line_head head, struct buffer *b,
                        struct chex_error *err)
{
    const struct metrics *m = e->metrics;
    struct run_json j = begin("evaluation", head, e->step, e->epoch);

    run_json_text(&j, "split", e->split);
    run_json_text(&j, "split_sha256", e->sha256);
    run_json_text(&j, "weights", e->weights);
    run_json_text(&j, "tta", e->tta);
    run_json_bool(&j, "best", e->best);
    run_json_count(&j, "images", m->images);
    run_json_count(&j, "patients", m->patients);
    run_json_real(&j, "loss", e->loss);
    run_json_count(&j, "defined", m->defined);
    j.failed |= !metrics_json_add(j.object, m->mean, m, METRICS_LINE);
    run_json_add(&j, "findings", metrics_json_findings(m, e->findings, METRICS_LINE));
    run_json_add(&j, "optimistic", metrics_json_optimistic());
    run_json_real(&j, "seconds", e->seconds);
    run_json_count(&j, "skipped", e->skipped);
    return end(&j, b, err);
}

enum chex_status
run_log_note_line(uint64_t step, uint32_t epoch, const char *what, const char *text, struct line_head head,
                  struct buffer *b, struct chex_error *err)
{
    struct run_json j = begin("note", head, step, epoch);

    run_json_text(&j, "what", what);
    run_json_text(&j, "text", text);
    return end(&j, b, err);
}

/*
 * ---- lines before a resume ----------------------------------------------------------------------------------------
 */

/* Returns whether this is a line that is not after the checkpoint. */
static bool
stays(const json_t *line, const struct run_log_options *o)
{
    const char *kind = json_string_value(json_object_get(line, "kind"));
    const json_t *its_step = json_object_get(line, "step"), *its_epoch = json_object_get(line, "epoch");
    uint32_t epochs = UINT32_MAX;

    if (kind && strcmp(kind, "evaluation") == 0)
        epochs = o->epochs;
    else if (kind && strcmp(kind, "epoch") == 0)
        epochs = o->trained;
    return kind && json_is_integer(its_step) && json_is_integer(its_epoch) && json_integer_value(its_step) >= 0 &&
           (uint64_t)json_integer_value(its_step) <= o->step && json_integer_value(its_epoch) <= (json_int_t)epochs;
}

/* Mark a line, and in an evaluation each finding. */
static bool
mark_line(json_t *line)
{
    bool good = json_object_set_new(line, "leaky", json_true()) == 0;
    json_t *finding;
    size_t i;

    json_array_foreach (json_object_get(line, "findings"), i, finding)
        good = good && json_object_set_new(finding, "leaky", json_true()) == 0;
    return good;
}

/* Append the line if it stays; in a leaky run with the mark, which it lacks if the leak was found later. */
static enum chex_status
keep_line(const uint8_t *line, size_t size, const struct run_log_options *o, struct buffer *kept,
          struct chex_error *err)
{
    json_t *value = NULL;
    enum chex_status status = CHEX_OK;

    if (parse_json(line, size - 1, &bounds, &value, NULL) == CHEX_OK && stays(value, o)) {
        if (!o->leaky || json_object_get(value, "leaky"))
            status = buffer_append(kept, line, size, err);
        else
            status = mark_line(value) ? append_json(value, LINE_FLAGS, kept, err) : error_memory(err);
    }
    json_decref(value);
    return status;
}

enum chex_status
run_log_trim(const struct run_log_options *o, struct chex_error *err)
{
    const struct folder *folder = o->folder;
    struct buffer all = {0}, kept = {0};
    size_t at = 0;
    enum chex_status status = file_read(folder->fd, RUN_LOG_METRICS, METRICS_MAX, &all, err);

    if (status == CHEX_ERR_MISSING)
        status = CHEX_OK; /* and `all` is empty */
    else if (status != CHEX_OK)
        error_context(err, status, "'%s/%s'", folder->path, RUN_LOG_METRICS);
    while (status == CHEX_OK && at < all.size) {
        const uint8_t *line = all.data + at, *newline = memchr(line, '\n', all.size - at);
        size_t size = newline ? (size_t)(newline - line) + 1 : all.size - at;

        /* A line without newline may be incomplete. */
        if (newline)
            status = keep_line(line, size, o, &kept, err);
        at += size;
    }
    if (status == CHEX_OK && kept.size != all.size)
        status = safe_file_put(folder, RUN_LOG_METRICS, kept.data, kept.size, err);
    buffer_release(&kept);
    buffer_release(&all);
    return status;
}
