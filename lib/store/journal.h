/*
 * journal.h - the finished shards of an unfinished conversion: .chex-journal.jsonl, .chex-journal-00003-of-00016.jsonl
 *
 * Each process of a conversion appends to a journal of its own, since appends of several hosts to one file are not safe
 * on NFS; all journals of a folder are read.  Each line is checked against the files, so it does not matter how many
 * processes wrote journals, and when.
 *
 * The first line names the data set id and the specification; each further line is one finished shard: its size and
 * SHA-256, the number of rejects, and the sums that the manifest needs.  A line is appended and fsync'ed after
 * the shard's rename, so a shard with a line is there.  A torn last line (power loss) is dropped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_JOURNAL_H
#define CHEX_LIB_JOURNAL_H

#include "base/part.h"
#include "base/sha256.h"
#include "io/file.h"

#define JOURNAL_PREFIX    ".chex-journal"
#define JOURNAL_SUFFIX    ".jsonl"
#define JOURNAL_NAME      JOURNAL_PREFIX JOURNAL_SUFFIX /* of a single process */
#define JOURNAL_NAME_SIZE 64

/* An image that could not be used. */
struct reject {
    uint32_t index; /* slot in its shard */
    enum chex_status status;
    char *text; /* owned */
};

/* One finished shard. */
struct shard_result {
    bool done;
    uint64_t size;
    char sha256[DIGEST_HEX];
    char crc32c[CRC_HEX];  /* see manifest.h */
    uint32_t images;       /* records of weight 1 */
    uint64_t sum, squares; /* of the pixels of records of weight 1 */
    struct reject *reject; /* sorted by index; owned */
    size_t reject_count;
    char was[DIGEST_HEX]; /* as read from a journal: the SHA-256 of the shard's first line without rejects, else "" */
};

void shard_result_release(struct shard_result *r);

struct journal {
    const struct folder *folder;
    char name[JOURNAL_NAME_SIZE];
    int fd;       /* open for appending, or -1 */
    uint64_t end; /* bytes that are good */
};

/* The journal of this part: JOURNAL_NAME, or with its numbers. */
void journal_name(struct part part, char out[JOURNAL_NAME_SIZE]);
/* Is this the name of a journal, to the last character? */
bool journal_is_name(const char *name);

/*
 * Read all journals of `folder` into result[shard_count] (zero-initialised), and open that of `part` for appending.
 * A new one gets its first line.  Bytes behind the last whole line are cut off in that one only: the processes of the
 * others may be writing.
 * CHEX_ERR_INCOMPATIBLE  of another data set id: the text shows both specifications
 * CHEX_ERR_READ, CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status journal_open(const struct folder *folder, struct part part, const char *dataset_id, const char *spec,
                              struct shard_result *result, size_t shard_count, struct journal *out,
                              struct chex_error *err);
/* Read all of them and write nothing; *count: how many there are.  The same errors. */
enum chex_status journal_read_all(const struct folder *folder, const char *dataset_id, const char *spec,
                                  struct shard_result *result, size_t shard_count, size_t *count,
                                  struct chex_error *err);
/* Append one shard, fsync. */
enum chex_status journal_add(struct journal *j, size_t shard, const struct shard_result *result,
                             struct chex_error *err);
void journal_close(struct journal *j); /* the file stays; zero-initialised or closed ones are fine */

/* ---- lines (journal_line.c) ----------------------------------------------------------------------------------- */

/* Append the line of a shard, with its newline. */
enum chex_status journal_format(size_t shard, const struct shard_result *result, struct buffer *b,
                                struct chex_error *err);
/*
 * A line (without its newline) into *shard and *out.  out->reject_count is what the line says; out->reject is NULL.
 * CHEX_ERR_DAMAGED   it is not a whole one of ours; *out is empty
 * CHEX_ERR_MEMORY    it is not known whether it is one
 */
enum chex_status journal_parse(const char *line, size_t size, size_t shard_count, size_t *shard,
                               struct shard_result *out, struct chex_error *err);

#endif
