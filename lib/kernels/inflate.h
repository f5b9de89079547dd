/*
 * inflate.h - a zlib stream whose size is known, inflated at once (RFC 1950, RFC 1951)
 *
 * Only ever says yes or no, and yes only to streams that zlib takes too; in doubt it says no, and the caller asks zlib.
 * It also says no to many blocks of next to no output: so what it costs is bounded by the two sizes.
 * ISA-L is as fast, but it also takes code sets that are not complete, which zlib and therefore libpng refuse.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_INFLATE_H
#define CHEX_LIB_INFLATE_H

#include "base/error.h"

/*
 * Bytes behind input and output that are read and written, though not used: the loop looks at its bounds
 * once a turn.
 */
#define INFLATE_IN_SLACK  64
#define INFLATE_OUT_SLACK 512

struct inflate_tables; /* scratch; one a thread */

/* An implementation; the table of them is in inflate_private.h.  All give the same bytes and the same answers. */
struct inflate_kind;
const struct inflate_kind *inflate_best(void); /* the first that this CPU supports */

struct inflate_tables *inflate_tables_new(const struct inflate_kind *kind); /* NULL when out of memory */
void inflate_tables_free(struct inflate_tables *t);

/*
 * Inflate in[0 .. in_size - 1] into out[0 .. out_size - 1], part by part, so that what has come can be used while it is
 * in the cache.
 * in    in_size bytes and INFLATE_IN_SLACK readable ones behind them
 * out   out_size bytes and INFLATE_OUT_SLACK writable ones behind them
 * Both stay where they are until the end.  False where it is no zlib stream with a window of 32 KiB and no dictionary.
 */
bool inflate_begin(struct inflate_tables *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

/* Go on until the first `wanted` bytes of out (at most out_size) are there; false where that cannot be. */
bool inflate_until(struct inflate_tables *t, size_t wanted);

/* True where the stream holds exactly out_size bytes and ends with the input, and its Adler-32 is right. */
bool inflate_end(struct inflate_tables *t);

/* All of it at once. */
bool inflate_exactly(struct inflate_tables *t, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
