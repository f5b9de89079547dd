/*
 * convert_run.c - the phases of a run: lock, resume, fill, finish, publish
 *
 * The same for one process and for a crew: after each phase all agree how it ended.  What rank 0 does alone stands
 * under crew_leads().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_crew.h"
#include "convert/convert_private.h"

#include "base/progress.h"
#include "dataset/dali_index.h"
#include "io/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* On NFS a new name may be seen late by other hosts, if they had asked for it before: so many times 0.2 s. */
#define FOLDER_TRIES 50

struct run {
    struct convert *c;
    struct crew *crew;
    const struct convert_watch *watch;
    struct folder folder;
    struct lock lock;
    struct share share;
    struct store *store;
    uint64_t needed; /* bytes that the unfinished shards of all will take */
    /* Where there is a crew: the lead's progress counts for all. */
    uint64_t done, rejects;
    uint64_t too_many; /* so many rejects, if they are */
    bool begun;        /* watch->begin was called */
};

/* ---- in touch ------------------------------------------------------------------------------------------------- */

static void
on_wait(void *context)
{
    crew_tick(context);
}

/* The lead shows the sum of all; more rejects than allowed are seen by it alone. */
static void
show_progress(struct run *r)
{
    uint64_t done, rejects;

    crew_sum(r->crew, &done, &rejects);
    done += r->done;
    rejects += r->rejects;
    if (rejects > convert_reject_limit(r->c)) {
        r->too_many = rejects;
        crew_stop(r->crew);
    }
    if (r->begun && r->watch->tick)
        r->watch->tick(r->watch->context, r->c, done, rejects);
}

static void
on_idle(void *context)
{
    struct run *r = context;

    if (crew_leads(r->crew))
        show_progress(r);
}

static void
on_tick(void *context, const struct convert *c, uint64_t done, uint64_t rejects)
{
    struct run *r = context;

    (void)c;
    r->done = done;
    r->rejects = rejects;
    crew_progress(r->crew, crew_leads(r->crew) ? done : done - r->c->counts.resumed, rejects);
    if (crew_leads(r->crew))
        show_progress(r);
}

static void
on_reject(void *context, const char *name, const struct chex_error *why)
{
    struct run *r = context;

    if (r->watch->reject)
        r->watch->reject(r->watch->context, name, why);
}

/* Every process reads every archive: the lead says it for all. */
static void
on_damaged(void *context, const char *path, const struct archive_fault *fault)
{
    struct run *r = context;

    if (crew_leads(r->crew) && r->watch->damaged)
        r->watch->damaged(r->watch->context, path, fault);
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static struct store_options
store_options_of(const struct run *r)
{
    const struct convert_options *o = r->c->options;

    return (struct store_options){
        .verify = o->verify,
        .force = o->force,
        .repair = o->repair,
        .share = r->share,
        .uncertain = r->c->preflight.expected > 0,
        .threads = o->threads,
        .tick = on_wait,
        .context = r->crew,
        .stop = r->crew->comm->size > 1 ? &r->crew->stop : r->watch->stop,
    };
}

/*
 * The folder cannot be locked (err says why), since it cannot be written to: that is no error where nothing is to be
 * written, because the data set is complete.  A shard that is damaged is a better reason than the lock.
 */
static enum chex_status
look_without_lock(struct run *r, const struct store_options *options, struct chex_error *err)
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
 * The data set is complete, but images were rejected that can be read now: it is opened again for them.  Not by a part,
 * beside which others look at it too.
 */
static enum chex_status
retry(struct run *r, struct store_options *options, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (r->c->resumed.rejects > 0)
        status = convert_probe_rejects(r->c, &r->folder, err);
    if (status != CHEX_OK || r->c->retried == 0)
        return status;
    options->repair = true;
    return store_prepare(&r->folder, &r->c->plan, options, &r->c->resumed, err);
}

/* The lead, or the one process: the lock, and a folder that is fit. */
static enum chex_status
take_folder(struct run *r, struct chex_error *err)
{
    struct store_options options = store_options_of(r);
    struct share locked = {0};
    enum chex_status status = folder_open(r->c->options->out, true, &r->folder, err);

    if (r->crew->comm->size == 1)
        locked = r->share;
    /* A part would remove what others have begun meanwhile. */
    if (share_is_whole(locked) && r->c->whole_id[0])
        options.replaces = r->c->whole_id;
    if (status == CHEX_OK)
        status = lock_take_share(&r->lock, &r->folder, locked, r->c->options->break_lock, err);
    if (status == CHEX_ERR_WRITE && r->folder.fd >= 0)
        return look_without_lock(r, &options, err);
    if (status == CHEX_OK)
        status = store_prepare(&r->folder, &r->c->plan, &options, &r->c->resumed, err);
    r->c->replaced = status == CHEX_OK && r->c->resumed.replaced;
    return status == CHEX_OK && r->c->resumed.complete && share_is_whole(locked) ? retry(r, &options, err) : status;
}

/* The others: the same folder, which the lock of the lead in it proves. */
static enum chex_status
follow_into_folder(struct run *r, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 200000000};
    const char *path = r->c->options->out;
    enum chex_status status = CHEX_ERR_MISSING;
    int tries;

    for (tries = 0; tries < FOLDER_TRIES; tries++) {
        status = folder_open(path, false, &r->folder, err);
        if (status == CHEX_OK && lock_has_text(&r->folder, r->lock.text))
            return CHEX_OK;
        folder_close(&r->folder);
        r->folder = (struct folder){.fd = -1};
        nanosleep(&pause, NULL);
        crew_tick(r->crew);
    }
    return chex_fail(err, CHEX_ERR_WRITE,
                     "'%s' is not the folder that rank 0 sees: the output must lie on a file system that all share",
                     path);
}

/* Thousands of files take long to sync; the other ranks wait meanwhile and must hear of this one. */
static enum chex_status
write_indexes(struct run *r, struct chex_error *err)
{
    const struct plan *plan = &r->c->plan;
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && r->c->options->index_dali && i < plan->shard_count; i++) {
        status = dali_index_write(&r->folder, plan->shard[i].name, plan->shard[i].records, plan->layout.stride, err);
        crew_tick(r->crew);
    }
    return status;
}

/* Everyone in the folder; c->resumed.complete: there is nothing to do. */
static enum chex_status
enter(struct run *r, struct chex_error *err)
{
    struct buffer word = {0};
    enum chex_status status = CHEX_OK;

    if (crew_leads(r->crew)) {
        status = take_folder(r, err);
        if (status == CHEX_OK && r->c->resumed.complete)
            status = write_indexes(r, err);
        if (status == CHEX_OK)
            status = buffer_append(&word, r->c->resumed.complete ? "c" : "o", 1, err);
        if (status == CHEX_OK)
            status = buffer_append(&word, r->lock.text, strlen(r->lock.text), err);
    }
    status = crew_report(r->crew, status, NULL, err);
    status = crew_verdict(r->crew, status, &word, err);
    if (status == CHEX_OK && !crew_leads(r->crew) && word.size > 1) {
        r->c->resumed.complete = word.data[0] == 'c';
        snprintf(r->lock.text, sizeof(r->lock.text), "%.*s", (int)word.size - 1, (const char *)word.data + 1);
    }
    buffer_release(&word);
    return status;
}

static enum chex_status
check_space(const struct run *r, struct chex_error *err)
{
    const char *out = r->c->options->out;
    uint64_t there = convert_free_space(out);
    char a[PROGRESS_TEXT], b[PROGRESS_TEXT];

    if (there == 0 || r->needed <= there)
        return CHEX_OK;
    return chex_fail(err, CHEX_ERR_WRITE, "'%s' needs %s more, %s are free", out, format_bytes(r->needed, a),
                     format_bytes(there, b));
}

/* Numbers that are summed up over the crew after opening. */
enum { SUMS = 5 };

static void
add_sums(struct run *r, const uint64_t *n)
{
    struct store_state *s = &r->c->resumed;

    s->shards += n[0];
    s->shards_done += n[1];
    s->images_done += n[2];
    s->slots_full += n[3];
    r->needed += n[4];
}

static enum chex_status
add_peer_sums(struct run *r, struct chex_error *err)
{
    int i;

    for (i = 1; i < r->crew->comm->size; i++) {
        struct buffer *b = &r->crew->peer[i].data;
        uint64_t n[SUMS];

        if (buffer_append(b, "", 1, err) != CHEX_OK)
            return CHEX_ERR_MEMORY;
        if (sscanf((const char *)b->data, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &n[0], &n[1],
                   &n[2], &n[3], &n[4]) != SUMS)
            return chex_fail(err, CHEX_ERR_BUG, "rank %d says nothing about its shards", i);
        add_sums(r, n);
    }
    return CHEX_OK;
}

/* Take over what is there; the lead learns how much that is, and looks whether there is room for the rest. */
static enum chex_status
resume(struct run *r, struct chex_error *err)
{
    struct store_options options = store_options_of(r);
    struct convert *c = r->c;
    char text[160] = "";
    struct buffer word = {.data = (uint8_t *)text};
    enum chex_status status = crew_leads(r->crew) ? CHEX_OK : follow_into_folder(r, err);

    if (status == CHEX_OK)
        status = store_open(&r->folder, &c->plan, &options, &r->store, &c->resumed, err);
    if (status == CHEX_OK) {
        const struct store_state *s = &c->resumed;

        r->needed = store_space_needed(r->store);
        word.size = (size_t)snprintf(text, sizeof(text), "%zu %zu %" PRIu64 " %" PRIu64 " %" PRIu64, s->shards,
                                     s->shards_done, s->images_done, s->slots_full, r->needed);
    }
    status = crew_report(r->crew, status, &word, err);
    if (status == CHEX_OK && crew_leads(r->crew))
        status = add_peer_sums(r, err);
    if (r->crew->comm->size == 1 && !share_is_whole(r->share))
        c->counts.images = c->resumed.images;
    c->counts.resumed = c->resumed.images_done + c->resumed.slots_full;
    if (status == CHEX_OK && crew_leads(r->crew))
        status = check_space(r, err);
    if (status == CHEX_OK && crew_leads(r->crew) && r->watch->begin) {
        r->watch->begin(r->watch->context, c);
        r->begun = true;
    }
    return crew_verdict(r->crew, status, NULL, err);
}

/* ---- working -------------------------------------------------------------------------------------------------- */

/* What the work is watched by: the user's functions, or what passes it on to the lead. */
static struct convert_watch
watch_of(struct run *r)
{
    if (r->crew->comm->size == 1)
        return *r->watch;
    return (struct convert_watch){
        .tick = on_tick, .reject = on_reject, .damaged = on_damaged, .context = r, .stop = &r->crew->stop};
}

/*
 * Such a reject may finish a shard, and the disk fail to write that: then its images are read, and these rejected,
 * again.
 */
static enum chex_status
reject_missing(struct run *r, struct chex_error *err)
{
    struct convert_watch watch = watch_of(r);
    enum chex_status status = convert_reject_missing(r->c, r->store, &watch, err);

    if (status == CHEX_OK)
        status = convert_fill(r->c, r->store, &watch, true, err);
    return status == CHEX_OK ? convert_reject_missing(r->c, r->store, &watch, err) : status;
}

/* Images that came from no input: the lead evaluates for all, each rejects its own where that is allowed. */
static enum chex_status
handle_missing(struct run *r, enum chex_status status, struct chex_error *err)
{
    struct convert *c = r->c;
    /* The list of what is missing is that of the whole: a part has none. */
    bool lists = crew_leads(r->crew) && (r->crew->comm->size > 1 || share_is_whole(r->share));
    struct buffer names = {0};
    uint64_t done, rejects;
    int i;

    /* Folders were listed before: there nothing can be missing any more. */
    if (c->source.archive_count == 0)
        return status == CHEX_OK && lists ? folder_remove(&r->folder, STORE_MISSING_NAME, err) : status;
    if (status == CHEX_OK)
        status = convert_find_missing(c, r->store, &names, err);
    /* By the last word before the end the lead would count too few. */
    crew_progress_now(r->crew, r->crew->said_done, c->counts.rejects);
    status = crew_report(r->crew, status, &names, err);
    buffer_release(&names);
    if (status == CHEX_OK && crew_leads(r->crew)) {
        crew_sum(r->crew, &done, &rejects);
        for (i = 1; status == CHEX_OK && i < r->crew->comm->size; i++)
            status = convert_add_missing(c, &r->crew->peer[i].data, err);
        if (status == CHEX_OK)
            status = convert_evaluate_missing(c, &r->folder, lists, c->counts.rejects + rejects, err);
    }
    status = crew_verdict(r->crew, status, NULL, err);
    return status == CHEX_OK ? reject_missing(r, err) : status;
}

static void
look_for_others(struct run *r)
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

static enum chex_status
fill(struct run *r, struct chex_error *err)
{
    struct convert_watch watch = watch_of(r);
    enum chex_status status = handle_missing(r, convert_fill(r->c, r->store, &watch, false, err), err);

    look_for_others(r);
    return status;
}

/* The results of the others. */
static enum chex_status
take_results(struct run *r, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    int i, size = r->crew->comm->size;

    for (i = 1; status == CHEX_OK && i < size; i++)
        status = convert_unpack(r->c, r->store, (struct share){(unsigned)i, (unsigned)size}, &r->crew->peer[i].data,
                                err);
    return status;
}

/* More rejects than one process would have gone on with? */
static enum chex_status
check_rejects(const struct run *r, enum chex_status status, struct chex_error *err)
{
    uint64_t rejects = r->too_many;
    size_t i;

    if (status != CHEX_OK && status != CHEX_ERR_STOPPED)
        return status;
    if (status == CHEX_OK)
        for (rejects = i = 0; i < r->c->plan.shard_count; i++)
            rejects += store_results(r->store)[i].reject_count;
    return rejects > convert_reject_limit(r->c) ? convert_fail_rejects(r->c, rejects, err) : status;
}

static enum chex_status
publish(struct run *r, struct chex_error *err)
{
    enum chex_status status = store_finish(r->store, err);

    if (status == CHEX_OK)
        status = lock_check(&r->lock, err);
    if (status == CHEX_OK)
        status = write_indexes(r, err);
    return status == CHEX_OK ? convert_publish(r->c, r->store, err) : status;
}

/* Others close the store before they report, so that nothing of theirs is open when the lead publishes. */
static enum chex_status
report_results(struct run *r, enum chex_status status, struct chex_error *err)
{
    struct buffer results = {0};

    if (!crew_leads(r->crew)) {
        if (status == CHEX_OK)
            status = convert_pack(r->c, r->store, r->share, &results, err);
        store_free(r->store);
        r->store = NULL;
    }
    status = crew_report(r->crew, status, &results, err);
    buffer_release(&results);
    return status;
}

static enum chex_status
work(struct run *r, struct chex_error *err)
{
    enum chex_status status = enter(r, err);

    if (r->c->resumed.complete)
        r->c->counts.rejects = r->c->resumed.rejects;
    if (status != CHEX_OK || r->c->resumed.complete)
        return status;
    status = resume(r, err);
    if (status != CHEX_OK)
        return status;
    status = fill(r, err);
    if (!share_is_whole(r->share) && r->crew->comm->size == 1) {
        convert_count_share(r->c, r->store);
        return status;
    }
    status = report_results(r, status, err);
    if (status == CHEX_OK && crew_leads(r->crew))
        status = take_results(r, err);
    if (crew_leads(r->crew) && r->crew->comm->size > 1)
        status = check_rejects(r, status, err);
    if (status == CHEX_OK && crew_leads(r->crew))
        status = publish(r, err);
    return crew_verdict(r->crew, status, NULL, err);
}

enum chex_status
convert_run(struct convert *c, const struct convert_watch *watch, struct chex_error *err)
{
    double started = progress_clock();
    struct comm alone = comm_self();
    struct crew own;
    struct run r = {.c = c, .crew = c->crew, .watch = watch, .folder = {.fd = -1}, .share = c->options->share};
    enum chex_status status = CHEX_OK, dropped;

    c->running = true;
    if (!r.crew) {
        status = crew_init(&own, &alone, err);
        r.crew = &own;
    }
    if (status == CHEX_OK) {
        if (r.crew->comm->size > 1)
            r.share = (struct share){(unsigned)r.crew->comm->rank, (unsigned)r.crew->comm->size};
        r.crew->user_stop = watch->stop;
        r.crew->idle = on_idle;
        r.crew->context = &r;
        status = work(&r, err);
        r.crew->idle = NULL;
        store_free(r.store);
        dropped = lock_drop(&r.lock, status == CHEX_OK ? err : NULL);
        if (status == CHEX_OK)
            status = dropped;
        folder_close(&r.folder);
    }
    if (r.crew == &own)
        crew_release(&own);
    c->seconds = progress_clock() - started;
    return status;
}
