/*
 * trainer_prepare.c - checks the options and creates a plan of the backend; writes nothing; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/clock.h"
#include "base/number_format.h"
#include "checkpoint/checkpoint_private.h"
#include "dataset/dataset.h"
#include "run/device_choice.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOADER_RING 4 /* micro-batches */

unsigned
trainer_micro_batch(unsigned batch, unsigned largest)
{
    unsigned size, best = 1;

    if (largest == 0)
        return batch;
    for (size = 2; size <= batch; size++)
        if (batch % size == 0 && (size <= largest || best < largest / 2))
            best = size;
    return best;
}

/* ---- device ------------------------------------------------------------------------------------------------------ */

static void
note_device(void *context, const char *text)
{
    trainer_note(context, "%s", text);
}

/* Open the device; the ranks of a machine use its devices in turn.  The storage check has one of its own. */
static enum chex_status
find_device(const struct trainer_job *job, struct trainer_engine *engine, struct chex_error *err)
{
    struct trainer_job notes = *job;
    const struct device_request request = {.device = job->o->device,
                                           .precision = job->o->precision,
                                           .number = (unsigned)collective_local_rank(job->all),
                                           .imagine = job->o->plan_only,
                                           .note = note_device,
                                           .context = &notes};
    enum chex_status status;

    if (job->o->storage_check) {
        engine->backend = &trainer_storage_backend;
        status = engine->backend->device_open(0, &engine->device, err);
    } else {
        status = device_choose(&request, &engine->backend, &engine->device, err);
    }
    return status == CHEX_OK ? device_check_precision(&request, engine->backend, engine->device, err) : status;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static enum chex_status
choose_batches(const struct trainer_job *job, struct trainer_task *task, const struct trainer_engine *engine,
               struct chex_error *err)
{
    const struct trainer_options *o = job->o;
    uint64_t images = task->train >= 0 ? chex_dataset_split(task->ds, (unsigned)task->train)->image_count : 0, each;

    task->micro = o->micro_batch > 0 ? o->micro_batch : trainer_micro_batch(o->batch, engine->device->info.micro_batch);
    if (o->batch % task->micro != 0)
        return error_set(err, CHEX_ERR_USAGE, "--batch %u is not a multiple of --micro-batch %u", o->batch,
                         task->micro);
    each = (uint64_t)(o->batch / task->micro) * o->accumulate;
    if (each > INT32_MAX)
        return error_set(err, CHEX_ERR_USAGE, "--batch %u --accumulate %u makes too many micro-batches of %u", o->batch,
                         o->accumulate, task->micro);
    task->each = (unsigned)each;
    task->global = (uint64_t)task->each * task->micro * (unsigned)collective_size(job->all);
    if (task->global > CHECKPOINT_MAX_BATCH)
        return error_set(err, CHEX_ERR_USAGE, "a global batch of %s images is larger than %s", COUNT_TEXT(task->global),
                         COUNT_TEXT(CHECKPOINT_MAX_BATCH));
    task->steps = order_steps(images, task->global);
    return CHEX_OK;
}

/* Returns the time of a step by the device's cost model; 0 without a model. */
static double
modelled_seconds(const struct trainer_engine *engine)
{
    struct plan_model model = {.launch = NULL};
    struct chex_error other;
    double seconds = 0;

    if (engine->options.train && engine->backend->plan_model &&
        engine->backend->plan_model(engine->device, &engine->options, engine->plan, &model, &other) == CHEX_OK)
        seconds = model.seconds;
    plan_model_free(&model);
    return seconds;
}

/* Check the plan plus the host copies of this process, if the device uses host memory. */
static enum chex_status
check_memory(const struct trainer_job *job, const struct trainer_task *task, struct trainer_engine *engine,
             struct chex_error *err)
{
    const struct chex_dataset_info *info = chex_dataset_info(task->ds);
    const struct plan_memory *m = &engine->facts.memory;
    char needed[FORMAT_TEXT], there[FORMAT_TEXT];

    engine->memory_all = m->parameters + m->optimizer + m->activations + m->workspace;
    if (!engine->device->info.own_memory) {
        engine->memory_all += (uint64_t)LOADER_RING * task->micro * info->width * info->height;
        if (job->is_rank_0)
            engine->memory_all += m->parameters + m->optimizer;
    }
    if (engine->memory_all <= engine->device->info.memory)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_MEMORY, "%s are needed and %s are there: try a smaller --micro-batch than %u",
                     format_bytes_compared(engine->memory_all, engine->device->info.memory, needed),
                     format_bytes_compared(engine->device->info.memory, engine->memory_all, there), task->micro);
}

/* Size the plan and create it; a dry run only sizes it. */
static enum chex_status
make_plan(const struct trainer_job *job, struct trainer_task *task, struct trainer_engine *engine,
          struct chex_error *err)
{
    static const struct setting setting_algorithms = {.name = "algorithms", .kind = SETTING_FREE, .type = SETTING_TEXT};
    const struct trainer_options *o = job->o;
    const char *algorithms = engine->facts.algorithms;
    enum chex_status status;

    engine->options = (struct plan_options){
        .graph = task->graph,
        .batch = task->micro,
        .micro_batches = task->each,
        .source = chex_dataset_info(task->ds)->width,
        .train = !o->evaluate_only,
        .mixup = o->mixup > 0,
        .average = o->average,
        .deterministic = o->deterministic,
        .no_graph = o->no_graph,
        .pdl = o->pdl,
        .precision = o->precision,
        .engine = o->engine,
        .threads = o->threads,
        .reduce = engine->reduce,
        .wire = o->wire,
        .loss = {.kind = o->loss,
                 .gamma = o->gamma,
                 .smoothing = o->smoothing,
                 .positive_weight = o->positive != POSITIVE_NONE ? task->positive : NULL},
        .optimizer = o->optimizer,
        .part = trainer_times_part,
        .context = job->times,
    };
    status = engine->backend->plan_size(engine->device, &engine->options, &engine->facts, err);
    if (status == CHEX_OK)
        status = check_memory(job, task, engine, err);
    if (status == CHEX_OK && !o->plan_only)
        status = engine->backend->plan_new(engine->device, &engine->options, &engine->plan, &engine->facts, err);
    if (status == CHEX_OK && !o->plan_only)
        engine->modelled = modelled_seconds(engine);
    settings_add(&task->settings, &setting_algorithms, &algorithms);
    if (status == CHEX_OK && task->settings.failed)
        return error_memory(err);
    if (status == CHEX_ERR_UNSUPPORTED)
        return err->status = CHEX_ERR_USAGE;
    return status == CHEX_ERR_MEMORY ? error_context(err, status, "micro-batches of %u images", task->micro) : status;
}

/* ---- the model in a checkpoint ----------------------------------------------------------------------------------- */

/* Model, input size and fold from the state of a checkpoint. */
struct kind {
    char model[sizeof(((struct checkpoint_state *)0)->model)];
    unsigned side;
    struct weights_origin origin;
};

/* Read them from a checkpoint; a missing file, or one without a state of a run, does not change *kind. */
static enum chex_status
look_into_checkpoint(const struct trainer_job *job, struct kind *kind, struct chex_error *err)
{
    const char *path = job->o->init ? job->o->init : job->o->run,
               *slash = job->o->init ? strrchr(job->o->init, '/') : NULL;
    const char *name = job->o->init ? (slash ? slash + 1 : path) : TRAINER_BEST;
    size_t length = strlen(name), suffix = strlen(CHECKPOINT_SUFFIX);
    struct checkpoint_state state;
    struct folder folder = {.fd = -1};
    char parent[4096] = ".", base[CHECKPOINT_NAME], fold[FOLD_TEXT];
    struct chex_error why;
    enum chex_status status;

    if (!path || length <= suffix || length - suffix >= sizeof(base) ||
        strcmp(name + length - suffix, CHECKPOINT_SUFFIX) != 0)
        return CHEX_OK;
    snprintf(base, sizeof(base), "%.*s", (int)(length - suffix), name);
    if (!job->o->init)
        snprintf(parent, sizeof(parent), "%s", path);
    else if (slash)
        snprintf(parent, sizeof(parent), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    status = folder_open(parent, false, &folder, &why);
    if (status == CHEX_OK)
        status = checkpoint_read_state(&folder, base, NULL, &state, &why);
    folder_close(&folder);
    if (status == CHEX_OK) {
        memcpy(kind->model, state.model, sizeof(kind->model));
        kind->side = state.side;
        memcpy(kind->origin.data_set, state.dataset_id, sizeof(kind->origin.data_set));
        if (settings_kept_text(state.settings, "fold", fold, sizeof(fold)) && strcmp(fold, "none") != 0)
            memcpy(kind->origin.fold, fold, sizeof(fold));
    }
    if (!chex_status_is_data(status))
        return CHEX_OK;
    if (err)
        *err = why;
    return trainer_not_usable(status, err);
}

/* An evaluation uses the fold of the model's run. */
static void
choose_fold(const struct trainer_job *job, struct trainer_task *task, const struct kind *kind)
{
    const char *own = job->o->evaluate_only ? kind->origin.fold : "";

    snprintf(task->fold_text, sizeof(task->fold_text), "%s", job->o->fold ? job->o->fold : own);
    task->origin = kind->origin;
}

static enum chex_status
find_model(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err)
{
    struct kind kind = {.model = ""};
    bool probed = job->o->evaluate_only || job->o->init;
    enum chex_status status = CHEX_OK;

    if (probed && job->is_rank_0)
        status = look_into_checkpoint(job, &kind, err);
    if (!job->o->evaluate_only)
        status = CHEX_OK; /* the start reports a file that is not usable, if the run does not resume */
    if (probed)
        status = collective_agree(job->all, status, NULL, err);
    if (status == CHEX_OK && probed)
        status = collective_broadcast(job->all, &kind, sizeof(kind), err);
    if (status != CHEX_OK)
        return status;
    if (job->o->evaluate_only && kind.model[0]) {
        memcpy(task->model, kind.model, sizeof(task->model));
        task->side = kind.side;
    } else {
        snprintf(task->model, sizeof(task->model), "%s", TRAINER_MODEL);
    }
    if (job->o->model)
        snprintf(task->model, sizeof(task->model), "%s", job->o->model);
    if (job->o->side > 0)
        task->side = job->o->side;
    choose_fold(job, task, &kind);
    return CHEX_OK;
}

/* ---- public functions -------------------------------------------------------------------------------------------- */

static enum chex_status
look(const struct trainer_job *job, struct trainer_task *task, struct trainer_engine *engine, struct chex_error *err)
{
    enum chex_status status = trainer_open_dataset(job, task, err);

    if (status == CHEX_OK)
        status = find_device(job, engine, err);
    if (status == CHEX_OK && job->o->cache == CACHE_DEVICE && !engine->device->info.own_memory)
        status = error_set(err, CHEX_ERR_USAGE, "--cache device needs a GPU; this is %s", engine->device->info.text);
    if (status == CHEX_OK)
        status = graph_new(task->model, task->side, chex_dataset_info(task->ds)->finding_count, &task->graph, err);
    if (status == CHEX_OK)
        task->graph->findings = chex_dataset_findings(task->ds, NULL);
    if (status == CHEX_OK)
        status = choose_batches(job, task, engine, err);
    return status == CHEX_OK ? trainer_make_settings(job, task, engine, err) : status;
}

/* Compare the options that determine the meetings, before the first meeting that some ranks might skip. */
static enum chex_status
compare_course(const struct trainer_job *job, enum chex_status status, struct chex_error *err)
{
    const struct trainer_options *o = job->o;
    char text[2048];

    snprintf(text, sizeof(text),
             "version %s\ndevice-none %s\nrate %g\ndry-run %s\neval-only %s\nsplit %.200s\nfold %.16s\ninit %s\nstage "
             "%s\ntrace %s\naudit %.1000s\n",
             chex_version(), o->storage_check ? "yes" : "no", o->rate, o->plan_only ? "yes" : "no",
             o->evaluate_only ? "yes" : "no", o->split ? o->split : "test", o->fold ? o->fold : "none",
             o->init ? "yes" : "no", o->stage ? "yes" : "no", job->w->spans ? "yes" : "no", o->audit ? o->audit : "no");
    return collective_compare(job->all, status, text, err);
}

static enum chex_status
compare(const struct trainer_job *job, const struct trainer_task *task, enum chex_status status, struct chex_error *err)
{
    struct buffer text = {0};

    if (status == CHEX_OK)
        status = settings_common(&task->settings, &text, err);
    status = collective_compare(job->all, status, status == CHEX_OK ? (const char *)text.data : "", err);
    buffer_release(&text);
    return status;
}

/* Before the first step: check that every shard of the split exists, with its size, and belongs to this data set. */
static enum chex_status
check_shards(const struct trainer_task *task, int split, struct chex_error *err)
{
    const struct chex_split_info *s = split >= 0 ? chex_dataset_split(task->ds, (unsigned)split) : NULL;
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; s && status == CHEX_OK && i < s->shard_count; i++)
        status = dataset_check_shard(task->ds, s->first_shard + i, err);
    /* A shard of another size counts as a missing input. */
    if (chex_status_is_data(status)) {
        status = CHEX_ERR_MISSING;
        if (err)
            err->status = status;
    }
    return status;
}

static enum chex_status
check_inputs(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err)
{
    enum chex_status status = job->o->evaluate_only ? CHEX_OK : check_shards(task, task->train, err);

    if (status == CHEX_OK && !job->o->evaluate_only)
        status = check_shards(task, task->validation, err);
    if (status == CHEX_OK)
        status = check_shards(task, task->test, err);
    if (status == CHEX_OK && !job->o->evaluate_only)
        status = trainer_list_samples(job, task, task->train, &task->samples, err);
    if (status == CHEX_OK && !job->o->evaluate_only) {
        if (task->samples.count == 0)
            return error_set(err, CHEX_ERR_DAMAGED, "no record of split 'train' of '%s' is readable", job->o->data);
        task->steps = order_steps(task->samples.count, task->global);
    }
    return status;
}

enum chex_status
trainer_prepare(const struct trainer_options *options, const struct trainer_watch *watch, struct comm *comm,
                enum chex_status status, struct trainer **out, struct chex_error *err)
{
    const struct collective_options together = {.timeout = options->timeout,
                                                .terminating = watch->stop,
                                                .on_wait = watch->on_wait,
                                                .warn_waiting = watch->warn_waiting,
                                                .context = watch->context};
    struct trainer *t = calloc(1, sizeof(*t));
    enum chex_status met;

    *out = t;
    if (!t)
        return error_memory(err);
    t->job.o = options;
    t->job.replicates = options->replicates;
    t->job.seed = options->seed;
    t->job.tta = options->tta;
    t->job.w = watch;
    t->job.trainer = t;
    t->job.times = &t->times;
    t->stepping.last_step = options->max_steps;
    t->times.spans_most = watch->spans ? TRACE_LIMIT / (size_t)(comm->size > 0 ? comm->size : 1) : 0;
    t->job.began = clock_now();
    t->task.train = t->task.validation = t->task.test = -1;
    t->job.is_rank_0 = comm->rank == 0;
    t->run.folder.fd = -1;
    met = collective_new(comm, &together, &t->job.all, status == CHEX_OK ? err : NULL);
    if (met != CHEX_OK)
        return status == CHEX_OK ? met : status;
    status = compare_course(&t->job, status, err);
    if (status == CHEX_OK)
        status = find_model(&t->job, &t->task, err);
    if (status == CHEX_OK)
        status = compare(&t->job, &t->task, look(&t->job, &t->task, &t->engine, err), err);
    if (status != CHEX_OK)
        return status;
    status = check_inputs(&t->job, &t->task, err);
    if (status == CHEX_OK)
        status = t->engine.backend->reduce_new(t->engine.device, t->job.all, &t->engine.reduce, err);
    if (status == CHEX_OK && t->engine.reduce->fallback)
        trainer_note(&t->job, "the ranks sum gradients %s", t->engine.reduce->text);
    if (status == CHEX_OK && options->wire != WIRE_FP32 && !t->engine.reduce->ops->start_bf16)
        trainer_note(&t->job, "--wire %s is for sums by NCCL: no effect here", wire_names[options->wire]);
    if (status == CHEX_OK)
        status = make_plan(&t->job, &t->task, &t->engine, err);
    if (status == CHEX_OK && options->pdl && !t->engine.facts.pdl)
        trainer_note(&t->job, "--pdl is for GPUs of compute capability 9.0 and newer: no effect here");
    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK)
        status = trainer_compare_devices(&t->job, &t->engine, err);
    return status == CHEX_OK ? trainer_choose_data(&t->job, &t->task, &t->engine, &t->images, err) : status;
}
