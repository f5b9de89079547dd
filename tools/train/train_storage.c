/*
 * train_storage.c - see train_storage.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_storage.h"

#include "base/json.h"
#include "common/shell_word.h"
#include "common/wrap.h"
#include "data/staging.h"
#include "io/disk_reads.h"

#include <math.h>
#include <string.h>

#define COLD         0.9 /* least share of the bytes from the disk of a cold measurement */
#define ENOUGH_STEPS 10  /* more than are read ahead */

/* ---- text -------------------------------------------------------------------------------------------------------- */

void
train_storage_progress(void *context, const struct trainer *t, uint64_t done, uint64_t of)
{
    struct train_report *r = context;
    char text[128], images[FORMAT_TEXT], all[FORMAT_TEXT];

    (void)t;
    if (!progress_line_due(&r->line))
        return;
    snprintf(text, sizeof(text), "read     %.0f %%  %s of %s images", of > 0 ? 100 * (double)done / (double)of : 100,
             format_count(done, images), format_count(of, all));
    progress_line_update(&r->line, text);
}

static double
per_second(double amount, const struct trainer_storage *s)
{
    return s->seconds > 0 ? amount / s->seconds : 0;
}

/* Without a wait, fewer steps may have had all of their images from what was read ahead. */
static bool
is_judged(const struct trainer_storage *s)
{
    return s->ranks_waited > 0 || s->steps >= ENOUGH_STEPS;
}

/* Returns how many GPUs of this rate get all of their images. */
static unsigned
gpus_fed(const struct trainer_storage *s, double rate)
{
    if (s->ranks_waited == 0)
        return (unsigned)s->ranks;
    return (unsigned)fmin(per_second((double)s->images, s) / rate, s->ranks);
}

static void
print_read(const struct trainer_storage *s)
{
    char text[FORMAT_THINGS], rate[FORMAT_TEXT];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "read     %s", format_things(s->images, "image", text));
    wrap_put(&w, " ", "in %.1f s", s->seconds);
    wrap_put(&w, ": ", "%s img/s", train_report_rate(per_second((double)s->images, s), rate));
    wrap_put(&w, ", ", "%s MB/s", train_report_rate(per_second((double)s->bytes / 1e6, s), rate));
    wrap_put(&w, ", ", "%.2f cores used", per_second(s->cpu, s));
    wrap_put(&w, " ", "(%.1f us of CPU time an image)", s->images > 0 ? 1e6 * s->cpu / (double)s->images : 0);
    wrap_put(&w, ", ", "the first images after %.2f s", s->first);
    wrap_end(&w);
}

/* Prints a command that drops the files that were read from the page cache. */
static void
print_drop(const struct trainer *t)
{
    const struct trainer_options *o = trainer_options(t);
    char word[SHELL_WORD], copy[STAGING_NAME] = "";
    struct trainer_facts f;

    trainer_facts(t, &f);
    if (o->stage)
        staging_name(f.ds, copy);
    wrap_line(stderr, "", "for cold figures, drop the shards from the page cache of each node first:");
    fprintf(stderr, "         for f in %s%s%s/*.tfrecord-*; do dd if=\"$f\" iflag=nocache count=0 status=none; done\n",
            shell_word(relative_path(o->stage ? o->stage : o->data), word), o->stage ? "/" : "", copy);
}

static void
print_source(const struct trainer_storage *s, const struct trainer *t)
{
    double share = disk_share(s->disk_known, s->disk_bytes, s->bytes);
    char bytes[FORMAT_TEXT];
    struct wrap w = {.out = stderr};

    if (share < 0) {
        wrap_line(stderr, "source", "the kernel does not say what came from the page cache");
        return;
    }
    wrap_put(&w, "", "source   %.0f %% of %s came from a disk", 100 * share, format_bytes(s->bytes, bytes));
    if (share < COLD)
        wrap_put(&w, "; ", "the rest from the page cache, or from a network file system that is not counted");
    wrap_end(&w);
    if (share < COLD)
        print_drop(t);
}

static void
print_wait(const struct trainer_storage *s)
{
    char ranks[FORMAT_THINGS];

    if (s->ranks_waited == 0)
        wrap_line(stderr, "wait", "no rank waited for images (at most %.1f %% of its time)", 100 * s->waited_most);
    else
        wrap_line(stderr, "wait", "%d of %s waited for images; the most %.1f %% of its time", s->ranks_waited,
                  format_things((unsigned)s->ranks, "rank", ranks), 100 * s->waited_most);
}

static void
print_verdict(const struct trainer_storage *s, double rate)
{
    double share = disk_share(s->disk_known, s->disk_bytes, s->bytes);
    const char *who = share >= 0 && share < COLD ? "this file system with its page cache" : "this file system";
    char each[FORMAT_TEXT], all[FORMAT_TEXT], gpus[FORMAT_THINGS];

    if (rate <= 0)
        wrap_line(stderr, "done", "%s feeds %s img/s", who, train_report_rate(per_second((double)s->images, s), all));
    else if (!is_judged(s))
        wrap_line(stderr, "done", "too short to say how many GPUs %s feeds: %llu of at least %d steps", who,
                  (unsigned long long)s->steps, ENOUGH_STEPS);
    else if (s->ranks_waited == 0)
        wrap_line(stderr, "done", "%s feeds %s of %s img/s; more ranks show whether it feeds more", who,
                  format_things(gpus_fed(s, rate), "GPU", gpus), train_report_rate(rate, each));
    else
        wrap_line(stderr, "done", "%s feeds %s of %s img/s: all ranks together got %s img/s", who,
                  format_things(gpus_fed(s, rate), "GPU", gpus), train_report_rate(rate, each),
                  train_report_rate(per_second((double)s->images, s), all));
}

void
train_storage_report(const struct train_report *r, const struct trainer *t)
{
    const struct trainer_storage *s = &r->storage;
    double rate = trainer_options(t)->rate;

    print_read(s);
    print_source(s, t);
    if (rate > 0)
        print_wait(s);
    print_verdict(s, rate);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

json_t *
train_storage_json(const struct train_report *r, const struct trainer *t)
{
    const struct trainer_storage *s = &r->storage;
    double rate = r->cli->train.rate;
    struct trainer_facts f;
    json_t *object;

    if (!t || s->ranks == 0)
        return json_null();
    trainer_facts(t, &f);
    object = json_pack("{s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:f,s:f,s:f,s:f,s:f,s:f}", "dataset_id",
                       chex_dataset_info(f.ds)->id, "ranks", s->ranks, "global_batch", count_json(f.global_batch),
                       "steps", count_json(s->steps), "images", count_json(s->images), "bytes", count_json(s->bytes),
                       "disk_bytes", s->disk_known ? count_json(s->disk_bytes) : json_null(), "seconds", s->seconds,
                       "first_seconds", s->first, "cpu_seconds", s->cpu, "images_per_second",
                       per_second((double)s->images, s), "bytes_per_second", per_second((double)s->bytes, s), "cores",
                       per_second(s->cpu, s));
    (void)json_object_set_new(object, "order", json_string(s->order));
    (void)json_object_set_new(object, "rate", rate > 0 ? json_real(rate) : json_null());
    (void)json_object_set_new(object, "wait_seconds", rate > 0 ? json_real(s->waited) : json_null());
    (void)json_object_set_new(object, "wait_share_most", rate > 0 ? json_real(s->waited_most) : json_null());
    (void)json_object_set_new(object, "ranks_waited", rate > 0 ? json_integer(s->ranks_waited) : json_null());
    (void)json_object_set_new(object, "gpus", rate > 0 && is_judged(s) ? json_integer(gpus_fed(s, rate)) : json_null());
    return object;
}
