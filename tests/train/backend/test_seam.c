/*
 * test_seam.c - the promises of a step, on every backend of this build (backend.h): a bad step changes nothing, sums
 * start once and with final values, and rank 0 and its peers make the step of one process
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "step_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a plan and its arenas --------------------------------------------------------------------------------------- */

struct seam {
    struct step_plan p;
    struct graph *graph;
    uint8_t pixels[BATCH_MAX * SOURCE * SOURCE], label[BATCH_MAX * OUTPUTS];
    struct crop crop[BATCH_MAX];
    struct batch batch;
};

static struct plan_options
options_of(const struct graph *g, struct reduce *reduce)
{
    return (struct plan_options){.graph = g,
                                 .batch = BATCH_MAX,
                                 .micro_batches = 2,
                                 .source = SOURCE,
                                 .train = true,
                                 .average = true,
                                 .threads = 2,
                                 .reduce = reduce,
                                 .optimizer = optimizer_default(OPTIMIZER_ADAM)};
}

static void
seam_make(struct seam *s, const struct backend *backend, struct reduce *reduce)
{
    struct graph *g = step_graph(GRAPH_OF_ALL);
    float *params = calloc(g->param_floats, sizeof(*params));
    struct plan_options options = options_of(g, reduce);
    struct chex_error err;
    size_t i;

    *s = (struct seam){.graph = g};
    for (i = 0; i < sizeof(s->pixels); i++)
        s->pixels[i] = (uint8_t)(i * i % 251);
    s->label[1] = s->label[OUTPUTS] = 1;
    s->batch = (struct batch){.pixels = s->pixels, .crop = s->crop, .label = s->label, .scale = 0.1};
    step_fill_parameters(g, 5, params);
    step_plan_make(&s->p, backend, &options);
    step_check_ok(backend->write(s->p.plan, ARENA_PARAMETERS, params, &err), &err);
    step_check_ok(backend->write(s->p.plan, ARENA_AVERAGE, params, &err), &err);
    free(params);
}

static void
seam_free(struct seam *s)
{
    step_plan_free(&s->p);
    graph_free(s->graph);
}

/* Returns all arenas that a step changes, in one array; free(). */
static float *
seam_read(const struct seam *s, size_t *floats)
{
    static const enum arena_id arenas[] = {ARENA_PARAMETERS, ARENA_STATISTICS, ARENA_MOMENT1, ARENA_MOMENT2,
                                           ARENA_AVERAGE};
    float *all = calloc(5, (s->graph->param_floats + s->graph->stat_floats) * sizeof(*all));
    struct chex_error err;

    *floats = 0;
    for (size_t i = 0; i < 5; i++) {
        step_check_ok(s->p.backend->read(s->p.plan, arenas[i], all + *floats, &err), &err);
        *floats += arena_floats(s->graph, arenas[i]);
    }
    return all;
}

static void
seam_is(const struct seam *s, const float *wanted)
{
    size_t floats;
    float *now = seam_read(s, &floats);

    ck_assert_mem_eq(now, wanted, floats * sizeof(*now));
    free(now);
}

/* ---- a step that is not good ------------------------------------------------------------------------------------- */

enum bad { BAD_LOSS, BAD_GRADIENT, BAD_FAULT, BAD_COUNT };

/* The second micro-batch of a step makes it bad. */
static void
make_bad_step(struct seam *s, enum bad bad, struct step_result *r)
{
    const struct step_end end = {.requests = 5};
    struct batch spoilt = s->batch;
    struct chex_error err;

    step_accumulate(&s->p, &s->batch, STEP_FIRST);
    if (bad == BAD_FAULT) {
        step_check_ok(s->p.backend->accumulate(s->p.plan, NULL, STEP_LAST | STEP_FAULT, &end, &err), &err);
    } else {
        /* A loss of 1e300 is finite, but its gradient overflows a float. */
        spoilt.scale = bad == BAD_LOSS ? HUGE_VAL : 1e300;
        step_check_ok(s->p.backend->accumulate(s->p.plan, &spoilt, STEP_LAST, &end, &err), &err);
    }
    step_update(&s->p, 0.1, r);
}

TEST_CASE("seam", "seam", NULL, NULL);

LOOP_TEST(a_bad_step_changes_nothing_until_the_plan_resumes, 0, BAD_COUNT)
{
    enum bad bad = (enum bad)_i;
    struct chex_error err;
    size_t b, floats;

    for (b = 0; backends[b]; b++) {
        struct step_result good, r;
        struct seam s, other;
        float *before, *after;

        seam_make(&s, backends[b], NULL);
        seam_make(&other, backends[b], NULL);
        step_make(&s.p, &s.batch, 0.1, &good);
        step_make(&other.p, &other.batch, 0.1, &r);
        ck_assert(good.applied && !good.halted && good.faults == 0 && good.bad == STEP_NONE && good.state.applied == 1);
        before = seam_read(&s, &floats);
        make_bad_step(&s, bad, &r);
        ck_assert(!r.applied && r.halted && r.state.applied == 1 && r.requests == 5);
        ck_assert_uint_eq(r.faults, bad == BAD_FAULT);
        ck_assert_uint_eq(r.bad, bad == BAD_LOSS ? 1 : STEP_NONE);
        ck_assert(bad != BAD_LOSS || !isfinite(r.loss));
        ck_assert(bad != BAD_GRADIENT || (isfinite(r.loss) && !isfinite(r.norm)));
        seam_is(&s, before);
        step_make(&s.p, &s.batch, 0.1, &r); /* the plan is halted */
        ck_assert(!r.applied && r.halted && r.faults == 0);
        seam_is(&s, before);
        step_check_ok(backends[b]->resume(s.p.plan, &err), &err);
        step_make(&s.p, &s.batch, 0.1, &r);
        ck_assert(r.applied && !r.halted && r.state.applied == 2);
        step_make(&other.p, &other.batch, 0.1, &r);
        after = seam_read(&other, &floats); /* as if the bad step had never been made */
        seam_is(&s, after);
        free(before);
        free(after);
        seam_free(&s);
        seam_free(&other);
    }
}

/* Adam's first steps are the longest; a plan that resumes from a checkpoint must not repeat them. */
TEST(steps_are_counted_by_those_that_were_applied)
{
    const struct plan_state state = {.applied = 1, .loss_scale = 1, .good = 1};
    static const enum arena_id arenas[] = {ARENA_PARAMETERS, ARENA_STATISTICS, ARENA_MOMENT1, ARENA_MOMENT2,
                                           ARENA_AVERAGE};
    struct chex_error err;
    size_t b, floats, at = 0;

    for (b = 0; backends[b]; b++) {
        struct step_result r;
        struct seam s, other;
        float *arena;

        seam_make(&s, backends[b], NULL);
        seam_make(&other, backends[b], NULL);
        step_make(&s.p, &s.batch, 0.1, &r);
        arena = seam_read(&s, &floats);
        for (size_t i = at = 0; i < 5; at += arena_floats(s.graph, arenas[i++]))
            step_check_ok(backends[b]->write(other.p.plan, arenas[i], arena + at, &err), &err);
        step_check_ok(backends[b]->set_state(other.p.plan, &state, &err), &err);
        step_make(&s.p, &s.batch, 0.1, &r);
        step_make(&other.p, &other.batch, 0.1, &r);
        ck_assert_uint_eq(r.state.applied, 2);
        free(arena);
        arena = seam_read(&s, &floats);
        seam_is(&other, arena);
        free(arena);
        seam_free(&s);
        seam_free(&other);
    }
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

#define STARTS 64

/* A peer with the same numbers: each sum is twice the local value. */
struct mirror {
    struct reduce base;
    struct {
        double *data, *copy;
        size_t count;
    } sum[STARTS];
    size_t count, joins;
};

static enum chex_status
mirror_start(struct reduce *r, void *data, size_t count, void *queue, struct chex_error *err)
{
    struct mirror *m = (struct mirror *)(void *)r;

    (void)err;
    ck_assert_ptr_null(queue);
    ck_assert_uint_lt(m->count, STARTS);
    m->sum[m->count].data = data;
    m->sum[m->count].count = count;
    m->sum[m->count].copy = malloc((count + 1) * sizeof(double));
    memcpy(m->sum[m->count++].copy, data, count * sizeof(double));
    return CHEX_OK;
}

static enum chex_status
mirror_join(struct reduce *r, void *queue, struct chex_error *err)
{
    struct mirror *m = (struct mirror *)(void *)r;

    (void)queue;
    (void)err;
    for (size_t i = 0; i < m->count; i++) {
        /* The values given to the sum were final. */
        ck_assert(memcmp(m->sum[i].copy, m->sum[i].data, m->sum[i].count * sizeof(double)) == 0);
        for (size_t k = 0; k < m->sum[i].count; k++)
            m->sum[i].data[k] *= 2;
        free(m->sum[i].copy);
    }
    m->joins++;
    return CHEX_OK;
}

static enum chex_status
mirror_poll(struct reduce *r, struct chex_error *err)
{
    (void)r;
    (void)err;
    return CHEX_OK;
}

TEST(every_number_is_summed_once_and_when_it_is_final)
{
    static const struct reduce_ops ops = {.start = mirror_start, .join = mirror_join, .poll = mirror_poll};
    const struct step_end end = {.requests = 2, .following = 2, .rest = 0};
    struct chex_error err;
    size_t b, i;

    for (b = 0; backends[b]; b++) {
        struct mirror m = {.base = {.rank = 0, .size = 2, .ops = &ops}};
        struct step_result alone, both;
        struct seam s, single;
        float *gradients, *twice;
        double *next;
        uint64_t ticket;
        bool done = false;

        seam_make(&s, backends[b], &m.base);
        if (s.p.device->info.own_memory) { /* its reducer sums device memory: test_cuda_ranks.c */
            seam_free(&s);
            continue;
        }
        seam_make(&single, backends[b], NULL);
        gradients = calloc(s.graph->param_floats, sizeof(*gradients));
        twice = calloc(s.graph->param_floats, sizeof(*twice));
        step_accumulate(&s.p, &s.batch, STEP_FIRST);
        ck_assert_uint_eq(m.count, 0);
        step_check_ok(backends[b]->accumulate(s.p.plan, &s.batch, STEP_LAST, &end, &err), &err);
        step_check_ok(backends[b]->update(s.p.plan, 0.1, 0, &ticket, &err), &err);
        while (!done)
            step_check_ok(backends[b]->result(s.p.plan, ticket, &done, &both, &err), &err);
        step_accumulate(&single.p, &single.batch, STEP_FIRST);
        step_accumulate(&single.p, &single.batch, STEP_LAST);
        step_update(&single.p, 0.1, &alone);
        ck_assert_uint_eq(m.joins, 1);
        /* Statistics with the tail, then gradients from the end to the start. */
        ck_assert_uint_ge(m.count, 2);
        ck_assert_uint_gt(m.sum[0].count, s.graph->stat_floats);
        for (i = 1, next = m.sum[0].data; i < m.count; i++) {
            ck_assert(m.sum[i].data + m.sum[i].count == next);
            next = m.sum[i].data;
        }
        ck_assert(m.sum[0].data - next == (ptrdiff_t)s.graph->param_floats);
        ck_assert_double_eq(both.loss, 2 * alone.loss);
        ck_assert_uint_eq(both.requests, 2);
        ck_assert_uint_eq(both.faults, 0);
        step_check_ok(backends[b]->read(single.p.plan, ARENA_GRADIENTS, gradients, &err), &err);
        step_check_ok(backends[b]->read(s.p.plan, ARENA_GRADIENTS, twice, &err), &err);
        for (i = 0; i < s.graph->param_floats; i++)
            ck_assert(twice[i] == 2 * gradients[i]);
        free(gradients);
        free(twice);
        seam_free(&s);
        seam_free(&single);
    }
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

TEST(views_and_the_average_are_scored_as_they_are)
{
    static const struct crop view[2][BATCH_MAX] = {{{.x = 0}, {.x = 1, .y = 2}, {.x = 6, .y = 3, .flip = true}},
                                                   {{.x = 2, .y = 1, .flip = true}, {.flip = true}, {.x = 6, .y = 6}}};
    float both[2][BATCH_MAX * OUTPUTS], one[BATCH_MAX * OUTPUTS];
    struct chex_error err;
    size_t b, v;

    for (b = 0; backends[b]; b++) {
        struct step_result r;
        struct seam s;
        float *average;

        seam_make(&s, backends[b], NULL);
        average = calloc(s.graph->param_floats, sizeof(*average));
        step_make(&s.p, &s.batch, 0.1, &r);
        step_check_ok(backend_score(backends[b], s.p.plan, &s.batch, 2, &view[0][0], ARENA_AVERAGE, &both[0][0], &err),
                      &err);
        step_check_ok(backend_score(backends[b], s.p.plan, &s.batch, 1, view[0], ARENA_PARAMETERS, one, &err), &err);
        ck_assert(memcmp(one, both[0], sizeof(one)) != 0);
        step_check_ok(backends[b]->read(s.p.plan, ARENA_AVERAGE, average, &err), &err);
        step_check_ok(backends[b]->write(s.p.plan, ARENA_PARAMETERS, average, &err), &err);
        for (v = 0; v < 2; v++) {
            step_check_ok(backend_score(backends[b], s.p.plan, &s.batch, 1, view[v], ARENA_PARAMETERS, one, &err),
                          &err);
            ck_assert_mem_eq(one, both[v], sizeof(one));
        }
        free(average);
        seam_free(&s);
    }
}

TEST(two_micro_batches_in_flight_are_scored_as_one_after_the_other)
{
    static const struct crop view[3][BATCH_MAX] = {{{.x = 0}, {.x = 1, .y = 2}, {.x = 6, .y = 3, .flip = true}},
                                                   {{.x = 2, .y = 1, .flip = true}, {.flip = true}, {.x = 6, .y = 6}},
                                                   {{.x = 3, .y = 3}, {.x = 5, .y = 1, .flip = true}, {.y = 6}}};
    static const unsigned views[4] = {1, 3, 1, 2};
    float wanted[4][3][BATCH_MAX * OUTPUTS], got[4][3][BATCH_MAX * OUTPUTS];
    struct chex_error err;
    size_t b, i;

    memset(wanted, 0, sizeof(wanted));
    memset(got, 0, sizeof(got));
    for (b = 0; backends[b]; b++) {
        const struct backend *backend = backends[b];
        struct step_result r;
        struct seam s;

        seam_make(&s, backend, NULL);
        step_make(&s.p, &s.batch, 0.1, &r);
        for (i = 0; i < 4; i++) {
            s.pixels[0] = (uint8_t)(50 * i);
            step_check_ok(
                backend_score(backend, s.p.plan, &s.batch, views[i], &view[0][0], ARENA_PARAMETERS, wanted[i][0], &err),
                &err);
        }
        for (i = 0; i < 4; i++) {
            s.pixels[0] = (uint8_t)(50 * i); /* the caller may change the images of the micro-batch in flight */
            step_check_ok(backend->score_start(s.p.plan, &s.batch, views[i], &view[0][0], ARENA_PARAMETERS, got[i][0],
                                               NULL, &err),
                          &err);
            if (i > 0)
                step_check_ok(backend->score_finish(s.p.plan, &err), &err);
        }
        step_check_ok(backend->score_finish(s.p.plan, &err), &err);
        ck_assert_mem_eq(got, wanted, sizeof(wanted));
        ck_assert_int_eq(backend->score_finish(s.p.plan, &err), CHEX_ERR_BUG);
        seam_free(&s);
    }
}

TEST(a_third_micro_batch_in_flight_is_a_bug)
{
    float logits[3][BATCH_MAX * OUTPUTS];
    struct chex_error err;
    size_t b, i;

    for (b = 0; backends[b]; b++) {
        struct seam s;

        seam_make(&s, backends[b], NULL);
        for (i = 0; i < 3; i++)
            ck_assert_int_eq(
                backends[b]->score_start(s.p.plan, &s.batch, 1, s.crop, ARENA_PARAMETERS, logits[i], NULL, &err),
                i < SCORES_IN_FLIGHT ? CHEX_OK : CHEX_ERR_BUG);
        for (i = 0; i < SCORES_IN_FLIGHT; i++)
            step_check_ok(backends[b]->score_finish(s.p.plan, &err), &err);
        seam_free(&s);
    }
}

TEST(a_plan_without_maps_does_not_compute_them)
{
    float logits[BATCH_MAX * OUTPUTS], map[1] = {7};
    struct chex_error err;
    size_t b;

    for (b = 0; backends[b]; b++) {
        struct seam s;

        seam_make(&s, backends[b], NULL);
        ck_assert_int_eq(backends[b]->score_start(s.p.plan, &s.batch, 1, s.crop, ARENA_PARAMETERS, logits, map, &err),
                         CHEX_ERR_BUG);
        ck_assert_float_eq(map[0], 7);
        seam_free(&s);
    }
}

/* ---- image store ------------------------------------------------------------------------------------------------- */

TEST(images_of_the_store_and_of_the_batch_are_the_same)
{
    static const uint32_t index[BATCH_MAX] = {4, STORE_NONE, 0};
    size_t image = (size_t)SOURCE * SOURCE, b, floats;
    struct chex_error err;

    for (b = 0; backends[b]; b++) {
        float all[BATCH_MAX * OUTPUTS], some[BATCH_MAX * OUTPUTS], *wanted;
        struct image_store *store;
        struct step_result r;
        struct seam s, other;

        seam_make(&s, backends[b], NULL);
        seam_make(&other, backends[b], NULL);
        step_check_ok(backends[b]->store_new(s.p.device, 5, SOURCE, &store, &err), &err);
        step_check_ok(backends[b]->store_put(store, 4, s.pixels, &err), &err);
        step_check_ok(backends[b]->store_put(store, 0, s.pixels + 2 * image, &err), &err);
        memset(s.pixels, 7, image);
        memset(s.pixels + 2 * image, 7, image);
        s.batch.index = index;
        s.batch.store = store;
        step_make(&s.p, &s.batch, 0.1, &r);
        step_make(&other.p, &other.batch, 0.1, &r);
        wanted = seam_read(&other, &floats);
        seam_is(&s, wanted);
        step_check_ok(backend_score(backends[b], s.p.plan, &s.batch, 1, s.crop, ARENA_PARAMETERS, some, &err), &err);
        step_check_ok(backend_score(backends[b], other.p.plan, &other.batch, 1, s.crop, ARENA_PARAMETERS, all, &err),
                      &err);
        ck_assert_mem_eq(some, all, sizeof(all));
        free(wanted);
        seam_free(&s);
        seam_free(&other);
        backends[b]->store_free(store);
    }
}
