/*
 * convert_profile.c - see convert_profile.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_profile.h"

#include "base/json.h"
#include "base/number_format.h"
#include "common/table_writer.h"
#include "common/wrap.h"
#include "convert/convert_report.h"
#include "io/disk_reads.h"

#include <math.h>
#include <string.h>

#define IMAGES    1000 /* default of --limit */
#define MOST_RUNS 16   /* 1, 2, 4 ... 1024, and the largest number */
#define BUSY      0.8  /* least share of their cores that threads use on a free machine */
#define COLD      0.1  /* times of runs whose shares of bytes from a disk differ by more are not comparable */

static const char *const stage_names[PROFILE_STAGES] = {"read", "inflate", "unfilter", "resize", "record"};

/* The runs so far; the first one may have one thread. */
struct runs {
    struct convert_profile run[MOST_RUNS];
    size_t count;
};

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* Measure 1, 2, 4 ... threads from `fewest` on, and then the largest number. */
static enum chex_status
measure(struct convert_cli *cli, const struct cli_common *common, struct convert *c, struct runs *r,
        struct chex_error *err)
{
    const struct convert_watch watch = {.stop = cli->convert.stop};
    unsigned most = common->threads, threads = common->fewest > 0 ? common->fewest : most;
    size_t images = cli->limit > 0 ? (size_t)cli->limit : IMAGES;
    enum chex_status status = CHEX_OK;

    for (; status == CHEX_OK && threads <= most; threads = threads < most && threads * 2 > most ? most : threads * 2) {
        cli->convert.threads = threads;
        status = convert_profile(c, images, &watch, &r->run[r->count], err);
        r->count += status == CHEX_OK;
    }
    return status;
}

static double
per_image(double seconds, const struct convert_profile *p)
{
    return seconds / (double)p->images;
}

/* Returns the time for an image with one thread, divided by that of this run; NaN if one thread was not measured. */
static double
speedup(const struct runs *r, const struct convert_profile *p)
{
    const struct convert_profile *one = &r->run[0];

    return one->threads == 1 ? per_image(one->seconds, one) / per_image(p->seconds, p) : NAN;
}

/* Returns the CPU seconds outside all stages: starting and ending threads, the queue. */
static double
other_seconds(const struct convert_profile *p)
{
    double left = p->cpu;
    int i;

    for (i = 0; i < PROFILE_STAGES; i++)
        left -= p->stage[i];
    return left > 0 ? left : 0;
}

/* Returns the core-hours for all images of the plan, by the CPU time of the run with the most threads. */
static double
core_hours(const struct runs *r, const struct convert *c)
{
    const struct convert_profile *last = &r->run[r->count - 1];

    return per_image(last->cpu, last) * (double)c->plan.image_count / 3600;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

#define COLUMN(text, wide, figures)                                                  \
    {                                                                                \
        .name = text, .heading = text, .width = wide, .digits = figures, .none = "-" \
    }

static void
print_table(const struct runs *r)
{
    static const struct table_column columns[] = {
        COLUMN("threads", 7, 4),  COLUMN("seconds", 7, 3), COLUMN("img/s", 7, 5),  COLUMN("speed-up", 8, 3),
        COLUMN("effic.", 6, 3),   COLUMN("cores", 5, 3),   COLUMN("read", 7, 3),   COLUMN("inflate", 7, 3),
        COLUMN("unfilter", 8, 3), COLUMN("resize", 7, 3),  COLUMN("record", 7, 3), COLUMN("other", 7, 3),
        COLUMN("all", 7, 3),      {.name = NULL},
    };
    struct table_writer t = {.format = TABLE_TEXT, .column = columns};
    size_t i;
    int k;

    printf("%47sCPU time, ms an image:\n", "");
    table_begin(&t);
    for (i = 0; i < r->count; i++) {
        const struct convert_profile *p = &r->run[i];
        double times = speedup(r, p);
        struct cell cell[6 + PROFILE_STAGES + 2] = {
            cell_count(p->threads), cell_number(p->seconds),         cell_number(round((double)p->images / p->seconds)),
            cell_number(times),     cell_number(times / p->threads), cell_number(p->cpu / p->seconds)};

        for (k = 0; k < PROFILE_STAGES; k++)
            cell[6 + k] = cell_number(1e3 * per_image(p->stage[k], p));
        cell[6 + PROFILE_STAGES] = cell_number(1e3 * per_image(other_seconds(p), p));
        cell[7 + PROFILE_STAGES] = cell_number(1e3 * per_image(p->cpu, p));
        table_row(&t, cell);
    }
}

/* A run that filled the page cache cannot be compared with later ones. */
static void
print_source(const struct runs *r)
{
    const struct convert_profile *a = r->run, *b = &r->run[r->count - 1];
    double first = disk_share(a->disk_known, a->disk_bytes, a->bytes);
    double last = disk_share(b->disk_known, b->disk_bytes, b->bytes);

    if (first < 0 || last < 0)
        wrap_line(stderr, "source", "the kernel does not say what came from the page cache");
    else if (fabs(first - last) > COLD)
        wrap_line(stderr, "source",
                  "the first run read %.0f %% from a disk, the last one %.0f %%: repeat the command to compare them",
                  100 * first, 100 * last);
    else
        wrap_line(stderr, "source", "%.0f %% from a disk, the rest from the page cache", 100 * last);
}

/* Report threads that had less than their cores: then the speed-up says little. */
static void
print_busy(const struct runs *r)
{
    const struct convert_profile *p, *worst = NULL;
    size_t i;

    for (i = 0; i < r->count; i++) {
        p = &r->run[i];
        if (p->cpu / p->seconds < BUSY * p->threads &&
            (!worst || p->cpu / p->seconds / p->threads < worst->cpu / worst->seconds / worst->threads))
            worst = p;
    }
    if (worst)
        wrap_line(stderr, "busy",
                  "%u thread%s had %.0f %% of their cores: other processes run, there are fewer cores, or the images "
                  "come too slowly; so speed-up and efficiency are not those of a free machine",
                  worst->threads, worst->threads == 1 ? "" : "s", 100 * worst->cpu / worst->seconds / worst->threads);
}

static void
print_advice(const struct runs *r, const struct convert *c)
{
    const struct convert_profile *last = &r->run[r->count - 1];
    double hours = core_hours(r, c);
    char images[FORMAT_THINGS], cores[FORMAT_THINGS], alone[FORMAT_TEXT], n[FORMAT_THINGS];
    struct wrap w = {.out = stderr};

    if (last->rejects > 0)
        wrap_line(stderr, "", "%s of %s cannot be used", format_count(last->rejects, cores),
                  format_things(last->images, "measured image", n));
    wrap_put(&w, "", "done     %s in 1 hour need %s", format_things(c->plan.image_count, "image", images),
             format_things((uint64_t)ceil(hours), "core", cores));
    wrap_put(&w, ": ", "%.3g core-hours", hours);
    wrap_put(&w, ", ", "%.3g ms of CPU time an image", 1e3 * per_image(last->cpu, last));
    wrap_put(&w, ", ", "%s with one core", format_seconds(3600 * hours, alone));
    wrap_end(&w);
    wrap_line(stderr, "", "nothing was written: in that time, the disk of the shards must take %s",
              format_bytes(plan_size(&c->plan), alone));
}

static json_t *
profile_json(const struct runs *r, const struct convert *c)
{
    json_t *list = json_array(), *stages, *one;
    size_t i;
    int k;

    if (r->count == 0) {
        json_decref(list);
        return json_null();
    }
    for (i = 0; i < r->count; i++) {
        const struct convert_profile *p = &r->run[i];

        stages = json_object();
        for (k = 0; k < PROFILE_STAGES; k++)
            json_object_set_new(stages, stage_names[k], json_real(p->stage[k]));
        json_object_set_new(stages, "other", json_real(other_seconds(p)));
        one = json_pack("{s:i,s:o,s:o,s:o,s:o,s:f,s:f,s:o,s:o,s:o}", "threads", (int)p->threads, "images",
                        count_json(p->images), "rejects", count_json(p->rejects), "bytes", count_json(p->bytes),
                        "disk_bytes", p->disk_known ? count_json(p->disk_bytes) : json_null(), "seconds", p->seconds,
                        "cpu_seconds", p->cpu, "speedup", real_json(speedup(r, p)), "efficiency",
                        real_json(speedup(r, p) / p->threads), "stages", stages);
        json_array_append_new(list, one);
    }
    return json_pack("{s:o,s:f,s:o}", "runs", list, "core_hours", core_hours(r, c), "cores_for_an_hour",
                     count_json((uint64_t)ceil(core_hours(r, c))));
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

int
convert_profile_command(struct convert_cli *cli, const struct cli_common *common, struct convert *c,
                        enum chex_status status, struct chex_error *err)
{
    struct runs r = {.count = 0};
    int code = EXIT_GOOD;

    if (status == CHEX_OK && collective_size(c->ranks) > 1)
        status = error_set(err, CHEX_ERR_USAGE, "--profile is for one process: started as one of %d ranks",
                           collective_size(c->ranks));
    cli->convert.plan_only = true; /* missing images are left out */
    if (status == CHEX_OK)
        status = convert_prepare(&cli->convert, c, err);
    if (status == CHEX_OK)
        status = measure(cli, common, c, &r, err);
    convert_cli_suggest(cli, err);
    if (collective_reports_errors(c->ranks)) {
        if (r.count > 0 && !common->json)
            print_table(&r);
        if (r.count > 0 && !common->quiet) {
            print_source(&r);
            print_busy(&r);
            print_advice(&r, c);
        }
        if (status != CHEX_OK)
            code = cli_error(&convert_program, common, err);
        if (common->json)
            report_json(c, status == CHEX_OK ? NULL : err, code, false, "profile", profile_json(&r, c));
    }
    convert_release(c);
    return code;
}
