/*
 * kernel_sizes.c - prints threads and dynamic shared memory of each kernel, one per line, for check_sass.py
 *
 * SIZES_OF is the table of the type of values.
 *
 * It is linked with kernels/table.c but not with the kernels, because their addresses are not used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/launch.h"

#include <stdio.h>

int
main(void)
{
    int i;

    for (i = 0; i < CUDA_KERNEL_COUNT; i++)
        printf("%s %u %zu\n", SIZES_OF[i].name, SIZES_OF[i].threads, SIZES_OF[i].shared);
    return 0;
}
