/*
 * ask.c - lists the engines that NVIDIA's cuDNN chooses for the convolutions of a model, for a GPU that is only
 * described
 *
 *     cudnn-ask DEVICE.json MODEL SIDE BATCH fp16|bf16
 *
 * Needs no GPU.  Builds the lists of a plan with --engine cudnn for that device, and asks cuDNN once about each of
 * their convolutions.  Prints one line each: kind, shape, leading dimensions, the engine, bytes of workspace, and the
 * number of launches.  Exit status: 0; 1 if cuDNN refuses a convolution; 77 with the reason if cuDNN is not available.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/cudnn/engine.h"
#include "cuda/plan/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANNOT_ASK 77

static const char *const kinds[] = {[CONV_FPROP] = "forward", [CONV_DGRAD] = "data", [CONV_WGRAD] = "weights"};

static void
die(const struct chex_error *err, int code)
{
    fprintf(stderr, "cudnn-ask: %s\n", err->text);
    exit(code);
}

static char *
read_device(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t count = file ? fread(out, 1, size - 1, file) : 0;

    if (file)
        fclose(file);
    out[count] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return count > 0 ? out : NULL;
}

/* Returns the number after "key": in the description. */
static unsigned
number_of(const char *described, const char *key)
{
    const char *found = strstr(described, key);

    return found ? (unsigned)strtoul(found + strlen(key), NULL, 10) : 0;
}

static bool
adds(const struct cuda_conv *c)
{
    return c->kind == CONV_DGRAD && c->dgrad.add;
}

static bool
is_same(const struct cuda_conv *a, const struct cuda_conv *b)
{
    const struct conv_shape *x = &a->shape, *y = &b->shape;

    return a->kind == b->kind && x->height == y->height && x->width == y->width && x->in == y->in && x->out == y->out &&
           x->x_ld == y->x_ld && x->y_ld == y->y_ld && x->kernel_h == y->kernel_h && x->stride == y->stride &&
           adds(a) == adds(b);
}

/* Returns true if no earlier launch has the same convolution; *times counts the launches. */
static bool
is_first(const struct cuda_list *list, size_t k, const struct cuda_conv *conv, unsigned *times)
{
    size_t i;

    *times = 0;
    for (i = 0; i < list->count; i++) {
        struct cuda_conv other = cuda_conv_of(&list->op[i]);

        if (!list->op[i].by_cudnn || !is_same(conv, &other))
            continue;
        if (i < k)
            return false;
        ++*times;
    }
    return true;
}

static int
ask_list(struct cudnn *c, const struct cuda_list *list)
{
    int refused = 0;
    size_t k;

    for (k = 0; k < list->count; k++) {
        struct cuda_conv conv = cuda_conv_of(&list->op[k]);
        const struct conv_shape *s = &conv.shape;
        struct chex_error err;
        unsigned times;
        bool takes;

        if (!list->op[k].by_cudnn || !is_first(list, k, &conv, &times))
            continue;
        if (cudnn_takes(c, &conv, &takes, &err) != CHEX_OK)
            die(&err, 1);
        printf("%-7s %s %ux%u /%u %3ux%-3u %4u>%-4u ld %4u %4u  ", kinds[conv.kind], adds(&conv) ? "add" : "   ",
               s->kernel_h, s->kernel_w, s->stride, s->height, s->width, s->in, s->out, s->x_ld, s->y_ld);
        if (takes)
            printf("engine %3lld  workspace %9lld%s", (long long)cudnn_choice(c, &conv).engine,
                   (long long)cudnn_choice(c, &conv).workspace, cudnn_choice(c, &conv).compiled ? "  compiled" : "");
        else
            printf("refused");
        printf("  x %u\n", times);
        refused |= !takes;
    }
    return refused;
}

int
main(int argc, char **argv)
{
    static char described[1 << 14];
    char version[BACKEND_LIBRARY];
    struct plan_options o = {.train = true, .engine = ENGINE_CUDNN, .source = 256};
    struct cuda_chip chip = {.set = cuda_kernels_fp16, .value_bytes = 2};
    struct cuda_layout l;
    struct chex_error err;
    struct cudnn *c;
    struct graph *g;
    int refused;

    if (argc != 6 || !read_device(argv[1], described, sizeof(described))) {
        fprintf(stderr, "usage: cudnn-ask DEVICE.json MODEL SIDE BATCH fp16|bf16\n");
        return 2;
    }
    o.batch = (unsigned)atoi(argv[4]);
    o.precision = strcmp(argv[5], "bf16") == 0 ? PRECISION_BF16 : PRECISION_FP16;
    o.optimizer = optimizer_default(OPTIMIZER_ADAM);
    chip.processors = number_of(described, "\"multiProcessorCount\":");
    chip.major = number_of(described, "\"deviceVer\":") / 100;
    if (cudnn_new(o.precision, described, &c, &err) != CHEX_OK)
        die(&err, CANNOT_ASK);
    (void)cudnn_version(version);
    if (graph_new(argv[2], (unsigned)atoi(argv[3]), 14, &g, &err) != CHEX_OK)
        die(&err, 2);
    o.graph = g;
    if (cuda_layout_make(&l, &o, &chip, 0, &err) != CHEX_OK)
        die(&err, 1);
    printf("cuDNN %s, %s of %u multiprocessors, %s %s x %s, %s\n", version, argv[1], chip.processors, argv[2], argv[4],
           argv[3], argv[5]);
    refused = ask_list(c, &l.list[CUDA_LIST_FORWARD]);
    refused |= ask_list(c, &l.list[CUDA_LIST_BACKWARD]);
    cuda_layout_free(&l);
    graph_free(g);
    cudnn_free(c);
    return refused;
}
