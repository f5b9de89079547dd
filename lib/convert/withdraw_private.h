/*
 * withdraw_private.h - declarations shared by withdraw*.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_WITHDRAW_PRIVATE_H
#define CHEX_LIB_WITHDRAW_PRIVATE_H

#include "convert/withdraw.h"
#include "dataset/dataset.h"

/* The slots of a shard that get padding records, in order. */
struct withdrawn_slots {
    uint32_t *index;
    uint32_t count;
};

/* Returns whether slot `index` is one of them. */
bool withdrawn_has(const struct withdrawn_slots *slots, uint32_t index);

/* The content of the journal. */
struct withdraw_journal {
    char request[DIGEST_HEX];      /* SHA-256 of the ids of the patients: shows whether a call repeats this one */
    struct withdrawn_slots *shard; /* [manifest.shard_count] */
    bool has_rejects;              /* rejects.jsonl changes; to this text, or it is removed if the text is empty */
    struct buffer rejects;         /* the text */
    struct manifest manifest;      /* of the new data set; changed shards still have their old hashes */
};

/* ---- withdraw_scan.c: step 1 ------------------------------------------------------------------------------------- */

/*
 * Check every record, find the slots of out->patient, and make the new manifest, whose text is appended to *text.  The
 * other members of *j are filled except j->manifest.  Also fills the counts in *out.  If no patient is found, out->to
 * is "" and *text is unchanged.
 */
enum chex_status withdraw_scan(const struct chex_dataset *ds, const struct withdraw_options *o, struct withdrawal *out,
                               struct withdraw_journal *j, struct buffer *text, struct chex_error *err);

/* Compute the id of a data set after these slots of data set `from` were withdrawn. */
enum chex_status withdraw_identify(const char *from, const struct withdrawn_slots *shard, size_t shard_count,
                                   char out[CHEX_ID_LENGTH + 1], struct chex_error *err);

/* ---- withdraw_journal.c ------------------------------------------------------------------------------------------ */

/* Write the journal: its members except j->manifest, which is `text`. */
enum chex_status withdraw_journal_write(const struct folder *folder, const struct withdraw_journal *j,
                                        size_t shard_count, const struct buffer *text, struct chex_error *err);
/*
 * Read the journal.  Zero *j before the call; free it with withdraw_journal_release(), also after a failure.
 * CHEX_ERR_MISSING  there is none;  CHEX_ERR_INCOMPATIBLE  damaged;  CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status withdraw_journal_read(const struct folder *folder, struct withdraw_journal *j, struct chex_error *err);
void withdraw_journal_release(struct withdraw_journal *j);

/* ---- withdraw_shard.c: step 4 ------------------------------------------------------------------------------------ */

/* Write the shards with withdrawn slots again, and set their hashes in j->manifest.  *linked: see struct withdrawal. */
enum chex_status withdraw_shards(const struct folder *folder, const struct withdraw_options *o,
                                 struct withdraw_journal *j, size_t *linked, struct chex_error *err);

#endif
