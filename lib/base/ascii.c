/*
 * ascii.c - see ascii.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/ascii.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define DISTANCE_MAX 64

const char *
path_tail(const char *path, size_t length, unsigned parts)
{
    while (length > 0) {
        parts -= path[length - 1] == '/';
        if (parts == 0)
            return path + length;
        length--;
    }
    return path;
}

bool
ascii_same(const char *a, size_t a_length, const char *b, size_t b_length)
{
    if (a_length != b_length)
        return false;
    for (size_t i = 0; i < a_length; i++)
        if (ascii_lower(a[i]) != ascii_lower(b[i]))
            return false;
    return true;
}

bool
ascii_is(const char *text, size_t length, const char *word)
{
    return ascii_same(text, length, word, strlen(word));
}

int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int
name_index(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    return -1;
}

char *
ascii_escape(const char *text, size_t length, char *out, size_t out_size)
{
    static const char hex[] = "0123456789abcdef";
    size_t used = 0, whole = 0; /* whole: length of out to keep if "..." must follow */

    assert(out_size > 3);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool plain = c >= 0x20 && c < 0x7f && c != '\\';

        if (used + (plain ? 1 : 4) >= out_size) {
            memcpy(out + whole, "...", 4);
            return out;
        }
        if (plain) {
            out[used++] = (char)c;
        } else {
            out[used++] = '\\';
            out[used++] = 'x';
            out[used++] = hex[c >> 4];
            out[used++] = hex[c & 15];
        }
        if (used + 3 < out_size)
            whole = used;
    }
    out[used] = '\0';
    return out;
}

unsigned
ascii_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned row[DISTANCE_MAX + 1]; /* distances of all prefixes of b to one prefix of a */

    if (a_length > DISTANCE_MAX || b_length > DISTANCE_MAX)
        return ASCII_FAR;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned replaced = diagonal + (ascii_lower(a[i - 1]) != ascii_lower(b[j - 1]));
            unsigned best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

            diagonal = row[j];
            row[j] = replaced < best ? replaced : best;
        }
    }
    return row[b_length];
}

bool
ascii_find_difference(const char *a, size_t a_size, const char *b, size_t b_size, char *left, char *right, size_t size)
{
    size_t at = 0, start = 0;

    while (at < a_size && at < b_size && a[at] == b[at])
        if (a[at++] == '\n')
            start = at;
    if (at == a_size && at == b_size)
        return false;
    snprintf(left, size, "%.*s", (int)(a_size - start), a + start);
    snprintf(right, size, "%.*s", (int)(b_size - start), b + start);
    left[strcspn(left, "\n")] = right[strcspn(right, "\n")] = '\0';
    return true;
}
