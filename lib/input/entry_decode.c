/*
 * entry_decode.c - see entry_decode.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/entry_decode.h"

void
entries_decode(struct queue_entry *const *e, unsigned count, const struct decode_limits *limits,
               struct decoder *decoder, struct image *image, struct decode_job *job)
{
    unsigned i, encoded = 0;

    for (i = 0; i < count; i++) {
        job[i] = (struct decode_job){.decoder = &decoder[i],
                                     .file = {e[i]->bytes.data, e[i]->bytes.size},
                                     .out = &image[i],
                                     .status = e[i]->reason.status,
                                     .err = e[i]->reason};
        encoded += job[i].status == CHEX_OK && e[i]->width == 0;
    }
    if (encoded == ENTRIES_TOGETHER) {
        decode_two(job, limits);
        return;
    }
    for (i = 0; i < count; i++) {
        struct decode_job *j = &job[i];

        if (j->status == CHEX_OK && e[i]->width == 0)
            j->status = decode_image(j->decoder, j->file.data, j->file.size, limits, j->out, &j->traits, &j->err);
    }
}

enum chex_status
entry_shrink(const struct queue_entry *e, const struct decode_job *job, struct resampler *resampler,
             enum resample_method method, uint32_t side, uint8_t *out, struct chex_error *err)
{
    const struct image stored = {.width = e->width, .height = e->height, .stride = e->width, .data = e->bytes.data};

    if (e->width == 0)
        return resampler_run(resampler, method, job->out, side, side, out, err);
    return resampler_run(resampler, e->width > side ? method : RESAMPLE_NONE, &stored, side, side, out, err);
}
