/*
 * source_fixture.h - a folder of files for each test, and what a scan finds there
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_SOURCE_FIXTURE_H
#define CHEX_TESTS_SOURCE_FIXTURE_H

#include "input/input_scan.h"

/* Of the test at hand. */
struct source_fixture {
    char base[512]; /* the folder */
    struct source source;
    struct chex_error err;
};

extern struct source_fixture inputs;

void inputs_setup(void);
void inputs_teardown(void);

/* A path below the folder of this test; static, four of them alive at a time. */
const char *inputs_at(const char *name);
void inputs_folder(const char *name);
void inputs_file(const char *name, const char *content);
/* Into inputs.source; b may be NULL. */
enum chex_status inputs_scan(const char *a, const char *b);

#endif
