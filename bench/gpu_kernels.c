/*
 * gpu_kernels.c - see gpu_kernels.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernels of a step ------------------------------------------------------------------------------------------- */

#define KINDS 96

/* All launches of one kernel. */
struct kind {
    const char *name;
    unsigned launches;
    double bytes, flop, modelled, measured; /* seconds */
};
struct kinds {
    struct kind kind[KINDS];
    size_t count;
};

static struct kind *
kind_of(struct kinds *k, const char *name)
{
    size_t i;

    for (i = 0; i < k->count; i++)
        if (strcmp(k->kind[i].name, name) == 0)
            return &k->kind[i];
    if (k->count == KINDS) {
        fprintf(stderr, "gpu-loop: more than %d kinds of kernels\n", KINDS);
        exit(1);
    }
    k->kind[k->count].name = name;
    return &k->kind[k->count++];
}

/* Adds up the launches of each kernel; measured may be NULL. */
static void
add_up(const struct plan_model *m, const double *measured, struct kinds *out)
{
    size_t i;

    memset(out, 0, sizeof(*out));
    for (i = 0; i < m->count; i++) {
        const struct plan_launch *l = &m->launch[i];
        struct kind *k = kind_of(out, l->kind);

        k->launches += l->times;
        k->bytes += (double)l->times * (double)(l->read + l->written);
        k->flop += l->times * l->flop;
        k->modelled += l->times * l->seconds;
        k->measured += measured ? l->times * measured[i] : 0;
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

void
gpu_kernels_print_model(const struct plan_model *m, const char *model)
{
    struct kinds kinds;
    size_t i;

    add_up(m, NULL, &kinds);
    printf("{\"model\": \"%s\", \"batch\": %u, \"modelled_on\": \"%s\", \"kernels\": {", model, m->images, m->device);
    for (i = 0; i < kinds.count; i++) {
        const struct kind *k = &kinds.kind[i];

        printf("%s\"%s\": {\"launches\": %u, \"bytes\": %.0f, \"flops\": %.0f, \"ms\": %.6f}", i > 0 ? ", " : "",
               k->name, k->launches, k->bytes, k->flop, k->modelled * 1e3);
    }
    printf("}}\n");
}

static double
rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : 0;
}

static void
print_launch(const struct plan_launch *l, double seconds)
{
    double bytes = (double)(l->read + l->written);

    printf("{\"kernel\": \"%s\", \"kind\": \"%s\", \"shape\": \"%s\", \"tile\": \"%s\", \"times\": %u, \"us\": %.3f, "
           "\"model_us\": %.3f, \"ratio\": %.3f, \"limit\": \"%s\", \"bytes\": %.0f, \"flops\": %.0f, \"GB_s\": %.1f, "
           "\"TFLOP_s\": %.2f}",
           l->kernel, l->kind, l->shape, l->tile, l->times, seconds * 1e6, l->seconds * 1e6, rate(seconds, l->seconds),
           l->limit, bytes, l->flop, rate(bytes, seconds) / 1e9, rate(l->flop, seconds) / 1e12);
}

void
gpu_kernels_print_json(const struct plan_model *m, const struct gpu_kernels *how)
{
    struct kinds kinds;
    double all = 0;
    size_t i;

    add_up(m, how->seconds, &kinds);
    for (i = 0; i < kinds.count; i++)
        all += kinds.kind[i].measured;
    printf(
        "{\"device\": \"%s\", \"precision\": \"%s\", \"model\": \"%s\", \"side\": %u, \"batch\": %u, \"modelled_on\": "
        "\"%s\", \"runs\": %u, \"graph\": %s, \"ms\": %.4f, \"model_ms\": %.4f, \"launches\": [",
        how->device, how->precision, how->model, how->side, m->images, m->device, how->runs,
        how->graph ? "true" : "false", all * 1e3, m->seconds * 1e3);
    for (i = 0; i < m->count; i++) {
        printf("%s", i > 0 ? ", " : "");
        print_launch(&m->launch[i], how->seconds[i]);
    }
    printf("], \"kernels\": {");
    for (i = 0; i < kinds.count; i++) {
        const struct kind *k = &kinds.kind[i];

        printf("%s\"%s\": {\"launches\": %u, \"ms\": %.6f, \"model_ms\": %.6f, \"ratio\": %.3f, \"bytes\": %.0f, "
               "\"flops\": %.0f, \"GB_s\": %.1f, \"TFLOP_s\": %.2f}",
               i > 0 ? ", " : "", k->name, k->launches, k->measured * 1e3, k->modelled * 1e3,
               rate(k->measured, k->modelled), k->bytes, k->flop, rate(k->bytes, k->measured) / 1e9,
               rate(k->flop, k->measured) / 1e12);
    }
    printf("}}\n");
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int
by_excess(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    double of_x = x->measured - x->modelled, of_y = y->measured - y->modelled;

    return (of_x < of_y) - (of_x > of_y);
}

static void
print_figures(double seconds, double modelled, double bytes, double flop)
{
    printf("%10.1f %10.1f %6.2f %7.0f %8.1f", seconds * 1e6, modelled * 1e6, rate(seconds, modelled),
           rate(bytes, seconds) / 1e9, rate(flop, seconds) / 1e12);
}

void
gpu_kernels_print_table(const struct plan_model *m, const struct gpu_kernels *how)
{
    static const char head[] = "        us   model us  times    GB/s  TFLOP/s";
    struct kinds kinds;
    double all = 0;
    size_t i;

    add_up(m, how->seconds, &kinds);
    printf("%s, %u px, batch %u, %s on %s; %u runs of a launch%s\n\n", how->model, how->side, m->images, how->precision,
           how->device, how->runs, how->graph ? " in a graph" : "");
    printf("%s  limit          kernel (shape; tile)\n", head);
    for (i = 0; i < m->count; i++) {
        const struct plan_launch *l = &m->launch[i];

        all += l->times * how->seconds[i];
        print_figures(how->seconds[i], l->seconds, (double)(l->read + l->written), l->flop);
        printf("  %-13s  %s (%s; %s)\n", l->limit, l->kernel, l->shape, l->tile);
    }
    printf("\n%s  launches  kernel\n", head);
    qsort(kinds.kind, kinds.count, sizeof(*kinds.kind), by_excess);
    for (i = 0; i < kinds.count; i++) {
        const struct kind *k = &kinds.kind[i];

        print_figures(k->measured, k->modelled, k->bytes, k->flop);
        printf("  %8u  %s\n", k->launches, k->name);
    }
    print_figures(all, m->seconds, (double)m->bytes, 0);
    printf("  %8u  a step; modelled on %s\n", m->launches, m->device);
}
