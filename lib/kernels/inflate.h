/*
 * inflate.h - a zlib stream whose size is known, inflated at once (RFC 1950, RFC 1951)
 *
 * It accepts only streams that zlib accepts too; where it refuses one, the caller asks zlib.  It also refuses many
 * blocks with next to no output: so the two sizes bound its time.  ISA-L is as fast, but it also takes code sets that
 * are not complete, which zlib and therefore libpng refuse.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_INFLATE_H
#define CHEX_LIB_INFLATE_H

#include "base/error.h"

/*
 * Bytes behind input and output that the loop may read and write without using them: it checks its bounds once an
 * iteration.
 */
#define INFLATER_IN_SLACK  64
#define INFLATER_OUT_SLACK 512

struct inflater; /* scratch; one a thread */

/* An implementation; the table of them is in inflate_private.h.  All give the same bytes and the same answers. */
struct inflater_kind;
const struct inflater_kind *inflater_best(void); /* the first that this CPU supports */

struct inflater *inflater_new(const struct inflater_kind *kind); /* NULL when out of memory */
void inflater_free(struct inflater *t);

/*
 * Inflate in[0 .. in_size - 1] into out[0 .. out_size - 1], part by part, so that the caller can use a part while it is
 * in the cache.
 * in    in_size bytes and INFLATER_IN_SLACK readable ones behind them
 * out   out_size bytes and INFLATER_OUT_SLACK writable ones behind them
 * Neither may move until the end.  False where it is no zlib stream with a window of 32 KiB and no dictionary.
 */
bool inflater_begin(struct inflater *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

/* Continue until the first `wanted` bytes of out (at most out_size) are there; false where the stream has a fault. */
bool inflater_until(struct inflater *t, size_t wanted);

/* True where the stream holds exactly out_size bytes and ends with the input, and its Adler-32 is right. */
bool inflater_end(struct inflater *t);

/* All of it at once. */
bool inflater_exactly(struct inflater *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
