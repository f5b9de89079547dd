/*
 * convert_run.c - the phases of a run: lock, resume, fill, finish, publish
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert_private.h"

#include "dali_index.h"
#include "lock.h"
#include "progress.h"

static enum chex_status
check_space(const struct convert *c, const struct store *store, struct chex_error *err)
{
    uint64_t needed = store_space_needed(store), there = convert_free_space(c->options->out);
    char a[PROGRESS_TEXT], b[PROGRESS_TEXT];

    if (there == 0 || needed <= there)
        return CHEX_OK;
    return chex_fail(err, CHEX_ERR_WRITE, "'%s' needs %s more, %s are free", c->options->out, format_bytes(needed, a),
                     format_bytes(there, b));
}

/* Images that need no decoding any more: in finished shards (with their rejects), and in full slots. */
static void
count_resumed(struct convert *c, const struct store *store)
{
    const struct shard_result *result = store_results(store);
    size_t i;

    c->counts.resumed = c->resumed.slots_full;
    for (i = 0; i < c->plan.shard_count; i++) {
        if (result[i].done) {
            c->counts.resumed += c->plan.shard[i].images;
            c->counts.rejects += result[i].reject_count;
        }
    }
}

static enum chex_status
run_locked(struct convert *c, const struct folder *folder, const struct lock *lock, const struct convert_watch *watch,
           struct chex_error *err)
{
    struct store_options options = {.verify = c->options->verify, .force = c->options->force};
    struct store *store;
    enum chex_status status = store_open(folder, &c->plan, &options, &store, &c->resumed, err);

    if (status != CHEX_OK)
        return status;
    if (c->resumed.complete) {
        c->counts.rejects = c->resumed.rejects;
        status = c->options->index_dali ? dali_index_write(folder, &c->plan, err) : CHEX_OK;
        store_free(store);
        return status;
    }
    count_resumed(c, store);
    status = check_space(c, store, err);
    if (status == CHEX_OK && watch->begin)
        watch->begin(watch->context, c);
    if (status == CHEX_OK)
        status = convert_fill(c, store, watch, err);
    if (status == CHEX_OK)
        status = convert_settle(c, store, folder, watch, err);
    if (status == CHEX_OK)
        status = store_finish(store, err);
    if (status == CHEX_OK && !lock_is_ours(lock))
        status = chex_fail(err, CHEX_ERR_LOCKED, "'%s' was taken over by another process meanwhile", folder->path);
    if (status == CHEX_OK)
        status = convert_publish(c, store, folder, err);
    store_free(store);
    return status;
}

enum chex_status
convert_run(struct convert *c, const struct convert_watch *watch, struct chex_error *err)
{
    double started = progress_clock();
    struct folder folder;
    struct lock lock;
    enum chex_status status = folder_open(c->options->out, true, &folder, err);

    if (status != CHEX_OK)
        return status;
    status = lock_take(&lock, &folder, c->options->break_lock, err);
    if (status == CHEX_OK) {
        status = run_locked(c, &folder, &lock, watch, err);
        lock_drop(&lock);
    }
    folder_close(&folder);
    c->seconds = progress_clock() - started;
    return status;
}
