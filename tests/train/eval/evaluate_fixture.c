/*
 * evaluate_fixture.c - see evaluate_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "evaluate_fixture.h"

#include <math.h>
#include <stdio.h>
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

static enum chex_status
stub_score(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop, enum arena_id weights,
           float *logits, struct chex_error *err)
{
    struct stub *stub = (struct stub *)plan;

    (void)err;
    ck_assert_int_eq(weights, ARENA_PARAMETERS);
    for (unsigned v = 0; v < views; v++) {
        score_view(stub, batch->pixels, crop + v * stub->batch, logits + (size_t)v * stub->batch * FINDINGS);
        stub->passes++;
        if (stub->stop && stub->passes == stub->stop_after)
            atomic_store(stub->stop, true);
    }
    return CHEX_OK;
}

static const struct backend stub_backend = {.name = "stub", .score = stub_score};

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
