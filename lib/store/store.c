/*
 * store.c - the slots: finds empty ones, fills and rejects them; see store.h
 *
 * store_resume.c opens and resumes a store; store_finish.c finishes shards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include <stdlib.h>
#include <string.h>

bool
store_wants(const struct store *store, size_t shard, uint32_t index)
{
    struct store_shard *s = &store->shard[shard];
    bool wants;

    pthread_mutex_lock(&s->lock);
    wants = s->slot && s->slot[index] == SLOT_EMPTY;
    pthread_mutex_unlock(&s->lock);
    return wants;
}

/* Set the state of `count` slots.  Returns true if no slot of the shard is empty now. */
static bool
decide(struct store_shard *s, uint32_t index, uint32_t count, enum slot_state state)
{
    bool last;

    pthread_mutex_lock(&s->lock);
    memset(s->slot + index, state, count);
    s->left -= count;
    last = s->left == 0;
    pthread_mutex_unlock(&s->lock);
    return last;
}

uint64_t
store_rewrites(struct store *store, unsigned *shards)
{
    uint64_t images = 0;
    size_t i;

    *shards = 0;
    for (i = 0; i < store->plan->shard_count; i++) {
        if (!store->shard[i].rewrite_pending)
            continue;
        images += store->shard[i].left;
        store->shard[i].rewrite_pending = false;
        (*shards)++;
    }
    return images;
}

enum chex_status
store_put(struct store *store, size_t shard, uint32_t index, uint32_t count, const uint8_t *records,
          struct chex_error *err)
{
    struct store_shard *s = &store->shard[shard];
    size_t stride = store->plan->layout.stride;
    enum chex_status status;
    bool rewrite;

    pthread_mutex_lock(&s->lock);
    rewrite = s->rewrite;
    status = rewrite ? CHEX_OK : store_open_partial(store, shard, err);
    s->users++;
    pthread_mutex_unlock(&s->lock);
    if (status == CHEX_OK && !rewrite)
        status = safe_file_pwrite(s->partial, (uint64_t)index * stride, records, count * stride, err);
    /* Images from archives go to all shards, and their number may exceed the limit of open files. */
    pthread_mutex_lock(&s->lock);
    if (--s->users == 0 && atomic_load(&store->open_partials) > store->max_open && status == CHEX_OK)
        status = store_close_partial(store, shard, err);
    status = store_take_failure(s, status, err);
    pthread_mutex_unlock(&s->lock);
    if (status != CHEX_OK)
        return status;
    return decide(s, index, count, SLOT_FULL) ? store_finish_shard(store, shard, err) : CHEX_OK;
}

enum chex_status
store_reject(struct store *store, size_t shard, uint32_t index, const struct chex_error *why, struct chex_error *err)
{
    struct shard_result *r = &store->result[shard];
    struct store_shard *s = &store->shard[shard];
    char *text = strdup(why->text);
    struct reject *grown;
    size_t i;

    if (!text)
        return error_memory(err);
    pthread_mutex_lock(&s->lock);
    grown = realloc(r->reject, (r->reject_count + 1) * sizeof(*grown));
    if (grown) {
        r->reject = grown;
        /* Rejects come nearly in order, so a search from the end is short. */
        for (i = r->reject_count++; i > 0 && grown[i - 1].index > index; i--)
            grown[i] = grown[i - 1];
        grown[i] = (struct reject){index, why->status, text};
    }
    pthread_mutex_unlock(&s->lock);
    if (!grown) {
        free(text);
        return error_memory(err);
    }
    return decide(s, index, 1, SLOT_REJECTED) ? store_finish_shard(store, shard, err) : CHEX_OK;
}

bool
store_differs(const struct store *store, size_t shard)
{
    const char *was = store->shard[shard].was;

    return store->result[shard].done && was[0] && strcmp(was, store->result[shard].sha256) != 0;
}

const struct shard_result *
store_results(const struct store *store)
{
    return store->result;
}

void
store_free(struct store *store)
{
    size_t i;

    if (!store)
        return;
    for (i = 0; store->shard && i < store->plan->shard_count; i++) {
        store_close_partial(store, i, NULL);
        free(store->shard[i].slot);
        pthread_mutex_destroy(&store->shard[i].lock);
    }
    for (i = 0; store->result && i < store->plan->shard_count; i++)
        shard_result_release(&store->result[i]);
    journal_close(&store->journal);
    pthread_mutex_destroy(&store->journal_lock);
    free(store->shard);
    free(store->result);
    free(store);
}
