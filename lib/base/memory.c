/*
 * memory.c - see memory.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
size_mul(size_t a, size_t b, size_t *out)
{
    size_t product;

    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool
size_add(size_t a, size_t b, size_t *out)
{
    size_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

enum chex_status
buffer_reserve(struct buffer *b, size_t capacity, struct chex_error *err)
{
    size_t want = capacity;
    uint8_t *data;

    if (capacity <= b->capacity)
        return CHEX_OK;
    if (b->capacity <= SIZE_MAX / 2 && want < b->capacity * 2)
        want = b->capacity * 2;
    data = realloc(b->data, want);
    if (!data)
        return error_memory(err);
    b->data = data;
    b->capacity = want;
    return CHEX_OK;
}

enum chex_status
buffer_append(struct buffer *b, const void *data, size_t size, struct chex_error *err)
{
    size_t total;
    enum chex_status status;

    if (size == 0)
        return CHEX_OK;
    if (!size_add(b->size, size, &total))
        return error_memory(err);
    status = buffer_reserve(b, total, err);
    if (status != CHEX_OK)
        return status;
    memcpy(b->data + b->size, data, size);
    b->size = total;
    return CHEX_OK;
}

enum chex_status
buffer_vprintf(struct buffer *b, struct chex_error *err, const char *format, va_list args)
{
    enum chex_status status = buffer_reserve(b, b->size + 1, err);
    size_t total = b->size;
    va_list again;
    int length;

    if (status != CHEX_OK)
        return status;
    va_copy(again, args);
    length = vsnprintf((char *)b->data + b->size, b->capacity - b->size, format, args);
    if (length < 0 || !size_add(b->size, (size_t)length, &total) || total == SIZE_MAX)
        status = error_memory(err);
    else if (total >= b->capacity && (status = buffer_reserve(b, total + 1, err)) == CHEX_OK)
        vsnprintf((char *)b->data + b->size, b->capacity - b->size, format, again);
    va_end(again);
    if (status == CHEX_OK)
        b->size = total;
    return status;
}

enum chex_status
buffer_printf(struct buffer *b, struct chex_error *err, const char *format, ...)
{
    enum chex_status status;
    va_list args;

    va_start(args, format);
    status = buffer_vprintf(b, err, format, args);
    va_end(args);
    return status;
}

void
buffer_release(struct buffer *b)
{
    free(b->data);
    *b = (struct buffer){0};
}

void *
array_grow(void *array, size_t *capacity, size_t count, size_t element_size)
{
    size_t want = *capacity ? *capacity : 16;
    size_t bytes;
    void *grown;

    if (count < *capacity)
        return array;
    if (count >= want && !size_mul(want, 2, &want))
        return NULL;
    if (!size_mul(want, element_size, &bytes))
        return NULL;
    grown = realloc(array, bytes);
    if (grown)
        *capacity = want;
    return grown;
}

#define ARENA_BLOCK 65536

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    char data[];
};

char *
arena_copy(struct arena *a, const char *data, size_t size)
{
    struct arena_block *block = a->blocks;
    size_t need;
    char *copy;

    if (!size_add(size, 1, &need) || need > SIZE_MAX / 2)
        return NULL;
    if (!block || block->size - block->used < need) {
        size_t room = need > ARENA_BLOCK ? need : ARENA_BLOCK;

        block = malloc(sizeof(*block) + room);
        if (!block)
            return NULL;
        *block = (struct arena_block){.next = a->blocks, .size = room};
        a->blocks = block;
    }
    copy = block->data + block->used;
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    block->used += need;
    return copy;
}

void
arena_release(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;

        free(a->blocks);
        a->blocks = next;
    }
}
