/*
 * file_folder.c - lists the entries of a folder; see file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/file.h"

#include "base/ascii.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum chex_status
read_names(DIR *dir, const char *path, bool (*wanted)(const char *name), struct folder_names *out,
           struct chex_error *err)
{
    size_t capacity = 0;
    struct dirent *d;

    while (errno = 0, (d = readdir(dir)) != NULL) {
        char **grown;

        if (!wanted(d->d_name))
            continue;
        grown = array_grow(out->name, &capacity, out->count, sizeof(*grown));
        if (!grown)
            return error_memory(err);
        out->name = grown;
        out->name[out->count] = strdup(d->d_name);
        if (!out->name[out->count])
            return error_memory(err);
        out->count++;
    }
    return errno == 0 ? CHEX_OK : error_read(err, errno, "cannot list the folder '%s'", path);
}

static enum chex_status
list_once(const struct folder *folder, bool (*wanted)(const char *name), struct folder_names *out,
          struct chex_error *err)
{
    /* Open the folder again, so that NFS asks the server for its current entries. */
    int fd = file_openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    enum chex_status status = dir ? read_names(dir, folder->path, wanted, out, err)
                                  : error_read(err, fd < 0 ? -fd : errno, "cannot list the folder '%s'", folder->path);

    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return status;
}

enum chex_status
folder_list(const struct folder *folder, bool (*wanted)(const char *name), struct folder_names *out,
            struct chex_error *err)
{
    unsigned failures = 0;
    struct chex_error why;
    enum chex_status status;

    do {
        folder_names_release(out);
        status = list_once(folder, wanted, out, &why);
    } while (status == CHEX_ERR_READ && file_try_again(why.cause, &failures));
    if (status != CHEX_OK && err)
        *err = why;
    if (out->count > 0)
        qsort(out->name, out->count, sizeof(*out->name), compare_texts);
    return status;
}

void
folder_names_release(struct folder_names *names)
{
    while (names->count > 0)
        free(names->name[--names->count]);
    free(names->name);
    *names = (struct folder_names){0};
}
