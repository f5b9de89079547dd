/*
 * train_report_model.c - prints the modelled kernels of a step in a dry run; see train_report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_report.h"

#include "common/wrap.h"

#include <stdio.h>
#include <string.h>

#define MB 1e6
#define US 1e-6

/* All launches of one kernel, and their seconds by the resource that limits them. */
#define LIMITS 5
struct kernel_kind {
    const char *name;
    unsigned launches;
    double bytes, seconds;
    struct {
        const char *name;
        double seconds;
    } limit[LIMITS];
};
#define KINDS 96

static struct kernel_kind *
find_kind(struct kernel_kind *kinds, size_t *count, const char *name)
{
    size_t i;

    for (i = 0; i < *count; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    if (*count == KINDS) /* the table is full: add the rest to its last entry */
        return &kinds[KINDS - 1];
    kinds[*count].name = name;
    return &kinds[(*count)++];
}

static void
add_limit(struct kernel_kind *k, const char *name, double seconds)
{
    size_t i = 0;

    while (i + 1 < LIMITS && k->limit[i].name && strcmp(k->limit[i].name, name) != 0)
        i++;
    k->limit[i].name = name;
    k->limit[i].seconds += seconds;
}

/* Returns the resource that limits most of the time of these launches. */
static const char *
limit_of(const struct kernel_kind *k)
{
    size_t i, most = 0;

    for (i = 1; i < LIMITS; i++)
        if (k->limit[i].seconds > k->limit[most].seconds)
            most = i;
    return k->limit[most].name;
}

static void
print_kinds(const struct plan_model *m)
{
    struct kernel_kind kinds[KINDS] = {{.name = NULL}};
    size_t count = 0, i;

    for (i = 0; i < m->count; i++) {
        const struct plan_launch *l = &m->launch[i];
        struct kernel_kind *k = find_kind(kinds, &count, l->kind);

        k->launches += l->times;
        k->bytes += (double)l->times * (double)(l->read + l->written);
        k->seconds += l->times * l->seconds;
        add_limit(k, l->limit, l->times * l->seconds);
    }
    fprintf(stderr, "         %-32s %8s %12s %11s %6s  %s\n", "kernel", "launches", "MB an image", "us an image",
            "time", "limited by");
    for (i = 0; i < count; i++)
        fprintf(stderr, "         %-32s %8u %12.3f %11.3f %4.1f %%  %s\n", kinds[i].name, kinds[i].launches,
                kinds[i].bytes / MB / m->images, kinds[i].seconds / US / m->images, 100 * kinds[i].seconds / m->seconds,
                limit_of(&kinds[i]));
}

static void
print_launches(const struct plan_model *m)
{
    size_t i;

    for (i = 0; i < m->count; i++) {
        const struct plan_launch *l = &m->launch[i];

        fprintf(stderr, "         %s%s: %s; %s; reads %.3f MB, writes %.3f MB; %.1f us by %s\n", l->kernel,
                l->times > 1 ? ", each micro-batch" : "", l->shape, l->tile, (double)l->read / MB,
                (double)l->written / MB, l->seconds / US, l->limit);
    }
}

static void
print_score(const struct plan_model_score *s)
{
    char launches[FORMAT_TEXT], rate[FORMAT_TEXT], images[FORMAT_THINGS];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "         evaluation: %s launches a micro-batch of %s", format_count(s->launches, launches),
             format_things(s->images, "image", images));
    wrap_put(&w, ", ", "%.1f MB an image", (double)s->bytes / MB / s->images);
    wrap_put(&w, ", ", "%s img/s", train_report_rate(s->images / s->seconds, rate));
    wrap_end(&w);
}

void
train_report_model(const struct train_report *r, const struct plan_model *m)
{
    char launches[FORMAT_TEXT], rate[FORMAT_TEXT], images[FORMAT_THINGS];
    struct wrap w = {.out = stderr};

    if (r->common->quiet || m->count == 0 || m->images == 0)
        return;
    wrap_put(&w, "", "kernels  %s launches a step of %s", format_count(m->launches, launches),
             format_things(m->images, "image", images));
    wrap_put(&w, ", ", "%.1f MB an image", (double)m->bytes / MB / m->images);
    wrap_put(&w, ", ", "%s img/s", train_report_rate(m->images / m->seconds, rate));
    wrap_put(&w, " ", "on one %s", m->device);
    wrap_put(&w, ": ", "modelled, not measured");
    wrap_end(&w);
    if (r->common->verbose > 0 && m->score.images > 0)
        print_score(&m->score);
    if (r->common->verbose > 0)
        print_kinds(m);
    if (r->common->verbose > 1)
        print_launches(m);
}

/* ---- sizes of memory --------------------------------------------------------------------------------------------- */

void
train_report_fits(const struct train_report *r)
{
    struct wrap w = {.out = stderr};
    size_t i;

    if (r->common->quiet || r->fits == 0)
        return;
    for (i = 0; i < r->fits; i++) {
        const struct trainer_fit *f = &r->fit[i];

        wrap_put(&w, i == 0 ? "" : "; ", "%s%u GB: %s", i == 0 ? "fit      " : "", f->sold,
                 f->fits ? "fits" : "too small");
        wrap_put(&w, ", ", f->micro_batch > 0 ? "micro-batch up to %s" : "for any micro-batch",
                 COUNT_TEXT(f->micro_batch));
    }
    wrap_put(&w, ": ", "computed, not measured");
    wrap_end(&w);
}

/* ---- several ranks ----------------------------------------------------------------------------------------------- */

static void
print_scale_heading(const struct train_report *r)
{
    const struct scale_machine *machine = &r->scale.machine;
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "scale    1 to %u GPUs, %u on a machine by %s", r->cli->ranks, machine->node_ranks,
             scale_link_name[machine->inside]);
    if (machine->node_ranks < r->cli->ranks)
        wrap_put(&w, ", ", "%u machines by %s", r->cli->nodes, scale_link_name[machine->outside]);
    wrap_put(&w, ": ", "modelled, not measured");
    wrap_put(&w, "; ", "without reading, checkpoints and the bootstrap");
    wrap_end(&w);
    fprintf(stderr, "         %5s %5s %7s %9s %9s %10s %10s %8s\n", "ranks", "nodes", "batch", "ms a step", "img/s",
            "efficiency", "s an epoch", "speed-up");
}

void
train_report_scale(const struct train_report *r)
{
    char batch[FORMAT_TEXT], rate[FORMAT_TEXT];
    size_t i;

    if (r->common->quiet)
        return;
    print_scale_heading(r);
    for (i = 0; i < r->scale.rows; i++) {
        const struct trainer_scale *s = &r->scale.row[i];

        fprintf(stderr, "         %5u %5u %7s %9.2f %9s %8.1f %% %10.2f %8.2f\n", s->ranks, s->nodes,
                format_count(s->global_batch, batch), 1e3 * s->step.total,
                train_report_rate((double)s->global_batch / s->step.total, rate), 100 * s->step_efficiency, s->epoch,
                s->speedup);
    }
}
