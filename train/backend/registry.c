/*
 * registry.c - finds a backend by name, among those of this build; see backend.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/backend.h"

#include <string.h>

const struct backend *
backend_find(const char *name)
{
    size_t i;

    for (i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}
