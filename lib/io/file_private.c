/*
 * file_private.c - a scratch folder where other users may write, such as /tmp; see file.h
 *
 * Another user may have created something with that name first, or may exchange it at any time.  So no decision depends
 * on a path.  The folder is opened without following a link, the checks examine the open folder, and the caller makes
 * all later calls relative to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_link(const struct folder *above, const char *name, struct stat *st)
{
    return fstatat(above->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st->st_mode);
}

/*
 * Check that the folder belongs to this user and that no other user may write to it.  Remove other users' right to
 * read.
 */
static enum chex_status
check_private(const struct folder *folder, struct chex_error *err)
{
    struct stat st;

    if (fstat(folder->fd, &st) != 0)
        return error_system(err, CHEX_ERR_WRITE, errno, "cannot stat the folder '%s'", folder->path);
    if (st.st_uid != geteuid())
        return error_set(err, CHEX_ERR_USAGE, "the folder '%s' belongs to another user (uid %lu)", folder->path,
                         (unsigned long)st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return error_set(err, CHEX_ERR_USAGE, "other users may write to the folder '%s' (mode %04o)", folder->path,
                         (unsigned)(st.st_mode & 07777));
    if (st.st_mode & (S_IRWXG | S_IRWXO) && fchmod(folder->fd, S_IRWXU) != 0)
        return error_system(err, CHEX_ERR_WRITE, errno, "cannot close the folder '%s' to other users", folder->path);
    return CHEX_OK;
}

enum chex_status
folder_open_private(const struct folder *above, const char *name, bool create, struct folder *out,
                    struct chex_error *err)
{
    size_t size = strlen(above->path) + strlen(name) + 2;
    enum chex_status status = CHEX_OK;
    struct stat st;
    int fd;

    *out = (struct folder){.fd = -1, .path = malloc(size), .is_private = true};
    if (!out->path)
        return error_memory(err);
    snprintf(out->path, size, "%s/%s", above->path, name);
    if (create && mkdirat(above->fd, name, S_IRWXU) != 0 && errno != EEXIST)
        status = error_write(err, errno, "cannot create the folder '%s'", out->path);
    if (status == CHEX_OK) {
        fd = file_openat(above->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd >= 0)
            out->fd = fd;
        else if (is_link(above, name, &st))
            status = error_set(err, CHEX_ERR_USAGE, "'%s' is a symbolic link of uid %lu, which is not followed",
                               out->path, (unsigned long)st.st_uid);
        else
            status = error_system(err, create ? CHEX_ERR_WRITE : status_of_read_errno(-fd), -fd,
                                  "cannot open the folder '%s'", out->path);
    }
    if (status == CHEX_OK)
        status = check_private(out, err);
    if (status != CHEX_OK)
        folder_close(out);
    return status;
}
