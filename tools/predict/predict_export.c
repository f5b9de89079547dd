/*
 * predict_export.c - see predict_export.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_export.h"

#include "base/ascii.h"
#include "base/json.h"
#include "common/printable.h"
#include "common/wrap.h"
#include "export/onnx.h"
#include "io/file.h"
#include "predict/predict_flags.h"
#include "predict/predict_model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define KEYS        20
#define DESCRIPTION "Research use only, not for diagnosis"

/* The metadata; the values live in the arena. */
struct facts {
    struct metadata entry[KEYS];
    size_t count;
    struct arena strings;
    bool failed;
};

static void
add_bytes(struct facts *f, const char *key, const char *value, size_t size)
{
    const char *copy = arena_copy(&f->strings, value, size);

    f->failed |= !copy || f->count == KEYS;
    if (!f->failed)
        f->entry[f->count++] = (struct metadata){key, copy};
}

static void
add_text(struct facts *f, const char *key, const char *value)
{
    add_bytes(f, key, value, strlen(value));
}

static void
add_number(struct facts *f, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    add_text(f, key, text);
}

/* Add the names of the findings, and their thresholds: nothing between two commas where there is none. */
static enum chex_status
add_findings(struct facts *f, const struct predict_model *m, const struct flags *flags, struct chex_error *err)
{
    struct buffer names = {0}, thresholds = {0};
    enum chex_status status = CHEX_OK;
    unsigned k;

    for (k = 0; status == CHEX_OK && k < m->findings.count; k++) {
        const char *comma = k > 0 ? "," : "";

        status = buffer_printf(&names, err, "%s%s", comma, m->findings.name[k]);
        if (status == CHEX_OK && isnan(flags->threshold[k]))
            status = buffer_printf(&thresholds, err, "%s", comma);
        else if (status == CHEX_OK)
            status = buffer_printf(&thresholds, err, "%s%.9g", comma, flags->threshold[k]);
    }
    if (status == CHEX_OK)
        add_bytes(f, "findings", (const char *)names.data, names.size);
    if (status == CHEX_OK && flags->findings > 0) {
        add_bytes(f, "thresholds", (const char *)thresholds.data, thresholds.size);
        add_text(f, "threshold_rule", flags->rule);
        if (flags->calibration && strcmp(flags->rule, "file") != 0)
            add_text(f, "thresholds_chosen_on", flags->calibration->split);
    }
    buffer_release(&names);
    buffer_release(&thresholds);
    return status;
}

static enum chex_status
collect(const struct predict_options *o, const struct predict_model *m, const struct flags *flags, struct facts *f,
        struct chex_error *err)
{
    unsigned size = o->size > 0 ? o->size : m->size;
    int resize = o->resize >= 0 ? o->resize : m->resize;
    enum chex_status status;

    add_text(f, "use", DESCRIPTION);
    status = add_findings(f, m, flags, err);
    add_text(f, "network", m->state.model);
    add_text(f, "sha256", m->sha256);
    add_text(f, "dataset_id", m->state.dataset_id);
    if (m->has_run)
        add_text(f, "trained_on", m->split);
    if (m->fold[0])
        add_text(f, "fold", m->fold);
    add_number(f, "step", m->state.step);
    if (size > 0)
        add_number(f, "image_size", size);
    if (resize >= 0)
        add_text(f, "image_resize", resample_names[resize]);
    add_number(f, "image_crop", m->state.side);
    if (m->state.leaky)
        add_text(f, "leaky", "1");
    if (m->state.short_run[0])
        add_text(f, "short_run", m->state.short_run);
    return status == CHEX_OK && f->failed ? error_memory(err) : status;
}

static enum chex_status
write_model(const struct predict_options *o, const struct predict_model *m, const struct flags *flags, char *hex,
            struct chex_error *err)
{
    double slope[METRICS_OUTPUTS], intercept[METRICS_OUTPUTS];
    struct facts facts = {.count = 0};
    struct folder folder = {.fd = -1};
    const char *name;
    enum chex_status status = collect(o, m, flags, &facts, err);
    unsigned k;

    for (k = 0; k < m->findings.count; k++) {
        slope[k] = flags->calibration ? flags->calibration->finding[k].a : (double)NAN;
        intercept[k] = flags->calibration ? flags->calibration->finding[k].b : (double)NAN;
    }
    if (status == CHEX_OK)
        status = folder_open_output(o->export, &folder, &name, err);
    if (status == CHEX_OK) {
        const struct onnx_model model = {.graph = m->graph,
                                         .params = m->params,
                                         .stats = m->stats,
                                         .slope = slope,
                                         .intercept = intercept,
                                         .description = DESCRIPTION,
                                         .metadata = facts.entry,
                                         .metadata_count = facts.count};

        status = onnx_write(&model, &folder, name, hex, err);
    }
    folder_close(&folder);
    arena_release(&facts.strings);
    return status;
}

/* ---- what the user sees ------------------------------------------------------------------------------------------ */

static void
report(const struct predict_options *o, const struct predict_model *m, const struct flags *flags)
{
    struct wrap w = {.out = stderr};
    char path[PRINTABLE_TEXT];

    wrap_put(&w, "", "wrote    %s", printable_text(o->export, path));
    wrap_put(&w, ": ", "%s in ONNX (opset %d), image uint8 [N,1,%u,%u]", m->state.model, ONNX_OPSET, m->state.side,
             m->state.side);
    wrap_put(&w, ", ", "outputs probability, logit, %scam of %u findings", flags->calibrated > 0 ? "calibrated, " : "",
             m->findings.count);
    if (flags->calibrated > 0 && flags->calibrated < m->findings.count)
        wrap_put(&w, ", ", "calibrated is NaN for %u of them", m->findings.count - flags->calibrated);
    wrap_end(&w);
    wrap_line(stderr, "", "research use only, not for diagnosis");
}

static enum chex_status
print_json(const struct predict_options *o, const struct predict_model *m, const struct flags *flags, const char *hex,
           struct chex_error *err)
{
    json_t *top = json_pack("{s:s,s:s,s:s,s:{s:o,s:s,s:s,s:s,s:i,s:i,s:i,s:i},s:i}", "tool", "chex-predict", "version",
                            chex_version(), "use", "research only, not for diagnosis", "exported", "file",
                            text_json(o->export), "sha256", hex, "network", m->state.model, "model_sha256", m->sha256,
                            "side", (int)m->state.side, "opset", ONNX_OPSET, "findings", (int)m->findings.count,
                            "calibrated", (int)flags->calibrated, "exit_code", 0);
    struct buffer text = {0};
    enum chex_status status = append_json(top, JSON_INDENT(2), &text, err);

    if (status == CHEX_OK && (fwrite(text.data, 1, text.size, stdout) != text.size || fflush(stdout) != 0))
        status = error_write(err, errno, "cannot write to standard output");
    json_decref(top);
    buffer_release(&text);
    return status;
}

enum chex_status
predict_export(const struct predict_options *o, const struct cli_common *common, struct chex_error *err)
{
    struct models models = {.count = 0};
    struct flags flags;
    char hex[DIGEST_HEX];
    enum chex_status status = models_read(o, &models, err);

    if (status == CHEX_OK)
        status = flags_choose(o, &models, &flags, err);
    if (status == CHEX_OK)
        status = write_model(o, &models.model[0], &flags, hex, err);
    if (status == CHEX_OK && !common->quiet)
        report(o, &models.model[0], &flags);
    if (status == CHEX_OK && common->json)
        status = print_json(o, &models.model[0], &flags, hex, err);
    models_release(&models);
    return status;
}
