/*
 * write_run.c - writes the logs of an imaginary run, for check_events.py and check_inspect.py
 *
 *     write-run RUN DATASET FROM TO SESSION end|kill [FILE.json LIMIT]
 *
 * Steps FROM + 1 .. TO of a run that resumes from step FROM; an epoch has 10 steps and then an evaluation of 200
 * images.  The loss of a step is STEP + SESSION / 8, which identifies the start that wrote it.  Hernia has no
 * positives.  "kill" ends like a killed process, but flushes its files first.  FILE.json: a trace of at most LIMIT
 * bytes.
 *
 * stdout: a line "SCORE LABEL" for each finding of each image of the last evaluation, in their order.  stderr: the
 * warnings of the log.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "dataset/findings.h"
#include "log/run_file.h"
#include "log/run_log.h"
#include "log/trace.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FINDINGS = 14, IMAGES = 200, EPOCH = 10, NO_POSITIVES = 13 };

struct evaluated {
    float score[IMAGES * FINDINGS];
    uint8_t label[IMAGES * FINDINGS];
    uint32_t patient[IMAGES];
    struct scores scores;
    struct metrics metrics;
};

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "write-run: %s\n", err->text);
    exit(1);
}

static void
warn(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "warning: %s\n", text);
}

/* Knuth's MMIX generator; the upper bits as a number in [0, 1). */
static float
draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * 0x1p-24f;
}

/*
 * Draws scores with some information: those of positives are higher.  Finding f is positive in about (f + 1) / 20 of
 * the images.
 */
static void
evaluate(uint64_t step, struct evaluated *e)
{
    uint64_t state = step, truth = 1;
    struct chex_error err;
    unsigned i, f;

    for (i = 0; i < IMAGES; i++) {
        e->patient[i] = i / 2;
        for (f = 0; f < FINDINGS; f++) {
            uint8_t label = f != NO_POSITIVES && draw(&truth) < (float)(f + 1) / 20;
            float score = draw(&state);

            e->label[i * FINDINGS + f] = label;
            e->score[i * FINDINGS + f] = label ? 1 - score * score : score * score;
        }
    }
    e->score[0] = 0; /* the ends of the range */
    e->score[FINDINGS] = 1;
    e->scores = (struct scores){IMAGES, FINDINGS, e->score, e->label, e->patient, IMAGES / 2};
    check(metrics_compute(&e->scores, 50, 1, 1, &e->metrics, &err), &err);
}

static void
log_step(struct run_log *log, uint64_t step, double session)
{
    struct run_log_step s = {.step = step,
                             .epoch = (uint32_t)((step - 1) / EPOCH) + 1,
                             .loss = (double)step + session / 8,
                             .rate = 0.001,
                             .norm = step == 7 ? (double)NAN : 2,
                             .images = 64,
                             .seconds = 0.5,
                             .loss_scale = 65536,
                             .steps_skipped = step > 7};

    s.times.seconds[PART_FORWARD] = 0.125;
    s.times.seconds[PART_BACKWARD] = 0.25;
    run_log_step(log, &s);
}

/* Two ranks: the second reads for a second longer, messages take a second, and a checkpoint half a second. */
static void
log_times(struct run_log *log, uint64_t step, uint32_t epoch, const char *over)
{
    struct rank_time rank[2] = {{.host = "n\"07",
                                 .seconds = 7,
                                 .work = 5,
                                 .busy = (double)NAN,
                                 .modelled = (double)NAN,
                                 .cpu = 5.5,
                                 .useful = 5,
                                 .threads = 1},
                                {.host = "n08",
                                 .seconds = 7,
                                 .work = 6,
                                 .busy = (double)NAN,
                                 .modelled = (double)NAN,
                                 .cpu = 6.5,
                                 .useful = 6,
                                 .threads = 1}};
    const struct rank_times times = {.rank = rank, .ranks = 2, .steps = EPOCH, .seconds = 7, .ideal = 6.5};

    rank[0].parts.seconds[PART_FORWARD] = rank[1].parts.seconds[PART_FORWARD] = 1.5;
    rank[0].parts.seconds[PART_BACKWARD] = rank[1].parts.seconds[PART_BACKWARD] = 3;
    rank[0].parts.cpu[PART_BACKWARD] = rank[1].parts.cpu[PART_BACKWARD] = 2.25;
    rank[0].parts.cpu[PART_FORWARD] = rank[1].parts.cpu[PART_FORWARD] = 1.5;
    rank[0].parts.seconds[PART_SAVE] = rank[1].parts.seconds[PART_SAVE] = 0.125;
    rank[1].parts.seconds[PART_WAIT] = 1;
    rank[0].parts.seconds[PART_REDUCE] = 1.5;
    rank[1].parts.seconds[PART_REDUCE] = 0.75;
    rank[0].parts.seconds[PART_PEERS] = 0.5;
    rank[1].parts.seconds[PART_PEERS] = 0.25;
    run_log_times(log, step, epoch, over, &times);
}

static void
log_epoch(struct run_log *log, uint64_t step, const struct evaluated *e)
{
    uint32_t epoch = (uint32_t)(step / EPOCH);
    struct run_log_epoch whole = {.step = step,
                                  .epoch = epoch,
                                  .loss = (double)step,
                                  .rate = 0.001,
                                  .images = 64 * EPOCH,
                                  .seconds = 5,
                                  .loss_scale = 65536,
                                  .steps_skipped = step > 7,
                                  .order = "0123456789abcdef"};
    struct run_log_evaluation evaluation = {.step = step,
                                            .epoch = epoch,
                                            .split = "val",
                                            .weights = "parameters",
                                            .tta = "none",
                                            .loss = 0.25,
                                            .seconds = 1,
                                            .best = epoch == 1,
                                            .metrics = &e->metrics,
                                            .findings = findings_nih14.name};

    run_log_epoch(log, &whole);
    run_log_evaluation(log, &evaluation);
    log_times(log, step, epoch, "epoch");
    run_log_note(log, step, epoch, "checkpoint", "step-000010.safetensors");
}

/* Each step takes an imaginary millisecond. */
static void
trace_it(struct trace *trace, uint64_t step)
{
    static double start;
    double begin;
    const struct trace_span *s;
    int rank;

    if (start <= 0)
        start = clock_now();
    begin = start + (double)step * 1e-3;
    {
        const struct trace_span span[] = {
            {.begin = begin, .end = begin + 1e-3, .step = step, .what = TRACE_STEP},
            {.begin = begin, .end = begin + 0.25e-3, .what = PART_FORWARD},
            /* It starts too early: the part before the end of the track is left out. */
            {.begin = begin + 0.2e-3, .end = begin + 0.75e-3, .what = PART_BACKWARD},
            {.begin = begin + 0.8e-3, .end = begin + 0.7e-3, .what = PART_UPDATE}, /* empty */
            {.begin = begin + 0.1e-3, .end = begin + 0.9e-3, .what = PART_MEET},
        };

        for (rank = 0; rank < 2; rank++) {
            trace_rank(trace, rank, "n\"07", true);
            for (s = span; s < span + sizeof(span) / sizeof(span[0]); s++)
                trace_put(trace, rank, s);
        }
    }
}

static struct run_file *
start_file(const struct folder *folder, struct chex_dataset *ds, int argc, char **argv, const struct run_value *options,
           size_t count)
{
    static const struct run_value library[] = {{"jansson", RUN_TEXT, "2.14", 0, false}};
    static const char *const hosts[] = {"n07", "n07", "n08"};
    struct run_facts facts = {.argc = argc,
                              .argv = argv,
                              .option = options,
                              .options = count,
                              .library = library,
                              .libraries = 1,
                              .cpu = "x86-64 avx2",
                              .dataset = ds,
                              .dataset_path = argv[2],
                              .train = "train",
                              .validation = "val",
                              .model = "densenet-micro",
                              .parameters = 12345,
                              .init = "random",
                              .host = hosts,
                              .ranks = 3,
                              .threads = 2,
                              .backend = "ref",
                              .device = "a CPU",
                              .precision = "fp32",
                              .seed = 1,
                              .global_batch = 64,
                              .epoch_images = 9,
                              .step = strtoull(argv[3], NULL, 10)};
    struct run_file *file;
    struct chex_error err;

    check(run_file_start(folder, &facts, &file, &err), &err);
    return file;
}

static void
finish_file(struct run_file *file, uint64_t step, const struct evaluated *e)
{
    struct run_result result = {"test", NULL, "best.safetensors", 10, &e->metrics, findings_nih14.name};
    struct run_outcome outcome = {.step = step,
                                  .epochs = (uint32_t)(step / EPOCH),
                                  .best = e->metrics.mean[METRIC_AUROC].value,
                                  .selected = "auroc",
                                  .best_step = 10,
                                  .best_file = "best.safetensors",
                                  .result = &result,
                                  .results = 1};
    struct chex_error err;

    check(run_file_finish(file, &outcome, &err), &err);
    run_file_free(file);
}

int
main(int argc, char **argv)
{
    static const struct run_value options[] = {{"lr", RUN_NUMBER, NULL, 0.001, false},
                                               {"epochs", RUN_NUMBER, NULL, 3, false},
                                               {"deterministic", RUN_BOOL, NULL, 0, true},
                                               {"augment", RUN_TEXT, "flip|crop \xff", 0, false}};
    static struct evaluated e;
    struct run_log_options o = {.warn = warn};
    struct chex_dataset *ds;
    struct run_file *file;
    struct run_log *log;
    struct trace_options tracing = {.warn = warn};
    struct trace *trace = NULL;
    struct folder folder;
    struct chex_error err;
    uint64_t step, to;
    unsigned i;

    if (argc != 7 && argc != 9)
        return 2;
    signal(SIGXFSZ, SIG_IGN);
    o.step = strtoull(argv[3], NULL, 10);
    o.epochs = o.trained = (uint32_t)(o.step / EPOCH);
    to = strtoull(argv[4], NULL, 10);
    check(folder_open(argv[1], true, &folder, &err), &err);
    check(chex_dataset_open(argv[2], &ds, &err), &err);
    o.folder = &folder;
    if (argc == 9) {
        tracing.path = argv[7];
        tracing.limit = strtoull(argv[8], NULL, 10);
        check(trace_open(&tracing, &trace, &err), &err);
    }
    file = start_file(&folder, ds, argc, argv, options, 4);
    check(run_log_open(&o, &log, &err), &err);
    for (step = o.step + 1; step <= to; step++) {
        log_step(log, step, strtod(argv[5], NULL));
        trace_it(trace, step);
        if (step % EPOCH == 0) {
            evaluate(step, &e);
            log_epoch(log, step, &e);
        }
    }
    for (i = 0; i < e.scores.count * FINDINGS; i++)
        printf("%.9g %u\n", (double)e.score[i], e.label[i]);
    run_log_flush(log);
    trace_write(trace, true);
    if (strcmp(argv[6], "kill") == 0) {
        fflush(stdout);
        _exit(0);
    }
    trace_free(trace);
    run_log_note(log, to, (uint32_t)(to / EPOCH), "end", "stopped");
    run_log_free(log);
    finish_file(file, to, &e);
    chex_dataset_close(ds);
    folder_close(&folder);
    return fflush(stdout) == 0 ? 0 : 1;
}
