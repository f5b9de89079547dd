/*
 * verify_private.h - between verify.c, verify_shard.c and verify_file.c: what the check of one file found
 *
 * It is kept until the files before that one are reported.  The first ten faults of a file are kept with their text,
 * the others are counted: a shard of another layout has a fault in each of its records.
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
    int64_t record; /* or -1 */
    uint64_t offset;
    char text[REPORT_TEXT];
    char image[RECORD_MAX_TEXT + 1]; /* "" where unknown */
};

struct report {
    struct kept_fault *kept; /* [kept_count], room for REPORT_SHOWN; owned */
    unsigned kept_count;
    uint64_t faults;
    bool out_of_memory; /* a fault could not be kept */
    bool read_failed;   /* one of them is CHEX_ERR_READ */

    uint64_t records, bytes; /* read */
    uint64_t notes;
    uint64_t images; /* of weight 1 */
    uint64_t positives[CHEX_FINDINGS];
};

/* record -1: about the file.  image is NULL or without data where it is unknown. */
void report_fault(struct report *r, enum chex_status status, int64_t record, uint64_t offset,
                  const struct chex_bytes *image, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Hand the faults to v->fault, with one more line for those that were only counted, and add the sums to v. */
void report_pass_on(const struct report *r, struct verify *v, const char *file);
void report_release(struct report *r);

/*
 * Check one shard of v->dataset; *r gets its faults.  bytes counts what is read, for the progress; the
 * digest is the thread's own.
 * CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status verify_shard(const struct verify *v, struct digest *digest, unsigned shard, _Atomic uint64_t *bytes,
                              struct report *r, struct chex_error *err);

/*
 * Check the DALI index of a shard, if there is one, and report what is wrong with it.
 * CHEX_ERR_MEMORY; CHEX_ERR_READ, which does not end the search
 */
enum chex_status verify_index(struct verify *v, unsigned shard, struct chex_error *err);

/* True where all pixels have one value. */
bool verify_is_constant(const uint8_t *pixels, size_t size);

#endif
