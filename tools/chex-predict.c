/*
 * chex-predict.c - scores images with trained networks, without labels
 *
 * predict_options.c has the options; predict_model.c and predict_images.c read the inputs, predict_run.c scores,
 * predict_write.c and predict_report.c have the output.  predict_export.c writes a model for other programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/json.h"
#include "common/progress_line.h"
#include "common/stop_signals.h"
#include "predict/predict_boxes.h"
#include "predict/predict_export.h"
#include "predict/predict_report.h"

#include <errno.h>
#include <string.h>

/* A run of the program: what its callbacks need. */
struct prediction_run {
    const struct cli_common *common;
    struct progress_line line;
    struct progress progress;
    const struct prediction *prediction;
    struct map_writer *maps;
    struct box_run *boxes;
};

static void
on_note(void *context, const char *text)
{
    struct prediction_run *run = context;

    if (!run->common->quiet)
        progress_line_print(&run->line, "note     %s", text);
}

static void
on_tick(void *context, uint64_t done, uint64_t refused)
{
    struct prediction_run *run = context;
    char text[256];

    progress_update(&run->progress, done);
    if (!progress_line_due(&run->line))
        return;
    report_scoring(&run->progress, refused, text, sizeof(text));
    progress_line_update(&run->line, text);
}

static void
on_refuse(void *context, const char *name, const char *why)
{
    struct prediction_run *run = context;

    if (!run->common->quiet)
        progress_line_fault(&run->line, "refused  %s: %s", name, why);
}

static void
on_damaged(void *context, const char *path, const struct archive_fault *fault)
{
    struct prediction_run *run = context;

    if (!run->common->quiet)
        progress_line_fault(&run->line, "damaged  '%s' at byte %llu: %s", path, (unsigned long long)fault->offset,
                            fault->error.text);
}

static enum chex_status
on_mapped(void *context, uint32_t row, const uint8_t *pixels, const float *map, struct chex_error *err)
{
    const struct prediction_run *run = context;
    const struct results *r = run->prediction->results;
    struct map_box box[METRICS_OUTPUTS];
    size_t at = (size_t)row * r->outputs;
    bool given = false;

    if (run->prediction->boxes)
        boxes_keep(run->boxes, row, map);
    if (!run->prediction->maps)
        return CHEX_OK;
    if (run->prediction->boxes)
        given = boxes_given(run->boxes, row, &r->image[row], run->prediction->models->size, box);
    return maps_write(run->maps, row, run->prediction->images->names.entry[row].name, pixels, r->logit + at,
                      r->probability + at, map, given ? box : NULL, err);
}

/* Write to standard output: the document with --json, otherwise the CSV if there is no folder for it. */
static enum chex_status
print(const struct prediction *p, const struct cli_common *common, int code, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = CHEX_OK;
    json_t *top;

    if (common->json) {
        top = prediction_json(p);
        if (top && json_object_set_new(top, "exit_code", json_integer(code)) != 0) {
            json_decref(top);
            top = NULL;
        }
        status = append_json(top, JSON_INDENT(2) | JSON_REAL_PRECISION(17), &text, err);
        json_decref(top);
    } else if (!p->options->out) {
        status = prediction_csv(p, &text, err);
    }
    if (status == CHEX_OK && text.size > 0 &&
        (fwrite(text.data, 1, text.size, stdout) != text.size || fflush(stdout) != 0))
        status = error_write(err, errno, "cannot write to standard output");
    buffer_release(&text);
    return status;
}

static void
print_failure(const struct chex_error *why, int code)
{
    json_t *top = json_pack("{s:s,s:s,s:i,s:o}", "tool", "chex-predict", "version", chex_version(), "exit_code", code,
                            "error", text_json(why->text));

    if (top)
        json_dumpf(top, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(top);
}

static int
exit_code_of(const struct prediction *p)
{
    if (p->boxes && p->boxes->outside > 0)
        return EXIT_DATA;
    return p->results->refused > 0 || prediction_damaged(p->images) > 0 ? EXIT_DATA : EXIT_GOOD;
}

/* Read the models and list the images; nothing is written yet. */
static enum chex_status
prepare(struct predict_options *o, const struct cli_common *common, const atomic_bool *stop,
        struct prediction_output *output, struct models *models, struct flags *flags, struct images *images,
        struct chex_error *err)
{
    enum chex_status status = predict_sort_operands(o, err);

    if (status == CHEX_OK)
        status = maps_check_options(o, err);
    if (status == CHEX_OK)
        status = boxes_check_options(o, err);
    if (status == CHEX_OK && o->out)
        status = prediction_check_output(o, err);
    if (status == CHEX_OK)
        status = models_read(o, models, err);
    if (status == CHEX_OK)
        status = flags_choose(o, models, flags, err);
    if (status == CHEX_OK)
        status = images_list(o, models->size, models->resize, common->threads, stop, images, err);
    if (status == CHEX_OK)
        status = models_open(o, common->threads, models, err);
    return status == CHEX_OK && o->out ? prediction_open_output(o, output, err) : status;
}

/* Score the images and write the results; *code is the exit code without an error. */
static enum chex_status
score(struct prediction_run *run, const struct prediction *p, struct prediction_output *output, struct images *images,
      struct results *results, const atomic_bool *stop, int *code, struct chex_error *err)
{
    const struct cli_common *common = run->common;
    const struct predict_watch watch = {.tick = on_tick,
                                        .refuse = on_refuse,
                                        .damaged = on_damaged,
                                        .mapped = p->maps || p->boxes ? on_mapped : NULL,
                                        .context = run,
                                        .stop = stop};
    enum chex_status status = CHEX_OK;

    if (!common->quiet) {
        progress_line_begin_log(common, predict_program.name);
        report_plan(p, common->threads);
    }
    progress_start(&run->progress, images->count);
    if (p->boxes)
        status = boxes_begin(p->options, p->models, images, prediction_synthetic(images), run->boxes, err);
    if (status == CHEX_OK && p->maps)
        status = maps_begin(p->options, p->models, p->flags, images, prediction_synthetic(images), run->maps, err);
    if (status == CHEX_OK)
        status = predict_run(p->options, common->threads, p->models, images, &watch, results, err);
    if (status == CHEX_OK && p->maps)
        status = maps_write_sheets(run->maps, err);
    if (status == CHEX_OK && p->maps)
        status = maps_check(run->maps, err);
    if (status == CHEX_OK && p->boxes)
        status = boxes_measure(run->boxes, results, common->threads, stop, err);
    stop_signals_may_exit(0);
    progress_line_clear(&run->line);
    *code = exit_code_of(p);
    if (status == CHEX_OK && p->options->out)
        status = prediction_write(p, output, err);
    if (status == CHEX_OK && p->options->out) /* before the document: it says that all went well */
        status = prediction_close_output(p->options, output, err);
    if (status == CHEX_OK)
        status = print(p, common, *code, err);
    if (status == CHEX_OK && !common->quiet)
        report_done(p, common);
    return status;
}

static void
suggest(const struct predict_options *o, struct chex_error *err)
{
    size_t i;

    for (i = 0; i < o->operands; i++)
        cli_suggest_path(err, o->operand[i]);
}

/* Report a failure; returns the exit code. */
static int
fail(const struct predict_options *o, const struct cli_common *common, struct chex_error *err)
{
    int code;

    suggest(o, err);
    if (chex_status_is_data(err->status)) /* of a data set or archive; nothing was scored, so the code is not 1 */
        err->status = CHEX_ERR_MISSING;
    code = cli_error(&predict_program, common, err);
    if (common->json)
        print_failure(err, code);
    return code;
}

static int
export_model(struct predict_options *o, const struct cli_common *common)
{
    struct chex_error err = {.status = CHEX_OK};
    enum chex_status status = predict_sort_operands(o, &err);

    if (status == CHEX_OK)
        status = predict_export(o, common, &err);
    return status == CHEX_OK ? EXIT_GOOD : fail(o, common, &err);
}

static int
predict(struct predict_options *o, const struct cli_common *common)
{
    const atomic_bool *stop = stop_signals_catch("stopping after the current images");
    struct prediction_run run = {.common = common};
    struct models models = {.note = on_note, .context = &run};
    struct images images = {.count = 0};
    struct results results = {.count = 0};
    struct flags flags;
    struct map_writer maps = {.folder = {.fd = -1}};
    struct box_run boxes = {.count = 0};
    const struct prediction p = {.options = o,
                                 .models = &models,
                                 .flags = &flags,
                                 .images = &images,
                                 .results = &results,
                                 .maps = o->maps ? &maps : NULL,
                                 .boxes = o->boxes ? &boxes : NULL};
    struct prediction_output output = {.folder.fd = -1};
    struct chex_error err = {.status = CHEX_OK};
    int code = EXIT_GOOD;
    enum chex_status status;

    run.prediction = &p;
    run.maps = &maps;
    run.boxes = &boxes;
    stop_signals_may_exit(EXIT_STOPPED);
    progress_line_init(&run.line, common);
    status = prepare(o, common, stop, &output, &models, &flags, &images, &err);
    if (status == CHEX_OK)
        status = score(&run, &p, &output, &images, &results, stop, &code, &err);
    progress_line_release(&run.line);
    (void)prediction_close_output(o, &output, NULL); /* after a failure; score() has closed it otherwise */
    if (status != CHEX_OK)
        code = fail(o, common, &err);
    maps_end(&maps);
    boxes_end(&boxes);
    results_release(&results);
    images_release(&images);
    models_release(&models);
    return code;
}

int
main(int argc, char **argv)
{
    struct predict_options options = predict_options_default();
    struct cli_common common;
    int code = cli_parse(&predict_program, argc, argv, &options, &common);

    if (code == CLI_GO_ON) {
        code = options.export ? export_model(&options, &common) : predict(&options, &common);
        if (code != EXIT_OUTPUT) /* otherwise predict() has named the file, or the standard output */
            code = cli_finish(&predict_program, &common, code);
    }
    predict_options_release(&options);
    return code;
}
