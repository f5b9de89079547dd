/*
 * convert_withdraw.c - see convert_withdraw.h; lib/convert/withdraw.h does the work
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_withdraw.h"

#include "base/ascii.h"
#include "base/json.h"
#include "base/number_format.h"
#include "common/printable.h"
#include "common/progress_line.h"
#include "common/shell_word.h"
#include "common/stop_signals.h"
#include "common/wrap.h"
#include "convert/convert_report.h"
#include "convert/withdraw.h"

#include <string.h>

#define LISTED 20 /* patients in the report; with -v all */

static void
on_tick(void *context, const char *what, size_t done, size_t shards)
{
    struct progress_line *line = context;
    char text[128];

    if (!progress_line_due(line))
        return;
    snprintf(text, sizeof(text), "%s  %s of %s shards", what, COUNT_TEXT(done), COUNT_TEXT(shards));
    progress_line_update(line, text);
}

/* ---- report ------------------------------------------------------------------------------------------------------ */

static void
report_patients(const struct withdrawal *w, const struct cli_common *common)
{
    char images[FORMAT_THINGS], id[4 * PATIENT_MAX + 1];
    size_t i, listed = 0, left = 0;

    for (i = 0; i < w->patient_count; i++) {
        const struct withdrawn_patient *p = &w->patient[i];

        ascii_escape(p->id, strlen(p->id), id, sizeof(id));
        if (listed++ >= LISTED && common->verbose == 0)
            left++;
        else if (p->images == 0)
            fprintf(stderr, "         %s: not in the data set%s\n", id, p->rejects > 0 ? ", only rejected images" : "");
        else
            fprintf(stderr, "         %s: %s\n", id, format_things(p->images, "image", images));
    }
    if (left > 0)
        fprintf(stderr, "         and %s more (-v lists them)\n", COUNT_TEXT(left));
}

static void
report_foreign(const struct withdrawal *w)
{
    struct wrap line = {.out = stderr};
    char word[PRINTABLE_TEXT];
    size_t i;

    if (w->foreign.count == 0)
        return;
    wrap_put(&line, "", "others   not searched for these patients:");
    for (i = 0; i < w->foreign.count && i < 5; i++)
        wrap_put(&line, i > 0 ? ", " : " ", "%s", printable_text(w->foreign.name[i], word));
    if (i < w->foreign.count)
        wrap_put(&line, ", ", "and %s more", COUNT_TEXT(w->foreign.count - i));
    wrap_end(&line);
}

static void
report_finished(const struct withdrawal *w)
{
    if (w->finished_id[0])
        wrap_line(stderr, "finished", "the withdrawal that an earlier command began: data set %s", w->finished_id);
}

/* Nothing was withdrawn, and so the names of rejected images stay. */
static void
warn_of_rejects(const struct withdrawal *w, const struct cli_common *common)
{
    uint64_t rejects = 0;
    size_t i;

    for (i = 0; i < w->patient_count; i++)
        rejects += w->patient[i].rejects;
    if (rejects > 0)
        cli_warn(&convert_program, common, "rejects.jsonl still has the names of %s rejected images of these patients",
                 COUNT_TEXT(rejects));
}

static void
report(const struct convert_cli *cli, const struct cli_common *common, const struct withdrawal *w)
{
    char slots[FORMAT_THINGS], shards[FORMAT_THINGS], images[FORMAT_THINGS];

    if (w->linked > 0)
        cli_warn(&convert_program, common, "%s had other hard links, which still contain these patients",
                 format_things(w->linked, "shard", shards));
    if (!w->to[0])
        warn_of_rejects(w, common);
    if (common->quiet)
        return;
    report_finished(w);
    if (!w->to[0]) {
        wrap_line(stderr, "withdraw", "nothing: none of the patients has an image in the data set");
        return;
    }
    wrap_line(stderr, "withdraw", "%s in %s%s", format_things(w->slots, "image", slots),
              format_things(w->shards, "shard", shards), w->finished ? "; an earlier command began it" : "");
    if (!w->finished)
        report_patients(w, common);
    report_foreign(w);
    wrap_line(stderr, cli->dry_run ? "would be" : "done", "data set %s, %s; before: %s", w->to,
              format_things(w->images_left, "image", images), w->from);
}

static json_t *
withdrawal_json(const struct withdrawal *w)
{
    json_t *patients;
    size_t i;

    if (!w->to[0])
        return json_null();
    patients = json_array();
    for (i = 0; i < w->patient_count && !w->finished; i++)
        json_array_append_new(patients, json_pack("{s:o,s:o,s:o}", "id", text_json(w->patient[i].id), "images",
                                                  count_json(w->patient[i].images), "rejects",
                                                  count_json(w->patient[i].rejects)));
    return json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:b,s:o}", "from", w->from, "dataset_id", w->to, "time", w->time,
                     "slots", count_json(w->slots), "shards", count_json(w->shards), "images_left",
                     count_json(w->images_left), "finished", w->finished, "patients", patients);
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

int
convert_withdraw(struct convert_cli *cli, const struct cli_common *common, struct collective *ranks,
                 enum chex_status status, struct chex_error *err)
{
    struct progress_line line;
    struct withdraw_options o = {
        .path = cli->convert.out,
        .patients = cli->withdraw,
        .allow_missing = cli->convert.allow_missing,
        .dry_run = cli->dry_run,
        .break_lock = cli->convert.break_lock,
        .threads = common->threads,
        .now = time(NULL),
        .tick = on_tick,
        .context = &line,
        .stop = cli->convert.stop,
    };
    struct withdrawal w = {.slots = 0};
    struct convert none = {.options = &cli->convert, .ranks = ranks};
    int code = EXIT_GOOD;

    if (status == CHEX_OK && collective_size(ranks) > 1)
        status = error_set(err, CHEX_ERR_USAGE, "--withdraw is for one process: started as one of %d ranks",
                           collective_size(ranks));
    progress_line_init(&line, common);
    stop_signals_may_exit(0);
    if (status == CHEX_OK)
        status = withdraw_run(&o, &w, err);
    progress_line_release(&line);
    if (!collective_reports_errors(ranks)) {
        withdraw_release(&w);
        return code;
    }
    if (status == CHEX_OK) {
        report(cli, common, &w);
    } else {
        if (!common->quiet)
            report_finished(&w);
        cli_suggest_path(err, cli->convert.out);
        code = cli_error(&convert_program, common, err);
        if ((status == CHEX_ERR_STOPPED || status == CHEX_ERR_WRITE || status == CHEX_ERR_READ) && !common->quiet)
            wrap_line(stderr, "next",
                      w.begun ? "the same command again; it finishes the withdrawal that was begun in '%s'"
                              : "the same command again; nothing in '%s' was changed",
                      relative_path(cli->convert.out));
    }
    if (common->json)
        report_json(&none, status == CHEX_OK ? NULL : err, code, cli->dry_run, "withdrawal", withdrawal_json(&w));
    withdraw_release(&w);
    return code;
}
