/*
 * library.c - see cudnn/library.h: the cuDNN of the tests is linked into the program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/cudnn/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cudnn_calls *
cudnn_open(char *why, size_t size)
{
    static const struct cudnn_calls calls = {CUDNN_CALLS(CUDNN_ENTRY)};
    const char *setting = getenv("FAKE_CUDNN");

    if (!setting || strcmp(setting, "none") != 0)
        return &calls;
    snprintf(why, size, "libcudnn.so.9 was not found");
    return NULL;
}
