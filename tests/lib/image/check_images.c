/*
 * check_images.c - decodes and resizes image files, for comparison with other software (png_cases.py)
 *
 * check-images METHOD WIDTH HEIGHT FILE...      METHOD: gray (as decoded; the size is ignored), bilinear, lanczos,
 *                                             area, none
 * Prints one line per file and, after "ok", WIDTH * HEIGHT bytes:
 * ok WIDTH HEIGHT BIT-DEPTH CHANNELS FLAGS WARNINGS    FLAGS: letters of palette, interlaced, colour, transparent,
 *                                                      animated, or -
 * error STATUS: TEXT
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/ascii.h"
#include "image/decode.h"
#include "image/resample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
    bool resize;
    enum resample_method method;
    uint32_t width, height;
    struct buffer file, out;
    struct decoder decoder;
    struct image image;
    struct resampler resampler;
};

static enum chex_status
read_file(const char *path, struct buffer *to, struct chex_error *err)
{
    FILE *f = fopen(path, "rb");
    enum chex_status status = CHEX_OK;
    uint8_t part[65536];
    size_t n;

    to->size = 0;
    if (!f)
        return error_set(err, CHEX_ERR_MISSING, "cannot open '%s'", path);
    while (status == CHEX_OK && (n = fread(part, 1, sizeof(part), f)) > 0)
        status = buffer_append(to, part, n, err);
    fclose(f);
    return status;
}

static void
print_header(const struct state *s, const struct image_traits *t)
{
    char flags[8] = "", *f = flags;

    if (t->palette)
        *f++ = 'p';
    if (t->interlaced)
        *f++ = 'i';
    if (t->colour)
        *f++ = 'c';
    if (t->transparent)
        *f++ = 't';
    if (t->animated)
        *f++ = 'a';
    printf("ok %u %u %u %u %s %u\n", s->width, s->height, t->bit_depth, t->channels, flags[0] ? flags : "-",
           t->warnings);
}

static enum chex_status
check_file(struct state *s, const char *path, struct chex_error *err)
{
    static const struct decode_limits limits = {.max_pixels = UINT64_C(1) << 26, .min_side = 1};
    enum chex_status status = read_file(path, &s->file, err);
    struct image_traits traits;
    size_t size;

    if (status == CHEX_OK)
        status = decode_image(&s->decoder, s->file.data, s->file.size, &limits, &s->image, &traits, err);
    if (status != CHEX_OK)
        return status;
    if (!s->resize) {
        s->width = s->image.width;
        s->height = s->image.height;
    }
    if (!size_mul(s->width, s->height, &size))
        return error_memory(err);
    status = buffer_reserve(&s->out, size, err);
    if (status == CHEX_OK)
        status = resampler_run(&s->resampler, s->method, &s->image, s->width, s->height, s->out.data, err);
    if (status != CHEX_OK)
        return status;
    print_header(s, &traits);
    fwrite(s->out.data, 1, size, stdout);
    return CHEX_OK;
}

int
main(int argc, char **argv)
{
    struct state s = {.method = RESAMPLE_NONE};
    int method = argc > 1 ? name_index(resample_names, argv[1]) : -1;

    if (argc < 4 || ((s.resize = strcmp(argv[1], "gray") != 0) && method < 0)) {
        fprintf(stderr, "usage: check-images METHOD WIDTH HEIGHT FILE...\n");
        return 2;
    }
    s.method = s.resize ? (enum resample_method)method : s.method;
    s.width = (uint32_t)strtoul(argv[2], NULL, 10);
    s.height = (uint32_t)strtoul(argv[3], NULL, 10);
    /* Decode like chex-convert.  With CHEX_ONLY_LIBPNG, libpng decodes every PNG. */
    if (!getenv("CHEX_ONLY_LIBPNG") && decoder_init(&s.decoder, NULL) != CHEX_OK)
        return 1;
    for (int i = 4; i < argc; i++) {
        struct chex_error err;

        if (check_file(&s, argv[i], &err) != CHEX_OK)
            printf("error %s: %s\n", chex_status_name(err.status), err.text);
    }
    buffer_release(&s.file);
    buffer_release(&s.out);
    decoder_release(&s.decoder);
    image_release(&s.image);
    resampler_release(&s.resampler);
    return fclose(stdout) == 0 ? 0 : 1;
}
