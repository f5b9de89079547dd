/*
 * inflate.h - inflates a zlib stream of known size into one buffer (RFC 1950, RFC 1951)
 *
 * It accepts only streams that zlib also accepts.  If it refuses a stream, the caller tries zlib.  It also refuses
 * streams of many blocks with almost no output, so the sizes of input and output bound its time.  ISA-L is as fast, but
 * it accepts incomplete Huffman codes, which zlib and therefore libpng refuse.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_INFLATE_H
#define CHEX_LIB_INFLATE_H

#include "base/error.h"

/*
 * The loops check their bounds once per iteration, or once per INFLATER_UNCHECKED of two streams, so they may read and
 * write this many bytes after the end of the input and output.  They do not use these bytes.  An iteration reads at
 * most 14 bytes and writes at most 258, the longest match; the loads and stores of the last reach 16 bytes further.
 */
#define INFLATER_UNCHECKED 4
#define INFLATER_IN_SLACK  96
#define INFLATER_OUT_SLACK 1536

struct inflater; /* working memory; one per thread */

/* An implementation, from the table in inflate_private.h.  All give the same bytes and return values. */
struct inflater_kind;
const struct inflater_kind *inflater_best(void); /* the first that this CPU supports */

struct inflater *inflater_new(const struct inflater_kind *kind); /* NULL when out of memory */
void inflater_free(struct inflater *t);

/*
 * Begin to inflate in[0 .. in_size - 1] into out[0 .. out_size - 1].  inflater_until() continues part by part, so the
 * caller can use a part while it is in the cache.
 * in    in_size bytes, followed by INFLATER_IN_SLACK readable bytes
 * out   out_size bytes, followed by INFLATER_OUT_SLACK writable bytes
 * Neither may move until the end.  Returns false if the input is not a zlib stream with a window of 32 KiB and no
 * dictionary.
 */
bool inflater_begin(struct inflater *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

/* Inflate until out has `wanted` bytes (at most out_size).  Returns false if the stream has a fault. */
bool inflater_until(struct inflater *t, size_t wanted);

/*
 * Inflate two streams in one loop, which takes less time than one after the other.  Returns the number of a stream, 0
 * or 1, for which the caller now calls inflater_until() with its `wanted`, which is above the size of its output: that
 * has little or nothing left to do, or finds the fault.
 */
unsigned inflater_together(struct inflater *const t[2], const size_t wanted[2]);

/* Returns true if the stream has exactly out_size bytes, ends with the input, and its Adler-32 is correct. */
bool inflater_end(struct inflater *t);

/* inflater_begin(), inflater_until(out_size) and inflater_end() in one call. */
bool inflater_exactly(struct inflater *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
