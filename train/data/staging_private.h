/*
 * staging_private.h - shared by the files of staging
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_STAGING_PRIVATE_H
#define CHEX_TRAIN_STAGING_PRIVATE_H

#include "data/staging.h"

#include "io/lock.h"

#include <pthread.h>

/* Processes one shard, in one of the threads. */
typedef enum chex_status staging_work(struct staging *s, unsigned shard, struct chex_error *err);

struct staging {
    struct staging_options o;
    bool *wanted; /* [shards] */
    bool *there;  /* [shards]: a valid copy exists */
    unsigned shards;
    struct folder folder; /* DIR/chex-ID-UID */
    struct lock lock;

    pthread_t leader;
    bool started;
    staging_work *work;
    atomic_uint next;
    atomic_bool give_up; /* a shard failed */
    atomic_bool ended;
    _Atomic uint64_t done, copied;

    pthread_mutex_t mutex; /* protects the following members */
    struct staging_progress progress;
    enum chex_status status;
    struct chex_error error;
};

/* Returns whether staging should end early. */
static inline bool
staging_is_stopped(const struct staging *s)
{
    return atomic_load(&s->give_up) || (s->o.stop && atomic_load(s->o.stop));
}

static inline enum chex_status
staging_fail_stopped(struct chex_error *err)
{
    return error_set(err, CHEX_ERR_STOPPED, "stopped while copying the data set");
}

staging_work staging_probe_shard; /* sets s->there[shard] if the copy in the folder is valid */
staging_work staging_copy_shard;  /* copies the shard if it is not there, or leaves it out */

#endif
