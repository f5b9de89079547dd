/*
 * verify_fixture.h - the reports of verify_run() on a small data set, as text
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_VERIFY_FIXTURE_H
#define CHEX_TESTS_VERIFY_FIXTURE_H

#include "lib/dataset/small_dataset.h"
#include "verify/verify.h"

/* The reports, one per line: "FILE[RECORD@OFFSET]: TEXT (IMAGE)". */
struct heard {
    char text[8192];
    unsigned count;
    enum chex_status status; /* of the last report */
};

/* The callback: context is a struct heard. */
void heard_fault(void *context, const struct verify_fault *fault);
struct verify heard_run(const struct small_dataset *s, enum verify_depth depth, unsigned threads, struct heard *h);
/* Requires exactly these reports. */
void heard_expect(const struct small_dataset *s, enum verify_depth depth, const char *text);

#endif
