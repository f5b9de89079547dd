/*
 * layout_fixture.h - runs a step by the lists of a plan and by the backend ref, from the same inputs
 *
 * A step has two micro-batches, the first with an image of weight 0 in its middle.  Then follow the logits of the
 * parameters and of their average.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LAYOUT_FIXTURE_H
#define LAYOUT_FIXTURE_H

#include "backend/backend.h"
#include "cuda/plan/layout.h"
#include "emulator.h"

#define OUTPUTS    14
#define PROCESSORS 8 /* few, but enough for several splits */
#define BORDER     5 /* pixels around the crop */

extern unsigned passed, failed;
extern cudaStream_t stream;
extern uint64_t random_state;

/* Counts, and prints the first failures. */
void expect(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define MUST(call) must(call, #call, __LINE__)
/* Ends the program on failure. */
void must(cudaError_t e, const char *what, int line);
void check(enum chex_status status, const struct chex_error *err);
/* Zeroed; free(). */
void *take(size_t count, size_t size);

double random_unit(void); /* in (-1, 1) */
/* smooth: the inputs of ReLUs are far from 0. */
float *make_parameters(const struct graph *g, bool smooth);
float *make_statistics(const struct graph *g);

struct images {
    uint8_t *pixels, *label;
    struct crop *crop;
    float *weight;
    struct batch batch;
};

/* Makes smooth images, so that means and variances are not noise. */
struct images make_images(const struct plan_options *o, bool padding);
void free_images(struct images *m);

/* The results of a step. */
struct outcome {
    float **value[2], **gradient[2]; /* [micro-batch][buffer], NULL: not kept, or never stored */
    float *gradients, *statistics, *parameters;
    float *logits[2]; /* with running statistics: from the parameters, from the average */
    float *maps[2];   /* the same; NULL without plan_options.maps */
    double loss, norm;
    unsigned finals;                      /* launches after which more gradients are final */
    unsigned launches[CUDA_KERNEL_COUNT]; /* per step */
    bool *unfinished;                     /* [node_count], see plan/layout.h */
};

size_t buffer_floats(const struct plan_options *o, size_t i);
size_t map_floats(const struct plan_options *o); /* of a micro-batch; 0 without maps */
void make_outcome(const struct plan_options *o, struct outcome *out);
void free_outcome(const struct plan_options *o, struct outcome *out);

void run_reference(const struct plan_options *o, const struct images *m, const float *parameters,
                   const float *statistics, struct outcome *out);
/* Called after each launch of run_lists(), which then does not score; NULL: not called. */
extern void (*launched)(const struct cuda_layout *l, const struct cuda_op *op);
void run_lists(const struct plan_options *o, const struct cuda_chip *chip, const struct images *m,
               const float *parameters, const float *statistics, struct outcome *out);

#endif
