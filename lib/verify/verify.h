/*
 * verify.h - is a data set what its manifest says?
 *
 *   quick   every shard is there and has its size; its first record, read without the pixels and the checksums, has the
 *           data set id and the number of this shard; no other shard and no unfinished file is there
 *   sample  also: the first record of each shard and others chosen by a hash, checked as by full, without the SHA-256
 *   full    every record: framing, both checksums, the strict form of record.h, that it stands in its own slot; counts
 *           of images and findings; of each shard the checksum over its checksums, and with sha256 its SHA-256; DALI
 *           indexes, where they are
 *
 * full finds accidental damage as fast as the file can be read.  Only SHA-256 finds a deliberate change of a record,
 * its checksum and the manifest's; it takes twenty times as long on a CPU without instructions for it.
 *
 * Faults are reported one by one and do not end the search; of one file the first ten, then a line with record -1
 * that counts the others.  A file that is too short comes before all other faults of it, with the first record that is
 * not whole.
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
    const char *file;  /* name within the folder */
    int64_t record;    /* in that file, or -1 where it is no matter of one */
    uint64_t offset;   /* bytes from the start of the file, with a record */
    const char *text;  /* one line, which does not repeat the above */
    const char *image; /* the file name in that record as far as it can be read, or NULL */
};

struct verify {
    const struct chex_dataset *dataset;
    enum verify_depth depth;
    bool sha256;           /* VERIFY_FULL: compare the SHA-256 of each shard too */
    double sample_percent; /* VERIFY_SAMPLE: above 0, at most 100 */
    unsigned threads;
    bool only; /* just shard only_shard, not what is beside it */
    unsigned only_shard;

    /* One fault; called by one thread at a time, in the order of shards and records whatever the number of threads. */
    void (*fault)(void *context, const struct verify_fault *fault);
    /* Progress: bytes read so far of all that will be read. */
    void (*tick)(void *context, uint64_t done, uint64_t total);
    void *context;
    const atomic_bool *stop;

    /* out */
    uint64_t shards_good, records_read, bytes_read, faults;
    uint64_t notes; /* constant images: no fault */
};

/*
 * CHEX_OK when it ran, whatever it found: v->faults.
 * CHEX_ERR_READ (EIO, or no permission to read a shard; the other shards were still read), CHEX_ERR_MEMORY,
 * CHEX_ERR_STOPPED
 */
enum chex_status verify_run(struct verify *v, struct chex_error *err);

/*
 * A single file without a manifest: framing, checksums, a tf.train.Example in each record, one stride, slots in order.
 * Faults go to v->fault, with path as the file; v->dataset is not used.
 * CHEX_ERR_MISSING also if it is not a regular file; else as verify_run()
 */
enum chex_status verify_file(struct verify *v, const char *path, struct chex_error *err);

#endif
