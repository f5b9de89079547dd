/*
 * train_report_reading.c - what is said of where the images come from; see train_report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train_report.h"

#include <stdio.h>

void
train_report_reading(const struct trainer_facts *f, const struct trainer_options *o)
{
    const struct trainer_reading *reading = &f->reading;
    char size[PROGRESS_TEXT], available[PROGRESS_TEXT], stage[PLAIN_TEXT];

    fprintf(stderr, "images   %s%s %s", f->validation < 0 ? "" : "train and val, ", format_bytes(reading->size, size),
            reading->kept ? "kept in memory" : "read in every epoch");
    if (reading->available < UINT64_MAX)
        fprintf(stderr, " (%s free)", format_bytes(reading->available, available));
    if (o->stage)
        fprintf(stderr, ", from a copy in %s", plain_text(o->stage, stage));
    if (reading->window == 0)
        fprintf(stderr, "; shuffled as a whole\n");
    else
        fprintf(stderr, "; shuffled by windows of %u of %u shards\n", reading->window,
                chex_dataset_split(f->ds, (unsigned)f->train)->shard_count);
}

void
train_report_staging(void *context, const struct trainer *t, uint64_t done, uint64_t of)
{
    struct train_report *r = context;
    char text[128], bytes[PROGRESS_TEXT], all[PROGRESS_TEXT];

    if (!meter_due(&r->meter))
        return;
    snprintf(text, sizeof(text), "stage    %.40s: %.0f %% of %s, %s", trainer_options(t)->stage,
             of > 0 ? 100 * (double)done / (double)of : 0, format_bytes(of, all), format_bytes(done, bytes));
    meter_tick(&r->meter, text);
}
