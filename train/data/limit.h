/*
 * limit.h - a part of the samples of a split, chosen by patient: --limit
 *
 * The patients of a split are ordered by the first 8 bytes, big-endian, of SHA-256("chex-limit:SEED:PATIENT"), with the
 * seed of the run.  Whole patients are taken in this order until the limit is reached.  So the part depends only on the
 * records, the seed and the limit, and is the same for any number of ranks; a larger limit contains a smaller one.
 * Python's hashlib can compute it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_LIMIT_H
#define CHEX_TRAIN_LIMIT_H

#include "data/order.h"

#define LIMIT_TEXT 16 /* longest text, without terminator */

struct sample_limit {
    uint64_t images; /* 0: percent counts */
    double percent;  /* above 0, at most 100 */
};

/* Parse "500" (images) or "10%".  CHEX_ERR_USAGE: "takes a number of images or a percentage such as 10%, not 'x'" */
enum chex_status limit_parse(const char *text, struct sample_limit *out, struct chex_error *err);

/*
 * Reduce the samples of a split, from samples_list(), to whole patients with at least that many images, in the order of
 * before.  Reads every record of the split except its pixels.  skip_bad: also keep the records without a readable
 * patient, so that their reader reports them; otherwise the first one is an error.  Statuses of shard_scan() and of
 * records, CHEX_ERR_MEMORY
 */
enum chex_status samples_limit(const struct chex_dataset *ds, const struct sample_limit *limit, uint64_t seed,
                               bool skip_bad, struct samples *s, struct chex_error *err);

#endif
