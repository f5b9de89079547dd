/*
 * image_name.c - see image_name.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/image_name.h"

#include <string.h>
#include <strings.h>

bool
image_name_is_known(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}
