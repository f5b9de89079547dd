/*
 * fold.h - cross-validation on the shards of one data set: --fold K/N
 *
 * The images of the splits train and val are divided again, into N folds of whole patients.  Fold K validates with the
 * patients for which the first 8 bytes, big-endian, of SHA-256("chex-fold:PATIENT") modulo N are K - 1, and trains on
 * all others.  So each image of the two splits is in val in exactly one of the N folds.  The text has no seed, so runs
 * with different seeds have the same folds.  Python's hashlib can compute it.
 *
 *     fold_new(ds, train, val, &choice, false, &fold, &err);   reads the records, except their pixels
 *     fold_apply(fold, ds);                                    from now on ds describes the fold
 *     fold->samples[FOLD_TRAIN]                                its images
 *     chex_dataset_close(ds); fold_free(fold);
 *
 * Images of both parts are in the shards of both splits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_FOLD_H
#define CHEX_TRAIN_FOLD_H

#include "base/memory.h"
#include "base/sha256.h"
#include "data/order.h"

#define FOLD_MAX  100
#define FOLD_TEXT 16 /* "100/100", with room to notice a longer text */

struct fold_choice {
    unsigned index, count; /* index from 0; the text has index + 1 */
};

/* Parse "3/5".  CHEX_ERR_USAGE: "takes K/N, such as 3/5 with ..., not 'x'" */
enum chex_status fold_parse(const char *text, struct fold_choice *out, struct chex_error *err);

/* Returns the fold of a patient, from 0, of `count` folds; d is any digest, which it changes. */
unsigned fold_of_patient(struct digest *d, struct chex_bytes patient, unsigned count);

enum fold_part { FOLD_TRAIN, FOLD_VALIDATION, FOLD_PARTS };

struct fold {
    struct fold_choice choice;
    unsigned split[FOLD_PARTS];         /* of the data set: train and val */
    struct samples samples[FOLD_PARTS]; /* in the order of the shards */
    struct samples unreadable;          /* with skip_bad: damaged records, which are in no part */
    uint64_t patients[FOLD_PARTS];
    uint64_t positives[FOLD_PARTS][CHEX_FINDINGS_MAX], known[FOLD_PARTS][CHEX_FINDINGS_MAX];
    char members[FOLD_PARTS][DIGEST_HEX]; /* SHA-256 of the names, sorted, each followed by a newline */
    char *rule;                           /* "official, fold 3/5" */
    struct arena strings;
};

/*
 * Divide the splits `train` and `val`.  skip_bad: leave out records without a readable patient; otherwise the first one
 * is an error.  Free *out with fold_free(), also after a failure.
 * CHEX_ERR_USAGE a part without images; statuses of shard_scan() and of records, CHEX_ERR_MEMORY
 */
enum chex_status fold_new(const struct chex_dataset *ds, unsigned train, unsigned val, const struct fold_choice *choice,
                          bool skip_bad, struct fold **out, struct chex_error *err);
/*
 * Change the description of both splits in memory: counts, labels and hash of the members become those of the fold, and
 * the rule of the split names it.  Names and shards stay, so samples_list() must not be called for them any more.  The
 * fold must outlive ds.
 */
void fold_apply(struct fold *f, struct chex_dataset *ds);
void fold_free(struct fold *f); /* NULL is allowed */

#endif
