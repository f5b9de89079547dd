/*
 * shell_word.c - see shell_word.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "shell_word.h"

#include <stddef.h>
#include <string.h>

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,/:@%"

const char *
shell_word(const char *text, char out[SHELL_WORD])
{
    size_t length = strlen(text);
    char *to = out;

    if (length >= PATH_MAX || (length > 0 && strspn(text, PLAIN) == length))
        return text;
    *to++ = '\'';
    for (; *text; text++) {
        if (*text == '\'') { /* out of the quotes, one of its own, into them again */
            memcpy(to, "'\\''", 4);
            to += 4;
        } else {
            *to++ = *text;
        }
    }
    *to++ = '\'';
    *to = '\0';
    return out;
}
