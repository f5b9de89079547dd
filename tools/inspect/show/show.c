/*
 * show.c - the command `show`: draws one image on the terminal; see inspect/command.h
 *
 * The command first checks both checksums of the record and never shows a damaged image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/show/show.h"

#include "draw/canvas.h"
#include "image/resample.h"
#include "inspect/command.h"

#include <math.h>
#include <string.h>

static enum chex_status
shrink(const struct chex_record *r, uint32_t width, uint32_t height, struct buffer *out, struct chex_error *err)
{
    struct image in = {
        .width = r->width, .height = r->height, .stride = r->width, .data = (uint8_t *)(uintptr_t)r->pixels};
    struct resampler resampler = {.method = RESAMPLE_AREA};
    enum chex_status status = buffer_reserve(out, (size_t)width * height, err);

    if (status == CHEX_OK)
        status = resampler_run(&resampler, RESAMPLE_AREA, &in, width, height, out->data, err);
    resampler_release(&resampler);
    return status;
}

/* The terminal scales a PNG into this many characters. */
static enum chex_status
draw_png(const struct show_terminal *t, const struct chex_record *r, uint32_t width, uint32_t height,
         struct buffer *out, struct chex_error *err)
{
    struct picture_spec spec = {.width = r->width, .height = r->height, .channels = 1, .pixels = r->pixels};
    uint32_t columns = (width + t->cell_width - 1) / t->cell_width;
    uint32_t lines = (height + t->cell_height - 1) / t->cell_height;
    struct buffer png = {0};
    enum chex_status status = picture_png(&spec, &png, err);

    if (status == CHEX_OK && t->protocol == SHOW_KITTY)
        status = show_kitty(&png, columns, lines, out, err);
    else if (status == CHEX_OK)
        status = show_iterm(&png, columns, lines, out, err);
    buffer_release(&png);
    return status;
}

static enum chex_status
draw(const struct show_terminal *t, const struct chex_record *r, struct buffer *out, struct chex_error *err)
{
    struct buffer small = {0};
    uint32_t width, height;
    enum chex_status status;

    show_fit(t, r->width, r->height, &width, &height);
    if (t->protocol == SHOW_KITTY || t->protocol == SHOW_ITERM)
        return draw_png(t, r, width, height, out, err);
    status = shrink(r, width, height, &small, err);
    if (status == CHEX_OK && t->protocol == SHOW_SIXEL)
        status = show_sixel(small.data, width, height, out, err);
    else if (status == CHEX_OK && t->protocol == SHOW_BLOCKS)
        status = show_blocks(small.data, width, height, t->truecolor, out, err);
    else if (status == CHEX_OK)
        status = show_ascii(small.data, width, height, out, err);
    buffer_release(&small);
    return status;
}

static void
print_label(const struct target *t, const struct chex_record *r)
{
    char name[INSPECT_TEXT], patient[INSPECT_TEXT], view[INSPECT_TEXT], labels[INSPECT_LABELS_TEXT];
    char age[32] = "age unknown";

    if (!isnan(r->age))
        snprintf(age, sizeof(age), "%.9g y", (double)r->age);
    printf("%s  patient %s, %s, %c, %s  %s  %s %u:%u%s\n", inspect_text(r->name, name),
           inspect_text(r->patient, patient), age, r->sex, inspect_text(r->view, view),
           inspect_labels_text(&t->dataset->manifest.findings, r->label, labels),
           t->dataset->split[t->dataset->shard[r->shard].split].name, r->shard, r->index,
           r->weight ? "" : "  (padding: a copy)");
}

static int
show_image(struct inspect *in, struct target *t)
{
    struct show_terminal terminal;
    struct buffer b = {0}, out = {0};
    struct chex_record r;
    struct chex_error err;
    unsigned shard;
    uint32_t index;
    int code = EXIT_GOOD;
    enum chex_status status = inspect_find_record(in, t, in->options->which, &shard, &index, &err);

    if (status == CHEX_OK)
        status = inspect_read_record(t->dataset, shard, index, &b, true, &r, &err);
    if (status == CHEX_OK) {
        show_terminal_find(in->options->protocol, in->common, &terminal);
        status = draw(&terminal, &r, &out, &err);
    }
    if (status == CHEX_OK) {
        fwrite(out.data, 1, out.size, stdout); /* cli_finish() reports a write error */
        print_label(t, &r);
    } else {
        code = inspect_fail(in, t->path, &err);
    }
    buffer_release(&b);
    buffer_release(&out);
    return code;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    (void)o;
    return common->json ? error_set(err, CHEX_ERR_USAGE, "--json and a picture cannot both go to standard output")
                        : CHEX_OK;
}

static const struct cli_option options[] = {
    {AT_TEXT(protocol), 0, "protocol", "NAME", CLI_NAMES("auto", "kitty", "iterm", "sixel", "blocks", "ascii"), NULL,
     "how to send pictures to the terminal: auto (default; what the terminal supports), kitty, iterm, sixel, blocks "
     "or ascii"},
    ROW_END,
};

const struct inspect_command inspect_show_command = {
    .cli = {.name = "show",
            .summary = "draw one image on this terminal",
            .usage = "[--protocol NAME] PATH NAME|SHARD:INDEX",
            .examples = "chex-inspect show shards 00000013_004.png\n"
                        "chex-inspect show shards 0:2           # the third record of the first shard",
            .options = options},
    .action = INSPECT_SHOW,
    .min = 2,
    .max = 2,
    .operands = "a PATH and an image, NAME or SHARD:INDEX",
    .check = check_options,
    .each = show_image,
};
