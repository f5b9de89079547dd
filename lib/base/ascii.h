/*
 * ascii.h - character functions that ignore the locale
 *
 * The functions of <ctype.h> depend on setlocale() and are undefined for negative values.  These functions read labels
 * in the same way everywhere.
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

/* Returns whether the comparison of names of columns and findings ignores this character. */
static inline bool
ascii_is_separator(char c)
{
    return ascii_is_blank(c) || c == '_' || c == '-';
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

/* Remove the blanks at both ends.  Inline, because it is called for every field of a label file. */
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

/* Returns the start of the last `parts` components of a path, or the whole path if it has fewer. */
const char *path_tail(const char *path, size_t length, unsigned parts);

/* Returns whether the texts are equal, ignoring case. */
bool ascii_same(const char *a, size_t a_length, const char *b, size_t b_length);

/* Returns whether the text is this word, ignoring case. */
bool ascii_is(const char *text, size_t length, const char *word);

/* Compare two elements of an array of texts (const char *), for qsort() and bsearch(). */
int compare_texts(const void *a, const void *b);

/* Returns the index of a text in a list of names that ends with NULL, or -1. */
int name_index(const char *const *names, const char *text);

/*
 * Escape a text for messages: each byte outside printable ASCII, and the backslash, becomes \xNN.  out is always
 * terminated; a text that does not fit ends with "...".  4 * length + 1 bytes are always enough.  Returns out.
 */
char *ascii_escape(const char *text, size_t length, char *out, size_t out_size);

/*
 * Returns the Levenshtein distance of two texts, ignoring case: the number of characters to insert, delete or replace.
 * Returns ASCII_FAR if a text is longer than 64 bytes.
 */
#define ASCII_FAR 1000u
unsigned ascii_distance(const char *a, size_t a_length, const char *b, size_t b_length);

/*
 * Find the first line that differs between two texts.  Writes this line of each text, truncated to `size` bytes.
 * Returns false if the texts are equal.
 */
bool ascii_find_difference(const char *a, size_t a_size, const char *b, size_t b_size, char *left, char *right,
                           size_t size);

#endif
