/*
 * source_fixture.c - see source_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "source_fixture.h"

#include "unit.h"

#include "plan/coverage.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct source_fixture inputs;

void
inputs_setup(void)
{
    static unsigned count;

    snprintf(inputs.base, sizeof(inputs.base), "%s/source-%ld-%u", unit_folder(), (long)getpid(), count++);
    ck_assert_int_eq(mkdir(inputs.base, 0777), 0);
}

void
inputs_teardown(void)
{
    source_release(&inputs.source);
}

const char *
inputs_at(const char *name)
{
    static char path[4][1024];
    static unsigned next;

    next = (next + 1) % 4;
    snprintf(path[next], sizeof(path[next]), "%s%s%s", inputs.base, name[0] ? "/" : "", name);
    return path[next];
}

void
inputs_folder(const char *name)
{
    ck_assert_int_eq(mkdir(inputs_at(name), 0777), 0);
}

void
inputs_file(const char *name, const char *content)
{
    FILE *f = fopen(inputs_at(name), "wb");

    ck_assert_ptr_nonnull(f);
    fputs(content, f);
    ck_assert_int_eq(fclose(f), 0);
}

enum chex_status
inputs_scan(const char *a, const char *b)
{
    const char *paths[2] = {a, b};

    source_release(&inputs.source);
    return source_scan(paths, b ? 2 : 1, &inputs.source, &inputs.err);
}
