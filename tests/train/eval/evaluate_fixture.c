/*
 * evaluate_fixture.c - see evaluate_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "evaluate_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
score_view(struct stub *stub, const uint8_t *pixels, const struct crop *crop, float *logits)
{
    for (unsigned i = 0; i < stub->batch; i++) {
        const struct crop *c = &crop[i];
        int v = pixels[(i * SMALL_SIDE + c->y) * SMALL_SIDE + c->x + (c->flip ? SIDE - 1 : 0)];

        for (unsigned k = 0; k < FINDINGS; k++)
            logits[i * FINDINGS + k] = stub->breaks && v == 42 ? (float)NAN : (float)(v - 100) / 50 - (float)k / 10;
    }
}

static size_t
logit_bytes(const struct stub *stub, unsigned views)
{
    return (size_t)views * stub->batch * FINDINGS * sizeof(float);
}

/* Computes the logits at once, but the caller finds NaN until stub_score_finish(). */
static enum chex_status
stub_score_start(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                 enum arena_id weights, float *logits, float *maps, struct chex_error *err)
{
    struct stub *stub = (struct stub *)plan;
    struct stub_flight *f = &stub->flight[stub->started % SCORES_IN_FLIGHT];

    ck_assert_int_eq(weights, ARENA_PARAMETERS);
    ck_assert_ptr_null(maps);
    ck_assert_uint_lt(stub->started - stub->finished, SCORES_IN_FLIGHT);
    if (stub->started + 1 == stub->fails_start)
        return error_set(err, CHEX_ERR_LOST, "planted at a start");
    *f = (struct stub_flight){malloc(logit_bytes(stub, views)), logits, views};
    for (unsigned v = 0; v < views; v++)
        score_view(stub, batch->pixels, crop + v * stub->batch, f->made + (size_t)v * stub->batch * FINDINGS);
    memset(logits, 0xff, logit_bytes(stub, views));
    stub->started++;
    if (stub->started - stub->finished > stub->most)
        stub->most = stub->started - stub->finished;
    return CHEX_OK;
}

static enum chex_status
stub_score_finish(struct plan *plan, struct chex_error *err)
{
    struct stub *stub = (struct stub *)plan;
    struct stub_flight *f = &stub->flight[stub->finished % SCORES_IN_FLIGHT];

    ck_assert_uint_lt(stub->finished, stub->started);
    memcpy(f->logits, f->made, logit_bytes(stub, f->views));
    free(f->made);
    stub->passes += f->views;
    stub->finished++;
    if (stub->stop && stub->passes == stub->stop_after)
        atomic_store(stub->stop, true);
    return stub->finished == stub->fails_finish ? error_set(err, CHEX_ERR_LOST, "planted at a finish") : CHEX_OK;
}

static const struct backend stub_backend = {
    .name = "stub", .score_start = stub_score_start, .score_finish = stub_score_finish};

void
scorer_make(struct scorer *b)
{
    struct chex_error err;
    char name[32];

    *b = (struct scorer){.stub = {.batch = 4}};
    snprintf(name, sizeof(name), "evaluate%ld", (long)getpid());
    small_make(&b->small, name);
    ck_assert_int_eq(chex_dataset_open(b->small.path, &b->ds, &err), CHEX_OK);
    ck_assert_int_eq(samples_list(b->ds, 0, &b->samples, &err), CHEX_OK);
    b->o = (struct evaluate_options){
        .ds = b->ds,
        .samples = &b->samples,
        .backend = &stub_backend,
        .plan = (struct plan *)&b->stub,
        .batch = b->stub.batch,
        .side = SIDE,
        .replicates = 20,
        .seed = 1,
        .threads = 2,
        .ahead = 2,
        .check_crc = true,
    };
}

void
scorer_release(struct scorer *b)
{
    evaluation_release(&b->e);
    samples_release(&b->samples);
    chex_dataset_close(b->ds);
    small_release(&b->small);
}

void
scorer_run(struct scorer *b)
{
    struct chex_error err = {.status = CHEX_OK};
    enum chex_status status = evaluate(&b->o, &b->e, &err);

    ck_assert_msg(status == CHEX_OK, "%s", err.text);
}

void
scorer_damage(struct scorer *b, unsigned shard, unsigned record)
{
    const struct record_layout *l = &b->small.manifest.layout;

    b->small.bytes[shard][record * l->stride + l->pixel_offset] ^= 1;
    small_put_shard(&b->small, shard);
}
