/*
 * source_fixture.h - a folder of files for each test, and the result of a scan
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_SOURCE_FIXTURE_H
#define CHEX_TESTS_SOURCE_FIXTURE_H

#include "input/input_scan.h"

/* The state of the current test. */
struct source_fixture {
    char base[512]; /* the folder */
    struct source source;
    struct chex_error err;
};

extern struct source_fixture inputs;

void inputs_setup(void);
void inputs_teardown(void);

/* Returns a path below the folder of this test; static, valid for four calls. */
const char *inputs_at(const char *name);
void inputs_folder(const char *name);
void inputs_file(const char *name, const char *content);
/* Scans into inputs.source; b may be NULL. */
enum chex_status inputs_scan(const char *a, const char *b);

#endif
