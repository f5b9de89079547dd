/*
 * withdraw.h - replaces the images of patients in a data set by padding records (chex-convert --withdraw)
 *
 * A slot of a withdrawn image, and a padding record that copies such an image, gets a copy of another image of its
 * shard with weight 0: of the remaining image number (slot modulo their count).  All other records keep their bytes, so
 * record/slot keeps the id of the first data set.  The data set gets a new id, which depends on its old id and the
 * slots.  The manifest lists the old ids, the numbers of slots and the times.
 *
 * Steps.  After a kill at any moment, the folder has the old data set, or the next call finishes the new one:
 *
 *     1  read and check every record; nothing is changed
 *     2  write the journal (WITHDRAWAL_NAME): the slots, and the new manifest without the hashes of changed shards
 *     3  remove manifest.json: now no reader can open the data set
 *     4  write each changed shard to a temporary file, read it back, rename it
 *     5  write rejects.jsonl without these patients, remove temporary files and journals of earlier conversions, and
 *        the certificate of the split, which is of the data set before
 *     6  write manifest.json, remove the journal
 *
 * No file of ours in the folder, and no temporary file, then contains pixels, labels, names or ids of these patients.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_WITHDRAW_H
#define CHEX_LIB_WITHDRAW_H

#include "dataset/manifest.h"
#include "io/file.h"
#include "labels/patient_ids.h"

#include <stdatomic.h>
#include <time.h>

struct withdraw_options {
    const char *path;     /* of the data set */
    const char *patients; /* an id, or the path of a list with one id per line */
    bool allow_missing;   /* ignore patients that the data set does not have */
    bool dry_run, break_lock;
    unsigned threads;
    time_t now; /* for the manifest */
    /* The calling thread calls it about five times per second; NULL: never.  `what` is "reading" or "writing". */
    void (*tick)(void *context, const char *what, size_t done, size_t shards);
    void *context;
    const atomic_bool *stop; /* NULL: never */
};

struct withdrawn_patient {
    char id[PATIENT_MAX + 1];
    uint64_t images;  /* in the data set */
    uint64_t rejects; /* lines in rejects.jsonl */
};

struct withdrawal {
    char from[CHEX_ID_LENGTH + 1], to[CHEX_ID_LENGTH + 1]; /* ids of the data set before and after; "": no change */
    char time[MANIFEST_TIME];
    uint64_t slots;                       /* images withdrawn */
    uint64_t images_left;                 /* images of the new data set */
    size_t shards;                        /* changed shards */
    size_t linked;                        /* of these, shards with other hard links, which keep the images */
    bool begun;                           /* after a failure: the journal exists, so the next call finishes */
    bool finished;                        /* these are the results of a withdrawal that an earlier call began */
    char finished_id[CHEX_ID_LENGTH + 1]; /* the call first finished a withdrawal of other patients; otherwise "" */
    struct withdrawn_patient *patient;    /* [patient_count], by id */
    size_t patient_count;
    size_t unknown;              /* patients without an image; a rejected image is not in the data set */
    struct folder_names foreign; /* files in the folder that are not part of the data set: they were not searched */
};

/*
 * Withdraw the patients.  With dry_run, only fill *out.  Zero *out before the call; free it with withdraw_release(),
 * also after a failure.
 * CHEX_ERR_USAGE         the data set does not have a patient, or a split would be empty; or the list is not one
 * CHEX_ERR_DAMAGED       a record or shard is damaged; nothing was changed
 * CHEX_ERR_INCOMPATIBLE  the journal is not of this data set; with dry_run: a withdrawal is unfinished
 * CHEX_ERR_STOPPED, CHEX_ERR_WRITE, CHEX_ERR_READ, CHEX_ERR_MEMORY: if out->begun, the next call finishes; otherwise
 * nothing was changed
 * CHEX_ERR_LOCKED, CHEX_ERR_MISSING
 */
enum chex_status withdraw_run(const struct withdraw_options *options, struct withdrawal *out, struct chex_error *err);
void withdraw_release(struct withdrawal *w);

#endif
