/*
 * fuzz.c - see fuzz.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Noreturn void
fuzz_fail(const char *file, int line, const char *what)
{
    /* By the descriptor: a target may have redirected the stream stderr. */
    dprintf(STDERR_FILENO, "%s:%d: required: %s\n", file, line, what);
    abort();
}

void
fuzz_require_error(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    FUZZ_REQUIRE(status > CHEX_OK && status != CHEX_ERR_BUG && status != CHEX_ERR_MEMORY);
    FUZZ_REQUIRE(err->status == status);
    FUZZ_REQUIRE(memchr(err->text, '\0', sizeof(err->text)) != NULL && err->text[0] != '\0');
    for (const char *p = err->text; *p; p++)
        FUZZ_REQUIRE((unsigned char)*p >= 0x20 && *p != 0x7f);
}

const char *
fuzz_file(unsigned number, const void *data, size_t size)
{
    static int fd[2] = {-1, -1};
    static char path[2][40];

    if (fd[number] < 0) {
        fd[number] = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_REQUIRE(fd[number] >= 0);
        snprintf(path[number], sizeof(path[number]), "/proc/self/fd/%d", fd[number]);
    }
    FUZZ_REQUIRE(ftruncate(fd[number], 0) == 0);
    FUZZ_REQUIRE(size == 0 || pwrite(fd[number], data, size, 0) == (ssize_t)size);
    return path[number];
}

/* ---- folder ---------------------------------------------------------------------------------------------------- */

static struct folder folder = {.fd = -1};

static void
remove_folder(void)
{
    DIR *dir = opendir(folder.path);
    struct dirent *d;

    while (dir && (d = readdir(dir)) != NULL)
        unlinkat(folder.fd, d->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder.path);
    folder_close(&folder);
}

const struct folder *
fuzz_folder(void)
{
    char path[64] = "/dev/shm/chex-fuzz-XXXXXX", other[64] = "/tmp/chex-fuzz-XXXXXX";
    const char *made;

    if (folder.fd >= 0)
        return &folder;
    made = mkdtemp(path); /* in memory, because the code under test calls fsync */
    if (!made)
        made = mkdtemp(other);
    FUZZ_REQUIRE(made && folder_open(made, false, &folder, NULL) == CHEX_OK);
    atexit(remove_folder);
    return &folder;
}

void
fuzz_put(const char *name, const void *data, size_t size)
{
    int fd = openat(fuzz_folder()->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    FUZZ_REQUIRE(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size) && close(fd) == 0);
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

uint64_t
fuzz_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t
fuzz_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((fuzz_random(state) >> 32) * bound >> 32);
}

void
fuzz_put_u32be(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (24 - 8 * i));
}

uint32_t
fuzz_get_u32be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
