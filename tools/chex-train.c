/*
 * chex-train.c - trains a network on a data set, and evaluates it
 *
 * train_options.c has the options, train_report.c and train_json.c the output, train/run/trainer.h the work.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "common/launcher.h"
#include "common/stop_signals.h"
#include "train/train_audit.h"
#include "train/train_report.h"
#include "train/train_storage.h"
#include "train/train_storage_options.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* SIGUSR2: save and continue. */
static atomic_bool save_requested;

static void
on_save(int signal_number)
{
    (void)signal_number;
    atomic_store(&save_requested, true);
}

static const atomic_bool *
catch_signals(const struct train_cli *cli)
{
    struct sigaction save = {.sa_handler = on_save, .sa_flags = SA_RESTART};

    sigaction(SIGUSR2, &save, NULL);
    return stop_signals_catch(train_storage_is_wanted(cli) ? "stopping after the current images"
                                                           : "saving after the current step");
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

/* This may be the last chance to report: if a rank is gone, mpirun kills the others after one second. */
static void
on_waiting(void *context, const char *text)
{
    struct train_report *r = context;

    progress_line_warn(&r->line, "%s: stopping, but %s; if that is lost, the same command again resumes",
                       train_program.name, text);
}

/*
 * Counts the cores of this host that the ranks may use together.  If mpirun binds each rank, these are the cores of
 * mpirun, but at most the sum of the ranks' cores.
 */
static unsigned
shared_cores(unsigned ranks)
{
    struct launcher_cores cores = launcher_cores();
    unsigned limit = cli_cores();

    if (limit < cores.own || cores.all == cores.own) /* the limit of the control group, or no binding */
        return limit;
    return ranks * cores.own < cores.all ? ranks * cores.own : cores.all;
}

/* A rank that is bound to one core of 64 trains at 1/64 of the speed, and nothing else shows it at the start. */
static void
warn_of_cores(const struct cli_common *common, const struct trainer *t, const struct collective *together)
{
    unsigned threads = trainer_options(t)->threads;
    char each[FORMAT_THINGS], shared[FORMAT_THINGS];
    struct launcher_cores cores = launcher_cores();
    unsigned neighbours = 0;
    int i;

    for (i = 0; i < collective_size(together); i++)
        neighbours += strcmp(collective_host(together, i), collective_host(together, 0)) == 0;
    if (neighbours * cores.own * 2 <= cores.all)
        cli_warn(&train_program, common,
                 "mpirun lets each of %s ranks use %s of %s cores; --map-by socket or --bind-to none gives them more",
                 COUNT_TEXT(neighbours), COUNT_TEXT(cores.own), COUNT_TEXT(cores.all));
    else if (neighbours > 1 && neighbours * threads > shared_cores(neighbours))
        cli_warn(&train_program, common,
                 "%s ranks of %s each share %s; fewer ranks on a host or a smaller -j is faster",
                 COUNT_TEXT(neighbours), format_things(threads, "thread", each),
                 format_things(shared_cores(neighbours), "core", shared));
}

/* Models 1, 2, 4 ... ranks, up to --ranks. */
static enum chex_status
show_scale(struct train_report *report, const struct trainer *t, const struct plan_model *model, struct chex_error *err)
{
    unsigned most = report->cli->ranks, node = most / (report->cli->nodes > 0 ? report->cli->nodes : 1), ranks;
    struct scale_machine machine = {.node_ranks = node,
                                    .inside = scale_nvlink_of(model->device),
                                    .outside = (enum scale_link)(node < most ? report->cli->network : SCALE_EDR)};
    struct train_scale *scale = &report->scale;
    enum chex_status status = CHEX_OK;

    if (model->count == 0)
        return error_set(err, CHEX_ERR_USAGE, "--ranks: there is no model of this device; choose --device cuda:V100");
    scale->machine = machine;
    for (ranks = 1; status == CHEX_OK; ranks = ranks < most - ranks ? ranks * 2 : most) {
        status = trainer_scale(t, model, &machine, ranks, &scale->row[scale->rows], err);
        scale->rows += status == CHEX_OK;
        if (ranks == most)
            break;
    }
    if (status == CHEX_OK)
        train_report_scale(report);
    return status;
}

static enum chex_status
show_model(struct train_report *report, const struct trainer *t, struct chex_error *err)
{
    struct plan_model model;
    enum chex_status status = trainer_model(t, &model, err);

    if (status == CHEX_OK)
        train_report_model(report, &model);
    if (status == CHEX_OK && report->cli->ranks > 0)
        status = show_scale(report, t, &model, err);
    plan_model_free(&model);
    return status;
}

/* All ranks call this, because they measure together. */
static enum chex_status
preview(struct train_report *report, struct trainer *t, bool is_rank_0, struct chex_error *err)
{
    struct trainer_start start;
    enum chex_status status = trainer_probe_start(t, &start, err);

    if (status == CHEX_OK && is_rank_0)
        train_report_start(report, t, &start);
    if (status == CHEX_OK)
        status = trainer_estimate(t, &report->estimate, err);
    if (status != CHEX_OK || !is_rank_0)
        return status;
    train_report_estimate(report, t);
    report->fits = trainer_find_fits(t, report->fit);
    train_report_fits(report);
    return show_model(report, t, err);
}

static enum chex_status
run(const struct train_cli *cli, struct train_report *report, struct trainer *t, struct chex_error *err)
{
    struct trainer_facts f;

    trainer_facts(t, &f);
    if (collective_rank(f.collective) == 0) {
        train_report_plan(report, t);
        if (!cli->train.storage_check)
            warn_of_cores(report->common, t, f.collective);
    }
    if (cli->train.storage_check)
        return trainer_check_storage(t, &report->storage, err);
    if (cli->train.audit)
        return train_audit_run(report, t, err);
    if (cli->dry_run)
        return preview(report, t, collective_rank(f.collective) == 0, err);
    return cli->train.evaluate_only ? trainer_evaluate(t, err) : trainer_run(t, err);
}

static int
exit_code_of(enum chex_status status, const struct train_report *r, const struct trainer *t)
{
    if (status != CHEX_OK)
        return cli_exit_of(status);
    if (r->cli->train.audit)
        return r->audit.result.parts[AUDIT_DIFFERS] > 0 ? EXIT_DATA : EXIT_GOOD;
    return t && trainer_result(t)->skipped > 0 ? EXIT_DATA : EXIT_GOOD;
}

/* Runs one rank, from its options to its exit code.  *ended: see trainer_free(). */
static int
train_on_rank(struct train_cli *cli, const struct cli_common *common, struct comm *comm, const atomic_bool *stop,
              enum chex_status status, bool *ended, struct chex_error *err)
{
    struct train_report report;
    struct trainer_watch watch = {.context = &report,
                                  .stop = stop,
                                  .save = &save_requested,
                                  .started = train_report_started,
                                  .stepped = train_report_stepped,
                                  .times = train_report_times,
                                  .spans = cli->trace ? train_report_spans : NULL,
                                  .epoch = train_report_epoch,
                                  .staging = train_report_staging,
                                  .reading = train_storage_progress,
                                  .evaluating = train_report_evaluating,
                                  .evaluated = train_report_evaluated,
                                  .draw = train_report_draw,
                                  .saved = train_report_saved,
                                  .note = train_report_note,
                                  .warn = train_report_warn,
                                  .lost = train_report_lost,
                                  .warn_waiting = on_waiting};
    struct audit_recalled recalled = {.failed = false};
    struct trainer *t = NULL;
    struct trainer_facts f = {.collective = NULL};
    bool reports_errors = comm->rank == 0, broken;
    int code;

    train_report_init(&report, cli, common);
    if (status == CHEX_OK)
        status = train_cli_check(cli, common, err);
    if (status == CHEX_OK)
        status = train_storage_check_ranks(cli, comm->size, err);
    if (status == CHEX_OK && comm->rank == 0)
        status = train_cli_check_outputs(cli, err);
    if (status == CHEX_OK && cli->train.audit) {
        status = audit_recall(&cli->train, (unsigned)comm->size, &recalled, err);
        watch.stepped = train_audit_stepped;
        watch.evaluated = NULL;
    }
    status = trainer_prepare(&cli->train, &watch, comm, status, &t, err);
    if (status == CHEX_OK)
        status = run(cli, &report, t, err);
    if (t)
        trainer_facts(t, &f);
    broken = comm->size > 1 && (!f.collective || collective_broken(f.collective));
    if (f.collective)
        reports_errors = collective_reports_errors(f.collective);
    progress_line_clear(&report.line);
    train_report_begin(&report);
    train_cli_suggest(cli, err);
    code = exit_code_of(status, &report, t);
    if (reports_errors && status != CHEX_OK)
        cli_error(&train_program, common, err);
    if (reports_errors && (status != CHEX_OK || !cli->dry_run))
        train_report_end(&report, t, status == CHEX_OK ? NULL : err);
    if (comm->rank == 0 && common->json)
        train_report_json(&report, t, status == CHEX_OK ? NULL : err, code);
    train_report_close(&report, t, status == CHEX_OK ? NULL : err, code);
    if (broken)
        launcher_end(comm, f.collective, code);
    *ended = trainer_free(t);
    train_report_release(&report);
    audit_recall_release(&recalled);
    /* Only rank 0 returns an exit code: as soon as one process returns another code than 0, mpirun kills all others. */
    return comm->rank == 0 ? code : EXIT_GOOD;
}

/*
 * As soon as rank 0 returns another code than 0, srun -K and mpirun kill the other ranks, and srun returns the largest
 * code of all.  So rank 0 waits until the others have returned theirs.
 */
static int
close_and_return(struct comm *comm, int code, const struct cli_common *common, bool ended)
{
    bool others = comm->size > 1;

    comm->ops->close(comm);
    if (others && code != EXIT_GOOD)
        backoff(0.2);
    if (!ended)
        _exit(cli_finish(&train_program, common, code));
    return code;
}

/* A rank polls its GPU and the other ranks with pauses of 20 to 50 us; by default, Linux makes them 50 us longer. */
static void
make_pauses_exact(const struct comm *comm)
{
#ifdef __linux__
    if (comm->size > 1)
        (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); /* ns; also for the threads that start later */
#else
    (void)comm;
#endif
}

static int
train(struct train_cli *cli, const struct cli_common *common)
{
    struct chex_error err = {.status = CHEX_OK};
    /* Before MPI starts: mpirun may hang forever if a signal kills a rank that has not connected to it yet. */
    const atomic_bool *stop = catch_signals(cli);
    struct comm comm;
    enum chex_status status = launcher_comm(launcher_probe(), &comm, &err);
    bool ended;
    int code;

    make_pauses_exact(&comm);
    code = train_on_rank(cli, common, &comm, stop, status, &ended, &err);
    return close_and_return(&comm, code, common, ended);
}

/* All ranks of a job have the same wrong command line; one of them reports it. */
static int
on_usage_error(const struct chex_error *wrong)
{
    struct launcher launcher = launcher_probe();
    struct train_cli cli = train_cli_default();
    struct cli_common common = {.quiet = true, .threads = 1};
    const atomic_bool *stop;
    struct chex_error err;
    struct comm comm;
    bool ended;
    int code;

    if (launcher.size == 1)
        return CLI_GO_ON;
    stop = catch_signals(&cli); /* as in train() */
    if (launcher_comm(launcher, &comm, &err) != CHEX_OK)
        return CLI_GO_ON;
    err = *wrong;
    code = train_on_rank(&cli, &common, &comm, stop, err.status, &ended, &err);
    return close_and_return(&comm, code, &common, ended);
}

/* Lists the libraries that the backends open, or are linked with. */
static void
print_versions(void)
{
    char text[BACKEND_LIBRARY];
    const char *name;
    unsigned number;
    size_t i;

    launcher_print_version();
    for (i = 0; backends[i]; i++)
        for (number = 0; backends[i]->library && (name = backends[i]->library(number, text)); number++)
            printf("%-14s %s\n", name, text);
}

int
main(int argc, char **argv)
{
    struct cli_program program = train_program;
    struct train_cli cli = train_cli_default();
    struct cli_common common;
    int code;

    program.on_usage_error = on_usage_error;
    program.versions = print_versions;
    cli.argc = argc;
    cli.argv = argv;
    code = cli_parse(&program, argc, argv, &cli, &common);

    if (code == CLI_GO_ON)
        code = cli_finish(&train_program, &common, train(&cli, &common));
    return code;
}
