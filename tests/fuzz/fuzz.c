/*
 * fuzz.c - see fuzz.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Noreturn void
fuzz_fail(const char *file, int line, const char *what)
{
    /* By the descriptor: a target may have put another stream in the place of stderr. */
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
