/*
 * step_fixture.h - one training step and an evaluation of a small graph on any backend, for the tests of backends
 *
 * Buffers handed to a backend stand between guard bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_STEP_FIXTURE_H
#define CHEX_TESTS_STEP_FIXTURE_H

#include "unit.h"

#include "backend/backend.h"

#define OUTPUTS   5
#define HEIGHT    25
#define WIDTH     33
#define SOURCE    39
#define BATCH_MAX 3
#define KINK_FREE 3e-5 /* backends differ by 4e-6 at most in a value of a buffer */

/* Graphs with odd shapes, and for each a seed of weights with kink_distance() above KINK_FREE. */
#define GRAPHS       4
#define GRAPH_OF_ALL 3 /* every backend does this one */
extern const unsigned step_seed[GRAPHS];

/* What came out; step_outcome_free(). */
struct outcome {
    size_t params, stats, logit_count;
    float *logits, *evaluated, *gradients, *statistics, *after;
    struct step_result result;
    float **buffer;   /* [buffer_count], NULL where it is not kept */
    float **gradient; /* the same of their gradients, in a plan with `keep` */
};

/* graph_free() */
struct graph *step_graph(int which);
/* Does this backend do it?  Others say that it is not supported. */
bool step_does(const struct backend *backend, const struct graph *g);

/* Random weights, as different as those of a network that was trained. */
void step_fill_parameters(const struct graph *g, unsigned seed, float *arena);

void step_check_ok(enum chex_status status, const struct chex_error *err);

/* A plan on the first device, in fp32 where it leaves the precision open; every call must end well. */
struct step_plan {
    const struct backend *backend;
    struct device *device;
    struct plan *plan;
    struct plan_facts facts;
};
void step_plan_make(struct step_plan *p, const struct backend *backend, const struct plan_options *o);
void step_plan_make_on(struct step_plan *p, const struct backend *backend, unsigned device,
                       const struct plan_options *o);
void step_plan_free(struct step_plan *p);
void step_accumulate(struct step_plan *p, const struct batch *batch, unsigned flags);
void step_update(struct step_plan *p, double rate, struct step_result *out);
/* A step of one micro-batch. */
void step_make(struct step_plan *p, const struct batch *batch, double rate, struct step_result *out);

/* A micro-batch, and how it is computed. */
struct step_setup {
    unsigned seed; /* of the weights */
    unsigned images;
    const unsigned *image; /* [images] which of BATCH_MAX different ones each is; NULL: 0, 1, ... */
    const float *weight;   /* [images]; NULL: all 1 */
    unsigned threads;
    bool keep; /* the gradients of buffers too */
};

/* Every call must end well. */
struct outcome step_run(const struct backend *backend, const struct graph *g, const struct step_setup *setup);

void step_outcome_free(struct outcome *o, const struct graph *g, unsigned images);

/* The instruction sets to try on this backend: values of CHEX_CPU up to NULL.  Only the backend `cpu` reads it. */
const char *const *step_sets(const struct backend *backend);

/* Relative errors: the norm of the difference over that of what is wanted, or over least where this is more. */
void step_compare_values(const char *backend, const char *what, const float *got, const float *wanted, size_t count,
                         double least);
/* All but gradients of buffers, of this number of images. */
void step_compare(const char *name, const struct graph *g, unsigned images, const struct outcome *got,
                  const struct outcome *wanted);

#endif
