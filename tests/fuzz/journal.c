/*
 * journal.c - fuzz target: the journal of an unfinished conversion
 *
 * Any bytes as a journal: either it is refused as a journal of other data, or it is read up to its last good line.  A
 * second read gives the same result.  An added line is found and changes no other shard.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "store/journal.h"

#include <string.h>
#include <sys/stat.h>

#define SHARDS 4
#define ID     "0123456789abcdef"
#define SPEC   "8x8 bilinear, 4 a shard"
#define HASH   "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define CRC    "01234567"

static off_t
journal_size(void)
{
    struct stat st;

    FUZZ_REQUIRE(fstatat(fuzz_folder()->fd, JOURNAL_NAME, &st, 0) == 0);
    return st.st_size;
}

static enum chex_status
open_journal(struct shard_result result[SHARDS], struct journal *j, struct chex_error *err)
{
    memset(result, 0, SHARDS * sizeof(*result));
    return journal_open(fuzz_folder(), (struct part){0}, ID, SPEC, result, SHARDS, j, err);
}

static bool
same_result(const struct shard_result *a, const struct shard_result *b)
{
    return a->done == b->done && a->size == b->size && strcmp(a->sha256, b->sha256) == 0 &&
           strcmp(a->crc32c, b->crc32c) == 0 && a->images == b->images && a->sum == b->sum &&
           a->squares == b->squares && a->reject_count == b->reject_count;
}

static void
require_results(const struct shard_result result[SHARDS])
{
    for (int i = 0; i < SHARDS; i++) {
        FUZZ_REQUIRE(result[i].reject == NULL && result[i].reject_count == 0);
        if (result[i].done)
            FUZZ_REQUIRE(strlen(result[i].sha256) == 64);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shard_result first[SHARDS], again[SHARDS];
    struct shard_result added = {
        .size = 4096, .sha256 = HASH, .crc32c = CRC, .images = 3, .sum = 12345, .squares = INT64_MAX};
    struct journal j;
    struct chex_error err = {0};
    enum chex_status status;
    unsigned shard = size > 0 ? data[size - 1] % SHARDS : 0;
    off_t end;

    fuzz_put(JOURNAL_NAME, data, size);
    status = open_journal(first, &j, &err);
    fuzz_require_error(status, &err);
    if (status != CHEX_OK) {
        FUZZ_REQUIRE(status == CHEX_ERR_INCOMPATIBLE && journal_size() == (off_t)size);
        return 0;
    }
    require_results(first);
    end = journal_size();
    FUZZ_REQUIRE((uint64_t)end == j.end && end > 0);
    journal_close(&j);

    FUZZ_REQUIRE(open_journal(again, &j, &err) == CHEX_OK && journal_size() == end);
    for (int i = 0; i < SHARDS; i++)
        FUZZ_REQUIRE(same_result(&first[i], &again[i]));
    FUZZ_REQUIRE(journal_add(&j, shard, &added, &err) == CHEX_OK);
    journal_close(&j);

    FUZZ_REQUIRE(open_journal(again, &j, &err) == CHEX_OK && journal_size() > end);
    added.done = true;
    for (unsigned i = 0; i < SHARDS; i++)
        FUZZ_REQUIRE(same_result(i == shard ? &added : &first[i], &again[i]));
    journal_close(&j);
    return 0;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

#define HEADER "{\"journal\":1,\"dataset_id\":\"" ID "\",\"spec\":\"" SPEC "\"}\n"
#define LINE(shard, rejects)                                                       \
    "{\"shard\":" shard ",\"size\":4096,\"sha256\":\"" HASH "\",\"crc32c\":\"" CRC \
    "\",\"images\":4,\"sum\":1000,\"squares\":300000,\"rejects\":" rejects "}\n"

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const struct {
        const char *name, *text;
    } texts[] = {
        {"new", ""},
        {"header", HEADER},
        {"three-shards", HEADER LINE("0", "0") LINE("2", "0") LINE("3", "1")},
        {"twice", HEADER LINE("1", "0") LINE("1", "2")},
        {"torn", HEADER LINE("0", "0") "{\"shard\":1,\"size\":40"},
        {"torn-header", "{\"journal\":1,\"data"},
        {"out-of-range", HEADER LINE("4", "0")},
        {"other-data", "{\"journal\":1,\"dataset_id\":\"fedcba9876543210\",\"spec\":\"other\"}\n"},
        {"other-version", "{\"journal\":2,\"dataset_id\":\"" ID "\",\"spec\":\"x\"}\n"},
        {"no-hash", HEADER "{\"shard\":0,\"size\":4096,\"sha256\":\"zz112233445566778899aabbccddeeff001122334455667788"
                           "99aabbccddeeff\",\"images\":4,\"sum\":1,\"squares\":3,\"rejects\":0}\n"},
        {"blank-line", HEADER "\n" LINE("0", "0")},
        {"control-characters", "{\"journal\":1,\"dataset_id\":\"\\u001b[2J\",\"spec\":\"\\u0007\"}\n"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        give(texts[i].name, texts[i].text, strlen(texts[i].text), context);
}
