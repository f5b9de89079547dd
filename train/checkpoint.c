/*
 * checkpoint.c - see checkpoint.h.  The state as JSON is in checkpoint_state.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint_private.h"

#include "weights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX     ".safetensors"
#define OPT_SUFFIX ".opt.safetensors"
#define DIGITS     "0123456789"
#define LINES      16 /* of `latest` */
#define LATEST_MAX 65536

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* "step-004800": its number; 0 and *is false for any other name.  Six digits, more where they are needed. */
static uint64_t
step_of(const char *name, bool *is)
{
    size_t digits;

    *is = false;
    if (strncmp(name, "step-", 5) != 0)
        return 0;
    digits = strspn(name + 5, DIGITS);
    *is = digits >= 6 && digits <= 18 && name[5 + digits] == '\0';
    return *is ? strtoull(name + 5, NULL, 10) : 0;
}

/* "step-004800.opt.safetensors" -> "step-004800"; false for files of another kind. */
static bool
base_of(const char *file, char out[CHECKPOINT_NAME])
{
    size_t length = strcspn(file, ".");
    bool is;

    if (length >= CHECKPOINT_NAME || (strcmp(file + length, SUFFIX) != 0 && strcmp(file + length, OPT_SUFFIX) != 0))
        return false;
    memcpy(out, file, length);
    out[length] = '\0';
    step_of(out, &is);
    return is;
}

static void
file_name(const char *name, const char *suffix, char out[CHECKPOINT_NAME + 24])
{
    snprintf(out, CHECKPOINT_NAME + 24, "%s%s", name, suffix);
}

/* ---- pieces of saving ------------------------------------------------------------------------------------------ */

enum chex_status
checkpoint_save_model(const struct folder *folder, const char *name, const struct graph *g,
                      const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                      struct chex_error *err)
{
    return checkpoint_write_model(folder, name, g, state, arrays, NULL, err);
}

/* One array of the optimizer, tensor by tensor under "moment1." and the like. */
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
            return chex_fail_memory(err);
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
    enum chex_status status = tensor ? CHEX_OK : chex_fail_memory(err);

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

static int
compare_falling(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x > y ? -1 : x < y;
}

/* The steps of which there are files, newest first; each once.  *step is the caller's: free(). */
static enum chex_status
list_steps(const struct folder *folder, uint64_t **step, size_t *count, struct chex_error *err)
{
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    size_t capacity = 0, kept = 0, i;
    struct dirent *d;

    *step = NULL;
    *count = 0;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return chex_fail(err, CHEX_ERR_READ, "cannot list the folder '%s': %s", folder->path, strerror(errno));
    }
    while ((d = readdir(dir)) != NULL) {
        char name[CHECKPOINT_NAME];
        uint64_t *grown;
        bool is;

        if (!base_of(d->d_name, name))
            continue;
        grown = array_grow(*step, &capacity, *count, sizeof(**step));
        if (!grown) {
            closedir(dir);
            return chex_fail_memory(err);
        }
        *step = grown;
        (*step)[(*count)++] = step_of(name, &is);
    }
    closedir(dir);
    if (*count > 1)
        qsort(*step, *count, sizeof(**step), compare_falling);
    for (i = 0; i < *count; i++)
        if (kept == 0 || (*step)[kept - 1] != (*step)[i])
            (*step)[kept++] = (*step)[i];
    *count = kept;
    return CHEX_OK;
}

/* Remove all but the newest `keep` up to this step.  Later ones are of a run that was taken back: they go too. */
static enum chex_status
remove_old(const struct folder *folder, uint64_t newest, unsigned keep, struct chex_error *err)
{
    uint64_t *step;
    size_t count, i, kept = 0;
    enum chex_status status = list_steps(folder, &step, &count, err);

    for (i = 0; status == CHEX_OK && i < count; i++) {
        char name[CHECKPOINT_NAME], file[CHECKPOINT_NAME + 24];

        if (step[i] <= newest && kept++ < keep)
            continue;
        checkpoint_name(step[i], name);
        file_name(name, SUFFIX, file);
        status = folder_remove(folder, file, err);
        file_name(name, OPT_SUFFIX, file);
        if (status == CHEX_OK)
            status = folder_remove(folder, file, err);
    }
    free(step);
    return status;
}

/* ---- finding --------------------------------------------------------------------------------------------------- */

/* Is the file there with this hash (NULL: any), and does its header hold? */
static enum chex_status
check_file(const struct folder *folder, const char *file, const char *hex, struct chex_error *err)
{
    struct safetensors s;
    char found[DIGEST_HEX];
    enum chex_status status = safetensors_open(folder->fd, file, &s, err);

    safetensors_close(&s);
    if (status == CHEX_OK && hex)
        status = checkpoint_hash(folder, file, found, err);
    if (status == CHEX_OK && hex && strcmp(found, hex) != 0)
        status = chex_fail(err, CHEX_ERR_CHECKSUM, "its SHA-256 is not that in '" CHECKPOINT_LATEST "'");
    return status == CHEX_OK ? status : chex_context(err, status, "'%s/%s'", folder->path, file);
}

static enum chex_status
check_both(const struct folder *folder, const char *name, const char *model, const char *optimizer,
           struct chex_error *err)
{
    char file[CHECKPOINT_NAME + 24];
    enum chex_status status;

    file_name(name, SUFFIX, file);
    status = check_file(folder, file, model, err);
    file_name(name, OPT_SUFFIX, file);
    return status == CHEX_OK ? check_file(folder, file, optimizer, err) : status;
}

/* One line of `latest`. */
struct line {
    char name[CHECKPOINT_NAME], model[DIGEST_HEX], optimizer[DIGEST_HEX];
};

/* The lines of `latest`, newest first; at most `room` of them. */
static enum chex_status
read_lines(const struct folder *folder, struct line *line, size_t room, size_t *count, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = file_read(folder->fd, CHECKPOINT_LATEST, LATEST_MAX, &b, err);
    char *text, *next;
    bool is;

    *count = 0;
    if (status == CHEX_OK)
        status = buffer_append(&b, "", 1, err);
    for (text = (char *)b.data; status == CHEX_OK && *text && *count < room; text = next) {
        struct line *l = &line[*count];

        next = text + strcspn(text, "\n");
        next += *next == '\n';
        if (sscanf(text, "%63s %64s %64s", l->name, l->model, l->optimizer) == 3)
            step_of(l->name, &is);
        else
            is = false;
        if (is)
            (*count)++;
        else
            status = chex_fail(err, CHEX_ERR_DAMAGED, "not the lines of checkpoints");
    }
    buffer_release(&b);
    if (status == CHEX_OK && *count == 0)
        status = chex_fail(err, CHEX_ERR_DAMAGED, "it is empty");
    return status == CHEX_OK ? status : chex_context(err, status, "'%s/%s'", folder->path, CHECKPOINT_LATEST);
}

/* Without a good `latest`: the newest files whose headers hold. */
static bool
find_by_files(const struct folder *folder, char name[CHECKPOINT_NAME])
{
    uint64_t *step;
    size_t count, i;
    bool found = false;

    if (list_steps(folder, &step, &count, NULL) == CHEX_OK) {
        for (i = 0; !found && i < count; i++) {
            checkpoint_name(step[i], name);
            found = check_both(folder, name, NULL, NULL, NULL) == CHEX_OK;
        }
    }
    free(step);
    return found;
}

enum chex_status
checkpoint_find(const struct folder *folder, char name[CHECKPOINT_NAME], bool *fallback, struct chex_error *err)
{
    struct line line[LINES];
    size_t count, i;
    enum chex_status status = read_lines(folder, line, LINES, &count, err);

    *fallback = false;
    if (status != CHEX_OK) {
        *fallback = find_by_files(folder, name);
        if (*fallback)
            return CHEX_OK;
    }
    for (i = 0; status == CHEX_OK && i < count; i++) {
        if (check_both(folder, line[i].name, line[i].model, line[i].optimizer, i == 0 ? err : NULL) == CHEX_OK) {
            memcpy(name, line[i].name, CHECKPOINT_NAME);
            *fallback = i > 0;
            return CHEX_OK;
        }
    }
    return chex_fail(err, CHEX_ERR_MISSING, "'%s' holds no whole checkpoint", folder->path);
}

/* ---- saving ---------------------------------------------------------------------------------------------------- */

/* The new line, and behind it those of the older checkpoints that stay. */
static enum chex_status
write_lines(const struct folder *folder, const struct line *newest, unsigned keep, struct chex_error *err)
{
    char text[LINES * 256];
    struct line old[LINES];
    size_t count, used, i, lines = 1;
    bool is;

    if (read_lines(folder, old, LINES, &count, NULL) != CHEX_OK)
        count = 0;
    used = (size_t)snprintf(text, sizeof(text), "%s %s %s\n", newest->name, newest->model, newest->optimizer);
    for (i = 0; i < count && lines < LINES && (keep == 0 || lines < keep); i++) {
        if (step_of(old[i].name, &is) >= step_of(newest->name, &is))
            continue;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s\n", old[i].name, old[i].model,
                                 old[i].optimizer);
        lines++;
    }
    return safe_file_put(folder, CHECKPOINT_LATEST, text, used, err);
}

enum chex_status
checkpoint_save(const struct folder *folder, const struct graph *g, const struct checkpoint_state *state,
                const struct checkpoint_arrays *arrays, unsigned keep, struct chex_error *err)
{
    struct line line;
    char file[CHECKPOINT_NAME + 24];
    const char *fault = weights_fault(g, arrays->params, arrays->stats);
    enum chex_status status;

    if (fault)
        return chex_fail(err, CHEX_ERR_DAMAGED, "not saved: '%s' holds a value that is not finite", fault);
    checkpoint_name(state->step, line.name);
    file_name(line.name, OPT_SUFFIX, file);
    status = write_optimizer(folder, file, g, arrays, line.optimizer, err);
    if (status != CHEX_OK)
        return status;
    file_name(line.name, SUFFIX, file);
    status = checkpoint_write_model(folder, file, g, state, arrays, line.model, err);
    if (status != CHEX_OK)
        return status;
    status = write_lines(folder, &line, keep, err);
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
            return chex_fail(err, CHEX_ERR_INCOMPATIBLE, "'%s' is %s", text, e ? "of another shape" : "missing");
        status = safetensors_read_floats(s, e, out + t->offset, err);
    }
    return status;
}

enum chex_status
checkpoint_read(const struct folder *folder, const char *name, const struct graph *g,
                const struct checkpoint_arrays *arrays, struct chex_error *err)
{
    char file[CHECKPOINT_NAME + 24];
    struct weights_report report;
    struct safetensors s;
    enum chex_status status;

    file_name(name, SUFFIX, file);
    status = safetensors_open(folder->fd, file, &s, err);
    if (status == CHEX_OK)
        status = weights_read(g, &s, false, arrays->params, arrays->stats, &report, err);
    safetensors_close(&s);
    if (status != CHEX_OK)
        return chex_context(err, status, "'%s/%s'", folder->path, file);
    file_name(name, OPT_SUFFIX, file);
    status = safetensors_open(folder->fd, file, &s, err);
    if (status == CHEX_OK)
        status = read_array(g, &s, "moment1", arrays->moment1, err);
    if (status == CHEX_OK)
        status = read_array(g, &s, "moment2", arrays->moment2, err);
    if (status == CHEX_OK)
        status = read_array(g, &s, "average", arrays->average, err);
    safetensors_close(&s);
    return status == CHEX_OK ? status : chex_context(err, status, "'%s/%s'", folder->path, file);
}
