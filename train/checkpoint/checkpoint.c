/*
 * checkpoint.c - saves, sweeps and reads checkpoints; see checkpoint.h.  checkpoint_find.c finds them,
 * checkpoint_state.c converts the state to JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/checkpoint_private.h"

#include "checkpoint/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- pieces of saving ------------------------------------------------------------------------------------------ */

enum chex_status
checkpoint_save_model(const struct folder *folder, const char *name, const struct graph *g,
                      const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                      const char *operating, char *hex, struct chex_error *err)
{
    return checkpoint_write_model(folder, name, g, state, arrays, operating, hex, err);
}

/* Add one array of the optimizer, tensor by tensor, with a prefix such as "moment1.". */
static enum chex_status
add_array(const struct graph *g, const char *prefix, const float *array, struct tensor_source *tensor, size_t *count,
          struct arena *names, struct chex_error *err)
{
    size_t i;

    for (i = 0; array && i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];
        char text[GRAPH_NAME + 16], *kept;
        unsigned k;

        snprintf(text, sizeof(text), "%s.%s", prefix, t->name);
        kept = arena_copy(names, text, strlen(text));
        if (!kept)
            return error_memory(err);
        tensor[*count] = (struct tensor_source){{.name = kept, .type = DTYPE_F32, .rank = t->rank, .count = t->count},
                                                array + t->offset};
        for (k = 0; k < t->rank; k++)
            tensor[*count].entry.shape[k] = t->shape[k];
        (*count)++;
    }
    return CHEX_OK;
}

static enum chex_status
write_optimizer(const struct folder *folder, const char *file, const struct graph *g, const struct checkpoint_arrays *a,
                char hex[DIGEST_HEX], struct chex_error *err)
{
    struct tensor_source *tensor = calloc(3 * g->param_count, sizeof(*tensor));
    struct arena names = {0};
    size_t count = 0;
    enum chex_status status = tensor ? CHEX_OK : error_memory(err);

    if (status == CHEX_OK)
        status = add_array(g, "moment1", a->moment1, tensor, &count, &names, err);
    if (status == CHEX_OK)
        status = add_array(g, "moment2", a->moment2, tensor, &count, &names, err);
    if (status == CHEX_OK)
        status = add_array(g, "average", a->average, tensor, &count, &names, err);
    if (status == CHEX_OK)
        status = safetensors_write(folder, file, tensor, count, NULL, 0, hex, err);
    arena_release(&names);
    free(tensor);
    return status;
}

/* Remove both files of a checkpoint. */
static enum chex_status
remove_both(const struct folder *folder, uint64_t step, struct chex_error *err)
{
    char name[CHECKPOINT_NAME], file[CHECKPOINT_FILE];
    enum chex_status status;

    checkpoint_name(step, name);
    checkpoint_file_name(name, CHECKPOINT_SUFFIX, file);
    status = folder_remove(folder, file, err);
    checkpoint_file_name(name, CHECKPOINT_OPT_SUFFIX, file);
    return status == CHEX_OK ? folder_remove(folder, file, err) : status;
}

/*
 * Keep only the newest `keep` checkpoints up to this step.  Removes later ones too: they belong to a discarded
 * continuation.
 */
static enum chex_status
remove_old(const struct folder *folder, uint64_t newest, unsigned keep, struct chex_error *err)
{
    uint64_t *step;
    size_t count, i, kept = 0;
    enum chex_status status = checkpoint_list_steps(folder, &step, &count, err);

    for (i = 0; status == CHEX_OK && i < count; i++)
        if (step[i] > newest || kept++ >= keep)
            status = remove_both(folder, step[i], err);
    free(step);
    return status;
}

/*
 * ---- cleanup after a power loss -----------------------------------------------------------------------------------
 */

/*
 * The optimizer's file is removed last.  So an interrupted removal leaves this file without a model file, with moments
 * of this model.
 */
static bool
is_optimizer_alone(const struct folder *folder, const struct graph *g, const char *name)
{
    char file[CHECKPOINT_FILE], first[GRAPH_NAME + 16];
    struct safetensors s;
    bool is;

    checkpoint_file_name(name, CHECKPOINT_SUFFIX, file);
    if (faccessat(folder->fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return false;
    checkpoint_file_name(name, CHECKPOINT_OPT_SUFFIX, file);
    snprintf(first, sizeof(first), "moment1.%s", g->param[0].name);
    is = safetensors_open(folder->fd, file, &s, NULL) == CHEX_OK && safetensors_find(&s, first);
    safetensors_close(&s);
    return is;
}

static bool
is_of_run(const struct folder *folder, const struct graph *g, const struct checkpoint_state *run, uint64_t step)
{
    struct checkpoint_state found;
    char name[CHECKPOINT_NAME];

    checkpoint_name(step, name);
    if (checkpoint_read_state(folder, name, NULL, &found, NULL) != CHEX_OK)
        return is_optimizer_alone(folder, g, name);
    return found.step == step && found.seed == run->seed && found.side == run->side &&
           strcmp(found.model, run->model) == 0 && strcmp(found.dataset_id, run->dataset_id) == 0;
}

static bool
is_named(const struct checkpoint_line *line, size_t count, uint64_t step)
{
    bool is, named = false;
    size_t i;

    for (i = 0; i < count; i++)
        named |= checkpoint_step_of(line[i].name, &is) == step;
    return named;
}

enum chex_status
checkpoint_sweep(const struct folder *folder, const struct graph *g, const struct checkpoint_state *state,
                 unsigned keep, struct chex_error *err)
{
    struct checkpoint_line line[CHECKPOINT_LINES];
    uint64_t *step, newest;
    size_t lines, count, i, kept = 0;
    enum chex_status status;
    bool is;

    /* A full list may have dropped checkpoints that must be kept. */
    if (keep == 0 || checkpoint_read_lines(folder, line, CHECKPOINT_LINES, &lines, NULL) != CHEX_OK ||
        lines == CHECKPOINT_LINES)
        return CHEX_OK;
    newest = checkpoint_step_of(line[0].name, &is);
    status = checkpoint_list_steps(folder, &step, &count, err);
    for (i = 0; status == CHEX_OK && i < count; i++) {
        if (step[i] > newest || kept++ < keep || is_named(line, lines, step[i]))
            continue;
        if (is_of_run(folder, g, state, step[i]))
            status = remove_both(folder, step[i], err);
    }
    free(step);
    return status;
}

/* ---- saving ---------------------------------------------------------------------------------------------------- */

/*
 * Write `latest`: the new line, then those of the kept older checkpoints.  With `again` also the old line of the same
 * step, whose files still exist.
 */
static enum chex_status
write_lines(const struct folder *folder, const struct checkpoint_line *newest, unsigned keep, bool again,
            struct chex_error *err)
{
    char text[CHECKPOINT_LINES * 256];
    struct checkpoint_line old[CHECKPOINT_LINES];
    size_t count, used, i, lines = 1;
    bool is;

    if (checkpoint_read_lines(folder, old, CHECKPOINT_LINES, &count, NULL) != CHEX_OK)
        count = 0;
    used = (size_t)snprintf(text, sizeof(text), "%s %s %s\n", newest->name, newest->model, newest->optimizer);
    for (i = 0; i < count && lines < CHECKPOINT_LINES && (keep == 0 || lines < keep); i++) {
        bool same = strcmp(old[i].name, newest->name) == 0;

        if (same ? !again : checkpoint_step_of(old[i].name, &is) >= checkpoint_step_of(newest->name, &is))
            continue;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s\n", old[i].name, old[i].model,
                                 old[i].optimizer);
        lines += !same;
    }
    return safe_file_put(folder, CHECKPOINT_LATEST, text, used, err);
}

/*
 * Save the same step again with another state: at the end of an epoch, after a run was stopped there.  Between the
 * replacement of the model and that of `latest`, one line could not match; so meanwhile `latest` lists both states.
 * The optimizer's file has the same bytes.
 */
static enum chex_status
write_again(const struct folder *folder, const struct graph *g, const struct checkpoint_state *state,
            const struct checkpoint_arrays *arrays, unsigned keep, const char *file, struct checkpoint_line *line,
            struct chex_error *err)
{
    enum chex_status status = checkpoint_write_model(folder, CHECKPOINT_NEXT, g, state, arrays, NULL, line->model, err);

    if (status == CHEX_OK)
        status = write_lines(folder, line, keep, true, err);
    if (status == CHEX_OK && renameat(folder->fd, CHECKPOINT_NEXT, folder->fd, file) != 0)
        status = error_system(err, CHEX_ERR_WRITE, errno, "cannot rename '%s/%s'", folder->path, CHECKPOINT_NEXT);
    return status == CHEX_OK ? folder_sync(folder, err) : status;
}

enum chex_status
checkpoint_save(const struct folder *folder, const struct graph *g, const struct checkpoint_state *state,
                const struct checkpoint_arrays *arrays, unsigned keep, struct chex_error *err)
{
    struct checkpoint_line line;
    char file[CHECKPOINT_FILE], optimizer[CHECKPOINT_FILE];
    const char *fault = weights_fault(g, arrays->params, arrays->stats);
    enum chex_status status;

    if (fault)
        return error_set(err, CHEX_ERR_DAMAGED, "not saved: '%s' holds a value that is not finite", fault);
    checkpoint_name(state->step, line.name);
    checkpoint_file_name(line.name, CHECKPOINT_OPT_SUFFIX, optimizer);
    status = write_optimizer(folder, optimizer, g, arrays, line.optimizer, err);
    if (status != CHEX_OK)
        return status;
    checkpoint_file_name(line.name, CHECKPOINT_SUFFIX, file);
    if (faccessat(folder->fd, file, F_OK, 0) == 0) {
        status = write_again(folder, g, state, arrays, keep, file, &line, err);
    } else {
        status = checkpoint_write_model(folder, file, g, state, arrays, NULL, line.model, err);
        if (status != CHEX_OK) /* without a model file it would count as a damaged checkpoint, and use disk space */
            folder_remove(folder, optimizer, NULL);
    }
    if (status != CHEX_OK)
        return status;
    status = write_lines(folder, &line, keep, false, err);
    if (status == CHEX_OK && keep > 0)
        status = remove_old(folder, state->step, keep, err);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static enum chex_status
read_array(const struct graph *g, const struct safetensors *s, const char *prefix, float *out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; out && status == CHEX_OK && i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];
        const struct tensor_entry *e;
        char text[GRAPH_NAME + 16];

        snprintf(text, sizeof(text), "%s.%s", prefix, t->name);
        e = safetensors_find(s, text);
        if (!e || e->count != t->count)
            return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is %s", text, e ? "of another shape" : "missing");
        status = safetensors_read_floats(s, e, out + t->offset, err);
    }
    return status;
}

enum chex_status
checkpoint_read(const struct folder *folder, const char *name, const struct graph *g,
                const struct checkpoint_arrays *arrays, struct chex_error *err)
{
    char file[CHECKPOINT_FILE];
    struct weights_report report;
    struct safetensors s;
    enum chex_status status;

    checkpoint_file_name(name, CHECKPOINT_SUFFIX, file);
    status = safetensors_open(folder->fd, file, &s, err);
    if (status == CHEX_OK)
        status = weights_read(g, &s, false, arrays->params, arrays->stats, &report, err);
    safetensors_close(&s);
    if (status != CHEX_OK)
        return error_context(err, status, "'%s/%s'", folder->path, file);
    checkpoint_file_name(name, CHECKPOINT_OPT_SUFFIX, file);
    status = safetensors_open(folder->fd, file, &s, err);
    if (status == CHEX_OK)
        status = read_array(g, &s, "moment1", arrays->moment1, err);
    if (status == CHEX_OK)
        status = read_array(g, &s, "moment2", arrays->moment2, err);
    if (status == CHEX_OK)
        status = read_array(g, &s, "average", arrays->average, err);
    safetensors_close(&s);
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", folder->path, file);
}
