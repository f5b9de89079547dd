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

/* Set *out = a * b or a + b.  Return false on overflow; then *out does not change. */
bool size_mul(size_t a, size_t b, size_t *out);
bool size_add(size_t a, size_t b, size_t *out);

/* A growing array of bytes, reused from call to call.  Zero it before use; free it with buffer_release(). */
struct buffer {
    uint8_t *data;
    size_t size;     /* bytes in use, set by the owner */
    size_t capacity; /* bytes allocated */
};

/*
 * Make room for capacity bytes, and keep the first `size` bytes.  The capacity at least doubles, so appending takes
 * linear time.
 */
enum chex_status buffer_reserve(struct buffer *b, size_t capacity, struct chex_error *err);
enum chex_status buffer_append(struct buffer *b, const void *data, size_t size, struct chex_error *err);
/* Append formatted text of any length.  The terminator is not counted in b->size. */
enum chex_status buffer_printf(struct buffer *b, struct chex_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum chex_status buffer_vprintf(struct buffer *b, struct chex_error *err, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
void buffer_release(struct buffer *b);

/*
 * Make room for one more element in an array with count elements.  Returns the array, which may have moved, or NULL
 * when out of memory; then the caller still owns the old array.  *capacity is the number of elements.
 */
void *array_grow(void *array, size_t *capacity, size_t count, size_t element_size);

/* Strings that are freed together.  Zero it before use. */
struct arena {
    struct arena_block *blocks;
};

/* Returns a terminated copy of size bytes, valid until arena_release(); NULL when out of memory. */
char *arena_copy(struct arena *a, const char *data, size_t size);
void arena_release(struct arena *a);

#endif
