/*
 * memory.h - checked sizes, growing buffers and a string arena
 *
 * Sizes from a file are multiplied and added only through size_mul() and size_add().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_MEM_H
#define CHEX_LIB_MEM_H

#include "base/error.h"

#include <stdarg.h>

/* *out = a * b or a + b; false where that does not fit (then *out is not touched). */
bool size_mul(size_t a, size_t b, size_t *out);
bool size_add(size_t a, size_t b, size_t *out);

/* Bytes that grow and are reused from call to call; zero-initialise, release with buffer_release(). */
struct buffer {
    uint8_t *data;
    size_t size;     /* bytes in use, set by the user */
    size_t capacity; /* bytes allocated */
};

/* Make room for capacity bytes; the content in use (size) is kept.  At least doubles, so appending is linear. */
enum chex_status buffer_reserve(struct buffer *b, size_t capacity, struct chex_error *err);
enum chex_status buffer_append(struct buffer *b, const void *data, size_t size, struct chex_error *err);
/* Append formatted text of any length, and a terminator that b->size does not count. */
enum chex_status buffer_printf(struct buffer *b, struct chex_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum chex_status buffer_vprintf(struct buffer *b, struct chex_error *err, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
void buffer_release(struct buffer *b);

/*
 * Make room for one more element in an array that holds count of them: returns the array (moved, perhaps), or NULL
 * when out of memory (the old one is still there and still the caller's).  *capacity is kept in elements.
 */
void *array_grow(void *array, size_t *capacity, size_t count, size_t element_size);

/* Strings that live and die together.  Zero-initialise. */
struct arena {
    struct arena_block *blocks;
};

/* A terminated copy of size bytes, valid until arena_release(); NULL when out of memory. */
char *arena_copy(struct arena *a, const char *data, size_t size);
void arena_release(struct arena *a);

#endif
