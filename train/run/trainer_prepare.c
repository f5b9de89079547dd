/*
 * trainer_prepare.c - from options to a plan of the backend: nothing is written, and what is wrong shows; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/progress.h"
#include "checkpoint/checkpoint_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIDE        224 /* of the crop, by default */
#define LOADER_RING 4   /* micro-batches */

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

/* ---- data set ---------------------------------------------------------------------------------------------------- */

static enum chex_status
find_splits(struct trainer *t, struct chex_error *err)
{
    const char *wanted = t->o->split ? t->o->split : "test";

    t->train = chex_dataset_find_split(t->ds, "train");
    t->validation = chex_dataset_find_split(t->ds, "val");
    t->test = chex_dataset_find_split(t->ds, t->o->evaluate_only ? wanted : "test");
    if (t->train < 0)
        t->train = chex_dataset_find_split(t->ds, "all");
    if (t->o->evaluate_only && t->test < 0)
        return error_set(err, CHEX_ERR_USAGE, "'%s' has no split '%s'", t->o->data, wanted);
    if (!t->o->evaluate_only && (t->train < 0 || chex_dataset_split(t->ds, (unsigned)t->train)->image_count == 0))
        return error_set(err, CHEX_ERR_USAGE, "'%s' has no split 'train' with images to train on", t->o->data);
    /* A split without an image is as good as none. */
    if (t->validation >= 0 && chex_dataset_split(t->ds, (unsigned)t->validation)->image_count == 0)
        t->validation = -1;
    if (!t->o->evaluate_only && t->test >= 0 && chex_dataset_split(t->ds, (unsigned)t->test)->image_count == 0)
        t->test = -1;
    if (t->o->patience > 0 && t->validation < 0)
        return error_set(err, CHEX_ERR_USAGE, "--early-stop needs a split 'val', and '%s' has none", t->o->data);
    return CHEX_OK;
}

/* Can any finding of the validation split be judged by AUROC?  Else the loss selects. */
static enum select_metric
choose_select(const struct trainer *t)
{
    const struct chex_split_info *s = t->validation >= 0 ? chex_dataset_split(t->ds, (unsigned)t->validation) : NULL;
    unsigned i;

    for (i = 0; s && i < CHEX_FINDINGS; i++)
        if (s->positives[i] > 0 && s->positives[i] < s->image_count)
            return t->o->select;
    return SELECT_LOSS;
}

/* Is every shard of the split there, with its size?  Before the first step, not in the middle of the night. */
static enum chex_status
check_shards(const struct trainer *t, int split, struct chex_error *err)
{
    const struct chex_split_info *s = split >= 0 ? chex_dataset_split(t->ds, (unsigned)split) : NULL;
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; s && status == CHEX_OK && i < s->shard_count; i++) {
        struct chex_shard *shard = NULL;

        status = chex_shard_open(t->ds, s->first_shard + i, &shard, err);
        chex_shard_close(shard);
    }
    /* Before the first step all of it is an input that is not there. */
    if (chex_status_is_data(status)) {
        status = CHEX_ERR_MISSING;
        if (err)
            err->status = status;
    }
    return status;
}

/* negatives / positives of the training split; 1 where a finding has none, or there is no such split. */
static void
choose_positive_weight(struct trainer *t)
{
    const struct chex_split_info *s = t->train >= 0 ? chex_dataset_split(t->ds, (unsigned)t->train) : NULL;
    unsigned i;

    for (i = 0; i < CHEX_FINDINGS; i++) {
        t->positive[i] = t->o->positive == POSITIVE_GIVEN ? t->o->positive_weight[i] : 1;
        if (t->o->positive == POSITIVE_AUTO && s && s->positives[i] > 0 && s->positives[i] < s->image_count)
            t->positive[i] = (double)(s->image_count - s->positives[i]) / (double)s->positives[i];
    }
}

static enum chex_status
open_data(struct trainer *t, struct chex_error *err)
{
    const struct chex_dataset_info *info;
    enum chex_status status = chex_dataset_open(t->o->data, &t->ds, err);

    if (chex_status_is_data(status)) /* a manifest that is none; a data fault is one of a record */
        err->status = status = CHEX_ERR_INCOMPATIBLE;
    if (status == CHEX_OK)
        status = find_splits(t, err);
    if (status != CHEX_OK)
        return status;
    info = chex_dataset_info(t->ds);
    if (info->width != info->height || info->channels != 1)
        return error_set(err, CHEX_ERR_USAGE, "images of %u x %u with %u channels: square gray ones are needed",
                         info->width, info->height, info->channels);
    if (t->side == 0)
        t->side = info->width < SIDE ? info->width : SIDE; /* of small images all */
    if (t->side > info->width)
        return error_set(err, CHEX_ERR_USAGE, "--crop %u of images of %u x %u", t->side, info->width, info->height);
    t->select = choose_select(t);
    choose_positive_weight(t);
    return CHEX_OK;
}

/* ---- device ------------------------------------------------------------------------------------------------------ */

/* Ranks of a machine share its devices in turn.  A dry run for a device that is elsewhere imagines one. */
static enum chex_status
open_device(struct trainer *t, const struct backend *backend, bool named, struct chex_error *err)
{
    unsigned count = backend->device_count();

    if (count == 0 && named && t->o->plan_only)
        return backend->device_open(DEVICE_IMAGINED, &t->device, err);
    if (count == 0)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "there is no such device");
    return backend->device_open((unsigned)collective_local_rank(t->all) % count, &t->device, err);
}

static enum chex_status
find_backend(struct trainer *t, struct chex_error *err)
{
    bool automatic = strcmp(t->o->device, "auto") == 0;
    enum chex_status status = CHEX_ERR_UNSUPPORTED;
    size_t i;

    for (i = 0; backends[i] && status != CHEX_OK; i++) {
        if (!automatic && strcmp(t->o->device, backends[i]->name) != 0)
            continue;
        status = open_device(t, backends[i], !automatic, err);
        if (status == CHEX_OK)
            t->backend = backends[i];
        else if (automatic)
            trainer_note(t, "%s: %s", backends[i]->name, err->text);
        else
            return error_context(err, status == CHEX_ERR_UNSUPPORTED ? CHEX_ERR_USAGE : status, "--device %s",
                                 t->o->device);
    }
    if (!t->backend)
        return error_set(err, CHEX_ERR_USAGE, "--device %s: this build has no such backend", t->o->device);
    return CHEX_OK;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static enum chex_status
choose_batches(struct trainer *t, struct chex_error *err)
{
    const struct trainer_options *o = t->o;
    uint64_t images = t->train >= 0 ? chex_dataset_split(t->ds, (unsigned)t->train)->image_count : 0, each;

    t->micro = o->micro_batch > 0 ? o->micro_batch : trainer_micro_batch(o->batch, t->device->info.micro_batch);
    if (o->batch % t->micro != 0)
        return error_set(err, CHEX_ERR_USAGE, "--batch %u is no multiple of --micro-batch %u", o->batch, t->micro);
    each = (uint64_t)(o->batch / t->micro) * o->accumulate;
    if (each > INT32_MAX)
        return error_set(err, CHEX_ERR_USAGE, "--batch %u --accumulate %u makes too many micro-batches of %u", o->batch,
                         o->accumulate, t->micro);
    t->each = (unsigned)each;
    t->global = (uint64_t)t->each * t->micro * (unsigned)collective_size(t->all);
    t->steps = order_steps(images, t->global);
    return CHEX_OK;
}

/* All of it together with what this process keeps in host memory, where that is the memory of the device. */
static enum chex_status
check_memory(struct trainer *t, struct chex_error *err)
{
    const struct chex_dataset_info *info = chex_dataset_info(t->ds);
    const struct plan_memory *m = &t->facts.memory;
    char needed[PROGRESS_TEXT], there[PROGRESS_TEXT];

    t->memory_all = m->parameters + m->optimizer + m->activations + m->workspace;
    if (!t->device->info.own_memory) {
        t->memory_all += (uint64_t)LOADER_RING * t->micro * info->width * info->height;
        if (t->is_rank_0)
            t->memory_all += m->parameters + m->optimizer;
    }
    if (t->memory_all <= t->device->info.memory)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_MEMORY, "%s are needed and %s are there: try a smaller --micro-batch than %u",
                     format_bytes(t->memory_all, needed), format_bytes(t->device->info.memory, there), t->micro);
}

/* What a plan would be; a dry run makes none. */
static enum chex_status
make_plan(struct trainer *t, struct chex_error *err)
{
    static const struct setting setting_algorithms = {.name = "algorithms", .kind = SETTING_FREE, .type = SETTING_TEXT};
    const struct trainer_options *o = t->o;
    const char *algorithms = t->facts.algorithms;
    enum chex_status status;

    t->plan_options = (struct plan_options){
        .graph = t->graph,
        .batch = t->micro,
        .micro_batches = t->each,
        .source = chex_dataset_info(t->ds)->width,
        .train = !o->evaluate_only,
        .average = o->average,
        .deterministic = o->deterministic,
        .no_graph = o->no_graph,
        .precision = o->precision,
        .threads = o->threads,
        .reduce = t->reduce,
        .loss = {.kind = o->loss,
                 .gamma = o->gamma,
                 .positive_weight = o->positive != POSITIVE_NONE ? t->positive : NULL},
        .optimizer = o->optimizer,
        .part = t->is_rank_0 ? t->w->part : NULL,
        .context = t->w->context,
    };
    status = t->backend->plan_size(t->device, &t->plan_options, &t->facts, err);
    if (status == CHEX_OK)
        status = check_memory(t, err);
    if (status == CHEX_OK && !o->plan_only)
        status = t->backend->plan_new(t->device, &t->plan_options, &t->plan, &t->facts, err);
    settings_add(&t->settings, &setting_algorithms, &algorithms);
    if (status == CHEX_OK && t->settings.failed)
        return error_memory(err);
    if (status == CHEX_ERR_UNSUPPORTED)
        return err->status = CHEX_ERR_USAGE;
    return status == CHEX_ERR_MEMORY ? error_context(err, status, "micro-batches of %u images", t->micro) : status;
}

/* ---- the model of a checkpoint ----------------------------------------------------------------------------------- */

/* Which model, and of which input: what a checkpoint says of itself, else the defaults. */
struct kind {
    char model[sizeof(((struct checkpoint_state *)0)->model)];
    unsigned side;
};

static void
look_into_checkpoint(const struct trainer *t, struct kind *kind)
{
    const char *path = t->o->init ? t->o->init : t->o->run, *slash = t->o->init ? strrchr(path, '/') : NULL;
    const char *name = t->o->init ? (slash ? slash + 1 : path) : TRAINER_BEST;
    size_t length = strlen(name), suffix = strlen(CHECKPOINT_SUFFIX);
    struct checkpoint_state state;
    struct folder folder = {.fd = -1};
    char parent[4096] = ".", base[CHECKPOINT_NAME];

    if (!path || length <= suffix || length - suffix >= sizeof(base) ||
        strcmp(name + length - suffix, CHECKPOINT_SUFFIX) != 0)
        return;
    snprintf(base, sizeof(base), "%.*s", (int)(length - suffix), name);
    if (!t->o->init)
        snprintf(parent, sizeof(parent), "%s", path);
    else if (slash)
        snprintf(parent, sizeof(parent), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (folder_open(parent, false, &folder, NULL) == CHEX_OK &&
        checkpoint_read_state(&folder, base, &state, NULL) == CHEX_OK) {
        memcpy(kind->model, state.model, sizeof(kind->model));
        kind->side = state.side;
    }
    folder_close(&folder);
}

static enum chex_status
find_model(struct trainer *t, struct chex_error *err)
{
    struct kind kind = {.model = ""};
    enum chex_status status = CHEX_OK;

    if (t->o->evaluate_only && t->is_rank_0)
        look_into_checkpoint(t, &kind);
    if (t->o->evaluate_only)
        status = collective_broadcast(t->all, &kind, sizeof(kind), err);
    if (kind.model[0]) {
        memcpy(t->model, kind.model, sizeof(t->model));
        t->side = kind.side;
    } else {
        snprintf(t->model, sizeof(t->model), "%s", TRAINER_MODEL);
    }
    if (t->o->model)
        snprintf(t->model, sizeof(t->model), "%s", t->o->model);
    if (t->o->side > 0)
        t->side = t->o->side;
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static enum chex_status
look(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = open_data(t, err);

    if (status == CHEX_OK)
        status = find_backend(t, err);
    if (status == CHEX_OK && t->o->cache == CACHE_DEVICE && !t->device->info.own_memory)
        status = error_set(err, CHEX_ERR_USAGE, "--cache device needs a GPU; this is %s", t->device->info.text);
    if (status == CHEX_OK)
        status = graph_new(t->model, t->side, CHEX_FINDINGS, &t->graph, err);
    if (status == CHEX_OK)
        status = choose_batches(t, err);
    return status == CHEX_OK ? trainer_make_settings(t, err) : status;
}

/* What decides which meetings there are has to be compared before the first that not all ranks would come to. */
static enum chex_status
compare_course(struct trainer *t, enum chex_status status, struct chex_error *err)
{
    const struct trainer_options *o = t->o;
    char text[512];

    snprintf(text, sizeof(text), "version %s\ndry-run %s\neval-only %s\nsplit %.200s\ninit %s\nstage %s\n",
             chex_version(), o->plan_only ? "yes" : "no", o->evaluate_only ? "yes" : "no", o->split ? o->split : "test",
             o->evaluate_only && o->init ? "yes" : "no", o->stage ? "yes" : "no");
    return collective_compare(t->all, status, text, err);
}

static enum chex_status
compare(struct trainer *t, enum chex_status status, struct chex_error *err)
{
    struct buffer text = {0};

    if (status == CHEX_OK)
        status = settings_common(&t->settings, &text, err);
    status = collective_compare(t->all, status, status == CHEX_OK ? (const char *)text.data : "", err);
    buffer_release(&text);
    return status;
}

static enum chex_status
check_inputs(struct trainer *t, struct chex_error *err)
{
    enum chex_status status = t->o->evaluate_only ? CHEX_OK : check_shards(t, t->train, err);

    if (status == CHEX_OK && !t->o->evaluate_only)
        status = check_shards(t, t->validation, err);
    if (status == CHEX_OK)
        status = check_shards(t, t->test, err);
    if (status == CHEX_OK && !t->o->evaluate_only)
        status = samples_list(t->ds, (unsigned)t->train, &t->samples, err);
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
    t->o = options;
    t->w = watch;
    t->began = progress_clock();
    t->train = t->validation = t->test = -1;
    t->is_rank_0 = comm->rank == 0;
    t->folder.fd = -1;
    met = collective_new(comm, &together, &t->all, status == CHEX_OK ? err : NULL);
    if (met != CHEX_OK)
        return status == CHEX_OK ? met : status;
    status = compare_course(t, status, err);
    if (status == CHEX_OK)
        status = find_model(t, err);
    if (status == CHEX_OK)
        status = compare(t, look(t, err), err);
    if (status != CHEX_OK)
        return status;
    status = check_inputs(t, err);
    if (status == CHEX_OK)
        status = t->backend->reduce_new(t->device, t->all, &t->reduce, err);
    if (status == CHEX_OK)
        status = make_plan(t, err);
    status = collective_agree(t->all, status, NULL, err);
    if (status == CHEX_OK)
        status = trainer_compare_devices(t, err);
    return status == CHEX_OK ? trainer_choose_data(t, err) : status;
}
