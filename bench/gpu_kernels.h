/*
 * gpu_kernels.h - the kernels of a step for gpu-loop: their modelled and measured times, as JSON or as a table
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_BENCH_GPU_KERNELS_H
#define CHEX_BENCH_GPU_KERNELS_H

#include "backend/backend.h"

/* How launches were measured. */
struct gpu_kernels {
    const char *device, *precision, *model;
    unsigned side, runs;   /* runs of a launch in a row */
    bool graph;            /* the runs were a graph */
    const double *seconds; /* [model->count] of one run of each launch */
};

/* Print one JSON object: the model of each kernel (all launches of it); each launch and each kernel, measured. */
void gpu_kernels_print_model(const struct plan_model *m, const char *model);
void gpu_kernels_print_json(const struct plan_model *m, const struct gpu_kernels *k);
/* The same as a table for people; kernels with the most time beyond the model come first. */
void gpu_kernels_print_table(const struct plan_model *m, const struct gpu_kernels *k);

#endif
