/*
 * labels_mask.h - labels as bits, for short comparisons in tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_LABELS_MASK_H
#define CHEX_TESTS_LABELS_MASK_H

#include <stdint.h>

/* Returns the first 16 labels as bits: bit i is set if label i is 1. */
static inline uint16_t
labels_mask(const uint8_t *label, unsigned count)
{
    uint16_t mask = 0;

    for (unsigned i = 0; i < count && i < 16; i++)
        mask |= (uint16_t)((label[i] == 1) << i);
    return mask;
}

#endif
