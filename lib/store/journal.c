/*
 * journal.c - reads and writes the journal files; see journal.h
 *
 * A line is one JSON object (jansson); journal_line.c formats and parses it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/journal.h"

#include "base/ascii.h"
#include "base/clock.h"
#include "base/json.h"
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL_VERSION 1
#define JOURNAL_MAX     (256u << 20)

static const struct parse_bounds header_bounds = {.size = 65536, .depth = 2, .values = 100};

/* ---- names ---------------------------------------------------------------------------------------------------- */

void
journal_name(struct part part, char out[JOURNAL_NAME_SIZE])
{
    if (part_is_whole(part))
        snprintf(out, JOURNAL_NAME_SIZE, "%s", JOURNAL_NAME);
    else
        snprintf(out, JOURNAL_NAME_SIZE, JOURNAL_PREFIX PART_FORMAT JOURNAL_SUFFIX, part.index + 1, part.count);
}

bool
journal_is_name(const char *name)
{
    size_t prefix = strlen(JOURNAL_PREFIX);
    struct part part;

    if (strcmp(name, JOURNAL_NAME) == 0)
        return true;
    return strncmp(name, JOURNAL_PREFIX, prefix) == 0 && part_parse_suffix(name + prefix, &part) &&
           strcmp(name + prefix + PART_SUFFIX_LENGTH, JOURNAL_SUFFIX) == 0;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* Target of the lines of a journal, and the expected first line. */
struct reading {
    const struct folder *folder;
    const char *name;
    const char *dataset_id, *spec;
    struct shard_result *result;
    size_t shard_count;
};

static enum chex_status
check_header(const struct reading *r, const json_t *line, struct chex_error *err)
{
    const char *id, *old_spec;
    char differ[SPEC_DIFFERENCE], shown_id[CHEX_ID_LENGTH],
        shown_spec[SPEC_TEXT + 16]; /* escaped: the file may contain control characters */
    json_int_t version;
    json_error_t e;

    if (json_unpack_ex((json_t *)(uintptr_t)line, &e, 0, "{s:I,s:s,s:s}", "journal", &version, "dataset_id", &id,
                       "spec", &old_spec) != 0)
        return json_error_code(&e) == json_error_out_of_memory
                   ? error_memory(err)
                   : error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s/%s' is not a journal of chex-convert", r->folder->path,
                               r->name);
    if (version != JOURNAL_VERSION)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s/%s' has version %" JSON_INTEGER_FORMAT ", this build reads %d", r->folder->path, r->name,
                         version, JOURNAL_VERSION);
    if (strcmp(id, r->dataset_id) != 0)
        return error_set(
            err, CHEX_ERR_INCOMPATIBLE,
            "'%s' holds an unfinished conversion of other data or options, %.8s, and %.8s is wanted "
            "(--force replaces it): %s",
            r->folder->path, ascii_escape(id, strlen(id), shown_id, sizeof(shown_id)), r->dataset_id,
            spec_difference(ascii_escape(old_spec, strlen(old_spec), shown_spec, sizeof(shown_spec)), r->spec, differ));
    return CHEX_OK;
}

/*
 * Store the result of a shard's line.  A shard with rejects does not count as finished: their files may have been
 * repaired since, and resuming finds its valid slots.
 */
static enum chex_status
take_line(const struct reading *r, const char *line, size_t size, struct chex_error *err)
{
    struct shard_result parsed;
    size_t shard;
    enum chex_status status = journal_parse(line, size, r->shard_count, &shard, &parsed, err);

    if (status == CHEX_OK) {
        parsed.done = parsed.reject_count == 0;
        parsed.reject_count = 0;
        /* If the shard was rewritten, keep the hash of its first line, which --repair may have written. */
        if (r->result[shard].was[0])
            memcpy(parsed.was, r->result[shard].was, sizeof(parsed.was));
        else if (parsed.done)
            memcpy(parsed.was, parsed.sha256, sizeof(parsed.was));
        r->result[shard] = parsed;
    }
    return status;
}

/* Check the first line.  CHEX_ERR_DAMAGED if it is not JSON: the line is incomplete. */
static enum chex_status
take_header(const struct reading *r, const char *text, size_t size, struct chex_error *err)
{
    json_t *line;
    enum chex_status status = parse_json(text, size, &header_bounds, &line, err);

    if (status == CHEX_OK)
        status = check_header(r, line, err);
    else if (status != CHEX_ERR_MEMORY)
        status = error_context(err, CHEX_ERR_DAMAGED, "the first line");
    json_decref(line);
    return status;
}

/*
 * Read the lines in b; *end is the end of the last valid line.  The first invalid line and all lines after it are
 * discarded.
 */
static enum chex_status
read_lines(const struct reading *r, const struct buffer *b, uint64_t *end, struct chex_error *err)
{
    size_t at = 0;

    *end = 0;
    while (at < b->size) {
        const char *text = (const char *)b->data + at;
        const char *newline = memchr(text, '\n', b->size - at);
        size_t length = newline ? (size_t)(newline - text) : 0;
        enum chex_status status;

        if (!newline)
            break;
        status = at == 0 ? take_header(r, text, length, err) : take_line(r, text, length, err);
        if (status == CHEX_ERR_DAMAGED) /* an incomplete line; lack of memory would not mean that */
            break;
        if (status != CHEX_OK)
            return status;
        at += length + 1;
        *end = at;
    }
    return CHEX_OK;
}

/* Read one journal.  *end: bytes of valid lines; 0 if the journal does not exist. */
static enum chex_status
read_one(const struct reading *r, uint64_t *end, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = file_read(r->folder->fd, r->name, JOURNAL_MAX, &b, err);

    *end = 0;
    if (status == CHEX_OK)
        status = read_lines(r, &b, end, err);
    else if (status == CHEX_ERR_MISSING)
        status = CHEX_OK;
    else /* a folder or FIFO with this name is not an error of the images */
        status = error_context(err, chex_status_is_data(status) ? CHEX_ERR_INCOMPATIBLE : status, "'%s/%s'",
                               r->folder->path, r->name);
    buffer_release(&b);
    return status;
}

/* Read a journal that another process may be writing: if it changes during the read, try again. */
static enum chex_status
read_living(const struct reading *r, struct chex_error *err)
{
    enum chex_status status;
    uint64_t end;
    int tries = 0;

    while ((status = read_one(r, &end, err)) == CHEX_ERR_READ && tries++ < 20)
        backoff(0.05);
    return status;
}

enum chex_status
journal_read_all(const struct folder *folder, const char *dataset_id, const char *spec, struct shard_result *result,
                 size_t shard_count, size_t *count, struct chex_error *err)
{
    struct folder_names names = {0};
    enum chex_status status = folder_list(folder, journal_is_name, &names, err);
    size_t i;

    *count = names.count;
    for (i = 0; status == CHEX_OK && i < names.count; i++) {
        struct reading r = {folder, names.name[i], dataset_id, spec, result, shard_count};

        status = read_living(&r, err);
    }
    folder_names_release(&names);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static enum chex_status
append(struct journal *j, const struct buffer *line, struct chex_error *err)
{
    int error = file_pwrite(j->fd, j->end, line->data, line->size);

    if (error == 0)
        error = file_fsync(j->fd);
    if (error != 0)
        return error_write(err, error, "cannot write '%s/%s'", j->folder->path, j->name);
    j->end += line->size;
    return CHEX_OK;
}

enum chex_status
journal_add(struct journal *j, size_t shard, const struct shard_result *result, struct chex_error *err)
{
    struct buffer line = {0};
    enum chex_status status = journal_format(shard, result, &line, err);

    if (status == CHEX_OK)
        status = append(j, &line, err);
    buffer_release(&line);
    return status;
}

static enum chex_status
append_header(struct journal *j, const char *dataset_id, const char *spec, struct chex_error *err)
{
    json_t *line = json_pack("{s:I,s:s,s:s}", "journal", (json_int_t)JOURNAL_VERSION, "dataset_id", dataset_id, "spec",
                             spec);
    struct buffer b = {0};
    enum chex_status status = append_json(line, JSON_COMPACT | JSON_ENSURE_ASCII, &b, err);

    json_decref(line);
    if (status == CHEX_OK)
        status = append(j, &b, err);
    buffer_release(&b);
    return status;
}

/* Truncate the journal after its last valid line.  Returns 0 or the errno. */
static int
cut(const struct journal *j)
{
    while (ftruncate(j->fd, (off_t)j->end) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

enum chex_status
journal_open(const struct folder *folder, struct part part, const char *dataset_id, const char *spec,
             struct shard_result *result, size_t shard_count, struct journal *out, struct chex_error *err)
{
    struct reading own = {folder, out->name, dataset_id, spec, result, shard_count};
    size_t count;
    enum chex_status status;
    int error;

    *out = (struct journal){.folder = folder, .fd = -1};
    journal_name(part, out->name);
    status = journal_read_all(folder, dataset_id, spec, result, shard_count, &count, err);
    if (status == CHEX_OK)
        status = read_one(&own, &out->end, err); /* last: to get its end, and its lines take precedence */
    if (status == CHEX_OK)
        status = folder_own(folder, out->name, err);
    if (status != CHEX_OK)
        return status;
    out->fd = file_openat(folder->fd, out->name, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
    /* A crash may have left an incomplete line at the end. */
    error = out->fd < 0 ? -out->fd : cut(out);
    if (error != 0) {
        status = error_write(err, error, "cannot write '%s/%s'", folder->path, out->name);
        journal_close(out);
        return status;
    }
    if (out->end > 0)
        return CHEX_OK;
    status = append_header(out, dataset_id, spec, err);
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
