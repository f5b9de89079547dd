/*
 * file_fixture.h - a folder with files for each test
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_FILE_FIXTURE_H
#define CHEX_TESTS_FILE_FIXTURE_H

#include "io/file.h"

#include <sys/types.h>

/* The state of the current test. */
struct file_fixture {
    char base[512]; /* path of the folder */
    struct folder folder;
    struct chex_error err;
    struct buffer content;
};

extern struct file_fixture files;

void files_setup(void);
void files_teardown(void);

bool files_has(const char *name);
off_t files_size(const char *name);
void files_put(const char *name, const char *text);
void files_expect(const char *name, const char *wanted);
/* Returns ".NAME.tmp.PID" (file.h). */
const char *files_temporary(const char *name);
struct safe_file *files_create(const char *name, enum safe_file_kind kind, uint64_t size);
/* Requires this status and, in files.err, this text. */
void files_expect_error(enum chex_status got, enum chex_status wanted, const char *text);

#endif
