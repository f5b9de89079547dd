/*
 * self_test.c - a target that fails for one input, to test that a failure is detected (check_fuzz.py)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include <string.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_REQUIRE(size != 4 || memcmp(data, "FUZZ", 4) != 0);
    return 0;
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    give("holds", "fuzz", 4, context);
    give("breaks", "FUZZ", 4, context);
}
