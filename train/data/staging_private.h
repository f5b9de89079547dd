/*
 * staging_private.h - what the files of staging share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_STAGING_PRIVATE_H
#define CHEX_TRAIN_STAGING_PRIVATE_H

#include "data/staging.h"

#include "base/sha256.h"
#include "io/lock.h"

#include <pthread.h>

#define STAGING_CHUNK (1u << 20)

/*
 * What is done to each shard by one of the threads, which has a chunk of STAGING_CHUNK bytes, or of a record where that
 * is more.
 */
typedef enum chex_status staging_work(struct staging *s, unsigned shard, uint8_t *chunk, struct digest *digest,
                                      struct chex_error *err);

struct staging {
    struct staging_options o;
    bool *wanted; /* [shards] */
    bool *there;  /* [shards], with good content */
    unsigned shards;
    struct folder folder; /* DIR/chex-ID */
    struct lock lock;

    pthread_t leader;
    bool started;
    staging_work *work;
    atomic_uint next;
    atomic_bool give_up; /* a shard failed */
    atomic_bool ended;
    atomic_uint_fast64_t done, copied;

    pthread_mutex_t mutex; /* for what follows */
    struct staging_progress told;
    enum chex_status status;
    struct chex_error error;
};

/* Is it to end early? */
static inline bool
staging_is_stopped(const struct staging *s)
{
    return atomic_load(&s->give_up) || (s->o.stop && atomic_load(s->o.stop));
}

staging_work staging_look_at_shard; /* s->there[shard]: what lies there is good */
staging_work staging_copy_shard;    /* where it is not; or leave it out */

#endif
