/*
 * live_ranges.h - places buffers in one block of memory; buffers that are live at different times share bytes
 *
 * Time is counted in steps of the plan.  A buffer is live from the first step that uses it to the last one.  Buffers
 * are placed by size, the largest first, each at the lowest offset that overlaps no placed buffer that is live at the
 * same time.  Buffers of equal size are placed by their first step, then in the order of the array.
 *
 * Greedy by size, as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_LIVE_RANGES_H
#define CHEX_TRAIN_LIVE_RANGES_H

#include <stdbool.h>
#include <stddef.h>

struct live_range {
    size_t size;       /* in bytes or in any other unit */
    size_t begin, end; /* the first and the last step; begin > end: never used */
    size_t offset;     /* output, in the unit of `size` */
};

/*
 * Set the offsets, and *total to the size of the block: SIZE_MAX if it is larger than can be counted.  Returns false if
 * memory runs out.
 */
bool live_ranges_place(struct live_range *range, size_t count, size_t *total);

#endif
