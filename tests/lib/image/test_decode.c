/*
 * test_decode.c - recognises the type of a file by its first bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/decode.h"
#include "png_fixture.h"
#include "unit.h"

#include <string.h>

static const struct decode_limits limits = {.max_pixels = 1 << 20, .min_side = 1};

static enum chex_status
decode(const void *data, size_t size, struct chex_error *err)
{
    struct image image = {0};
    struct image_traits traits;
    struct decoder decoder = {0};
    enum chex_status status;

    *err = (struct chex_error){0};
    status = decode_image(&decoder, data, size, &limits, &image, &traits, err);
    image_release(&image);
    return status;
}

/* content at this offset, after bytes of 2 */
struct sample {
    size_t offset;
    const char *content;
    size_t size;
    const char *text;
};

#define AT(offset, content, text)                  \
    {                                              \
        offset, content, sizeof(content) - 1, text \
    }

static const struct sample samples[] = {
    AT(0, "<!DOCTYPE html><html><body>Sign in</body></html>", "looks like HTML: the download failed"),
    AT(0, "\xef\xbb\xbf\r\n <HTML lang=en>", "looks like HTML: the download failed"),
    AT(0, "<?xml version='1.0'?><!doctype HTML>", "looks like HTML: the download failed"),
    AT(0, "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "looks like XML: the download failed"),
    AT(0, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
       "a Git LFS pointer, not the file (git lfs pull)"),
    AT(0, "\x1f\x8b\x08", "looks like gzip (unpack it first)"),
    AT(0, "PK\x03\x04\x14", "looks like a zip archive (unpack it first)"),
    AT(30, "xl/worksheets/sheet1.xml", "looks like Excel (save it as CSV)"),
    AT(0, "7z\xbc\xaf\x27\x1c", "looks like 7z (unpack it first)"),
    AT(0, "Rar!\x1a\x07\x01", "looks like RAR (unpack it first)"),
    AT(0, "BZh91AY", "looks like bzip2 (unpack it first)"),
    AT(0, "\3757zXZ\0", "looks like xz (unpack it first)"),
    AT(257, "ustar", "looks like a tar archive (unpack it first)"),
    AT(128, "DICM", "looks like DICOM (convert it to PNG first)"),
    AT(0, "GIF89a\x01\x00", "looks like GIF"),
    AT(0, "GIF87a\x01\x00", "looks like GIF"),
    AT(0, "II*\0\x08", "looks like TIFF"),
    AT(0, "MM\0*\x00", "looks like TIFF"),
    AT(0, "BM\x36\x00\x00\x00\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0", "looks like BMP"),
    AT(0, "RIFF\x10\0\0\0WEBPVP8 ", "looks like WebP"),
    AT(0, "\0\0\0\x0cjP  \r\n\x87\n", "looks like JPEG 2000"),
    AT(0, "%PDF-1.7", "looks like PDF"),
    AT(0, "Image Index,Finding Labels\n00000001_000.png,Cardiomegaly\n", "looks like text or CSV"),
    AT(0, "Not Found", "looks like text"),
    AT(0, "BMI of the patients", "looks like text"),
    AT(0, "{\"error\": 404}", "looks like text"),
    AT(0, "\0", "all bytes are zero (disk full or download interrupted?)"),
    AT(0, "\0\0\0\0\0\0\0\0\0\0\0\0", "all bytes are zero (disk full or download interrupted?)"),
    AT(0, "\0\0\0\0\0\0\0\0\0\0\0\1", "not a PNG or JPEG"),
    AT(0, "\x8aMNG\r\n\x1a\n", "not a PNG or JPEG"),
    AT(0, "\xff\xd7\xff", "not a PNG or JPEG"),
    AT(0,
       "\x7f"
       "ELF",
       "not a PNG or JPEG"),
    AT(100, "abc", "not a PNG or JPEG"),
};

TEST_CASE("decode", "decode", NULL, NULL);

TEST(other_files_than_images_are_named)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const struct sample *s = &samples[i];
        struct buffer file = {0};
        struct chex_error err;

        for (size_t n = 0; n < s->offset; n++)
            buffer_append(&file, "\x02", 1, NULL);
        buffer_append(&file, s->content, s->size, NULL);
        ck_assert_int_eq(decode(file.data, file.size, &err), CHEX_ERR_NOT_IMAGE);
        ck_assert_str_eq(err.text, s->text);
        buffer_release(&file);
    }
}

TEST(an_empty_file_is_empty)
{
    struct chex_error err;

    ck_assert_int_eq(decode(NULL, 0, &err), CHEX_ERR_EMPTY);
    ck_assert_str_eq(err.text, "empty file (download interrupted?)");
    ck_assert_int_eq(decode("", 0, &err), CHEX_ERR_EMPTY);
}

static unsigned
flat(uint32_t x, uint32_t y, int channel)
{
    (void)x, (void)y, (void)channel;
    return 99;
}

TEST(a_png_is_known_by_its_first_bytes)
{
    struct fixture f = {.width = 3, .height = 2, .colour = GRAY, .depth = 8, .sample = flat};
    struct buffer file = {0};
    struct image image = {0};
    struct image_traits traits = {.container = IMAGE_JPEG};
    struct decoder decoder;
    struct chex_error err;

    fixture_png(&file, &f);
    ck_assert_int_eq(decoder_init(&decoder, &err), CHEX_OK);
    ck_assert_int_eq(decode_image(&decoder, file.data, file.size, &limits, &image, &traits, &err), CHEX_OK);
    ck_assert_int_eq(traits.container, IMAGE_PNG);
    ck_assert_uint_eq(image.data[5], 99);
    decoder_release(&decoder);
    image_release(&image);
    for (size_t size = 1; size < 8; size++)
        ck_assert_int_eq(decode(file.data, size, &err), CHEX_ERR_TRUNCATED);
    buffer_release(&file);
}

TEST(a_jpeg_is_known_by_its_first_bytes)
{
    struct chex_error err;

    ck_assert_int_eq(decode("\xff\xd8\xff\xe0", 4, &err), CHEX_ERR_TRUNCATED);
    ck_assert_str_eq(err.text, "truncated at byte 4");
    ck_assert_int_eq(decode("\xff\xd8", 2, &err), CHEX_ERR_TRUNCATED);
}
