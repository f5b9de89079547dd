/*
 * convert_crew.c - see convert_crew.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_crew.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- joining -------------------------------------------------------------------------------------------------- */

/* A line for each thing that must be equal, in these words. */
static enum chex_status
describe(const struct convert *c, const char *purpose, struct buffer *b, struct chex_error *err)
{
    const struct convert_options *o = c->options;
    char text[2048], spec[256];
    int length;

    spec_format(&c->plan.spec, spec, sizeof(spec));
    length = snprintf(text, sizeof(text),
                      "purpose %s\nversion %s\noutput %.1024s\noptions %s%s%s%s%s%" PRIu64 " %u%%\n%s\ndata set %s\n",
                      purpose, chex_version(), o->out ? o->out : "", o->force ? "force, " : "",
                      o->break_lock ? "break-lock, " : "", o->verify ? "verify, " : "", o->strict ? "strict, " : "",
                      o->index_dali ? "index dali, allow-rejects " : "allow-rejects ", o->allow_rejects,
                      o->allow_reject_percent, spec, c->plan.dataset_id);
    return buffer_append(b, text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1, err);
}

/* The first line in which they differ; false where there is none. */
static bool
find_difference(const struct buffer *a, const struct buffer *b, char *left, char *right, size_t size)
{
    size_t at = 0, start = 0;

    while (at < a->size && at < b->size && a->data[at] == b->data[at])
        if (a->data[at++] == '\n')
            start = at;
    if (at == a->size && at == b->size)
        return false;
    snprintf(left, size, "%.*s", (int)(a->size - start), (const char *)a->data + start);
    snprintf(right, size, "%.*s", (int)(b->size - start), (const char *)b->data + start);
    left[strcspn(left, "\n")] = right[strcspn(right, "\n")] = '\0';
    return true;
}

static enum chex_status
compare_all(const struct crew *crew, const struct buffer *own, struct chex_error *err)
{
    char here[256], there[256];
    int i;

    for (i = 1; i < crew->comm->size; i++)
        if (find_difference(own, &crew->peer[i].data, here, there, sizeof(here)))
            return chex_fail(err, CHEX_ERR_USAGE, "rank %d %s does not do the same as rank 0: it has '%s', rank 0 '%s'",
                             i, crew->peer[i].host, there, here);
    return CHEX_OK;
}

enum chex_status
convert_join(struct crew *crew, const struct convert *c, const char *purpose, enum chex_status status,
             struct chex_error *err)
{
    struct buffer own = {0};

    if (crew->comm->size == 1)
        return status;
    if (status == CHEX_OK)
        status = describe(c, purpose, &own, err);
    status = crew_report(crew, status, &own, err);
    if (status == CHEX_OK && crew_leads(crew))
        status = compare_all(crew, &own, err);
    status = crew_verdict(crew, status, NULL, err);
    buffer_release(&own);
    return status;
}

/* ---- results -------------------------------------------------------------------------------------------------- */

/* What was noticed while decoding: from rgba to the end of the counts, which are numbers of one kind. */
#define NOTICED_FIRST (offsetof(struct convert_counts, rgba) / sizeof(uint64_t))
#define NOTICED_END   (sizeof(struct convert_counts) / sizeof(uint64_t))

_Static_assert(sizeof(struct convert_counts) % sizeof(uint64_t) == 0, "counts are uint64_t, all of them");

enum chex_status
convert_pack(const struct convert *c, const struct store *store, struct share share, struct buffer *b,
             struct chex_error *err)
{
    const struct shard_result *result = store_results(store);
    uint64_t count[NOTICED_END];
    enum chex_status status = CHEX_OK;
    size_t i;

    memcpy(count, &c->counts, sizeof(count));
    for (i = NOTICED_FIRST; status == CHEX_OK && i < NOTICED_END; i++) {
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64 "%c", count[i], i + 1 < NOTICED_END ? ' ' : '\n');
        status = buffer_append(b, text, strlen(text), err);
    }
    for (i = 0; status == CHEX_OK && i < c->plan.shard_count; i++)
        if (share_has(share, i))
            status = journal_format(i, &result[i], true, b, err);
    return status;
}

static bool
add_counts(struct convert *c, const char *line, const char *end)
{
    uint64_t count[NOTICED_END];
    size_t i;

    memcpy(count, &c->counts, sizeof(count));
    for (i = NOTICED_FIRST; i < NOTICED_END; i++) {
        uint64_t number = 0;

        if (line == end)
            return false;
        for (; line < end && *line >= '0' && *line <= '9'; line++)
            number = number * 10 + (uint64_t)(*line - '0');
        count[i] += number;
        line += line < end && *line == ' ';
    }
    memcpy(&c->counts, count, sizeof(count));
    return line == end;
}

enum chex_status
convert_unpack(struct convert *c, struct store *store, struct share share, const struct buffer *b,
               struct chex_error *err)
{
    const char *line = (const char *)b->data, *end = line + b->size;
    size_t expected = 0, taken = 0, i;
    bool good = b->size > 0;
    enum chex_status status;

    for (i = 0; i < c->plan.shard_count; i++)
        expected += share_has(share, i);
    for (i = 0; good && line < end; i++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        struct shard_result result = {.done = false};
        size_t shard;

        if (!newline) {
            good = false;
        } else if (i == 0) {
            good = add_counts(c, line, newline);
        } else {
            status = journal_parse(line, (size_t)(newline - line), c->plan.shard_count, &shard, &result, err);
            if (status == CHEX_ERR_MEMORY)
                return status;
            /* One that is not done borrows, so it must be one that has no image of its own. */
            good = status == CHEX_OK && share_has(share, shard) &&
                   (result.done || result.reject_count == c->plan.shard[shard].images);
            if (good) {
                store_take(store, shard, &result);
                taken++;
            } else if (result.reject) {
                shard_result_release(&result);
            }
        }
        line = newline ? newline + 1 : end;
    }
    return good && taken == expected
               ? CHEX_OK
               : chex_fail(err, CHEX_ERR_BUG, "the results of part %u of %u are not whole", share.part + 1, share.of);
}
