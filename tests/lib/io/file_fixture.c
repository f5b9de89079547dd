/*
 * file_fixture.c - see file_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "file_fixture.h"

#include "unit.h"

#include "io/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_fixture files;

void
files_setup(void)
{
    static unsigned count;

    snprintf(files.base, sizeof(files.base), "%s/file-%ld-%u", unit_folder(), (long)getpid(), count++);
    ck_assert_msg(folder_open(files.base, true, &files.folder, &files.err) == CHEX_OK, "%s", files.err.text);
}

void
files_teardown(void)
{
    folder_close(&files.folder);
    buffer_release(&files.content);
}

bool
files_has(const char *name)
{
    struct stat st;

    return fstatat(files.folder.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

off_t
files_size(const char *name)
{
    struct stat st;

    ck_assert_int_eq(fstatat(files.folder.fd, name, &st, 0), 0);
    return st.st_size;
}

void
files_expect(const char *name, const char *wanted)
{
    ck_assert_msg(file_read(files.folder.fd, name, 1 << 20, &files.content, &files.err) == CHEX_OK, "%s: %s", name,
                  files.err.text);
    ck_assert_uint_eq(files.content.size, strlen(wanted));
    ck_assert_mem_eq(files.content.data, wanted, files.content.size);
}

void
files_put(const char *name, const char *text)
{
    int fd = openat(files.folder.fd, name, O_CREAT | O_EXCL | O_WRONLY, 0666);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

const char *
files_temporary(const char *name)
{
    static char text[300];

    snprintf(text, sizeof(text), ".%s.tmp.%ld", name, (long)getpid());
    return text;
}

struct safe_file *
files_create(const char *name, enum safe_file_kind kind, uint64_t size)
{
    struct safe_file *f;

    ck_assert_msg(safe_file_create(&files.folder, name, kind, size, &f, &files.err) == CHEX_OK, "%s", files.err.text);
    return f;
}

void
files_expect_error(enum chex_status got, enum chex_status wanted, const char *text)
{
    ck_assert_int_eq(got, wanted);
    ck_assert_int_eq(files.err.status, wanted);
    ck_assert_msg(strstr(files.err.text, text), "\"%s\" is not in \"%s\"", text, files.err.text);
}
