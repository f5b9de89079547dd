/*
 * canvas_file.c - file names of pictures; see canvas.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/canvas.h"

#include "base/ascii.h"

#include <string.h>

bool
picture_name_ends(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);

    return length > end_length && ascii_same(name + length - end_length, end_length, end, end_length);
}
