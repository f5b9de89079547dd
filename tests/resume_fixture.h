/*
 * resume_fixture.h - a conversion of eleven images that ends before its time, and is resumed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_RESUME_FIXTURE_H
#define CHEX_TESTS_RESUME_FIXTURE_H

#include "store_fixture.h"

enum { RESUME_IMAGES = 11, RESUME_SHARDS = 3 }; /* four, four, three and a slot of the tail */

extern struct bench resumed;
extern char resume_reference[DIGEST_HEX]; /* what must come out */

/* A run without a break, with two rejects, makes resume_reference; then resumed has a new folder. */
void resume_setup(void);
void resume_teardown(void);

void resume_expect_reference(void);
/* Resume from what is there, to the end. */
void resume_complete(uint64_t seed);
/* A whole run in a new folder, before its journal is published away; the store is closed. */
void resume_finished_run(void);
/* The same without rejects, which would be tried again: every shard is finished for good. */
void resume_finished_without_rejects(void);
void resume_expect_state(size_t shards_done, size_t slots_full);
/* Of the items, those of the list "0 3 4" are wanted and no other. */
void resume_expect_wanted(const char *wanted);

#endif
