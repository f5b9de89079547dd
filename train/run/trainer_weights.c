/*
 * trainer_weights.c - allocates weights, reads them from a file, and broadcasts them from rank 0; see trainer.h
 *
 * Rank 0 reads and broadcasts, so the other ranks need no access to RUN.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "checkpoint/checkpoint_private.h"
#include "checkpoint/torch_file.h"
#include "log/run_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

enum chex_status
trainer_make_host(const struct trainer_task *task, const struct trainer_engine *engine, struct checkpoint_arrays *host,
                  struct chex_error *err)
{
    struct {
        enum arena_id arena;
        float **at;
    } const wanted[] = {
        {ARENA_PARAMETERS, &host->params}, {ARENA_STATISTICS, &host->stats}, {ARENA_MOMENT1, &host->moment1},
        {ARENA_MOMENT2, &host->moment2},   {ARENA_AVERAGE, &host->average},
    };
    bool failed = false;
    size_t i;

    for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (*wanted[i].at || !arena_is_wanted(&engine->options, wanted[i].arena))
            continue;
        *wanted[i].at = calloc(arena_floats(task->graph, wanted[i].arena), sizeof(float));
        failed |= !*wanted[i].at;
    }
    return failed ? error_memory(err) : CHEX_OK;
}

enum chex_status
trainer_make_arrays(const struct trainer_task *task, const struct trainer_engine *engine,
                    struct checkpoint_arrays *host, struct trainer_pass *pass, struct chex_error *err)
{
    enum chex_status status = trainer_make_host(task, engine, host, err);
    bool failed = false;

    if (engine->options.train) {
        size_t bytes = (task->samples.count ? task->samples.count : 1) * sizeof(uint32_t);

        pass->order.sample = malloc(bytes);
        pass->next.sample = malloc(bytes);
        failed = !pass->order.sample || !pass->next.sample;
    }
    return status == CHEX_OK && failed ? error_memory(err) : status;
}

enum chex_status
trainer_broadcast(struct trainer *t, struct chex_error *err)
{
    float *const from[] = {
        [ARENA_PARAMETERS] = t->host.params, [ARENA_STATISTICS] = t->host.stats, [ARENA_GRADIENTS] = NULL,
        [ARENA_MOMENT1] = t->host.moment1,   [ARENA_MOMENT2] = t->host.moment2,  [ARENA_AVERAGE] = t->host.average};
    enum chex_status status = collective_broadcast(t->job.all, &t->state, sizeof(t->state), err);
    unsigned i;

    for (i = 0; status == CHEX_OK && i < sizeof(from) / sizeof(from[0]); i++) {
        if (!from[i])
            continue;
        status = collective_broadcast(t->job.all, from[i],
                                      arena_floats(t->task.graph, (enum arena_id)i) * sizeof(float), err);
        if (status == CHEX_OK)
            status = t->engine.backend->write(t->engine.plan, (enum arena_id)i, from[i], err);
    }
    if (status == CHEX_OK)
        status = t->engine.backend->set_state(t->engine.plan, &t->state.plan, err);
    t->stepping.checkpoint_steps = t->job.o->checkpoint_steps;
    if (status == CHEX_OK)
        status = collective_broadcast(t->job.all, &t->stepping.checkpoint_steps, sizeof(t->stepping.checkpoint_steps),
                                      err);
    if (!t->job.is_rank_0)
        trainer_free_arrays(&t->host);
    return status;
}

/* ---- weights of a file ------------------------------------------------------------------------------------------- */

enum chex_status
trainer_not_usable(enum chex_status status, struct chex_error *err)
{
    if (!chex_status_is_data(status))
        return status;
    status = status == CHEX_ERR_NOT_IMAGE || status == CHEX_ERR_EMPTY ? CHEX_ERR_MISSING : CHEX_ERR_INCOMPATIBLE;
    if (err)
        err->status = status;
    return status;
}

/*
 * *leaky: whether run.json in the folder of this file marks the run.  So weights count that were saved before the leak
 * was found.
 */
static enum chex_status
is_of_leaky_run(int folder_fd, const char *path, bool *leaky, struct chex_error *err)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    enum chex_status status = CHEX_OK;
    int fd;

    *leaky = false;
    if (!parent)
        return error_memory(err);
    fd = openat(folder_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(parent);
    if (fd >= 0) {
        status = run_file_is_leaky(fd, leaky, err);
        close(fd);
    }
    return status;
}

enum chex_status
trainer_read_model(const struct trainer_task *task, int folder_fd, const char *path, bool other_head,
                   const struct checkpoint_arrays *to, struct weights_report *report, struct chex_error *err)
{
    struct safetensors s;
    enum chex_status status = weights_open(folder_fd, path, &s, err);

    if (status == CHEX_OK && !other_head)
        status = checkpoint_check_findings(&s, task->graph, err);
    if (status == CHEX_OK)
        status = weights_read(task->graph, &s, other_head, to->params, to->stats, report, err);
    /* A last layer that does not fit is left out, and so are its findings. */
    if (status == CHEX_OK && other_head && !report->head_left)
        status = checkpoint_check_findings(&s, task->graph, err);
    if (status == CHEX_OK) {
        struct checkpoint_state state = {.dataset_id = ""};
        bool leaky;

        if (checkpoint_parse_state(&s, &state, NULL) == CHEX_OK)
            memcpy(report->dataset_id, state.dataset_id, sizeof(report->dataset_id));
        status = is_of_leaky_run(folder_fd, path, &leaky, err);
        report->leaky |= leaky;
    }
    safetensors_close(&s);
    return status == CHEX_OK ? status : error_context(err, trainer_not_usable(status, err), "'%s'", path);
}

enum chex_status
trainer_read_operating(const struct trainer_task *task, int folder_fd, const char *path, struct operating *out,
                       struct chex_error *err)
{
    struct safetensors s;
    enum chex_status status = weights_open(folder_fd, path, &s, err);
    const char *const *findings;
    unsigned outputs;

    findings = chex_dataset_findings(task->ds, &outputs);
    if (status == CHEX_OK)
        status = operating_parse(safetensors_metadata(&s, WEIGHTS_OPERATING), findings, outputs, out, err);
    safetensors_close(&s);
    return status == CHEX_OK ? status : error_context(err, trainer_not_usable(status, err), "'%s'", path);
}

enum chex_status
trainer_load_model(struct trainer *t, const char *name, struct chex_error *err)
{
    struct weights_report report;
    enum chex_status status = CHEX_OK;

    if (t->job.is_rank_0)
        status = trainer_read_model(&t->task, t->run.folder.fd, name, false, &t->host, &report, err);
    if (t->job.is_rank_0 && status == CHEX_OK)
        status = trainer_read_operating(&t->task, t->run.folder.fd, name, &t->best.operating, err);
    if (t->job.is_rank_0 && status == CHEX_OK && !t->best.hash[0])
        status = checkpoint_hash(&t->run.folder, name, t->best.hash, err);
    status = collective_agree(t->job.all, status, NULL, err);
    if (status != CHEX_OK)
        return status;
    if (!t->host.params) {
        t->host.params = calloc(t->task.graph->param_floats, sizeof(float));
        t->host.stats = calloc(t->task.graph->stat_floats, sizeof(float));
    }
    status = t->host.params && t->host.stats ? CHEX_OK : error_memory(err);
    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK)
        status = collective_broadcast(t->job.all, t->host.params, t->task.graph->param_floats * sizeof(float), err);
    if (status == CHEX_OK)
        status = collective_broadcast(t->job.all, t->host.stats, t->task.graph->stat_floats * sizeof(float), err);
    if (status == CHEX_OK)
        status = t->engine.backend->write(t->engine.plan, ARENA_PARAMETERS, t->host.params, err);
    if (status == CHEX_OK)
        status = t->engine.backend->write(t->engine.plan, ARENA_STATISTICS, t->host.stats, err);
    return status;
}
