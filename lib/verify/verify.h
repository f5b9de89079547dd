/*
 * verify.h - compares a data set with its manifest
 *
 *   quick   every shard exists with its size; its first record, read without pixels and checksums, has the data set id
 *           and the number of this shard; the folder has no other shard and no unfinished file
 *   sample  also checks the first record of each shard, and others chosen by a hash, as full does, but without the
 *           SHA-256
 *   full    checks every record: framing, both checksums, the strict form of record.h, and that it is in its own slot;
 *           the numbers of images and findings, and of the patients in two splits; per shard the checksum over its
 *           checksums and, with sha256, its SHA-256; DALI indexes, if any
 *
 * full finds accidental damage at the speed of reading the file.  Only SHA-256 finds a deliberate change of a record,
 * its checksum and the manifest's checksum.  SHA-256 takes twenty times as long on a CPU without instructions for it.
 *
 * Faults are reported one by one and do not end the search.  Per file, the first ten are reported, then a line with
 * record -1 that counts the others.  A file that is too short is reported before all its other faults, with the first
 * incomplete record.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_VERIFY_H
#define CHEX_LIB_VERIFY_H

#include "dataset/dataset.h"

#include <stdatomic.h>

enum verify_depth { VERIFY_QUICK, VERIFY_SAMPLE, VERIFY_FULL };

struct verify_fault {
    enum chex_status status;
    const char *file;  /* name in the folder */
    int64_t record;    /* index in that file; -1: the fault is not about a record */
    uint64_t offset;   /* of the record, in bytes from the start of the file */
    const char *text;  /* one line that does not repeat the members above */
    const char *image; /* the image's name in that record, or NULL if unreadable */
};

struct verify {
    const struct chex_dataset *dataset;
    enum verify_depth depth;
    bool sha256;           /* VERIFY_FULL: also compare the SHA-256 of each shard */
    double sample_percent; /* VERIFY_SAMPLE: above 0, at most 100 */
    unsigned threads;
    bool only; /* check only shard only_shard, and not the other files */
    unsigned only_shard;

    /* Called for each fault by one thread at a time, in the order of shards and records, for any number of threads. */
    void (*fault)(void *context, const struct verify_fault *fault);
    /* Progress: done of total bytes were read. */
    void (*tick)(void *context, uint64_t done, uint64_t total);
    void *context;
    const atomic_bool *stop;

    /* Results: */
    uint64_t shards_good, records_read, bytes_read, faults;
    uint64_t notes; /* constant images, which are not faults */
};

/*
 * Check the data set.  Returns CHEX_OK if the check was completed; v->faults is the number of faults.
 * CHEX_ERR_READ (EIO, or no permission to read a shard; the other shards were still checked), CHEX_ERR_MEMORY,
 * CHEX_ERR_STOPPED
 */
enum chex_status verify_run(struct verify *v, struct chex_error *err);

/*
 * Check a single file without a manifest: framing, checksums, a tf.train.Example in each record, one stride, slots in
 * order.  v->fault gets the faults, with path as the file; v->dataset is not used.
 * CHEX_ERR_MISSING also if it is not a regular file; other statuses as verify_run()
 */
enum chex_status verify_file(struct verify *v, const char *path, struct chex_error *err);

#endif
