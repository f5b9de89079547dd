/*
 * journal.h - what an unfinished conversion has finished: .chex-journal.jsonl
 *
 * The first line names the data set id and the specification; each further line is one finished shard: its size and
 * SHA-256, the number of rejects, and the sums that the manifest needs.  A line is appended and fsync'ed after
 * the shard's rename, so what a line says is there.  A torn last line (power loss) is dropped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_JOURNAL_H
#define CHEX_LIB_JOURNAL_H

#include "digest.h"
#include "file.h"

#define JOURNAL_NAME ".chex-journal.jsonl"

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
};

void shard_result_release(struct shard_result *r);

struct journal {
    const struct folder *folder;
    int fd;       /* open for appending, or -1 */
    uint64_t end; /* bytes that are good */
};

/*
 * Read the journal of `folder`, if there is one, into result[shard_count] (zero-initialised), and open it for
 * appending. A new one gets its first line.
 * CHEX_ERR_INCOMPATIBLE  of another data set id: the text shows both specifications
 * CHEX_ERR_READ, CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status journal_open(const struct folder *folder, const char *dataset_id, const char *spec,
                              struct shard_result *result, size_t shard_count, struct journal *out,
                              struct chex_error *err);
/* Append one shard, fsync. */
enum chex_status journal_add(struct journal *j, size_t shard, const struct shard_result *result,
                             struct chex_error *err);
void journal_close(struct journal *j); /* the file stays; zero-initialised or closed ones are fine */

#endif
