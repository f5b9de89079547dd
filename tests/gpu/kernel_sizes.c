/*
 * kernel_sizes.c - threads and dynamic shared memory of each kernel, one a line, for check_sass.py
 *
 * Linked with kernels/table.c and without the kernels, whose addresses nobody needs here.
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
        printf("%s %u %zu\n", cuda_kernels_fp16[i].name, cuda_kernels_fp16[i].threads, cuda_kernels_fp16[i].shared);
    return 0;
}
