/*
 * verify_private.h - the report on one file, shared by verify.c, verify_shard.c and verify_file.c
 *
 * A report is kept until the reports on all earlier files were passed on.  It has the text of the first ten faults and
 * the number of the others: a shard with another layout has a fault in every record.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_VERIFY_PRIVATE_H
#define CHEX_LIB_VERIFY_PRIVATE_H

#include "base/sha256.h"
#include "verify/verify.h"

#define REPORT_SHOWN 10
#define REPORT_TEXT  256

struct kept_fault {
    enum chex_status status;
    int64_t record; /* -1: not about a record */
    uint64_t offset;
    char text[REPORT_TEXT];
    char image[RECORD_MAX_TEXT + 1]; /* "" if unknown */
};

struct report {
    struct kept_fault *kept; /* [kept_count], allocated for REPORT_SHOWN; owned */
    unsigned kept_count;
    uint64_t faults;
    bool out_of_memory; /* a fault could not be stored */
    bool read_failed;   /* a fault has the status CHEX_ERR_READ */

    uint64_t records, bytes; /* number read */
    uint64_t notes;
    uint64_t images; /* with weight 1 */
    uint64_t positives[FINDINGS_MAX], known[FINDINGS_MAX];
    struct buffer patients; /* of VERIFY_FULL: the patient of each such image, with its terminating 0 */
};

/* Add a fault; record -1: it is about the file.  image is NULL or has no data if the name is unknown. */
void report_fault(struct report *r, enum chex_status status, int64_t record, uint64_t offset,
                  const struct chex_bytes *image, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Pass the faults to v->fault, with one more line for those that were only counted, and add the counts to v. */
void report_pass_on(const struct report *r, struct verify *v, const char *file);
void report_release(struct report *r);

/*
 * Check one shard of v->dataset; *r gets its faults.  bytes is increased by the bytes read, for the progress.  Each
 * thread has its own digest.
 * CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status verify_shard(const struct verify *v, struct digest *digest, unsigned shard, _Atomic uint64_t *bytes,
                              struct report *r, struct chex_error *err);

/*
 * Check the DALI index of a shard, if it exists, and report its faults.
 * CHEX_ERR_MEMORY; CHEX_ERR_READ, which does not end the search
 */
enum chex_status verify_index(struct verify *v, unsigned shard, struct chex_error *err);

/* Returns whether all pixels have the same value. */
bool verify_is_constant(const uint8_t *pixels, size_t size);

#endif
