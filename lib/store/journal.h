/*
 * journal.h - the finished shards of an unfinished conversion: .chex-journal.jsonl, .chex-journal-00003-of-00016.jsonl
 *
 * Each process of a conversion appends to its own journal, because on NFS several hosts cannot safely append to one
 * file.  A reader reads all journals of the folder and checks each line against the files.  So it does not matter how
 * many processes wrote journals, and when.
 *
 * The first line has the data set id and the specification.  Each further line is a finished shard: its size and
 * SHA-256, the number of rejects, and the sums for the manifest.  A line is appended and synced after the shard's
 * rename, so the shard of every line exists.  An incomplete last line (power loss) is discarded.
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
#define JOURNAL_NAME      JOURNAL_PREFIX JOURNAL_SUFFIX /* of a process without --part */
#define JOURNAL_NAME_SIZE 64

/* A rejected image. */
struct reject {
    uint32_t index; /* slot in its shard */
    enum chex_status status;
    char *text; /* owned */
};

/* A finished shard. */
struct shard_result {
    bool done;
    uint64_t size;
    char sha256[DIGEST_HEX];
    char crc32c[CRC_HEX];  /* see manifest.h */
    uint32_t images;       /* records with weight 1 */
    uint64_t sum, squares; /* over the pixels of records with weight 1 */
    struct reject *reject; /* sorted by index; owned */
    size_t reject_count;
    char was[DIGEST_HEX]; /* from a journal: the SHA-256 in the shard's first line without rejects, otherwise "" */
};

void shard_result_release(struct shard_result *r);

struct journal {
    const struct folder *folder;
    char name[JOURNAL_NAME_SIZE];
    int fd;       /* open for appending, or -1 */
    uint64_t end; /* bytes of valid lines */
};

/* Write the name of the journal of this part: JOURNAL_NAME, or a name with the part's numbers. */
void journal_name(struct part part, char out[JOURNAL_NAME_SIZE]);
/* Returns whether the whole name is that of a journal. */
bool journal_is_name(const char *name);

/*
 * Read all journals of `folder` into result[shard_count] (zero it before the call), and open the journal of `part` for
 * appending.  A new journal gets its first line.  Only this journal is truncated after its last valid line, because
 * other processes may be writing to theirs.
 * CHEX_ERR_INCOMPATIBLE  another data set id: the text shows both specifications
 * CHEX_ERR_READ, CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status journal_open(const struct folder *folder, struct part part, const char *dataset_id, const char *spec,
                              struct shard_result *result, size_t shard_count, struct journal *out,
                              struct chex_error *err);
/* Read all journals without writing; *count is their number.  The errors are the same. */
enum chex_status journal_read_all(const struct folder *folder, const char *dataset_id, const char *spec,
                                  struct shard_result *result, size_t shard_count, size_t *count,
                                  struct chex_error *err);
/* Append the line of a shard, and sync. */
enum chex_status journal_add(struct journal *j, size_t shard, const struct shard_result *result,
                             struct chex_error *err);
void journal_close(struct journal *j); /* the file stays; a zeroed or closed journal is allowed */

/* ---- lines (journal_line.c) ----------------------------------------------------------------------------------- */

/* Append the line of a shard to b, with its newline. */
enum chex_status journal_format(size_t shard, const struct shard_result *result, struct buffer *b,
                                struct chex_error *err);
/*
 * Parse a line (without its newline) into *shard and *out.  out->reject_count is the number in the line; out->reject is
 * NULL.
 * CHEX_ERR_DAMAGED   not a complete line of a journal; *out is zeroed
 * CHEX_ERR_MEMORY    the line may be valid or not
 */
enum chex_status journal_parse(const char *line, size_t size, size_t shard_count, size_t *shard,
                               struct shard_result *out, struct chex_error *err);

#endif
