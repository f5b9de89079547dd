/*
 * predict_model.c - see predict_model.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_model.h"

#include "base/ascii.h"
#include "checkpoint/settings.h"
#include "io/digest_file.h"
#include "log/run_file.h"
#include "plan/plan.h"
#include "run/device_choice.h"
#include "run/trainer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH 64 /* images of a micro-batch on a device that proposes no size */

/* ---- one file ---------------------------------------------------------------------------------------------------- */

/* Set m->path: the file itself, or the best model of a folder. */
static enum chex_status
find_file(struct predict_model *m, const char *run, struct chex_error *err)
{
    size_t size = strlen(run) + sizeof("/" TRAINER_BEST);
    char *path = malloc(size);
    const char *slash;
    struct stat st;
    bool folder = stat(run, &st) == 0 && S_ISDIR(st.st_mode);

    if (!path)
        return error_memory(err);
    snprintf(path, size, "%s%s", run, folder ? "/" TRAINER_BEST : "");
    slash = strrchr(path, '/');
    m->path = path;
    m->file = slash ? slash + 1 : path;
    if (folder && access(path, F_OK) != 0)
        return error_set(err, CHEX_ERR_MISSING, "'%s' has no %s yet", run, TRAINER_BEST);
    return CHEX_OK;
}

/* Make the list of findings from "A,B,C". */
static enum chex_status
read_findings(struct predict_model *m, const struct safetensors *s, struct chex_error *err)
{
    const char *text = safetensors_metadata(s, "labels");
    struct chex_bytes name[FINDINGS_MAX];
    size_t count = 0;
    enum chex_status status;

    if (!text)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "it does not name its findings");
    do {
        if (count == FINDINGS_MAX)
            return error_set(err, CHEX_ERR_INCOMPATIBLE, "more than %d findings", FINDINGS_MAX);
        name[count] = (struct chex_bytes){text, strcspn(text, ",")};
        text += name[count++].size;
    } while (*text++ == ',');
    status = findings_make(name, count, &m->findings, err);
    return status == CHEX_ERR_USAGE ? error_context(err, CHEX_ERR_INCOMPATIBLE, "its findings") : status;
}

/* Read what run.json, next to the file, says about the images; it also marks models that were saved before a leak. */
static enum chex_status
read_run(struct predict_model *m, struct chex_error *err)
{
    char *parent = m->file == m->path ? strdup(".") : strndup(m->path, (size_t)(m->file - m->path));
    char resize[32] = "", split[sizeof(m->split)];
    enum chex_status status;
    bool leaky = false;
    int fd;

    if (!parent)
        return error_memory(err);
    fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(parent);
    m->resize = -1;
    snprintf(m->split, sizeof(m->split), "train");
    if (!settings_kept_text(m->state.settings, "fold", m->fold, sizeof(m->fold)) || strcmp(m->fold, "none") == 0)
        m->fold[0] = '\0';
    if (fd < 0)
        return CHEX_OK;
    m->has_run = faccessat(fd, RUN_FILE_NAME, F_OK, 0) == 0;
    status = run_file_is_leaky(fd, &leaky, err);
    if (status == CHEX_OK)
        status = run_file_images(fd, &m->size, resize, sizeof(resize), err);
    if (status == CHEX_OK)
        status = run_file_train_split(&(struct folder){.fd = fd}, split, sizeof(split), err);
    if (status == CHEX_OK)
        memcpy(m->split, split, sizeof(split));
    else if (status == CHEX_ERR_MISSING)
        status = CHEX_OK;
    close(fd);
    m->state.leaky |= leaky;
    m->resize = name_index(resample_names, resize);
    return status;
}

/* Build the network, and read its weights. */
static enum chex_status
read_weights(struct predict_model *m, const struct safetensors *s, struct chex_error *err)
{
    struct weights_report report;
    enum chex_status status = graph_new(m->state.model, m->state.side, m->findings.count, &m->graph, err);

    if (status != CHEX_OK)
        return status;
    m->graph->findings = m->findings.name;
    m->params = calloc(m->graph->param_floats, sizeof(float));
    m->stats = calloc(m->graph->stat_floats, sizeof(float));
    if (!m->params || !m->stats)
        return error_memory(err);
    return weights_read(m->graph, s, false, m->params, m->stats, &report, err);
}

/* A model of another kind, or a damaged one, does not fit; it is no fault of the images. */
static enum chex_status
not_usable(const struct predict_model *m, enum chex_status status, struct chex_error *err)
{
    if (status == CHEX_ERR_NOT_IMAGE || status == CHEX_ERR_EMPTY)
        status = CHEX_ERR_MISSING;
    else if (chex_status_is_data(status) || status == CHEX_ERR_USAGE)
        status = CHEX_ERR_INCOMPATIBLE;
    return error_context(err, status, "'%s'", m->path);
}

static enum chex_status
read_model(struct predict_model *m, const char *run, struct chex_error *err)
{
    struct safetensors s;
    enum chex_status status = find_file(m, run, err);

    if (status != CHEX_OK)
        return status;
    status = safetensors_open(AT_FDCWD, m->path, &s, err);
    if (status == CHEX_OK && !safetensors_metadata(&s, "state"))
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "not a model that chex-train saved");
    if (status == CHEX_OK)
        status = checkpoint_parse_state(&s, &m->state, err);
    if (status == CHEX_OK)
        status = read_findings(m, &s, err);
    if (status == CHEX_OK)
        status = operating_parse(safetensors_metadata(&s, WEIGHTS_OPERATING), m->findings.name, m->findings.count,
                                 &m->operating, err);
    if (status == CHEX_OK)
        status = read_weights(m, &s, err);
    if (status == CHEX_OK)
        status = digest_file(s.fd, NULL, NULL, m->sha256, err);
    if (status == CHEX_OK)
        status = read_run(m, err);
    safetensors_close(&s);
    return status == CHEX_OK ? status : not_usable(m, status, err);
}

/* ---- all models -------------------------------------------------------------------------------------------------- */

/* Decide size and method of the images: the options, or run.json of the models, which must agree. */
static enum chex_status
choose_images(const struct predict_options *o, struct models *m, struct chex_error *err)
{
    int resize = o->resize;
    size_t i;

    m->size = o->size;
    for (i = 0; i < m->count; i++) {
        const struct predict_model *model = &m->model[i];

        if (o->size == 0 && model->size == 0)
            return error_set(err, CHEX_ERR_USAGE, "'%s': %s: give --size, as it was for chex-convert", model->path,
                             model->has_run ? RUN_FILE_NAME " next to it is damaged or lacks the size of its images"
                                            : "no " RUN_FILE_NAME " next to it says how large its images were");
        if (m->size == 0)
            m->size = model->size;
        if (o->size == 0 && model->size != m->size)
            return error_set(err, CHEX_ERR_INCOMPATIBLE,
                             "'%s' is for images of %u x %u, and '%s' for %u x %u: --size gives all the same",
                             m->model[0].path, m->size, m->size, model->path, model->size, model->size);
        if (resize < 0)
            resize = model->resize;
        if (o->resize < 0 && model->resize >= 0 && model->resize != resize)
            return error_set(err, CHEX_ERR_INCOMPATIBLE,
                             "the images of '%s' were shrunk by %s, those of '%s' by %s: --resize gives all the same",
                             m->model[0].path, resample_names[resize], model->path, resample_names[model->resize]);
        if (model->state.side > m->size)
            return error_set(err, CHEX_ERR_USAGE, "'%s' needs images of at least %u x %u, not of %u x %u", model->path,
                             model->state.side, model->state.side, m->size, m->size);
    }
    m->resize_assumed = resize < 0;
    m->resize = resize < 0 ? spec_default().resize : (enum resample_method)resize;
    return CHEX_OK;
}

static enum chex_status
compare_findings(const struct models *m, struct chex_error *err)
{
    char a[FINDINGS_TEXT], b[FINDINGS_TEXT];
    size_t i;

    for (i = 1; i < m->count; i++)
        if (!findings_equal(&m->model[0].findings, &m->model[i].findings))
            return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has the findings %s, and '%s' has %s", m->model[0].path,
                             findings_describe(&m->model[0].findings, a), m->model[i].path,
                             findings_describe(&m->model[i].findings, b));
    return CHEX_OK;
}

enum chex_status
models_read(const struct predict_options *o, struct models *out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    out->short_run = "";
    out->model = calloc(o->runs, sizeof(*out->model));
    if (!out->model)
        return error_memory(err);
    for (; status == CHEX_OK && out->count < o->runs; out->count++)
        status = read_model(&out->model[out->count], o->run[out->count], err);
    if (status == CHEX_OK)
        status = compare_findings(out, err);
    if (status == CHEX_OK && !o->export)
        status = choose_images(o, out, err);
    for (i = 0; status == CHEX_OK && i < out->count; i++) {
        const struct checkpoint_state *s = &out->model[i].state;

        out->leaky |= s->leaky;
        if (!out->short_run[0])
            out->short_run = s->short_run;
    }
    out->outputs = out->model[0].findings.count;
    return status;
}

/* ---- device and plans -------------------------------------------------------------------------------------------- */

static enum chex_status
make_plan(const struct models *m, const struct predict_options *o, unsigned threads, struct predict_model *model,
          struct chex_error *err)
{
    const struct plan_options plan = {
        .graph = model->graph,
        .batch = m->batch,
        .micro_batches = 1,
        .source = m->size,
        .maps = o->maps || o->boxes,
        .precision = o->precision,
        .threads = threads,
    };
    enum chex_status status = m->backend->plan_new(m->device, &plan, &model->plan, &model->facts, err);

    if (status == CHEX_OK)
        status = m->backend->write(model->plan, ARENA_PARAMETERS, model->params, err);
    if (status == CHEX_OK)
        status = m->backend->write(model->plan, ARENA_STATISTICS, model->stats, err);
    if (status == CHEX_ERR_UNSUPPORTED)
        return err->status = CHEX_ERR_USAGE;
    return status == CHEX_ERR_MEMORY ? error_context(err, status, "micro-batches of %u images", m->batch) : status;
}

enum chex_status
models_open(const struct predict_options *o, unsigned threads, struct models *m, struct chex_error *err)
{
    const struct device_request request = {
        .device = o->device, .precision = o->precision, .note = m->note, .context = m->context};
    enum chex_status status = device_choose(&request, &m->backend, &m->device, err);
    size_t i;

    if (status == CHEX_OK)
        status = device_check_precision(&request, m->backend, m->device, err);
    if (status != CHEX_OK)
        return status;
    m->batch = o->micro_batch > 0 ? o->micro_batch : trainer_micro_batch(BATCH, m->device->info.micro_batch);
    for (i = 0; status == CHEX_OK && i < m->count; i++)
        status = make_plan(m, o, threads, &m->model[i], err);
    return status;
}

void
models_release(struct models *m)
{
    size_t i;

    for (i = 0; i < m->count; i++) {
        struct predict_model *model = &m->model[i];

        if (m->backend)
            m->backend->plan_free(model->plan);
        graph_free(model->graph);
        findings_release(&model->findings);
        free(model->params);
        free(model->stats);
        free(model->path);
    }
    if (m->backend && m->device)
        m->backend->device_close(m->device);
    free(m->model);
    *m = (struct models){.count = 0};
}
