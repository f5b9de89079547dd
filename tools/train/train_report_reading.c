/*
 * train_report_reading.c - prints where the images come from and how they change; see train_report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_report.h"

#include "common/wrap.h"

#include <stdio.h>

void
train_report_reading(const struct trainer_facts *f, const struct trainer_options *o)
{
    const struct trainer_reading *reading = &f->reading;
    char text[FORMAT_TEXT], shards[FORMAT_THINGS], stage[PRINTABLE_TEXT];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "images   %s%s %s", f->validation < 0 || o->storage_check ? "" : "train and val, ",
             format_bytes(reading->size, text),
             reading->on_device ? "kept on the device"
             : reading->kept    ? "kept in memory"
                                : "read in every epoch");
    if (reading->available < UINT64_MAX && !reading->on_device) /* free memory of the machine */
        wrap_put(&w, " ", "(%s free)", format_bytes(reading->available, text));
    if (o->stage)
        wrap_put(&w, ", ", "from a copy in %s", printable_text(o->stage, stage));
    if (reading->window == 0)
        wrap_put(&w, "; ", "shuffled as a whole");
    else
        wrap_put(&w, "; ", "shuffled by windows of %s of %s", format_count(reading->window, text),
                 format_things(reading->shards, "shard", shards));
    wrap_end(&w);
}

void
train_report_augmentation(const struct trainer_options *o)
{
    struct wrap w = {.out = stderr};

    if (o->rotate == 0 && o->brightness == 0 && o->mixup == 0)
        return;
    wrap_put(&w, "", "augment  %s", augment_names[o->augment]);
    if (o->rotate > 0)
        wrap_put(&w, ", ", "rotated by up to %g degrees", o->rotate);
    if (o->brightness > 0)
        wrap_put(&w, ", ", "brightness %g to %g", 1 - o->brightness, 1 + o->brightness);
    if (o->mixup > 0)
        wrap_put(&w, ", ", "mixed in pairs by Beta(%g, %g)", o->mixup, o->mixup);
    wrap_end(&w);
}

void
train_report_check(const struct trainer_facts *f, const struct trainer_options *o)
{
    const struct chex_split_info *s = chex_dataset_split(f->ds, (unsigned)f->train);
    char n[FORMAT_THINGS];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "data     %s", chex_dataset_info(f->ds)->id);
    wrap_put(&w, ", ", "split %s of %s", s->name, format_things(s->image_count, "image", n));
    if (f->images < s->image_count)
        wrap_put(&w, ", ", "of these %s", format_count(f->images, n));
    wrap_end(&w);
    if (o->rate > 0)
        wrap_line(stderr, "rate", "each rank uses %g img/s and computes nothing", o->rate);
    else
        wrap_line(stderr, "rate", "each rank reads as fast as it can and computes nothing");
}

void
train_report_staging(void *context, const struct trainer *t, uint64_t done, uint64_t of)
{
    struct train_report *r = context;
    char text[128], bytes[FORMAT_TEXT], all[FORMAT_TEXT];

    if (!progress_line_due(&r->line))
        return;
    snprintf(text, sizeof(text), "stage    %.40s: %.0f %% of %s, %s", trainer_options(t)->stage,
             of > 0 ? 100 * (double)done / (double)of : 0, format_bytes(of, all), format_bytes(done, bytes));
    progress_line_update(&r->line, text);
}
