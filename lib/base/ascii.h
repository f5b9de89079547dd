/*
 * ascii.h - characters without a locale
 *
 * The functions of <ctype.h> follow setlocale() and are undefined for negative values; these read labels alike
 * everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_ASCII_H
#define CHEX_LIB_ASCII_H

#include <stdbool.h>
#include <stddef.h>

static inline bool
ascii_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool
ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char
ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline char
ascii_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Move *text and *length past the blanks at both ends.  Inline, since it sees every field of a label file. */
static inline void
ascii_trim(const char **text, size_t *length)
{
    while (*length > 0 && ascii_is_blank((*text)[0])) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && ascii_is_blank((*text)[*length - 1]))
        (*length)--;
}

/* True where they differ in case only. */
bool ascii_same(const char *a, size_t a_length, const char *b, size_t b_length);

/* The index of a text in a list of names that ends with NULL; -1: it is none of them. */
int name_index(const char *const *names, const char *text);

/*
 * For messages: text with each byte outside printable ASCII, and the backslash, as \xNN.  Always terminated; a text
 * that does not fit ends with "...".  Returns out.  4 * length + 1 bytes are always enough.
 */
char *ascii_escape(const char *text, size_t length, char *out, size_t out_size);

/*
 * How many characters must be put in, taken out or replaced to make b of a (Levenshtein), without case.
 * ASCII_FAR where one is longer than 64 bytes.
 */
#define ASCII_FAR 1000u
unsigned ascii_distance(const char *a, size_t a_length, const char *b, size_t b_length);

/*
 * The first line in which two texts differ, of each text, cut to `size` bytes; false where they are equal.
 */
bool ascii_find_difference(const char *a, size_t a_size, const char *b, size_t b_size, char *left, char *right,
                           size_t size);

#endif
