/*
 * trained.c - see trained.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/list/trained.h"

#include "base/ascii.h"
#include "base/memory.h"
#include "checkpoint/checkpoint.h"
#include "data/fold.h"
#include "data/limit.h"
#include "data/loader.h"
#include "dataset/format.h"
#include "log/run_file.h"

#include <stdlib.h>
#include <string.h>

#define MODEL_SUFFIX     ".safetensors"
#define OPTIMIZER_SUFFIX ".opt.safetensors"

/* A sample of the training split that --where selects; name is NULL for the others. */
struct selected {
    const char *name, *patient;
};

struct use {
    uint64_t step;   /* from 1 */
    uint32_t epoch;  /* from 1 */
    uint32_t sample; /* index into samples */
    bool partner;    /* mixed into the image before it in the order: --mixup */
};

struct model_file {
    char name[CHECKPOINT_NAME]; /* without MODEL_SUFFIX */
    uint64_t step;
    bool used; /* the run had trained on a selected image before it saved this file */
};

struct trained {
    struct inspect *in;
    const struct target *target;
    struct folder run;
    char split[SPLIT_NAME_MAX];    /* the training split */
    struct checkpoint_state state; /* of the newest file */
    double mixup;                  /* its option --mixup */
    struct model_file *file;       /* [file_count], by name */
    size_t file_count, file_capacity;
    struct samples samples;
    struct selected *selected; /* [samples.count] */
    uint64_t images, others;   /* selected images in the training split, and in other splits */
    struct use *use;           /* by step */
    size_t use_count, use_capacity;
    struct arena strings;
};

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static bool
is_model(const char *name)
{
    size_t length = strlen(name), suffix = strlen(MODEL_SUFFIX), optimizer = strlen(OPTIMIZER_SUFFIX);

    if (length <= suffix || length - suffix >= CHECKPOINT_NAME || strcmp(name + length - suffix, MODEL_SUFFIX) != 0)
        return false;
    return length < optimizer || strcmp(name + length - optimizer, OPTIMIZER_SUFFIX) != 0;
}

/* Add a model file of the run.  A file without a state, or of another data set, is not one. */
static enum chex_status
add_file(struct trained *r, const char *file, struct chex_error *err)
{
    struct model_file *grown, new = {.step = 0};
    struct checkpoint_state state;
    enum chex_status status;

    snprintf(new.name, sizeof(new.name), "%.*s", (int)(strlen(file) - strlen(MODEL_SUFFIX)), file);
    status = checkpoint_read_state(&r->run, new.name, NULL, &state, err);
    if (status == CHEX_ERR_MEMORY || status == CHEX_ERR_READ)
        return status;
    if (status != CHEX_OK) {
        progress_line_warn(&r->in->line, "%s: warning: %s", r->in->program->name, err->text);
        return CHEX_OK;
    }
    grown = array_grow(r->file, &r->file_capacity, r->file_count, sizeof(*grown));
    if (!grown)
        return error_memory(err);
    r->file = grown;
    new.step = state.step;
    r->file[r->file_count++] = new;
    if (r->file_count == 1 || state.step > r->state.step)
        r->state = state;
    return CHEX_OK;
}

/* Read the states of all model files of the run, and the name of its training split. */
static enum chex_status
read_run(struct trained *r, struct chex_error *err)
{
    struct folder_names names = {.count = 0};
    enum chex_status status = folder_list(&r->run, is_model, &names, err);
    size_t i;

    for (i = 0; i < names.count && status == CHEX_OK; i++)
        status = add_file(r, names.name[i], err);
    folder_names_release(&names);
    if (status == CHEX_OK && r->file_count == 0)
        status = error_set(err, CHEX_ERR_MISSING, "'%s' has no checkpoint", r->run.path);
    if (status == CHEX_OK)
        status = run_file_train_split(&r->run, r->split, sizeof(r->split), err);
    if (status == CHEX_OK && manifest_had_id(&r->target->dataset->manifest, r->state.dataset_id))
        return error_set(
            err, CHEX_ERR_INCOMPATIBLE,
            "'%s' was trained on data set %s, before images were withdrawn from '%s', now %s: the order of "
            "the run needs them (give a copy of %s, or list before the withdrawal)",
            r->run.path, r->state.dataset_id, r->target->path, r->target->dataset->info.id, r->state.dataset_id);
    if (status == CHEX_OK && strcmp(r->state.dataset_id, r->target->dataset->info.id) != 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' was trained on data set %s, not on %s", r->run.path,
                           r->state.dataset_id, r->target->dataset->info.id);
    return status;
}

/* ---- the selected images ----------------------------------------------------------------------------------------- */

static int
by_place(const void *x, const void *y)
{
    const struct sample_place *a = x, *b = y;

    if (a->shard != b->shard)
        return a->shard < b->shard ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static enum chex_status
on_record(void *context, const struct walk_record *record, struct chex_error *err)
{
    struct trained *r = context;
    const struct record_values *v = record->values;
    const struct sample_place key = {record->shard, record->index}, *place;
    struct selected *s;

    if (v->weight == 0 || !record->selected)
        return CHEX_OK;
    place = bsearch(&key, r->samples.place, r->samples.count, sizeof(key), by_place);
    if (!place) {
        r->others++;
        return CHEX_OK;
    }
    s = &r->selected[place - r->samples.place];
    s->name = arena_copy(&r->strings, v->name.data, v->name.size);
    s->patient = arena_copy(&r->strings, v->patient.data, v->patient.size);
    r->images++;
    return s->name && s->patient ? CHEX_OK : error_memory(err);
}

/* List the training images of the fold; a record that is damaged was in none. */
static enum chex_status
list_fold(struct trained *r, unsigned split, const char *text, struct chex_error *err)
{
    int validation = chex_dataset_find_split(r->target->dataset, "val");
    struct fold_choice choice;
    struct fold *fold = NULL;
    enum chex_status status = fold_parse(text, &choice, err);

    if (status == CHEX_OK && validation < 0)
        status = error_set(err, CHEX_ERR_USAGE, "'%s' has no split 'val'", r->target->path);
    if (status == CHEX_OK)
        status = fold_new(r->target->dataset, split, (unsigned)validation, &choice, true, &fold, err);
    if (status == CHEX_OK) {
        r->samples = fold->samples[FOLD_TRAIN];
        fold->samples[FOLD_TRAIN] = (struct samples){.count = 0};
    }
    fold_free(fold);
    return status;
}

/* List the samples of an epoch: of the training split, or what --fold and --limit of the run make of it. */
static enum chex_status
list_trained(struct trained *r, unsigned split, struct chex_error *err)
{
    const char *kept = r->state.settings;
    char fold[FOLD_TEXT], text[LIMIT_TEXT + 2];
    struct sample_limit limit;
    enum chex_status status = CHEX_OK;

    if (settings_kept_text(kept, "fold", fold, sizeof(fold)) && strcmp(fold, "none") != 0)
        status = list_fold(r, split, fold, err);
    else
        status = samples_list(r->target->dataset, split, &r->samples, err);
    if (status == CHEX_OK && settings_kept_text(kept, "limit", text, sizeof(text)) && strcmp(text, "all") != 0) {
        status = limit_parse(text, &limit, err);
        if (status == CHEX_OK)
            status = samples_limit(r->target->dataset, &limit, r->state.seed, true, &r->samples, err);
    }
    return status == CHEX_ERR_USAGE ? error_context(err, CHEX_ERR_INCOMPATIBLE, "'%s'", r->run.path) : status;
}

static enum chex_status
select_images(struct trained *r, struct walk *w, struct chex_error *err)
{
    int split = chex_dataset_find_split(r->target->dataset, r->split);
    enum chex_status status;

    if (split < 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' was trained on split '%s', which '%s' does not have",
                         r->run.path, r->split, r->target->path);
    status = list_trained(r, (unsigned)split, err);
    if (status != CHEX_OK)
        return status;
    r->selected = calloc(r->samples.count ? r->samples.count : 1, sizeof(*r->selected));
    if (!r->selected)
        return error_memory(err);
    status = walk_run(w, err);
    if (status == CHEX_OK && r->images + r->others == 0 && w->faults == 0)
        status = inspect_no_image(r->target, err);
    return status;
}

/* ---- uses -------------------------------------------------------------------------------------------------------- */

static enum chex_status
add_use(struct trained *r, struct use use, struct chex_error *err)
{
    struct use *grown = array_grow(r->use, &r->use_capacity, r->use_count, sizeof(*grown));

    if (!grown)
        return error_memory(err);
    r->use = grown;
    r->use[r->use_count++] = use;
    return CHEX_OK;
}

/* Read the option --mixup of the run; a run from before the option has none. */
static enum chex_status
read_mixup(struct trained *r, struct chex_error *err)
{
    char text[32], *end;

    if (!settings_kept_text(r->state.settings, "mixup", text, sizeof(text)))
        return CHEX_OK;
    r->mixup = strtod(text, &end);
    if (end == text || *end != '\0' || !(r->mixup >= 0))
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s': '%s' is no value of --mixup", r->run.path, text);
    return CHEX_OK;
}

/* Returns whether the run mixed the next image of the order into this sample.  The share can be 0. */
static bool
takes_partner(const struct trained *r, uint32_t epoch, uint32_t sample)
{
    const struct loader_options o = {.seed = r->state.seed, .epoch = epoch, .mixup = r->mixup};

    return r->mixup > 0 && loader_mix(&o, &r->samples.place[sample]) > 0;
}

/* Find the uses of one epoch, up to the last step of the newest checkpoint. */
static enum chex_status
find_in_epoch(struct trained *r, uint32_t epoch, uint32_t *order, struct chex_error *err)
{
    const struct checkpoint_state *s = &r->state;
    uint64_t before = epoch * order_steps(r->samples.count, s->global_batch);
    enum chex_status status = order_epoch(&r->samples, s->seed, epoch, s->window, order, err);
    size_t i;

    for (i = 0; i < r->samples.count && status == CHEX_OK; i++) {
        uint64_t step = before + i / s->global_batch + 1;
        uint32_t partner = order[(i + 1) % r->samples.count];

        if (step > s->step)
            break;
        if (r->selected[order[i]].name)
            status = add_use(r, (struct use){step, epoch + 1, order[i], false}, err);
        if (status == CHEX_OK && r->selected[partner].name && takes_partner(r, epoch, order[i]))
            status = add_use(r, (struct use){step, epoch + 1, partner, true}, err);
    }
    return status;
}

static enum chex_status
find_uses(struct trained *r, struct chex_error *err)
{
    const struct checkpoint_state *s = &r->state;
    uint64_t steps = order_steps(r->samples.count, s->global_batch);
    enum chex_status status = CHEX_OK;
    uint32_t *order, epoch;
    size_t i;

    if (s->step != s->epoch * steps + s->batches)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' changed its global batch (--allow-batch-change), so its order cannot be computed",
                         r->run.path);
    status = read_mixup(r, err);
    if (status != CHEX_OK)
        return status;
    order = calloc(r->samples.count ? r->samples.count : 1, sizeof(*order));
    if (!order)
        return error_memory(err);
    for (epoch = 0; epoch <= s->epoch && r->images > 0 && status == CHEX_OK; epoch++)
        status = find_in_epoch(r, epoch, order, err);
    free(order);
    for (i = 0; i < r->file_count; i++)
        r->file[i].used = r->use_count > 0 && r->use[0].step <= r->file[i].step;
    return status;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void
print_files(const struct trained *r, const char *label, bool used)
{
    char name[4 * CHECKPOINT_NAME + 1];
    size_t i;

    for (i = 0; i < r->file_count; i++)
        if (r->file[i].used == used) {
            ascii_escape(r->file[i].name, strlen(r->file[i].name), name, sizeof(name));
            printf("%-8s %s" MODEL_SUFFIX " (step %llu)\n", label, name, (unsigned long long)r->file[i].step);
            label = "";
        }
}

static void
print_result(void *result)
{
    const struct trained *r = result;
    char images[FORMAT_THINGS], uses[FORMAT_THINGS], steps[FORMAT_TEXT], name[INSPECT_TEXT], patient[INSPECT_TEXT];
    size_t i;

    printf("trained  on %s of split %s, %s up to step %s\n", format_things(r->images, "selected image", images),
           r->split, format_things(r->use_count, "use", uses), format_count(r->state.step, steps));
    if (r->others > 0)
        printf("         not on %s of other splits\n", format_things(r->others, "selected image", images));
    for (i = 0; i < r->use_count; i++) {
        const struct use *u = &r->use[i];

        printf("         epoch %u  step %llu  %s  patient %s%s\n", u->epoch, (unsigned long long)u->step,
               inspect_text(inspect_bytes(r->selected[u->sample].name), name),
               inspect_text(inspect_bytes(r->selected[u->sample].patient), patient),
               u->partner ? "  mixed into another image" : "");
    }
    print_files(r, "with", true);
    print_files(r, "without", false);
}

static const struct table_column columns[] = {{.name = "kind"}, {.name = "epoch"},   {.name = "step"},
                                              {.name = "name"}, {.name = "patient"}, {.name = NULL}};

static void
put_rows(struct table_writer *t, void *result)
{
    const struct trained *r = result;
    char name[INSPECT_TEXT], patient[INSPECT_TEXT], file[4 * CHECKPOINT_NAME + 1];
    size_t i;

    for (i = 0; i < r->use_count; i++) {
        const struct selected *s = &r->selected[r->use[i].sample];

        table_row(t, (struct cell[]){cell_text(r->use[i].partner ? "partner" : "use"), cell_count(r->use[i].epoch),
                                     cell_count(r->use[i].step), cell_text(inspect_text(inspect_bytes(s->name), name)),
                                     cell_text(inspect_text(inspect_bytes(s->patient), patient))});
    }
    for (i = 0; i < r->file_count; i++)
        table_row(t, (struct cell[]){
                         cell_text(r->file[i].used ? "with" : "without"), cell_none(), cell_count(r->file[i].step),
                         cell_text(ascii_escape(r->file[i].name, strlen(r->file[i].name), file, sizeof(file))),
                         cell_none()});
}

static json_t *
result_json(void *result)
{
    const struct trained *r = result;
    json_t *uses = json_array(), *files = json_array();
    size_t i;

    for (i = 0; i < r->use_count; i++) {
        const struct selected *s = &r->selected[r->use[i].sample];

        inspect_json_push(&uses, json_pack("{s:o, s:o, s:o, s:o, s:b}", "epoch", count_json(r->use[i].epoch), "step",
                                           count_json(r->use[i].step), "name", text_json(s->name), "patient",
                                           text_json(s->patient), "partner", r->use[i].partner));
    }
    for (i = 0; i < r->file_count; i++)
        inspect_json_push(&files, json_pack("{s:o, s:o, s:b}", "name", text_json(r->file[i].name), "step",
                                            count_json(r->file[i].step), "used", r->file[i].used));
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "path", text_json(r->target->path), "run",
                     text_json(r->run.path), "split", r->split, "step", count_json(r->state.step), "images",
                     count_json(r->images), "images_of_other_splits", count_json(r->others), "uses", uses,
                     "checkpoints", files);
}

static const struct inspect_result trained_result = {columns, put_rows, result_json, print_result};

/* ---- all together ------------------------------------------------------------------------------------------------ */

int
inspect_trained_on(struct inspect *in, struct target *t)
{
    struct trained r = {.in = in, .target = t};
    struct walk w = {.in = in, .target = t, .depth = WALK_TEXTS, .record = on_record, .context = &r, .threads = 1};
    struct chex_error err;
    int code;
    enum chex_status status = folder_open(in->options->trained_on, false, &r.run, &err);

    if (status == CHEX_OK)
        status = read_run(&r, &err);
    if (status == CHEX_OK)
        status = select_images(&r, &w, &err);
    if (status == CHEX_OK)
        status = find_uses(&r, &err);
    if (status == CHEX_OK) {
        inspect_print_result(in, &trained_result, &r);
        code = inspect_walk_code(&w);
    } else {
        code = inspect_fail(in, t->path, &err);
    }
    folder_close(&r.run);
    free(r.file);
    free(r.selected);
    free(r.use);
    samples_release(&r.samples);
    arena_release(&r.strings);
    return code;
}
