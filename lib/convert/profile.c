/*
 * profile.c - see profile.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/profile.h"

#include "base/clock.h"
#include "base/sha256.h"

enum chex_status
profile_thread_begin(struct profile_thread *t, struct profile *p, struct decoder *decoder, unsigned decoders,
                     struct chex_error *err)
{
    unsigned i;

    *t = (struct profile_thread){.profile = p};
    if (!p)
        return CHEX_OK;
    for (i = 0; i < decoders; i++)
        decoder_measure(&decoder[i], &t->stage[PROFILE_UNFILTER]);
    t->since = clock_thread();
    t->digest = digest_new();
    return t->digest ? CHEX_OK : error_memory(err);
}

void
profile_skip(struct profile_thread *t)
{
    if (t->profile)
        t->since = clock_thread();
}

void
profile_end_stage(struct profile_thread *t, enum profile_stage stage)
{
    double since = t->since;

    profile_skip(t);
    t->stage[stage] += t->since - since;
}

void
profile_image(struct profile_thread *t, const uint8_t *record, size_t size, uint64_t bytes)
{
    struct profile *p = t->profile;
    uint8_t hash[DIGEST_SIZE];

    if (record) {
        digest_start(t->digest);
        digest_add(t->digest, record, size);
        digest_finish(t->digest, hash);
        profile_end_stage(t, PROFILE_RECORD);
    }
    pthread_mutex_lock(&p->lock);
    p->out->images++;
    p->out->bytes += bytes;
    p->out->rejects += !record;
    if (p->out->images >= p->limit)
        atomic_store(&p->enough, true);
    pthread_mutex_unlock(&p->lock);
}

void
profile_thread_end(struct profile_thread *t)
{
    struct profile *p = t->profile;
    int i;

    if (!p)
        return;
    t->stage[PROFILE_INFLATE] -= t->stage[PROFILE_UNFILTER]; /* which is a part of decoding */
    pthread_mutex_lock(&p->lock);
    for (i = 0; i < PROFILE_STAGES; i++)
        p->out->stage[i] += t->stage[i];
    pthread_mutex_unlock(&p->lock);
}

void
profile_thread_release(struct profile_thread *t)
{
    digest_free(t->digest);
}
