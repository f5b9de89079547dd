/*
 * checkpoint_find.c - finds the checkpoints of a folder and checks which are complete; see checkpoint.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/checkpoint_private.h"

#include "checkpoint/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIGITS     "0123456789"
#define LATEST_MAX 65536

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* Returns the number in "step-004800" (six or more digits); 0 and *is false for any other name. */
uint64_t
checkpoint_step_of(const char *name, bool *is)
{
    size_t digits;

    *is = false;
    if (strncmp(name, "step-", 5) != 0)
        return 0;
    digits = strspn(name + 5, DIGITS);
    *is = digits >= 6 && digits <= 18 && name[5 + digits] == '\0';
    return *is ? strtoull(name + 5, NULL, 10) : 0;
}

/* "step-004800.opt.safetensors" -> "step-004800"; false for other files. */
static bool
base_of(const char *file, char out[CHECKPOINT_NAME])
{
    size_t length = strcspn(file, ".");
    bool is;

    if (length >= CHECKPOINT_NAME ||
        (strcmp(file + length, CHECKPOINT_SUFFIX) != 0 && strcmp(file + length, CHECKPOINT_OPT_SUFFIX) != 0))
        return false;
    memcpy(out, file, length);
    out[length] = '\0';
    checkpoint_step_of(out, &is);
    return is;
}

static int
compare_falling(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x > y ? -1 : x < y;
}

enum chex_status
checkpoint_list_steps(const struct folder *folder, uint64_t **step, size_t *count, struct chex_error *err)
{
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    size_t capacity = 0, kept = 0, i;
    struct dirent *d;
    int error;

    *step = NULL;
    *count = 0;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return error_system(err, CHEX_ERR_READ, errno, "cannot list the folder '%s'", folder->path);
    }
    while (errno = 0, (d = readdir(dir)) != NULL) {
        char name[CHECKPOINT_NAME];
        uint64_t *grown;
        bool is;

        if (!base_of(d->d_name, name))
            continue;
        grown = array_grow(*step, &capacity, *count, sizeof(**step));
        if (!grown) {
            closedir(dir);
            return error_memory(err);
        }
        *step = grown;
        (*step)[(*count)++] = checkpoint_step_of(name, &is);
    }
    error = errno;
    closedir(dir);
    if (error != 0)
        return error_system(err, CHEX_ERR_READ, error, "cannot list the folder '%s'", folder->path);
    if (*count > 1)
        qsort(*step, *count, sizeof(**step), compare_falling);
    for (i = 0; i < *count; i++)
        if (kept == 0 || (*step)[kept - 1] != (*step)[i])
            (*step)[kept++] = (*step)[i];
    *count = kept;
    return CHEX_OK;
}

/* ---- finding --------------------------------------------------------------------------------------------------- */

/* Check that a file exists with this hash (NULL: any) and a valid header. */
static enum chex_status
check_file(const struct folder *folder, const char *file, const char *hex, struct chex_error *err)
{
    struct safetensors s;
    char found[DIGEST_HEX];
    enum chex_status status = safetensors_open(folder->fd, file, &s, err);

    safetensors_close(&s);
    if (status == CHEX_OK && hex)
        status = checkpoint_hash(folder, file, found, err);
    if (status == CHEX_OK && hex && strcmp(found, hex) != 0)
        status = error_set(err, CHEX_ERR_CHECKSUM, "its SHA-256 is not that in '" CHECKPOINT_LATEST "'");
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", folder->path, file);
}

static enum chex_status
check_both(const struct folder *folder, const char *name, const char *model, const char *optimizer,
           struct chex_error *err)
{
    char file[CHECKPOINT_FILE];
    enum chex_status status;

    checkpoint_file_name(name, CHECKPOINT_SUFFIX, file);
    status = check_file(folder, file, model, err);
    checkpoint_file_name(name, CHECKPOINT_OPT_SUFFIX, file);
    return status == CHEX_OK ? check_file(folder, file, optimizer, err) : status;
}

enum chex_status
checkpoint_read_lines(const struct folder *folder, struct checkpoint_line *line, size_t room, size_t *count,
                      struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = file_read(folder->fd, CHECKPOINT_LATEST, LATEST_MAX, &b, err);
    char *text, *next;
    bool is;

    *count = 0;
    if (status == CHEX_OK)
        status = buffer_append(&b, "", 1, err);
    for (text = (char *)b.data; status == CHEX_OK && *text && *count < room; text = next) {
        struct checkpoint_line *l = &line[*count];

        next = text + strcspn(text, "\n");
        next += *next == '\n';
        if (sscanf(text, "%63s %64s %64s", l->name, l->model, l->optimizer) == 3)
            checkpoint_step_of(l->name, &is);
        else
            is = false;
        if (is)
            (*count)++;
        else
            status = error_set(err, CHEX_ERR_DAMAGED, "not the lines of checkpoints");
    }
    buffer_release(&b);
    if (status == CHEX_OK && *count == 0)
        status = error_set(err, CHEX_ERR_DAMAGED, "it is empty");
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", folder->path, CHECKPOINT_LATEST);
}

/* Find the newest files with valid headers, if `latest` is unusable. */
static bool
find_by_files(const struct folder *folder, char name[CHECKPOINT_NAME])
{
    uint64_t *step;
    size_t count, i;
    bool found = false;

    if (checkpoint_list_steps(folder, &step, &count, NULL) == CHEX_OK) {
        for (i = 0; !found && i < count; i++) {
            checkpoint_name(step[i], name);
            found = check_both(folder, name, NULL, NULL, NULL) == CHEX_OK;
        }
    }
    free(step);
    return found;
}

/* Returns whether no checkpoint was ever completed: a run that was killed during its first one counts as new. */
static bool
is_new(const struct folder *folder)
{
    uint64_t *step;
    size_t count;
    enum chex_status status = checkpoint_list_steps(folder, &step, &count, NULL);

    if (status == CHEX_OK)
        status = count == 0 || step[0] == 0 ? CHEX_OK : CHEX_ERR_USAGE;
    free(step);
    return status == CHEX_OK && faccessat(folder->fd, CHECKPOINT_LATEST, F_OK, 0) != 0;
}

enum chex_status
checkpoint_find(const struct folder *folder, char name[CHECKPOINT_NAME], bool *fallback, struct chex_error *err)
{
    struct checkpoint_line line[CHECKPOINT_LINES];
    size_t count, i;
    enum chex_status status;

    *fallback = false;
    if (is_new(folder))
        return error_set(err, CHEX_ERR_MISSING, "'%s' contains no checkpoint", folder->path);
    status = checkpoint_read_lines(folder, line, CHECKPOINT_LINES, &count, err);
    if (status != CHEX_OK && find_by_files(folder, name)) {
        *fallback = true;
        return CHEX_OK;
    }
    for (i = 0; status == CHEX_OK && i < count; i++) {
        if (check_both(folder, line[i].name, line[i].model, line[i].optimizer, i == 0 ? err : NULL) == CHEX_OK) {
            memcpy(name, line[i].name, CHECKPOINT_NAME);
            *fallback = i > 0 && strcmp(name, line[0].name) != 0;
            return CHEX_OK;
        }
    }
    return error_context(err, CHEX_ERR_DAMAGED, "no complete checkpoint in '%s'", folder->path);
}

enum chex_status
checkpoint_check(const struct folder *folder, const char *name, struct chex_error *err)
{
    struct checkpoint_line line[CHECKPOINT_LINES];
    size_t count, i;

    if (checkpoint_read_lines(folder, line, CHECKPOINT_LINES, &count, NULL) != CHEX_OK)
        count = 0;
    for (i = 0; i < count; i++)
        if (strcmp(line[i].name, name) == 0)
            return check_both(folder, name, line[i].model, line[i].optimizer, err);
    return check_both(folder, name, NULL, NULL, err);
}

/* Rename a file; a missing file is not an error. */
static enum chex_status
rename_bad(const struct folder *folder, const char *file, struct chex_error *err)
{
    char bad[CHECKPOINT_FILE + 8];

    snprintf(bad, sizeof(bad), "%s.bad", file);
    if (renameat(folder->fd, file, folder->fd, bad) != 0 && errno != ENOENT)
        return error_system(err, CHEX_ERR_WRITE, errno, "cannot rename '%s/%s'", folder->path, file);
    return CHEX_OK;
}

enum chex_status
checkpoint_set_aside(const struct folder *folder, const char *name, struct chex_error *err)
{
    uint64_t *step, last;
    size_t count, i;
    bool is;
    enum chex_status status = checkpoint_list_steps(folder, &step, &count, err);

    last = checkpoint_step_of(name, &is);
    for (i = 0; status == CHEX_OK && i < count && step[i] > last; i++) {
        char later[CHECKPOINT_NAME], file[CHECKPOINT_FILE];

        checkpoint_name(step[i], later);
        checkpoint_file_name(later, CHECKPOINT_SUFFIX, file);
        status = rename_bad(folder, file, err);
        checkpoint_file_name(later, CHECKPOINT_OPT_SUFFIX, file);
        if (status == CHEX_OK)
            status = rename_bad(folder, file, err);
    }
    free(step);
    return status;
}
