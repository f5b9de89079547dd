/*
 * chex-convert.c - decodes chest X-rays and their labels once, into TFRecord shards
 *
 * convert_options.c has the options, convert_report.c and convert_json.c the output, lib/convert/convert.h the work.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/number_format.h"
#include "base/progress.h"
#include "common/launcher.h"
#include "common/library_exit.h"
#include "common/progress_line.h"
#include "common/shell_word.h"
#include "common/stop_signals.h"
#include "common/wrap.h"
#include "convert/convert_options.h"
#include "convert/convert_part.h"
#include "convert/convert_profile.h"
#include "convert/convert_report.h"
#include "convert/convert_withdraw.h"
#include "ranks/collective.h"

struct watcher {
    const struct collective *ranks;
    const struct cli_common *common;
    struct part part; /* the part that the progress line shows */
    struct progress_line line;
    struct progress progress;
};

static void
on_begin(void *context, const struct convert *c)
{
    struct watcher *w = context;

    progress_start(&w->progress, c->counts.images);
    /* Images of an earlier run do not count for the speed of this one. */
    w->progress.sampled_done = w->progress.first = c->counts.resumed;
    if (!w->common->quiet)
        report_resumed(c);
}

static void
on_tick(void *context, const struct convert *c, uint64_t done, uint64_t rejects)
{
    struct watcher *w = context;
    char text[256];

    (void)c;
    progress_update(&w->progress, done);
    if (!progress_line_due(&w->line))
        return;
    report_progress(&w->progress, w->part, rejects, text, sizeof(text));
    progress_line_update(&w->line, text);
}

static void
on_reject(void *context, const char *name, const struct chex_error *why)
{
    struct watcher *w = context;
    char who[RANK_NAME];

    if (!w->common->quiet)
        progress_line_fault(&w->line, "%sreject %s: %s", name_rank(w->ranks, who), name, why->text);
}

static void
on_unread(void *context, const char *name, const struct chex_error *why)
{
    struct watcher *w = context;
    char who[RANK_NAME];

    if (!w->common->quiet)
        progress_line_fault(&w->line, "%sunread %s: %s", name_rank(w->ranks, who), name, why->text);
}

static void
on_damaged(void *context, const char *path, const struct archive_fault *fault)
{
    struct watcher *w = context;

    if (!w->common->quiet)
        progress_line_fault(&w->line, "%s  '%s' at byte %s: %s",
                            fault->error.status == CHEX_ERR_LIMIT ? "refused" : "damaged", path,
                            COUNT_TEXT(fault->offset), fault->error.text);
}

static void
on_differs(void *context, const char *shard)
{
    struct watcher *w = context;
    char who[RANK_NAME];

    cli_warn(&convert_program, w->common, "%sthe source has changed: '%s' now has another SHA-256",
             name_rank(w->ranks, who), shard);
}

static int
exit_code_of(const struct convert *c)
{
    /* All images were converted, but an archive is damaged.  That is a fault if no rejects are allowed. */
    if (c->archives_damaged > 0 && c->counts.rejects == 0 && c->options->allow_rejects == 0 &&
        c->options->allow_reject_percent == 0)
        return EXIT_DATA;
    return c->labels.reject_count > 0 || c->counts.shards_other > 0 || !rejects_allowed(c) ? EXIT_DATA : EXIT_GOOD;
}

/* Runs the conversion, after the plan was printed. */
static enum chex_status
run(struct convert *c, const struct cli_common *common, struct chex_error *err)
{
    struct watcher watcher = {.common = common, .ranks = c->ranks, .part = part_of(c)};
    struct convert_watch watch = {.begin = on_begin,
                                  .tick = on_tick,
                                  .reject = on_reject,
                                  .unread = on_unread,
                                  .damaged = on_damaged,
                                  .differs = on_differs,
                                  .context = &watcher,
                                  .stop = c->options->stop};
    enum chex_status status;

    stop_signals_may_exit(0);
    progress_line_init(&watcher.line, common);
    status = convert_run(c, &watch, err);
    progress_line_release(&watcher.line);
    if (c->inputs_read && status != CHEX_OK && !common->quiet)
        report_missing(c);
    if (c->threads_used > 0 && c->threads_used < common->threads && c->threads_used < c->plan.image_count)
        cli_warn(&convert_program, common, "only %s of %s threads could be started", COUNT_TEXT(c->threads_used),
                 COUNT_TEXT(common->threads));
    return status;
}

/* Only plans.  Missing images are part of the answer: the plan covers the images that exist. */
static enum chex_status
dry_run(struct convert_cli *cli, const struct cli_common *common, struct convert *c, enum chex_status status,
        struct chex_error *err)
{
    bool allowed = cli->convert.allow_missing;

    cli->convert.plan_only = true;
    if (status == CHEX_OK)
        status = convert_prepare(&cli->convert, c, err);
    status = convert_compare(c, "dry run", status, err);
    if (!is_rank_0(c->ranks))
        return status;
    if (status == CHEX_OK) {
        report_plan(c, common, true);
        report_parts(c, common);
    }
    if (status == CHEX_OK && c->preflight.missing > 0 && !allowed) {
        char hint[PREFLIGHT_HINT];

        preflight_endings(&c->labels, c->missing, &c->unlabeled, hint);
        status = error_set(err, CHEX_ERR_MISSING, "%s of %s images %s missing%s (--allow-missing converts the others)",
                           COUNT_TEXT(c->preflight.missing), COUNT_TEXT(c->preflight.wanted),
                           c->preflight.missing == 1 ? "is" : "are", hint);
    }
    return status == CHEX_OK ? convert_check_output(c, err) : status;
}

static enum chex_status
prepare_and_run(struct convert_cli *cli, const struct cli_common *common, struct convert *c, enum chex_status status,
                struct chex_error *err)
{
    if (status == CHEX_OK)
        status = convert_prepare(&cli->convert, c, err);
    if (status == CHEX_ERR_MISSING && is_rank_0(c->ranks) && !common->quiet)
        report_missing(c);
    status = convert_compare(c, "conversion", status, err);
    if (status != CHEX_OK)
        return status;
    if (is_rank_0(c->ranks)) {
        report_plan(c, common, false);
        report_parts(c, common);
    }
    return run(c, common, err);
}

/* Prints the summary and returns the exit code; only rank 0 calls it. */
static int
print_summary(const struct convert_cli *cli, const struct cli_common *common, const struct convert *c,
              enum chex_status status, const struct chex_error *err)
{
    int code = EXIT_GOOD;

    if (status != CHEX_OK) {
        code = cli_error(&convert_program, common, err);
        if (status == CHEX_ERR_STOPPED && !c->running && !common->quiet)
            fprintf(stderr, "next     the same command again; nothing was written yet\n");
        else if ((status == CHEX_ERR_STOPPED ||
                  ((status == CHEX_ERR_WRITE || status == CHEX_ERR_READ || status == CHEX_ERR_LOST) &&
                   c->resumed.shards > 0)) &&
                 !common->quiet)
            wrap_line(stderr, "next", "the same command %s resumes; what is in '%s' is kept",
                      cli->convert.force ? "without --force" : "again", relative_path(cli->convert.out));
        if (status == CHEX_ERR_MISSING && c->inputs_read && !common->quiet)
            report_incomplete(c);
        if (status == CHEX_ERR_MEMORY && !common->quiet)
            report_shortage(err, common->threads);
    } else if (cli->dry_run) {
        if (!common->quiet)
            report_unread(c);
    } else if (!part_is_whole(cli->convert.part) && !c->resumed.complete) {
        report_part_done(c, common);
    } else {
        code = exit_code_of(c);
        report_done(c, common, rejects_allowed(c));
        /* Print report_left() only for a complete data set, or if -q would print nothing else about the exit status. */
        if (common->quiet ? code != EXIT_GOOD : c->resumed.complete)
            report_left(c, common);
    }
    if (common->json)
        report_json(c, status == CHEX_OK ? NULL : err, code, cli->dry_run, NULL, NULL);
    return code;
}

/* Runs one rank, from its options to its exit code. */
static int
convert_as_rank(struct convert_cli *cli, const struct cli_common *common, struct collective *ranks,
                enum chex_status status, struct chex_error *err)
{
    struct convert c = {.ranks = ranks};
    int code = EXIT_GOOD;

    if (status == CHEX_OK)
        status = convert_cli_check(cli, err);
    if (status == CHEX_OK && cli->convert.part.count > 0 && collective_size(ranks) > 1)
        status = error_set(err, CHEX_ERR_USAGE, "--part is for processes without MPI: started as one of %d ranks",
                           collective_size(ranks));
    if (status == CHEX_OK && common->fewest > 0 && !cli->profile)
        status = error_set(err, CHEX_ERR_USAGE, "-j takes a range with --profile only");
    if (cli->withdraw)
        return convert_withdraw(cli, common, ranks, status, err);
    cli->convert.threads = common->threads;
    if (cli->profile)
        return convert_profile_command(cli, common, &c, status, err);
    status = cli->dry_run ? dry_run(cli, common, &c, status, err) : prepare_and_run(cli, common, &c, status, err);
    convert_cli_suggest(cli, err);
    if (collective_reports_errors(ranks))
        code = print_summary(cli, common, &c, status, err);
    convert_release(&c);
    return code;
}

/* Only rank 0 returns an exit code: as soon as one rank returns another code than 0, mpirun kills all ranks. */
static int
convert(struct convert_cli *cli, const struct cli_common *common)
{
    struct chex_error err = {.status = CHEX_OK};
    struct collective_options options = {.slow_start = true};
    struct collective *ranks;
    struct comm comm;
    enum chex_status status, met;
    int code;

    /* Before anything that may take long.  A dry run only reads, so a signal may end it at once. */
    cli->convert.stop = options.stop = stop_signals_catch("stopping after the images in progress");
    stop_signals_may_exit(EXIT_STOPPED);
    status = launcher_comm(launcher_probe(), &comm, &err);
    met = collective_new(&comm, &options, &ranks, status == CHEX_OK ? &err : NULL);
    if (met == CHEX_OK)
        code = convert_as_rank(cli, common, ranks, status, &err);
    else
        code = comm.rank == 0 ? cli_error(&convert_program, common, &err) : cli_exit_of(met);
    if (met != CHEX_OK || collective_broken(ranks))
        launcher_end(&comm, ranks, code);
    comm.ops->close(&comm);
    collective_free(ranks);
    return code;
}

int
main(int argc, char **argv)
{
    struct cli_program program = convert_program;
    struct convert_cli cli = convert_cli_default();
    struct cli_common common;
    int code;

    library_exit_catch();
    program.versions = launcher_print_version;
    code = cli_parse(&program, argc, argv, &cli, &common);
    if (code == CLI_GO_ON)
        code = cli_finish(&convert_program, &common, convert(&cli, &common));
    convert_cli_release(&cli);
    library_exit_release();
    return code;
}
