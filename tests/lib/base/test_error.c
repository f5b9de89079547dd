/*
 * test_error.c - statuses and texts of errors (error.h), checked sizes and growing memory (memory.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors --------------------------------------------------------------------------------------------------- */

TEST_CASE("error", "error", NULL, NULL);

TEST(a_failure_sets_status_cause_and_text)
{
    struct chex_error err;

    memset(&err, '~', sizeof(err));
    ck_assert_int_eq(error_set(&err, CHEX_ERR_LIMIT, "%d of %s", 3, "four"), CHEX_ERR_LIMIT);
    ck_assert_int_eq(err.status, CHEX_ERR_LIMIT);
    ck_assert_int_eq(err.cause, 0);
    ck_assert_str_eq(err.text, "3 of four");
    for (size_t i = 0; i < sizeof(err.reserved) / sizeof(err.reserved[0]); i++)
        ck_assert_uint_eq(err.reserved[i], 0);
    ck_assert_int_eq(error_memory(&err), CHEX_ERR_MEMORY);
    ck_assert_int_eq(err.cause, ENOMEM);
    ck_assert_int_eq(err.status, CHEX_ERR_MEMORY);
    ck_assert_str_eq(err.text, "out of memory");
}

TEST(a_failed_call_is_the_cause_and_stays_it)
{
    struct chex_error err = {0};

    ck_assert_int_eq(error_system(&err, CHEX_ERR_READ, EIO, "cannot stat '%s'", "a"), CHEX_ERR_READ);
    ck_assert_int_eq(err.cause, EIO);
    ck_assert_str_eq(err.text, "cannot stat 'a': Input/output error");
    error_context(&err, CHEX_ERR_WRITE, "shard %d", 3);
    ck_assert_int_eq(err.status, CHEX_ERR_WRITE);
    ck_assert_int_eq(err.cause, EIO);
    ck_assert_int_eq(error_write(&err, ENOSPC, "cannot write '%s'", "a"), CHEX_ERR_WRITE);
    ck_assert_str_eq(err.text, "cannot write 'a': disk full");
    ck_assert_int_eq(err.cause, ENOSPC);
    error_set(&err, CHEX_ERR_DAMAGED, "no call");
    ck_assert_int_eq(err.cause, 0);
}

TEST(without_an_error_struct_there_is_still_a_status)
{
    ck_assert_int_eq(error_read(NULL, ENOENT, "%s", "nor this"), CHEX_ERR_MISSING);
    ck_assert_int_eq(error_write(NULL, ENOMEM, "%s", "nor this"), CHEX_ERR_MEMORY);
    ck_assert_int_eq(error_set(NULL, CHEX_ERR_BUG, "%s", "nobody reads this"), CHEX_ERR_BUG);
    ck_assert_int_eq(error_context(NULL, CHEX_ERR_READ, "%s", "nor this"), CHEX_ERR_READ);
    ck_assert_int_eq(error_memory(NULL), CHEX_ERR_MEMORY);
}

TEST(context_goes_before_the_text_and_may_change_the_status)
{
    struct chex_error err = {0};

    error_set(&err, CHEX_ERR_READ, "read error at byte 7");
    ck_assert_int_eq(error_context(&err, CHEX_ERR_WRITE, "'%s'", "a.png"), CHEX_ERR_WRITE);
    ck_assert_int_eq(err.status, CHEX_ERR_WRITE);
    ck_assert_str_eq(err.text, "'a.png': read error at byte 7");
    error_context(&err, CHEX_ERR_WRITE, "%s", "shard 3");
    ck_assert_str_eq(err.text, "shard 3: 'a.png': read error at byte 7");
}

/* Contexts of every length on texts of every length, around the available room. */
TEST(long_texts_are_cut_and_terminated)
{
    static char filler[2 * CHEX_ERROR_TEXT];
    const int lengths[] = {0, 1, 500, 1018, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 2000};
    size_t count = sizeof(lengths) / sizeof(lengths[0]);

    memset(filler, 'x', sizeof(filler) - 1);
    for (size_t i = 0; i < count * count; i++) {
        int text = lengths[i / count], context = lengths[i % count];
        struct {
            struct chex_error err;
            char guard[8];
        } e;
        size_t wanted = (size_t)text + (size_t)context + strlen(": ");

        memset(&e, '~', sizeof(e));
        error_set(&e.err, CHEX_ERR_READ, "%.*s", text, filler);
        ck_assert_uint_eq(strlen(e.err.text), text < CHEX_ERROR_TEXT ? text : CHEX_ERROR_TEXT - 1);
        error_context(&e.err, CHEX_ERR_READ, "%.*s", context, filler);
        ck_assert_uint_lt(strlen(e.err.text), CHEX_ERROR_TEXT);
        if (wanted + 1 < CHEX_ERROR_TEXT)
            ck_assert_uint_eq(strlen(e.err.text), wanted);
        ck_assert_mem_eq(e.guard, "~~~~~~~~", sizeof(e.guard));
    }
}

TEST(every_status_has_a_name_of_its_own)
{
    unsigned named = 0;

    for (int i = CHEX_OK; i <= CHEX_ERR_BUG; i++) {
        const char *name = chex_status_name((enum chex_status)i);

        ck_assert_ptr_nonnull(name);
        if (strcmp(name, "unknown") == 0)
            continue;
        named++;
        for (int k = CHEX_OK; k < i; k++)
            ck_assert_str_ne(name, chex_status_name((enum chex_status)k));
    }
    ck_assert_uint_eq(named, 19);
    ck_assert_str_eq(chex_status_name((enum chex_status)(CHEX_ERR_DIVERGED + 1)), "unknown");
    ck_assert_str_eq(chex_status_name(CHEX_ERR_TRUNCATED), "truncated"); /* chex.h */
    ck_assert_str_eq(chex_status_name((enum chex_status)(CHEX_ERR_BUG + 1)), "unknown");
    ck_assert_str_eq(chex_status_name((enum chex_status) - 1), "unknown");
}

/* The numbers of chex.h must not change, because programs are compiled with them. */
TEST(statuses_of_data_have_a_range_of_numbers)
{
    static const enum chex_status data[] = {CHEX_ERR_EMPTY,    CHEX_ERR_TRUNCATED,   CHEX_ERR_CHECKSUM,
                                            CHEX_ERR_DAMAGED,  CHEX_ERR_UNSUPPORTED, CHEX_ERR_LIMIT,
                                            CHEX_ERR_NOT_IMAGE};
    static const enum chex_status other[] = {CHEX_OK,          CHEX_ERR_MEMORY, CHEX_ERR_USAGE,   CHEX_ERR_MISSING,
                                             CHEX_ERR_READ,    CHEX_ERR_WRITE,  CHEX_ERR_LOCKED,  CHEX_ERR_INCOMPATIBLE,
                                             CHEX_ERR_STOPPED, CHEX_ERR_LOST,   CHEX_ERR_DIVERGED};

    for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++)
        ck_assert(chex_status_is_data(data[i]) && data[i] == CHEX_ERR_DATA_FIRST + i);
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        ck_assert(!chex_status_is_data(other[i]) && other[i] == i);
    ck_assert(CHEX_ERR_BUG == 99 && !chex_status_is_data(CHEX_ERR_BUG));
}

/*
 * A missing file is the fault of one input.  A lack of file descriptors or memory is not, and must not reject images.
 */
TEST(errno_becomes_the_status_that_steers)
{
    const int missing[] = {ENOENT, ENOTDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG, EISDIR};
    const int resources[] = {ENOMEM, EMFILE, ENFILE};

    for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
        ck_assert_int_eq(status_of_read_errno(missing[i]), CHEX_ERR_MISSING);
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
        ck_assert_int_eq(status_of_read_errno(resources[i]), CHEX_ERR_MEMORY);
    ck_assert_int_eq(status_of_read_errno(EIO), CHEX_ERR_READ);
    ck_assert_int_eq(status_of_read_errno(ESTALE), CHEX_ERR_READ);
    ck_assert_int_eq(error_read(NULL, EMFILE, "x"), CHEX_ERR_MEMORY);
    ck_assert_int_eq(error_write(NULL, ENOSPC, "x"), CHEX_ERR_WRITE);
    ck_assert_int_eq(error_write(NULL, EDQUOT, "x"), CHEX_ERR_WRITE);
    ck_assert_int_eq(error_write(NULL, EROFS, "x"), CHEX_ERR_WRITE);
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

TEST_CASE("error", "mem", NULL, NULL);

TEST(sizes_that_do_not_fit_are_refused)
{
    size_t out = 7;

    ck_assert(size_mul(SIZE_MAX, 1, &out) && out == SIZE_MAX);
    ck_assert(size_mul(SIZE_MAX, 0, &out) && out == 0);
    ck_assert(size_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    out = 7;
    ck_assert(!size_mul(SIZE_MAX, 2, &out));
    ck_assert(!size_mul(SIZE_MAX / 2 + 1, 2, &out));
    ck_assert(!size_add(SIZE_MAX, 1, &out));
    ck_assert(!size_add(SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, &out));
    ck_assert_uint_eq(out, 7);
}

TEST(a_buffer_keeps_the_appended_text)
{
    struct buffer b = {0};
    uint8_t piece[37];

    for (unsigned i = 0; i < 1000; i++) {
        memset(piece, (int)(i & 0xff), sizeof(piece));
        ck_assert_int_eq(buffer_append(&b, piece, sizeof(piece), NULL), CHEX_OK);
    }
    ck_assert_uint_eq(b.size, 1000 * sizeof(piece));
    for (size_t i = 0; i < b.size; i++)
        ck_assert_uint_eq(b.data[i], i / sizeof(piece) & 0xff);
    buffer_release(&b);
    ck_assert(!b.data && b.size == 0 && b.capacity == 0);
    ck_assert_int_eq(buffer_append(&b, NULL, 0, NULL), CHEX_OK);
    ck_assert_ptr_null(b.data);
    buffer_release(&b);
}

/* Texts of every length around the available room. */
TEST(a_formatted_text_of_any_length_is_appended)
{
    struct buffer b = {0};
    size_t size = 0;

    for (int width = 1; width < 3000; width += width / 3 + 1) {
        ck_assert_int_eq(buffer_printf(&b, NULL, "%*d,%s", width, 7, "x"), CHEX_OK);
        size += (size_t)width + 2;
        ck_assert_uint_eq(b.size, size);
        ck_assert_str_eq((char *)b.data + size - 3, "7,x");
    }
    ck_assert_int_eq(buffer_printf(&b, NULL, "%s", ""), CHEX_OK);
    ck_assert_uint_eq(b.size, size);
    ck_assert_uint_eq(strlen((char *)b.data), size);
    buffer_release(&b);
}

/* Appending n bytes one by one moves them O(log n) times. */
TEST(a_buffer_at_least_doubles)
{
    struct buffer b = {0};
    size_t last = 0, moves = 0;

    for (size_t i = 0; i < 100000; i++) {
        ck_assert_int_eq(buffer_append(&b, "x", 1, NULL), CHEX_OK);
        moves += b.capacity != last;
        last = b.capacity;
    }
    ck_assert_uint_le(moves, 18); /* 2^17 > 100000 */
    ck_assert_int_eq(buffer_reserve(&b, 5, NULL), CHEX_OK);
    ck_assert_uint_eq(b.capacity, last);
    ck_assert_uint_eq(b.size, 100000);
    buffer_release(&b);
}

TEST(a_buffer_that_cannot_grow_keeps_its_content)
{
    struct chex_error err = {0};
    struct buffer b = {0};

    ck_assert_int_eq(buffer_append(&b, "abc", 3, &err), CHEX_OK);
    /* The sum overflows, so nothing is allocated. */
    ck_assert_int_eq(buffer_append(&b, "abc", SIZE_MAX - 1, &err), CHEX_ERR_MEMORY);
    ck_assert_str_eq(err.text, "out of memory");
    ck_assert_uint_eq(b.size, 3);
    ck_assert_mem_eq(b.data, "abc", 3);
    buffer_release(&b);
}

TEST(an_array_grows_by_doubling)
{
    size_t capacity = 0, count = 0;
    uint32_t *array = NULL;

    for (; count < 10000; count++) {
        uint32_t *grown = array_grow(array, &capacity, count, sizeof(*array));

        ck_assert_ptr_nonnull(grown);
        ck_assert_uint_gt(capacity, count);
        array = grown;
        array[count] = (uint32_t)count * 3;
    }
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(array[i], i * 3);
    ck_assert_uint_eq(capacity, 16384);
    ck_assert_ptr_eq(array_grow(array, &capacity, 5, sizeof(*array)), array);
    free(array);
}

TEST(an_array_that_cannot_grow_is_left_as_it_is)
{
    size_t capacity = SIZE_MAX / 2 + 1;

    ck_assert_ptr_null(array_grow(NULL, &capacity, capacity, 1));
    ck_assert_uint_eq(capacity, SIZE_MAX / 2 + 1);
    capacity = SIZE_MAX / 8;
    ck_assert_ptr_null(array_grow(NULL, &capacity, capacity, 16));
    ck_assert_uint_eq(capacity, SIZE_MAX / 8);
}

TEST(strings_of_an_arena_stay_where_they_are)
{
    enum { COUNT = 5000, LARGE = 200000 };
    static char *copy[COUNT];
    static char large[LARGE];
    struct arena arena = {0};
    char text[32];

    memset(large, 'L', sizeof(large));
    for (unsigned i = 0; i < COUNT; i++) {
        /* Sometimes a text larger than a block. */
        if (i % 1000 == 999) {
            copy[i] = arena_copy(&arena, large, sizeof(large));
        } else {
            int length = snprintf(text, sizeof(text), "string %u", i);

            copy[i] = arena_copy(&arena, text, (size_t)length);
        }
        ck_assert_ptr_nonnull(copy[i]);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(text, sizeof(text), "string %u", i);
        if (i % 1000 == 999)
            ck_assert_uint_eq(strlen(copy[i]), sizeof(large));
        else
            ck_assert_str_eq(copy[i], text);
    }
    ck_assert_str_eq(arena_copy(&arena, NULL, 0), "");
    ck_assert_ptr_null(arena_copy(&arena, "x", SIZE_MAX));
    ck_assert_ptr_null(arena_copy(&arena, "x", SIZE_MAX - 1));
    arena_release(&arena);
    arena_release(&arena);
}
