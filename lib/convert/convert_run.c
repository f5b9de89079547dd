/*
 * convert_run.c - see convert_run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_run.h"

#include "base/number_format.h"
#include "dataset/dali_index.h"

/*
 * Returns whether this process reports to the user.  Of several ranks only rank 0 does, and only for its own part:
 * everything that it finds while publishing was reported before.
 */
static bool
is_reporting(const struct convert_run *r)
{
    return !r->work || (collective_rank(r->work->ranks) == 0 && !r->publishing);
}

/* ---- watching ------------------------------------------------------------------------------------------------- */

static void
on_wait(void *context)
{
    struct convert_run *r = context;

    if (r->work)
        rank_work_poll(r->work);
}

static void
on_tick(void *context, const struct convert *c, uint64_t done, uint64_t rejects)
{
    struct convert_run *r = context;

    on_wait(r);
    if (is_reporting(r) && r->watch->tick)
        r->watch->tick(r->watch->context, c, done, rejects);
}

static void
on_reject(void *context, const char *name, const struct chex_error *why)
{
    struct convert_run *r = context;

    if (r->watch->reject)
        r->watch->reject(r->watch->context, name, why);
}

static void
on_unread(void *context, const char *name, const struct chex_error *why)
{
    struct convert_run *r = context;

    if (r->watch->unread)
        r->watch->unread(r->watch->context, name, why);
}

/* Every rank reads every archive, so only one rank reports. */
static void
on_damaged(void *context, const char *path, const struct archive_fault *fault)
{
    struct convert_run *r = context;

    if (is_reporting(r) && r->watch->damaged)
        r->watch->damaged(r->watch->context, path, fault);
}

static struct convert_watch
watch_of(struct convert_run *r)
{
    return (struct convert_watch){.tick = on_tick,
                                  .reject = on_reject,
                                  .unread = on_unread,
                                  .damaged = on_damaged,
                                  .context = r,
                                  .stop = r->stop};
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static struct store_options
store_options_of(struct convert_run *r)
{
    const struct convert_options *o = r->c->options;

    return (struct store_options){
        .verify = o->verify,
        .force = o->force,
        .repair = o->repair,
        .part = r->part,
        .uncertain = r->c->preflight.expected > 0,
        .threads = o->threads,
        .tick = on_wait,
        .context = r,
        .stop = r->stop,
    };
}

/*
 * The folder cannot be locked because it is not writable (err has the reason).  That is not an error if nothing must be
 * written because the data set is complete.  A damaged shard is a more useful error than the lock.
 */
static enum chex_status
look_without_lock(struct convert_run *r, const struct store_options *options, struct chex_error *err)
{
    struct chex_error why = {.status = CHEX_OK};
    enum chex_status status;

    if (options->force || options->repair)
        return CHEX_ERR_WRITE;
    status = store_probe(&r->folder, &r->c->plan, options, &r->c->resumed, &why);
    if (status == CHEX_OK && r->c->resumed.complete)
        return CHEX_OK;
    r->c->resumed = (struct store_state){0};
    if (status != CHEX_ERR_DAMAGED)
        return CHEX_ERR_WRITE;
    *err = why;
    return status;
}

/*
 * Open a complete data set again if some of its rejects are readable now.  A part must not do this, because other parts
 * may use the data set at the same time.
 */
static enum chex_status
retry(struct convert_run *r, struct store_options *options, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (r->c->resumed.rejects > 0)
        status = convert_probe_rejects(r->c, &r->folder, err);
    if (status != CHEX_OK || r->c->retried == 0)
        return status;
    options->repair = true;
    return store_prepare(&r->folder, &r->c->plan, options, &r->c->resumed, err);
}

/* Syncing thousands of files takes long.  Poll the ranks meanwhile, so that they know that this rank is alive. */
static enum chex_status
write_indexes(struct convert_run *r, struct chex_error *err)
{
    const struct slot_plan *plan = &r->c->plan;
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && r->c->options->index_dali && i < plan->shard_count; i++) {
        status = dali_index_write(&r->folder, plan->shard[i].name, plan->shard[i].records, plan->layout.stride, err);
        on_wait(r);
    }
    return status;
}

enum chex_status
run_open_output(struct convert_run *r, struct chex_error *err)
{
    const struct convert_options *o = r->c->options;
    struct store_options options = store_options_of(r);
    enum chex_status status = folder_open(o->out, true, &r->folder, err);

    /* A part must not remove the old data set: it could contain the work of other parts. */
    if (part_is_whole(r->part) && r->c->whole_id[0])
        options.replaces = r->c->whole_id;
    if (status == CHEX_OK)
        status = lock_take_part(&r->lock, &r->folder, r->part, o->break_lock, err);
    if (status == CHEX_ERR_WRITE && r->folder.fd >= 0) {
        status = look_without_lock(r, &options, err);
    } else if (status == CHEX_OK) {
        status = store_prepare(&r->folder, &r->c->plan, &options, &r->c->resumed, err);
        r->c->replaced = status == CHEX_OK && r->c->resumed.replaced;
        if (status == CHEX_OK && r->c->resumed.complete && part_is_whole(r->part))
            status = retry(r, &options, err);
    }
    if (status != CHEX_OK || !r->c->resumed.complete)
        return status;
    r->c->counts.rejects = r->c->resumed.rejects;
    return write_indexes(r, err);
}

enum chex_status
run_close_output(struct convert_run *r, enum chex_status status, struct chex_error *err)
{
    enum chex_status dropped;

    store_free(r->store);
    dropped = lock_drop(&r->lock, status == CHEX_OK ? err : NULL);
    folder_close(&r->folder);
    return status == CHEX_OK ? dropped : status;
}

enum chex_status
run_resume(struct convert_run *r, struct chex_error *err)
{
    struct store_options options = store_options_of(r);
    struct convert *c = r->c;
    enum chex_status status = store_open(&r->folder, &c->plan, &options, &r->store, &c->resumed, err);

    if (status != CHEX_OK)
        return status;
    c->counts.images = c->resumed.images;
    c->counts.resumed = c->resumed.images_done + c->resumed.slots_full;
    r->needed = store_space_needed(r->store);
    return CHEX_OK;
}

static enum chex_status
check_space(const struct convert_run *r, struct chex_error *err)
{
    const char *out = r->c->options->out;
    uint64_t there = convert_free_space(out);
    char a[FORMAT_TEXT], b[FORMAT_TEXT];

    if (there == 0 || r->needed <= there)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_WRITE, "'%s' needs %s more, %s are free", out,
                     format_bytes_compared(r->needed, there, a), format_bytes_compared(there, r->needed, b));
}

enum chex_status
run_begin(struct convert_run *r, struct chex_error *err)
{
    enum chex_status status = check_space(r, err);

    if (status == CHEX_OK && is_reporting(r) && r->watch->begin)
        r->watch->begin(r->watch->context, r->c);
    return status;
}

/* ---- working -------------------------------------------------------------------------------------------------- */

/*
 * A reject may complete a shard, and writing that shard may fail.  Then read its images again, and reject the missing
 * ones again.
 */
static enum chex_status
reject_missing(struct convert_run *r, struct chex_error *err)
{
    struct convert_watch watch = watch_of(r);
    enum chex_status status = convert_reject_missing(r->c, r->store, &watch, err);

    if (status == CHEX_OK)
        status = convert_fill(r->c, r->store, &watch, true, err);
    return status == CHEX_OK ? convert_reject_missing(r->c, r->store, &watch, err) : status;
}

/* Handle images that are in no input: fail, or reject them if that is allowed. */
static enum chex_status
handle_missing(struct convert_run *r, struct chex_error *err)
{
    /* The list of missing images describes the whole data set: a part does not write it. */
    bool lists = part_is_whole(r->part);
    struct convert *c = r->c;
    enum chex_status status;

    /* Without archives nothing can be missing: convert_prepare() has compared the folders with the plan. */
    if (c->source.archive_count == 0)
        return lists ? folder_remove(&r->folder, STORE_MISSING_NAME, err) : CHEX_OK;
    convert_find_missing(c, r->store);
    status = convert_evaluate_missing(c, &r->folder, lists, c->counts.rejects, err);
    return status == CHEX_OK ? reject_missing(r, err) : status;
}

static void
look_for_others(struct convert_run *r)
{
    size_t i;

    for (i = 0; i < r->c->plan.shard_count; i++) {
        if (!store_differs(r->store, i))
            continue;
        r->c->counts.shards_other++;
        if (r->watch->differs)
            r->watch->differs(r->watch->context, r->c->plan.shard[i].name);
    }
}

enum chex_status
run_read_inputs(struct convert_run *r, struct chex_error *err)
{
    struct convert_watch watch = watch_of(r);
    bool all_there = r->c->resumed.images_done == r->c->resumed.images;

    if (r->publishing) {
        watch.reject = NULL; /* the image's rank has reported it; rank 0 tries the image again, like any later run */
        if (!all_there)
            convert_forget_archives(r->c);
    }
    /* If all images are in their slots, only rewrite: rank 0 has read all archives for its own part. */
    return convert_fill(r->c, r->store, &watch, r->publishing && all_there, err);
}

/*
 * Fill the slots from all inputs, then handle missing images; only a process with a whole data set or a --part does
 * this.
 */
static enum chex_status
fill(struct convert_run *r, struct chex_error *err)
{
    enum chex_status status = run_read_inputs(r, err);

    if (status == CHEX_OK)
        status = handle_missing(r, err);
    look_for_others(r);
    return status;
}

static enum chex_status
publish(struct convert_run *r, struct chex_error *err)
{
    enum chex_status status = store_finish(r->store, err);

    if (status == CHEX_OK)
        status = lock_check(&r->lock, err);
    if (status == CHEX_OK)
        status = write_indexes(r, err);
    return status == CHEX_OK ? convert_publish(r->c, r->store, err) : status;
}

enum chex_status
run_all(struct convert_run *r, struct chex_error *err)
{
    enum chex_status status = run_resume(r, err);

    if (status == CHEX_OK)
        status = run_begin(r, err);
    if (status == CHEX_OK)
        status = fill(r, err);
    if (r->store && !part_is_whole(r->part))
        convert_count_part(r->c, r->store);
    return status == CHEX_OK && part_is_whole(r->part) ? publish(r, err) : status;
}
