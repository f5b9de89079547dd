/*
 * report.c - the command `report`: writes a page that describes a data set; see report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/checks.h"

#include "base/clock.h"
#include "base/number_format.h"
#include "common/printable.h"
#include "common/shell_word.h"
#include "common/wrap.h"
#include "draw/canvas.h"
#include "inspect/command.h"
#include "inspect/diff/scored_run.h"
#include "inspect/run/run.h"

#include <string.h>
#include <unistd.h>

static json_t *
checks_json(const struct html_report *r)
{
    static const char *const names[REPORT_LEVELS] = {
        [LEVEL_GOOD] = "good", [LEVEL_NOTE] = "note", [LEVEL_LOOK] = "look", [LEVEL_FAULT] = "fault"};
    json_t *list = json_array();
    unsigned i;

    for (i = 0; i < r->check_count; i++) {
        const struct report_check *c = &r->checks[i];

        inspect_json_push(&list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "id", c->id, "title", c->title, "level",
                                           names[c->level], "count", count_json(c->count), "text", text_json(c->text)));
    }
    return list;
}

static void
print_summary(struct inspect *in, const struct html_report *r, const char *output, size_t size, double seconds)
{
    char bytes[FORMAT_TEXT], images[FORMAT_THINGS], shown[PRINTABLE_TEXT];
    struct wrap w = {.out = stderr};
    unsigned level[REPORT_LEVELS] = {0}, i;

    for (i = 0; i < r->check_count; i++)
        level[r->checks[i].level]++;
    if (in->common->json) {
        inspect_json_add(in, json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "path", text_json(r->target->path),
                                       "output", text_json(output), "dataset", r->dataset->info.id, "images",
                                       count_json(r->all.images), "bytes", count_json(size), "checks", checks_json(r),
                                       "faults", count_json(r->walk.faults)));
        return;
    }
    if (in->common->quiet)
        return;
    wrap_put(&w, "",
             "%s:", printable_text(strcmp(output, "-") == 0 ? "standard output" : relative_path(output), shown));
    wrap_put(&w, " ", "%s, %s in %.1f s:", format_bytes(size, bytes), format_things(r->all.images, "image", images),
             seconds);
    wrap_put(&w, " ", "%u good, %u note%s, %u to look at, %u fault%s", level[LEVEL_GOOD], level[LEVEL_NOTE],
             report_plural(level[LEVEL_NOTE]), level[LEVEL_LOOK], level[LEVEL_FAULT],
             report_plural(level[LEVEL_FAULT]));
    wrap_end(&w);
    for (i = 0; i < r->check_count; i++)
        if (r->checks[i].level == LEVEL_FAULT)
            progress_line_fault(&in->line, "fault    %s", r->checks[i].text);
}

static enum chex_status
write_page(const char *output, const struct html *h, struct chex_error *err)
{
    if (strcmp(output, "-") != 0)
        return inspect_put_file(output, &h->b, err);
    fwrite(h->b.data, 1, h->b.size, stdout); /* cli_finish() reports a write error */
    return CHEX_OK;
}

static int
make_report(struct inspect *in, struct target *t)
{
    struct html_report r = {.in = in, .title = in->options->title, .target = t, .dataset = t->dataset};
    struct html h = {{0}, false};
    struct chex_error err;
    double started = clock_now();
    int code;
    enum chex_status status = report_scan(&r, &err);

    if (status == CHEX_OK)
        status = report_read_rejects(&r, &err);
    if (status == CHEX_OK) {
        report_count(&r);
        report_run_checks(&r);
        status = report_page(&r, &h, &err);
    }
    if (status == CHEX_OK)
        status = write_page(in->options->output, &h, &err);
    if (status == CHEX_OK) {
        print_summary(in, &r, in->options->output, h.b.size, clock_now() - started);
        code = inspect_walk_code(&r.walk);
        if (report_has_fault(&r))
            code = inspect_worse(code, EXIT_DATA);
    } else {
        code = inspect_fail(in, t->path, &err);
    }
    html_release(&h);
    report_close(&r);
    return code;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

/* Returns an option that was given and is only for runs, or NULL. */
static const char *
run_option(const struct inspect_options *o)
{
    return o->split       ? "--split"
           : o->data      ? "--data"
           : o->groups    ? "--groups"
           : o->labels    ? "--labels"
           : o->reference ? "--reference"
           : o->maps      ? "--maps"
                          : NULL;
}

static const char *
why_no_run(const char *path)
{
    return access(path, F_OK) == 0 ? "is not the folder of a run" : "does not exist";
}

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool to_stdout = o->output && strcmp(o->output, "-") == 0;
    const char *given = run_option(o);
    size_t i;

    if (!o->output)
        return error_set(err, CHEX_ERR_USAGE, "'report' needs -o FILE.html or -");
    /* Otherwise a slip such as `-o shards/00001` would overwrite the input. */
    if (!to_stdout && !picture_name_ends(o->output, ".html") && !picture_name_ends(o->output, ".htm"))
        return error_set(err, CHEX_ERR_USAGE, "'%s': the name must end in .html", o->output);
    if (given && !inspect_is_run(o->path[0]))
        return error_set(err, CHEX_ERR_USAGE, "%s is for the folder of a run; '%s' %s", given, o->path[0],
                         why_no_run(o->path[0]));
    for (i = 0; i < o->path_count && o->path_count > 1; i++)
        if (!inspect_is_run(o->path[i]))
            return error_set(err, CHEX_ERR_USAGE, "'report' takes one PATH, or the folders of runs; '%s' %s",
                             o->path[i], why_no_run(o->path[i]));
    if (to_stdout && common->json)
        return error_set(err, CHEX_ERR_USAGE, "--json and a page cannot both go to standard output");
    return CHEX_OK;
}

static bool
is_run(const struct inspect_options *o)
{
    return inspect_is_run(o->path[0]);
}

static int
report_run(struct inspect *in)
{
    return inspect_run_report(in, in->options->path, (unsigned)in->options->path_count);
}

static const struct cli_option options[] = {
    {AT_TEXT(output), 'o', "output", "FILE", NULL, NULL, "file to write: FILE.html, or - for standard output"},
    ROW_TITLE,
    {AT_TEXT(split), 0, "split", "NAME", NULL, NULL, "of a run: the split whose predictions to report; default: test"},
    {AT_TEXT(data), 'd', "data", "DIR", NULL, NULL, "of a run: its data set, if it is not where run.json says"},
    {AT_TEXT(groups), 0, "groups", "FILE", NULL, NULL,
     "of a run: a CSV file that divides its images into more groups, a column each, such as drain 0 or 1"},
    {AT_TEXT(labels), 'l', "labels", "FILE", NULL, NULL,
     "of a run: a CSV file with other labels of its images; measure against these too"},
    {AT_TEXT(reference), 0, "reference", "FILE", NULL, NULL,
     "of a run: a CSV file of published results to show next to its own: source,split,finding,auroc,n"},
    {AT_TEXT(maps), 0, "maps", "DIR", NULL, NULL,
     "of a run: the folder -o of chex-predict --maps; show whether its maps depend on the weights, and find its boxes"},
    ROW_END,
};

const struct inspect_command inspect_report_command = {
    .cli = {.name = "report",
            .summary = "write a page about a data set or a run, with plots",
            .usage = "-o FILE.html|- [--title TEXT] PATH\n"
                     "-o FILE.html|- [--title TEXT] [--split NAME] [-d DIR]\n"
                     "  [--groups FILE] [--labels FILE] [--reference FILE]\n"
                     "  [--maps DIR] RUN...",
            .examples = "chex-inspect report -o report.html shards\n"
                        "chex-inspect report -o run.html runs/a     # the predictions on test\n"
                        "chex-inspect report -o run.html --maps out runs/a  # of chex-predict\n"
                        "chex-inspect report -o seeds.html runs/1 runs/2 runs/3",
            .options = options},
    .action = INSPECT_REPORT,
    .min = 1,
    .max = SCORED_RUNS,
    .operands = "one PATH, or the folders of up to 100 runs",
    .check = check_options,
    .once = is_run,
    .all = report_run,
    .each = make_report,
};
