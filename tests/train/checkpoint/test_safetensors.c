/*
 * test_safetensors.c - weights on disk
 *
 * The format is that of the specification (github.com/huggingface/safetensors, README, "Format").
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "base/sha256.h"
#include "checkpoint/safetensors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes a file with this header and `values` bytes 0, 1, 2 ... after it; returns its path. */
static const char *
file_of(const char *header, size_t values)
{
    static uint8_t bytes[4096];
    size_t length = strlen(header), i;

    ck_assert_uint_lt(8 + length + values, sizeof(bytes));
    memset(bytes, 0, 8);
    bytes[0] = (uint8_t)length;
    bytes[1] = (uint8_t)(length >> 8);
    memcpy(bytes + 8, header, length);
    for (i = 0; i < values; i++)
        bytes[8 + length + i] = (uint8_t)i;
    return unit_file("x.safetensors", bytes, 8 + length + values);
}

static void
expect_fault(const char *header, size_t values, enum chex_status status, const char *text)
{
    struct safetensors s;
    struct chex_error err = {.text = ""};

    ck_assert_int_eq(safetensors_open(AT_FDCWD, file_of(header, values), &s, &err), status);
    ck_assert_msg(strstr(err.text, text), "'%s' does not contain '%s'", err.text, text);
    safetensors_close(&s);
}

TEST_CASE("safetensors", "files", NULL, NULL);

TEST(written_tensors_are_read_back)
{
    const float weight[6] = {1, -2, 3.5f, 0, 1e-30f, 7};
    const int64_t number = 42;
    const struct tensor_source tensor[] = {
        {{.name = "z.weight", .type = DTYPE_F32, .rank = 2, .shape = {2, 3}, .count = 6}, weight},
        {{.name = "a.num_batches_tracked", .type = DTYPE_I64, .rank = 0, .count = 1}, &number},
    };
    const struct metadata metadata[] = {{"model", "x \"y\""}, {"note", "research use only"}};
    const struct tensor_entry *e;
    struct safetensors s;
    struct chex_error err;
    struct folder folder;
    char hex[DIGEST_HEX];
    float back[6];
    int64_t n = 0;

    ck_assert_int_eq(folder_open(unit_folder(), false, &folder, &err), CHEX_OK);
    ck_assert_int_eq(safetensors_write(&folder, "w.safetensors", tensor, 2, metadata, 2, hex, &err), CHEX_OK);
    ck_assert_int_eq(safetensors_open(folder.fd, "w.safetensors", &s, &err), CHEX_OK);
    ck_assert_uint_eq(s.count, 2);
    ck_assert_str_eq(safetensors_metadata(&s, "model"), "x \"y\"");
    ck_assert_ptr_null(safetensors_metadata(&s, "other"));
    e = safetensors_find(&s, "z.weight");
    ck_assert(e && e->rank == 2 && e->shape[0] == 2 && e->shape[1] == 3 && e->offset % 64 == 0);
    ck_assert_int_eq(safetensors_read_floats(&s, e, back, &err), CHEX_OK);
    ck_assert_mem_eq(back, weight, sizeof(weight));
    e = safetensors_find(&s, "a.num_batches_tracked");
    ck_assert_int_eq(safetensors_read_raw(&s, e, &n, &err), CHEX_OK);
    ck_assert_int_eq(n, 42);
    ck_assert_int_eq(safetensors_read_floats(&s, e, back, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_ptr_null(safetensors_find(&s, "missing"));
    safetensors_close(&s);
    folder_close(&folder);
}

TEST(half_and_double_become_floats)
{
    /* 0x3c00 = 1, 0xc000 = -2, 0x0001 = 2^-24, 0x7c00 = infinity (IEEE 754); bfloat16 0x3fc0 = 1.5 */
    static const uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x7c00}, brain[] = {0x3fc0};
    static const double twice[] = {0.1};
    const struct tensor_source tensor[] = {
        {{.name = "h", .type = DTYPE_F16, .rank = 1, .shape = {4}, .count = 4}, half},
        {{.name = "b", .type = DTYPE_BF16, .rank = 1, .shape = {1}, .count = 1}, brain},
        {{.name = "d", .type = DTYPE_F64, .rank = 1, .shape = {1}, .count = 1}, twice},
    };
    struct safetensors s;
    struct chex_error err;
    struct folder folder;
    float out[4];

    ck_assert_int_eq(folder_open(unit_folder(), false, &folder, &err), CHEX_OK);
    ck_assert_int_eq(safetensors_write(&folder, "h.safetensors", tensor, 3, NULL, 0, NULL, &err), CHEX_OK);
    ck_assert_int_eq(safetensors_open(folder.fd, "h.safetensors", &s, &err), CHEX_OK);
    ck_assert_int_eq(safetensors_read_floats(&s, safetensors_find(&s, "h"), out, &err), CHEX_OK);
    ck_assert(out[0] == 1 && out[1] == -2 && out[2] == 0x1p-24f && out[3] > 1e38f);
    ck_assert_int_eq(safetensors_read_floats(&s, safetensors_find(&s, "b"), out, &err), CHEX_OK);
    ck_assert(out[0] == 1.5f);
    ck_assert_int_eq(safetensors_read_floats(&s, safetensors_find(&s, "d"), out, &err), CHEX_OK);
    ck_assert(out[0] == 0.1f);
    safetensors_close(&s);
    folder_close(&folder);
}

TEST(a_file_that_does_not_keep_to_the_format_is_refused_before_any_value_is_read)
{
    expect_fault("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, CHEX_ERR_TRUNCATED,
                 "'a' ends 1 bytes after");
    expect_fault("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9, CHEX_ERR_DAMAGED,
                 "1 bytes after the last");
    expect_fault("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, CHEX_ERR_DAMAGED, "its shape");
    expect_fault("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                 "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
                 7, CHEX_ERR_DAMAGED, "overlaps");
    expect_fault("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                 "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[5,9]}}",
                 9, CHEX_ERR_DAMAGED, "a hole");
    expect_fault("{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
                 CHEX_ERR_DAMAGED, "overflows");
    expect_fault("{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0,
                 CHEX_ERR_DAMAGED, "its bytes");
    expect_fault("{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,0]}}", 0, CHEX_ERR_DAMAGED, "numbers");
    expect_fault("{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, CHEX_ERR_UNSUPPORTED, "'C64'");
    expect_fault("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                 "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                 1, CHEX_ERR_DAMAGED, "duplicate");
    expect_fault("{\"__metadata__\":{\"a\":1}}", 0, CHEX_ERR_DAMAGED, "not a string");
    expect_fault("{\"a\":[[[[[[]]]]]]}", 0, CHEX_ERR_LIMIT, "nested");
    expect_fault("{\"a\"", 0, CHEX_ERR_DAMAGED, "line 1");
    /* No control character of a file gets into a message. */
    expect_fault("{\"\\u001b\":\"x\"}", 0, CHEX_ERR_DAMAGED, "tensor '\\x1b'");
    expect_fault("{\"\\u0007\":{\"dtype\":\"\\n\"}}", 0, CHEX_ERR_UNSUPPORTED, "'\\x07' has the dtype '\\x0a'");
    expect_fault("{\"__metadata__\":{\"\\u009b\":1}}", 0, CHEX_ERR_DAMAGED, "'\\xc2\\x9b' is not a string");
    expect_fault("", 0, CHEX_ERR_NOT_IMAGE, "not a safetensors");
}

TEST(other_files_are_recognised_and_named)
{
    const uint8_t zip[16] = "PK\3\4............", endless[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    const uint8_t longer[8] = {100};
    struct safetensors s;
    struct chex_error err;

    ck_assert_int_eq(safetensors_open(AT_FDCWD, unit_file("a", zip, 16), &s, &err), CHEX_ERR_NOT_IMAGE);
    ck_assert(strstr(err.text, "torch.save()"));
    safetensors_close(&s);
    ck_assert_int_eq(safetensors_open(AT_FDCWD, unit_file("a", endless, 8), &s, &err), CHEX_ERR_NOT_IMAGE);
    safetensors_close(&s);
    ck_assert_int_eq(safetensors_open(AT_FDCWD, unit_file("a", longer, 8), &s, &err), CHEX_ERR_TRUNCATED);
    safetensors_close(&s);
    ck_assert_int_eq(safetensors_open(AT_FDCWD, unit_file("a", "", 0), &s, &err), CHEX_ERR_EMPTY);
    safetensors_close(&s);
    ck_assert_int_eq(safetensors_open(AT_FDCWD, "/nowhere", &s, &err), CHEX_ERR_MISSING);
    safetensors_close(&s);
}
