/*
 * file_same.c - compares two files; see file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPARED 16384 /* bytes of each file per comparison */

/* Compare two open files to their ends, in small pieces, because their sizes have not been limited yet. */
static enum chex_status
compare_bytes(int a, int b, bool *same, struct chex_error *err)
{
    uint8_t bytes_a[COMPARED], bytes_b[COMPARED];
    uint64_t at = 0;
    size_t got_a, got_b;
    enum chex_status status;

    do {
        status = file_pread(a, at, bytes_a, COMPARED, &got_a, err);
        if (status == CHEX_OK)
            status = file_pread(b, at, bytes_b, COMPARED, &got_b, err);
        *same = status == CHEX_OK && got_a == got_b && memcmp(bytes_a, bytes_b, got_a) == 0;
        at += got_a;
    } while (*same && got_a == COMPARED);
    return status;
}

enum chex_status
file_same(const char *a, const char *b, bool *same, struct chex_error *err)
{
    uint64_t size_a, size_b;
    struct stat sa = {0}, sb = {0};
    int fd_a, fd_b, error;
    enum chex_status status;

    *same = false;
    error = file_fstatat(AT_FDCWD, a, 0, &sa);
    if (error == 0)
        error = file_fstatat(AT_FDCWD, b, 0, &sb);
    status = error == 0 ? CHEX_OK : error_read(err, error, "cannot stat");
    if (status == CHEX_OK) {
        *same = sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
        if (*same || sa.st_size != sb.st_size)
            return CHEX_OK;
        status = file_open(AT_FDCWD, a, &fd_a, &size_a, err);
    }
    if (status == CHEX_OK) {
        status = file_open(AT_FDCWD, b, &fd_b, &size_b, err);
        if (status == CHEX_OK) {
            if (size_a == size_b)
                status = compare_bytes(fd_a, fd_b, same, err);
            close(fd_b);
        }
        close(fd_a);
    }
    return status == CHEX_ERR_READ || status == CHEX_ERR_MEMORY
               ? error_context(err, status, "'%s' and '%s', which have one name, cannot be compared", a, b)
               : CHEX_OK;
}
