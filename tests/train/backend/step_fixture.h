/*
 * step_fixture.h - one training step and an evaluation of a small graph on any backend, for the tests of backends
 *
 * Buffers that are passed to a backend are between guard bytes.
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
#define KINK_FREE 3e-5 /* backends differ by at most 4e-6 in a value of a buffer */

/* Graphs with odd shapes; each has a seed of weights with kink_distance() above KINK_FREE. */
#define GRAPHS       4
#define GRAPH_OF_ALL 3 /* the graph that every backend supports */
extern const unsigned step_seed[GRAPHS];

/* The results; step_outcome_free(). */
struct outcome {
    size_t params, stats, logit_count, map_count;
    float *logits, *evaluated, *maps, *gradients, *statistics, *after; /* evaluated, maps: of the evaluation */
    struct step_result result;
    float **buffer;   /* [buffer_count], NULL if it is not kept */
    float **gradient; /* their gradients, in a plan with `keep` */
};

/* graph_free() */
struct graph *step_graph(int which);
/* Does this backend support the graph?  If not, it must fail with CHEX_ERR_UNSUPPORTED. */
bool step_does(const struct backend *backend, const struct graph *g);

/* Sets random weights that vary as much as those of a trained network. */
void step_fill_parameters(const struct graph *g, unsigned seed, float *arena);

void step_check_ok(enum chex_status status, const struct chex_error *err);

/* A plan on the first device, in fp32 unless it has another precision; every call must succeed. */
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
/* Makes a step of one micro-batch. */
void step_make(struct step_plan *p, const struct batch *batch, double rate, struct step_result *out);

/* A micro-batch, and how it is computed. */
struct step_setup {
    unsigned seed; /* of the weights */
    unsigned images;
    const unsigned *image; /* [images] numbers of the images, below BATCH_MAX; NULL: 0, 1, ... */
    const float *weight;   /* [images]; NULL: all 1 */
    const float *mix;      /* [images] as batch.mix; NULL: none.  images must be below BATCH_MAX */
    unsigned threads;
    bool keep;                /* also keep the gradients of buffers */
    enum precision precision; /* PRECISION_AUTO: fp32 */
};

/* Runs step and evaluation; every call must succeed. */
struct outcome step_run(const struct backend *backend, const struct graph *g, const struct step_setup *setup);

void step_outcome_free(struct outcome *o, const struct graph *g, unsigned images);

/*
 * Returns the instruction sets to test on this backend: values of CHEX_CPU, ended by NULL.  Only the backend `cpu`
 * reads it.
 */
const char *const *step_sets(const struct backend *backend);

/*
 * Compares by relative error: the norm of the difference divided by the norm of `wanted`, or by `least` if that is
 * more.
 */
void step_compare_values(const char *backend, const char *what, const float *got, const float *wanted, size_t count,
                         double least);
/* Compares everything except gradients of buffers, for this number of images. */
void step_compare(const char *name, const struct graph *g, unsigned images, const struct outcome *got,
                  const struct outcome *wanted);

#endif
