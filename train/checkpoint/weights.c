/*
 * weights.c - see weights.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/weights.h"

#include "base/number_format.h"
#include "math/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME   160 /* longest name tried */
#define FAULTS 5   /* tensors named in an error */

/* Prefixes of a name; the name of the model is a prefix too, with or without "module.". */
static const char *const prefixes[] = {
    "", "module.", "model.", "backbone.", "encoder.", "module.model.", "_orig_mod.", "net.", "module._orig_mod."};
static const char *const wrappers[] = {"", "module."};

/* ---- names ----------------------------------------------------------------------------------------------------- */

static bool
replace(const char *name, const char *part, const char *by, char out[NAME])
{
    const char *at = strstr(name, part);

    return at && snprintf(out, NAME, "%.*s%s%s", (int)(at - name), name, by, at + strlen(part)) < NAME;
}

/* "denselayer1.norm1.weight" -> "denselayer1.norm.1.weight"; false if the name has no such part. */
static bool
old_style(const char *name, char out[NAME])
{
    static const char *const parts[][2] = {
        {".norm1.", ".norm.1."}, {".norm2.", ".norm.2."}, {".conv1.", ".conv.1."}, {".conv2.", ".conv.2."}};
    bool found = false;
    size_t i;

    for (i = 0; strstr(name, "denselayer") && !found && i < sizeof(parts) / sizeof(parts[0]); i++)
        found = replace(name, parts[i][0], parts[i][1], out);
    return found;
}

/* "classifier.weight" -> "classifier.0.weight" and other names of the head. */
static bool
other_head_name(const char *name, unsigned number, char out[NAME])
{
    static const char *const forms[][2] = {{"classifier.", "classifier.0."},
                                           {"classifier.", "head."},
                                           {"classifier.", "fc."},
                                           {"fc.", "fc.0."},
                                           {"fc.", "head.fc."}};
    size_t length = strlen(forms[number][0]);

    if (strncmp(name, forms[number][0], length) != 0)
        return false;
    return snprintf(out, NAME, "%s%s", forms[number][1], name + length) < NAME;
}

#define HEAD_NAMES 5

/* Find a tensor with any of the prefixes. */
static const struct tensor_entry *
find_prefixed(const struct safetensors *file, const char *name)
{
    const struct tensor_entry *e = NULL;
    char text[2 * NAME];
    size_t i, k;

    for (i = 0; !e && i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        snprintf(text, sizeof(text), "%s%s", prefixes[i], name);
        e = safetensors_find(file, text);
    }
    for (i = 0; !e && i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
        for (k = 0; !e && graph_models[k]; k++) {
            snprintf(text, sizeof(text), "%s%s.%s", wrappers[i], graph_models[k], name);
            e = safetensors_find(file, text);
        }
    return e;
}

static const struct tensor_entry *
find_tensor(const struct safetensors *file, const char *name)
{
    const struct tensor_entry *e = find_prefixed(file, name);
    char other[NAME];
    unsigned i;

    if (!e && old_style(name, other))
        e = find_prefixed(file, other);
    for (i = 0; !e && i < HEAD_NAMES; i++)
        if (other_head_name(name, i, other))
            e = find_prefixed(file, other);
    return e;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static bool
same_shape(const struct graph_tensor *t, const struct tensor_entry *e)
{
    unsigned i;

    if (t->rank != e->rank)
        return false;
    for (i = 0; i < t->rank; i++)
        if (t->shape[i] != e->shape[i])
            return false;
    return true;
}

static void
format_shape(unsigned rank, const uint64_t *shape, char *out, size_t size)
{
    size_t used = 0;
    unsigned i;

    snprintf(out, size, "%s", rank == 0 ? "a single value" : "");
    for (i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%llu", i > 0 ? "x" : "", (unsigned long long)shape[i]);
}

/* The faults that an error names. */
struct faults {
    size_t count, used;
    char text[CHEX_ERROR_TEXT - 200];
};

static void
note_fault(struct faults *f, const struct graph_tensor *t, const struct tensor_entry *e)
{
    uint64_t shape[4];
    char wanted[64], found[128];
    unsigned i;

    if (f->count++ >= FAULTS || f->used >= sizeof(f->text))
        return;
    for (i = 0; i < t->rank; i++)
        shape[i] = t->shape[i];
    format_shape(t->rank, shape, wanted, sizeof(wanted));
    if (e)
        format_shape(e->rank, e->shape, found, sizeof(found));
    f->used += (size_t)snprintf(f->text + f->used, sizeof(f->text) - f->used, "%s%s: wanted %s, found %s",
                                f->count > 1 ? "; " : "", t->name, wanted, e ? found : "none");
}

static bool
is_head(const struct graph_tensor *t)
{
    return strncmp(t->name, "classifier.", 11) == 0 || strncmp(t->name, "fc.", 3) == 0;
}

/* Match a list of tensors; entry[] receives the found ones, NULL for a head that is left unchanged. */
static void
match(const struct graph_tensor *tensor, size_t count, const struct safetensors *file, bool other_head,
      const struct tensor_entry **entry, struct weights_report *report, struct faults *faults)
{
    size_t i;

    for (i = 0; i < count; i++) {
        const struct tensor_entry *e = find_tensor(file, tensor[i].name);

        report->wanted++;
        entry[i] = NULL;
        if (e && same_shape(&tensor[i], e)) {
            entry[i] = e;
            report->found++;
        } else if (other_head && is_head(&tensor[i])) {
            report->head_left = true;
        } else {
            note_fault(faults, &tensor[i], e);
        }
    }
}

static enum chex_status
read_all(const struct graph_tensor *tensor, size_t count, const struct safetensors *file,
         const struct tensor_entry *const *entry, float *arena, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < count; i++)
        if (entry[i])
            status = safetensors_read_floats(file, entry[i], arena + tensor[i].offset, err);
    return status;
}

static size_t
count_unused(const struct safetensors *file, size_t found)
{
    size_t counters = 0, i;

    for (i = 0; i < file->count; i++)
        counters += strstr(file->entry[i].name, "num_batches_tracked") != NULL;
    return file->count - counters > found ? file->count - counters - found : 0;
}

void
weights_short_run(const struct safetensors *file, char out[WEIGHTS_SHORT])
{
    const char *text = safetensors_metadata(file, WEIGHTS_SHORT_RUN);
    size_t i;

    for (i = 0; text && text[i] && i + 1 < WEIGHTS_SHORT; i++) {
        bool plain = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
                     strchr("-. %", text[i]);

        out[i] = plain ? text[i] : '?';
    }
    out[i] = '\0';
}

enum chex_status
weights_read(const struct graph *g, const struct safetensors *file, bool other_head, float *params, float *stats,
             struct weights_report *report, struct chex_error *err)
{
    const struct tensor_entry **entry = calloc(g->param_count + g->stat_count, sizeof(*entry));
    struct faults faults = {.count = 0};
    const char *fault;
    enum chex_status status;

    *report = (struct weights_report){.found = 0};
    if (!entry)
        return error_memory(err);
    match(g->param, g->param_count, file, other_head, entry, report, &faults);
    match(g->stat, g->stat_count, file, other_head, entry + g->param_count, report, &faults);
    report->unused = count_unused(file, report->found);
    report->leaky = safetensors_metadata(file, WEIGHTS_LEAKY) != NULL;
    weights_short_run(file, report->short_run);
    if (faults.count > 0) {
        free(entry);
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "%s of %s tensors of %s do not fit: %s%s",
                         COUNT_TEXT(faults.count), COUNT_TEXT(report->wanted), g->model, faults.text,
                         faults.count > FAULTS ? "; ..." : "");
    }
    status = read_all(g->param, g->param_count, file, entry, params, err);
    if (status == CHEX_OK)
        status = read_all(g->stat, g->stat_count, file, entry + g->param_count, stats, err);
    free(entry);
    fault = status == CHEX_OK ? weights_fault(g, params, stats) : NULL;
    return fault ? error_set(err, CHEX_ERR_DAMAGED, "tensor '%s' holds a value that is not finite", fault) : status;
}

static const char *
find_fault(const struct graph_tensor *tensor, size_t count, const float *arena)
{
    size_t i, k;

    for (i = 0; i < count; i++)
        for (k = 0; k < tensor[i].count; k++)
            if (!isfinite(arena[tensor[i].offset + k]))
                return tensor[i].name;
    return NULL;
}

const char *
weights_fault(const struct graph *g, const float *params, const float *stats)
{
    const char *fault = find_fault(g->param, g->param_count, params);

    return fault ? fault : find_fault(g->stat, g->stat_count, stats);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static struct tensor_source
source_of(const struct graph_tensor *t, const float *arena)
{
    struct tensor_source s = {.entry = {.name = t->name, .type = DTYPE_F32, .rank = t->rank, .count = t->count},
                              .data = arena + t->offset};
    unsigned i;

    for (i = 0; i < t->rank; i++)
        s.entry.shape[i] = t->shape[i];
    return s;
}

enum chex_status
weights_write(const struct graph *g, const struct folder *folder, const char *name, const float *params,
              const float *stats, uint64_t batches, const struct metadata *metadata, size_t metadata_count, char *hex,
              struct chex_error *err)
{
    size_t norms = g->stat_count / 2, count = 0, i;
    struct tensor_source *tensor = calloc(g->param_count + g->stat_count + norms, sizeof(*tensor));
    struct arena names = {0};
    int64_t counter = (int64_t)batches;
    enum chex_status status = tensor ? CHEX_OK : error_memory(err);

    for (i = 0; status == CHEX_OK && i < g->param_count; i++)
        tensor[count++] = source_of(&g->param[i], params);
    for (i = 0; status == CHEX_OK && i < g->stat_count; i++) {
        const struct graph_tensor *t = &g->stat[i];
        char text[GRAPH_NAME + 32], *kept;

        tensor[count++] = source_of(t, stats);
        if (t->role != GRAPH_VARIANCE)
            continue;
        snprintf(text, sizeof(text), "%.*snum_batches_tracked", (int)(strrchr(t->name, '.') + 1 - t->name), t->name);
        kept = arena_copy(&names, text, strlen(text));
        if (!kept)
            status = error_memory(err);
        tensor[count] = (struct tensor_source){{.name = kept, .type = DTYPE_I64, .count = 1}, &counter};
        count++;
    }
    if (status == CHEX_OK)
        status = safetensors_write(folder, name, tensor, count, metadata, metadata_count, hex, err);
    arena_release(&names);
    free(tensor);
    return status;
}

/* ---- initial values -------------------------------------------------------------------------------------------- */

static void
init_conv(const struct graph_tensor *t, bool fan_out, struct random_stream *stream, float *out)
{
    double fan = (double)(fan_out ? t->shape[0] : t->shape[1]) * t->shape[2] * t->shape[3];
    size_t i;

    for (i = 0; i < t->count; i++)
        out[i] = (float)(random_normal(stream, (uint32_t)i) * sqrt(2 / fan));
}

static void
init_uniform(const struct graph_tensor *t, double bound, struct random_stream *stream, float *out)
{
    size_t i;

    for (i = 0; i < t->count; i++)
        out[i] = (float)((2 * random_uniform(stream, (uint32_t)i) - 1) * bound);
}

void
weights_random(const struct graph *g, uint64_t seed, float *params, float *stats)
{
    bool resnet = strncmp(g->model, "resnet", 6) == 0;
    double bound = 0;
    size_t i, k;

    for (i = 0; i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];
        struct random_stream stream = {.seed = seed, .purpose = RANDOM_INIT, .a = (uint32_t)i};

        for (k = 0; k < t->count; k++)
            params[t->offset + k] = t->role == GRAPH_GAMMA ? 1 : 0;
        if (t->role == GRAPH_WEIGHT && t->rank == 4)
            init_conv(t, resnet, &stream, params + t->offset);
        if (t->role == GRAPH_WEIGHT && t->rank == 2) {
            bound = 1 / sqrt((double)t->shape[1]);
            init_uniform(t, bound, &stream, params + t->offset);
        }
        if (t->role == GRAPH_BIAS && resnet)
            init_uniform(t, bound, &stream, params + t->offset);
    }
    for (i = 0; i < g->stat_count; i++)
        for (k = 0; k < g->stat[i].count; k++)
            stats[g->stat[i].offset + k] = g->stat[i].role == GRAPH_VARIANCE ? 1 : 0;
}
