/*
 * run.c - the command `report` for the folder of a run; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/run.h"

#include "common/printable.h"
#include "common/shell_word.h"
#include "common/wrap.h"
#include "inspect/diff/runs.h"

#include <stdlib.h>
#include <string.h>

static enum chex_status
write_page(const char *output, const struct html *h, struct chex_error *err)
{
    if (strcmp(output, "-") != 0)
        return inspect_put_file(output, &h->b, err);
    fwrite(h->b.data, 1, h->b.size, stdout); /* cli_finish() reports a write error */
    return CHEX_OK;
}

/* Print where the page is, the result of several runs, and the answers that need a look. */
static void
print_summary(const struct inspect *in, const struct run_report *r)
{
    const char *output = in->options->output;
    char images[FORMAT_THINGS], shown[PRINTABLE_TEXT];
    struct wrap w = {.out = stderr};
    unsigned i;

    if (in->common->quiet)
        return;
    wrap_put(&w, "",
             "%s:", printable_text(strcmp(output, "-") == 0 ? "standard output" : relative_path(output), shown));
    if (r->many)
        wrap_put(&w, " ", "%u runs,", r->many->diff->count);
    wrap_put(&w, " ", "split %s, %s,", printable_text(r->split, shown), format_things(r->p.count, "image", images));
    wrap_put(&w, " ", "%u of %u findings with enough patients", r->enough, r->p.outputs);
    wrap_end(&w);
    for (i = 0; i < r->answers; i++)
        if (strcmp(r->answer[i].id, RUN_SEVERAL) == 0)
            wrap_line(stderr, "runs", "%s", printable_text(r->answer[i].text, shown));
    for (i = 0; i < r->answers; i++)
        if (r->answer[i].level == RUN_LOOK && strcmp(r->answer[i].id, RUN_SEVERAL) != 0)
            wrap_line(stderr, "look", "%s%s: %s", r->many ? "Run 1, " : "", r->answer[i].title,
                      printable_text(r->answer[i].text, shown));
}

static enum chex_status
make(struct run_report *r, const char *const *path, unsigned count, unsigned *failed, struct html *h,
     struct chex_error *err)
{
    enum chex_status status = run_report_read(r, err);

    if (status == CHEX_OK)
        status = run_report_measure(r, err);
    if (status == CHEX_OK && count > 1)
        status = run_report_many(r, path, count, failed, err);
    if (status == CHEX_OK)
        status = run_report_floor(r, err);
    if (status == CHEX_OK)
        status = run_report_groups(r, err);
    if (status == CHEX_OK)
        status = run_report_each(r, failed, err);
    if (status == CHEX_OK)
        status = run_report_labels(r, err);
    if (status == CHEX_OK)
        status = run_report_references(r, err);
    if (status == CHEX_OK)
        status = run_report_maps(r, err);
    if (status == CHEX_OK)
        status = run_report_suspects(r, err);
    if (status != CHEX_OK)
        return status;
    run_report_answer(r);
    status = run_report_page(r, h, err);
    return status == CHEX_OK ? write_page(r->in->options->output, h, err) : status;
}

int
inspect_run_report(struct inspect *in, const char *const *path, unsigned count)
{
    unsigned failed = 0;
    struct run_report *r = calloc(1, sizeof(*r));
    struct html h = {{0}, false};
    struct chex_error err;
    enum chex_status status;
    int code = EXIT_GOOD;

    if (!r) {
        error_memory(&err);
        return inspect_fail(in, path[0], &err);
    }
    r->in = in;
    r->path = path[0];
    r->split = in->options->split ? in->options->split : RUN_DEFAULT;
    status = make(r, path, count, &failed, &h, &err);
    if (status != CHEX_OK)
        code = inspect_fail(in, path[failed], &err);
    else if (in->common->json)
        inspect_json_add(in, run_report_json(r, in->options->output, h.b.size));
    else
        print_summary(in, r);
    if (status == CHEX_OK && r->many && matched_left_out(&r->many->diff->images) > 0)
        code = EXIT_DATA;
    html_release(&h);
    run_report_free(r);
    return code;
}
