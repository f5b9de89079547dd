/*
 * traffic_steps.c - compares the bytes that the launches of a step access: as the plan predicts (plan/cost.h), and as
 * the emulator counts
 *
 *     traffic_steps [all | model | MODEL SIDE BATCH]
 *
 * For a build that counts (build.mk).  Read and written bytes of each kernel, and of all together, must agree within 5
 * %, or within two sectors per launch.  all: prints every kernel, and every launch with a larger difference.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "layout_fixture.h"

#include "cuda/plan/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITHIN 0.05
#define KINDS  100

static bool print_all;

static struct kind {
    char name[PLAN_KERNEL];
    unsigned launches;
    double read, written, counted_read, counted_written, asked;
} kinds[KINDS];
static unsigned kind_count;

/* The counted launches, of a second micro-batch, which reads gradients to accumulate. */
static const struct cuda_op **seen;
static size_t seen_count;

static struct kind *
kind_of(const char *kernel)
{
    char name[PLAN_KERNEL];
    unsigned i;

    cuda_kind(kernel, name);
    for (i = 0; i < kind_count; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    if (kind_count == KINDS)
        exit(3);
    memcpy(kinds[kind_count].name, name, sizeof(name));
    return &kinds[kind_count++];
}

static bool
agrees(double told, double counted, unsigned launches)
{
    return fabs(told - counted) <= fmax(WITHIN * counted, 2.0 * CUDA_SECTOR * launches);
}

static void
count_launch(const struct cuda_layout *l, const struct cuda_op *op)
{
    const char *name = l->chip.set[op->kernel].name;
    struct kind *k = kind_of(name);
    struct emulator_traffic t;
    struct cuda_place place;
    struct cuda_work w;
    double read, written;
    size_t i;

    for (i = 0; i < seen_count && seen[i] != op; i++)
        ;
    if (i == seen_count) {
        seen = realloc(seen, (seen_count + 1) * sizeof(*seen));
        seen[seen_count++] = op;
        expect(emulator_traffic_of(name, &t) && t.launches == 1, "%s was counted %u times", name, (unsigned)t.launches);
        place = cuda_place_of(l);
        cuda_work_of(&place, op, &w);
        read = (double)cuda_area_bytes(&w.read);
        written = (double)cuda_area_bytes(&w.written);
        k->launches++;
        k->read += read;
        k->written += written;
        k->counted_read += (double)t.sectors_read * CUDA_SECTOR;
        k->counted_written += (double)t.sectors_written * CUDA_SECTOR;
        k->asked += (double)t.bytes_read;
        if (print_all && !(agrees(read, (double)t.sectors_read * CUDA_SECTOR, 1) &&
                           agrees(written, (double)t.sectors_written * CUDA_SECTOR, 1)))
            printf("  %s, %zu x %zu x %zu: reads %.0f, counted %u; writes %.0f, counted %u\n", name, w.rows, w.columns,
                   w.depth, read, (unsigned)t.sectors_read * CUDA_SECTOR, written,
                   (unsigned)t.sectors_written * CUDA_SECTOR);
    }
    emulator_forget_traffic();
}

static void
judge_kind(const struct kind *k, bool print)
{
    expect(agrees(k->read, k->counted_read, k->launches) && agrees(k->written, k->counted_written, k->launches),
           "%s: reads %.0f bytes, counted %.0f; writes %.0f, counted %.0f", k->name, k->read, k->counted_read,
           k->written, k->counted_written);
    if (print)
        printf("  %-32s %4u launches: reads %10.0f, counted %10.0f, asked for %11.0f; writes %10.0f, counted %10.0f\n",
               k->name, k->launches, k->read, k->counted_read, k->asked, k->written, k->counted_written);
}

static void
judge(void)
{
    struct kind all = {.name = "all"};
    unsigned i;

    for (i = 0; i < kind_count; i++) {
        const struct kind *k = &kinds[i];

        judge_kind(k, print_all);
        all.launches += k->launches;
        all.read += k->read;
        all.written += k->written;
        all.counted_read += k->counted_read;
        all.counted_written += k->counted_written;
        all.asked += k->asked;
    }
    judge_kind(&all, true);
    expect(fabs(all.read + all.written - all.counted_read - all.counted_written) <=
               WITHIN * (all.counted_read + all.counted_written),
           "all together");
}

static void
run_model(const char *model, unsigned side, unsigned batch, enum optimizer_kind optimizer, bool many_sums)
{
    const struct cuda_chip chip = {
        .set = cuda_kernels_fp16, .value_bytes = 2, .processors = PROCESSORS, .many_sums = many_sums};
    double positive[OUTPUTS];
    struct plan_options o = {.batch = batch,
                             .micro_batches = 2,
                             .source = side + BORDER,
                             .train = true,
                             .maps = true,
                             .average = true,
                             .precision = PRECISION_FP16,
                             .loss = {.kind = LOSS_FOCAL, .gamma = 2, .positive_weight = positive}};
    struct outcome out = {.loss = 0};
    struct images m[2];
    struct chex_error err;
    float *parameters, *statistics;
    struct graph *g;
    size_t i;

    for (i = 0; i < OUTPUTS; i++)
        positive[i] = 1;
    printf("%s, %u px, batch %u\n", model, side, batch);
    kind_count = 0;
    seen_count = 0;
    memset(kinds, 0, sizeof(kinds));
    check(graph_new(model, side, OUTPUTS, &g, &err), &err);
    o.graph = g;
    o.optimizer = optimizer_default(optimizer);
    o.optimizer.average = 0.5;
    parameters = make_parameters(g, true);
    statistics = make_statistics(g);
    m[0] = make_images(&o, false);
    m[1] = make_images(&o, false);
    make_outcome(&o, &out);
    launched = count_launch;
    emulator_forget_traffic();
    run_lists(&o, &chip, m, parameters, statistics, &out);
    judge();
    free_outcome(&o, &out);
    free_images(&m[0]);
    free_images(&m[1]);
    free(parameters);
    free(statistics);
    graph_free(g);
}

/* A step of DenseNet-121, and a micro-batch of an evaluation, according to the cost model. */
static void
model_step(const char *model, const char *gpu, unsigned major, unsigned batch, enum engine engine)
{
    const struct cuda_gpu g = cuda_gpu_like(gpu, major);
    const struct cuda_chip chip = {
        .set = cuda_kernels_fp16, .value_bytes = 2, .processors = g.processors, .major = major};
    struct plan_options o = {
        .batch = batch, .source = 256, .train = true, .precision = PRECISION_FP16, .engine = engine};
    struct plan_model m = {.launch = NULL};
    struct chex_error err;
    struct cuda_layout l;
    struct graph *graph;
    double sum = 0;
    size_t i;

    check(graph_new(model, 224, OUTPUTS, &graph, &err), &err);
    o.graph = graph;
    o.optimizer = optimizer_default(OPTIMIZER_ADAM);
    check(cuda_layout_make(&l, &o, &chip, 0, &err), &err);
    check(cuda_model_make(&l, &g, &m, &err), &err);
    for (i = 0; i < m.count; i++) {
        sum += m.launch[i].times * m.launch[i].seconds;
        expect(m.launch[i].read + m.launch[i].written > 0, "the cost model has no row for %s", m.launch[i].kernel);
    }
    printf("%s, %s, batch %u, --engine %s: %u launches, %.1f MB an image, %.0f img/s by the model; an evaluation: %u "
           "launches, "
           "%.1f MB an image, %.0f img/s\n",
           model, g.name, batch, engine_names[engine], m.launches, (double)m.bytes / 1e6 / m.images,
           m.images / m.seconds, m.score.launches, (double)m.score.bytes / 1e6 / m.score.images,
           m.score.images / m.score.seconds);
    expect(strcmp(g.name, gpu) == 0 && m.images == batch && m.launches == m.count, "a step of %s", gpu);
    expect(fabs(sum - m.seconds) < 1e-9, "the seconds of a step are those of its launches");
    expect(batch < 64 || strcmp(model, "densenet121") != 0 || m.bytes <= 175e6 * batch, "%.1f MB an image",
           (double)m.bytes / 1e6 / batch);
    plan_model_free(&m);
    cuda_layout_free(&l);
    graph_free(graph);
}

int
main(int argc, char **argv)
{
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    print_all = (argc == 2 && strcmp(argv[1], "all") == 0) || argc == 4;
    if (argc < 3) {
        model_step("densenet121", "V100", 7, 64, ENGINE_OWN);
        model_step("densenet121", "A100", 8, 64, ENGINE_OWN);
        model_step("densenet121", "H100", 9, 64, ENGINE_OWN);
        model_step("densenet121", "H200", 9, 64, ENGINE_OWN);
        model_step("densenet121", "H200", 9, 256, ENGINE_OWN);
        model_step("densenet121", "H200", 9, 16, ENGINE_OWN);
        model_step("resnet50", "H200", 9, 64, ENGINE_OWN);
        model_step("resnet50", "H200", 9, 64, ENGINE_CUDNN);
    }
    if (argc == 2 && strcmp(argv[1], "model") == 0)
        return failed > 0;
    if (argc > 3) {
        run_model(argv[1], (unsigned)strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10), OPTIMIZER_ADAM,
                  false);
    } else {
        run_model("densenet-micro", 64, 3, OPTIMIZER_ADAM, false);
        run_model("densenet-micro", 64, 3, OPTIMIZER_ADAM, true);
        run_model("densenet-micro", 64, 3, OPTIMIZER_RMSPROP, false);
        run_model("densenet121", 64, 2, OPTIMIZER_ADAMW, false);
    }
    MUST(cudaStreamDestroy(stream));
    free(seen);
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
