/*
 * journal.c - see journal.h; a line is one JSON object (jansson)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "journal.h"

#include "ascii.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL_VERSION 1
#define JOURNAL_MAX     (256u << 20)

void
shard_result_release(struct shard_result *r)
{
    while (r->reject_count > 0)
        free(r->reject[--r->reject_count].text);
    free(r->reject);
    *r = (struct shard_result){0};
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/*
 * One shard's line into its result; false where it is not a whole line of ours.  A shard with rejects is not taken for
 * done: their files may have been repaired since, and its good slots are found by looking at them.
 */
static bool
parse_shard(const json_t *line, struct shard_result *result, size_t shard_count)
{
    json_int_t shard, size, images, sum, squares, rejects;
    const char *sha256;

    if (json_unpack((json_t *)(uintptr_t)line, "{s:I,s:I,s:s,s:I,s:I,s:I,s:I}", "shard", &shard, "size", &size,
                    "sha256", &sha256, "images", &images, "sum", &sum, "squares", &squares, "rejects", &rejects) != 0)
        return false;
    if (shard < 0 || (size_t)shard >= shard_count || size < 0 || images < 0 || images > UINT32_MAX || sum < 0 ||
        squares < 0 || rejects < 0 || strlen(sha256) != DIGEST_HEX - 1)
        return false;
    result[shard] = (struct shard_result){
        .done = rejects == 0,
        .size = (uint64_t)size,
        .images = (uint32_t)images,
        .sum = (uint64_t)sum,
        .squares = (uint64_t)squares,
    };
    memcpy(result[shard].sha256, sha256, DIGEST_HEX);
    return true;
}

static enum chex_status
check_header(const json_t *line, const char *dataset_id, const char *spec, const struct folder *folder,
             struct chex_error *err)
{
    const char *id, *old_spec;
    char shown_id[CHEX_ID_LENGTH], shown_spec[400]; /* what a file says may hold control characters */
    json_int_t version;

    if (json_unpack((json_t *)(uintptr_t)line, "{s:I,s:s,s:s}", "journal", &version, "dataset_id", &id, "spec",
                    &old_spec) != 0)
        return chex_fail(err, CHEX_ERR_INCOMPATIBLE, "'%s/%s' is not a journal of chex-convert", folder->path,
                         JOURNAL_NAME);
    if (version != JOURNAL_VERSION)
        return chex_fail(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s/%s' has version %" JSON_INTEGER_FORMAT ", this build reads %d", folder->path,
                         JOURNAL_NAME, version, JOURNAL_VERSION);
    if (strcmp(id, dataset_id) != 0)
        return chex_fail(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' holds an unfinished conversion of other data or options (--force replaces it): "
                         "there %.8s, %s; asked for %.8s, %s",
                         folder->path, ascii_escape(id, strlen(id), shown_id, sizeof(shown_id)),
                         ascii_escape(old_spec, strlen(old_spec), shown_spec, sizeof(shown_spec)), dataset_id, spec);
    return CHEX_OK;
}

/*
 * Read the lines in b; *end is where the last good one ends.  The first that is not good and all behind it
 * are dropped.
 */
static enum chex_status
read_lines(const struct folder *folder, const struct buffer *b, const char *dataset_id, const char *spec,
           struct shard_result *result, size_t shard_count, uint64_t *end, struct chex_error *err)
{
    size_t at = 0;

    *end = 0;
    while (at < b->size) {
        const uint8_t *newline = memchr(b->data + at, '\n', b->size - at);
        size_t length = newline ? (size_t)(newline - (b->data + at)) : 0;
        json_t *line = newline ? json_loadb((const char *)b->data + at, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
        enum chex_status status = CHEX_OK;
        bool good = line != NULL;

        if (good && at == 0)
            status = check_header(line, dataset_id, spec, folder, err);
        else if (good)
            good = parse_shard(line, result, shard_count);
        json_decref(line);
        if (status != CHEX_OK)
            return status;
        if (!good)
            break;
        at += length + 1;
        *end = at;
    }
    return CHEX_OK;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static enum chex_status
append(struct journal *j, json_t *line, struct chex_error *err)
{
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    size_t size, done = 0;

    json_decref(line);
    if (!text)
        return chex_fail_memory(err);
    size = strlen(text);
    text[size++] = '\n'; /* in the place of the terminator */
    while (done < size) {
        ssize_t n = pwrite(j->fd, text + done, size - done, (off_t)(j->end + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    free(text);
    if (done < size || fsync(j->fd) != 0)
        return chex_fail(err, chex_status_of_write_errno(errno), "cannot write '%s/%s': %s", j->folder->path,
                         JOURNAL_NAME, strerror(errno));
    j->end += size;
    return CHEX_OK;
}

enum chex_status
journal_add(struct journal *j, size_t shard, const struct shard_result *result, struct chex_error *err)
{
    return append(j,
                  json_pack("{s:I,s:I,s:s,s:I,s:I,s:I,s:I}", "shard", (json_int_t)shard, "size",
                            (json_int_t)result->size, "sha256", result->sha256, "images", (json_int_t)result->images,
                            "sum", (json_int_t)result->sum, "squares", (json_int_t)result->squares, "rejects",
                            (json_int_t)result->reject_count),
                  err);
}

enum chex_status
journal_open(const struct folder *folder, const char *dataset_id, const char *spec, struct shard_result *result,
             size_t shard_count, struct journal *out, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = file_read(folder->fd, JOURNAL_NAME, JOURNAL_MAX, &b, err);

    *out = (struct journal){.folder = folder, .fd = -1};
    if (status == CHEX_OK)
        status = read_lines(folder, &b, dataset_id, spec, result, shard_count, &out->end, err);
    else if (status == CHEX_ERR_MISSING)
        status = CHEX_OK;
    else
        status = chex_context(err, status, "'%s/%s'", folder->path, JOURNAL_NAME);
    buffer_release(&b);
    if (status != CHEX_OK)
        return status;
    out->fd = openat(folder->fd, JOURNAL_NAME, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
    /* What is behind the last good line was torn by a crash. */
    if (out->fd < 0 || ftruncate(out->fd, (off_t)out->end) != 0) {
        status = chex_fail(err, chex_status_of_write_errno(errno), "cannot write '%s/%s': %s", folder->path,
                           JOURNAL_NAME, strerror(errno));
        journal_close(out);
        return status;
    }
    if (out->end > 0)
        return CHEX_OK;
    status = append(
        out, json_pack("{s:I,s:s,s:s}", "journal", (json_int_t)JOURNAL_VERSION, "dataset_id", dataset_id, "spec", spec),
        err);
    if (status == CHEX_OK)
        status = folder_sync(folder, err);
    if (status != CHEX_OK)
        journal_close(out);
    return status;
}

void
journal_close(struct journal *j)
{
    if (j->folder && j->fd >= 0)
        close(j->fd);
    *j = (struct journal){.fd = -1};
}
