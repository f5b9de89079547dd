/*
 * resume_fixture.h - a conversion of eleven images that is interrupted and resumed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_RESUME_FIXTURE_H
#define CHEX_TESTS_RESUME_FIXTURE_H

#include "store_fixture.h"

enum { RESUME_IMAGES = 11, RESUME_SHARDS = 3 }; /* four, four, three and a slot of the tail */

extern struct bench resumed;
extern char resume_reference[DIGEST_HEX]; /* the expected digest */

/* A complete run with two rejects computes resume_reference; then `resumed` gets a new folder. */
void resume_setup(void);
void resume_teardown(void);

void resume_expect_reference(void);
/* Resumes to the end. */
void resume_complete(uint64_t seed);
/* A complete run in a new folder, before the data set is published and the journal removed; the store is closed. */
void resume_finished_run(void);
/* The same without rejects, which would be tried again: every shard is final. */
void resume_finished_without_rejects(void);
void resume_expect_state(size_t shards_done, size_t slots_full);
/* Requires that exactly the items in the list "0 3 4" are wanted. */
void resume_expect_wanted(const char *wanted);

#endif
