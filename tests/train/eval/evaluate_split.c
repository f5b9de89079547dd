/*
 * evaluate_split.c - scores a split with given weights, alone or under mpirun, and writes the results
 *
 * It is the part of chex-train that check_auroc.py and check_weights.py compare with other software.
 *
 *     evaluate-split data=FOLDER out=FOLDER [NAME=VALUE ...]
 *
 *     split=val  model=densenet-micro  batch=8  threads=2  tta=none  replicates=200  seed=1  skip=0
 *     backend=cpu
 *     side=0        of the input; 0: that of the images
 *     weights=FILE  otherwise random
 *     head=new      the last layer of the file may have another number of outputs; then it is random
 *     spread=X      multiplies the random weights of the last layer by X
 *     save=NAME     writes the weights to a file of the folder first
 *
 * Writes predictions.csv, metrics.json and auroc.svg.  Prints "loss AUROC seconds wait gather computing".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/weights.h"
#include "common/launcher.h"
#include "dataset/findings.h"
#include "eval/predictions.h"
#include "ranks/collective.h"
#include "train/roc_plot.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct comm comm;

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "evaluate-split: rank %d: %s: %s\n", comm.rank, chex_status_name(status), err->text);
    if (comm.size > 1)
        comm.ops->abort(&comm, 1);
    exit(1);
}

static char **arguments;

static const char *
option(const char *name, const char *otherwise)
{
    size_t length = strlen(name);
    char **at;

    for (at = arguments; *at; at++)
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    return otherwise;
}

static unsigned
number(const char *name, const char *otherwise)
{
    return (unsigned)strtoul(option(name, otherwise), NULL, 10);
}

static void
make_weights(const struct graph *g, const struct folder *out, float *params, float *stats)
{
    const char *file = option("weights", NULL), *save = option("save", NULL);
    const struct graph_tensor *last = &g->param[g->param_count - 2];
    float spread = (float)atof(option("spread", "1"));
    struct safetensors s = {.fd = -1};
    struct weights_report report;
    struct chex_error err;
    size_t i;

    weights_random(g, number("seed", "1"), params, stats);
    for (i = 0; i < last->count; i++)
        params[last->offset + i] *= spread;
    if (file) {
        check(safetensors_open(AT_FDCWD, file, &s, &err), &err);
        check(weights_read(g, &s, option("head", NULL) != NULL, params, stats, &report, &err), &err);
        safetensors_close(&s);
    }
    if (save)
        check(weights_write(g, out, save, params, stats, 0, NULL, 0, NULL, &err), &err);
}

static struct plan *
make_plan(const struct backend *backend, const struct plan_options *o, const struct folder *out)
{
    float *params = calloc(o->graph->param_floats, sizeof(float));
    float *stats = calloc(o->graph->stat_floats, sizeof(float));
    struct chex_error err = {.status = CHEX_ERR_MEMORY, .text = "out of memory"};
    struct plan_facts facts;
    struct device *device;
    struct plan *plan;

    if (!params || !stats)
        check(CHEX_ERR_MEMORY, &err);
    make_weights(o->graph, out, params, stats);
    check(backend->device_open(0, &device, &err), &err);
    check(backend->plan_new(device, o, &plan, &facts, &err), &err);
    backend->device_close(device);
    check(backend->write(plan, ARENA_PARAMETERS, params, &err), &err);
    check(backend->write(plan, ARENA_STATISTICS, stats, &err), &err);
    free(params);
    free(stats);
    return plan;
}

static void
write_all(const struct evaluation *e, const struct evaluation_source *from, const struct folder *out)
{
    struct chex_error err;

    check(predictions_write(e, from, out, "predictions.csv", &err), &err);
    check(metrics_write(e, from, out, "metrics.json", &err), &err);
    check(roc_plot_write(e, from, out, "auroc.svg", &err), &err);
    printf("%.17g %.17g %.3f %.3f %.3f %.3f\n", e->loss, e->metrics.mean[METRIC_AUROC].value, e->seconds, e->wait,
           e->gather, e->computing);
}

static enum tta
tta_of(const char *name)
{
    return strcmp(name, "tencrop") == 0 ? TTA_TENCROP : strcmp(name, "flip") == 0 ? TTA_FLIP : TTA_NONE;
}

static void
run(struct collective *collective, struct chex_dataset *ds, const struct folder *out)
{
    const struct backend *backend = backend_find(option("backend", "cpu"));
    int split = chex_dataset_find_split(ds, option("split", "val"));
    struct plan_options plan = {.threads = number("threads", "2"), .batch = number("batch", "8")};
    const struct certificate none = {.sha256 = ""};
    struct evaluation_source from = {
        .ds = ds, .certificate = &none, .model = option("model", "densenet-micro"), .checkpoint = option("save", NULL)};
    struct evaluate_options o = {.ds = ds, .backend = backend, .collective = collective, .ahead = 2, .check_crc = true};
    struct chex_error err = {.status = CHEX_ERR_USAGE, .text = "no such split or backend"};
    struct samples samples;
    struct evaluation e;
    struct graph *g;

    if (split < 0 || !backend)
        check(CHEX_ERR_USAGE, &err);
    plan.source = chex_dataset_info(ds)->width;
    o.side = from.side = number("side", "0") ? number("side", "0") : plan.source;
    check(graph_new(from.model, o.side, findings_nih14.count, &g, &err), &err);
    plan.graph = g;
    check(samples_list(ds, (unsigned)split, &samples, &err), &err);
    o.split = (unsigned)split;
    o.samples = &samples;
    o.plan = make_plan(backend, &plan, out);
    o.batch = plan.batch;
    o.threads = plan.threads;
    o.tta = tta_of(option("tta", "none"));
    o.replicates = number("replicates", "200");
    o.seed = number("seed", "1");
    o.skip_bad = number("skip", "0") != 0;
    check(evaluate(&o, &e, &err), &err);
    if (comm.rank == 0)
        write_all(&e, &from, out);
    evaluation_release(&e);
    backend->plan_free(o.plan);
    samples_release(&samples);
    graph_free(g);
}

int
main(int argc, char **argv)
{
    struct collective_options options = {.timeout = 0};
    struct chex_error err = {.status = CHEX_OK};
    struct collective *collective;
    struct chex_dataset *ds;
    struct folder out;

    arguments = argv + (argc > 0);
    if (!option("data", NULL) || !option("out", NULL)) {
        fprintf(stderr, "usage: see the head of evaluate_split.c\n");
        return 2;
    }
    check(launcher_comm(launcher_probe(), &comm, &err), &err);
    check(collective_new(&comm, &options, &collective, &err), &err);
    check(chex_dataset_open(option("data", NULL), &ds, &err), &err);
    check(folder_open(option("out", NULL), true, &out, &err), &err);
    run(collective, ds, &out);
    folder_close(&out);
    chex_dataset_close(ds);
    collective_free(collective);
    comm.ops->close(&comm);
    return fflush(stdout) == 0 ? 0 : 1;
}
