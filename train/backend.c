/*
 * backend.c - what is common to all backends: how images enter, and which one has a name
 *
 * The list itself is made by configure: train/backends.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend.h"

#include <string.h>

const float input_mean[INPUT_CHANNELS] = {0.485f, 0.456f, 0.406f};
const float input_deviation[INPUT_CHANNELS] = {0.229f, 0.224f, 0.225f};

const struct backend *
backend_find(const char *name)
{
    size_t i;

    for (i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}
