/*
 * base64.c - see base64.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/base64.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(const uint8_t *bytes, size_t size, char *out)
{
    size_t i, k;

    for (i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;

        three |= i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0;
        three |= i + 2 < size ? bytes[i + 2] : 0;
        for (k = 0; k < 4; k++)
            *out++ = i + k <= size ? letters[three >> (18 - 6 * k) & 63] : '=';
    }
    *out = '\0';
}

/* Returns the value of a character, or -1. */
static int
value_of(char c)
{
    const char *at = c ? strchr(letters, c) : NULL;

    return at ? (int)(at - letters) : -1;
}

bool
base64_decode(const char *text, uint8_t *out, size_t size)
{
    size_t length = BASE64_LENGTH(size), letter = (size * 8 + 5) / 6, i;
    uint32_t bits = 0;

    if (strlen(text) != length)
        return false;
    for (i = 0; i < length; i++) {
        int value = i < letter ? value_of(text[i]) : text[i] == '=' ? 0 : -1;

        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 == 3) {
            size_t first = i / 4 * 3, k;

            for (k = 0; k < 3 && first + k < size; k++)
                out[first + k] = (uint8_t)(bits >> (16 - 8 * k));
            if (first + 3 > size && bits & ((1u << 8 * (first + 3 - size)) - 1))
                return false; /* bits after the last byte */
            bits = 0;
        }
    }
    return true;
}
