/*
 * entry_decode.h - decodes the images of queue entries, and shrinks them to the images of a data set
 *
 * Conversion and prediction use these functions, so a network sees the same pixels in both.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_ENTRY_DECODE_H
#define CHEX_LIB_ENTRY_DECODE_H

#include "base/queue.h"
#include "image/decode.h"
#include "image/resample.h"

/* The most images that a thread decodes together. */
#define ENTRIES_TOGETHER 2

/*
 * Decode up to ENTRIES_TOGETHER entries, each with its own decoder and into its own image.  job[i] has the result of
 * entry i: the error of an entry that was not read, or of decode_image().  An entry with pixels is not decoded.
 */
void entries_decode(struct queue_entry *const *e, unsigned count, const struct decode_limits *limits,
                    struct decoder *decoder, struct image *image, struct decode_job *job);

/*
 * Write side x side pixels to out: those of the decoded image, or those of the entry.  The pixels of an entry are
 * shrunk by `method` if they are larger, and otherwise copied.  The status of the job is CHEX_OK.
 * Errors of resampler_run()
 */
enum chex_status entry_shrink(const struct queue_entry *e, const struct decode_job *job, struct resampler *resampler,
                              enum resample_method method, uint32_t side, uint8_t *out, struct chex_error *err);

#endif
