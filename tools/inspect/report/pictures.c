/*
 * pictures.c - embeds images in the page of the report: mean images as PNG; a contact sheet and flagged images as
 * JPEG, which needs less than half the bytes; see report.h
 *
 * The contact sheet takes images in the order of the hashes of their pixels.  This order is as good as random, and
 * always the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/report.h"

#include "base/number_format.h"
#include "draw/canvas.h"

#include <stdlib.h>
#include <string.h>

#define THUMB       150 /* largest side of a small picture on the page */
#define LARGE       512 /* largest side of the stored picture, shown after a click */
#define PER_FINDING 2
#define PER_FLAG    6

#define TEXT(number) format_count(number, (char[FORMAT_TEXT]){0})

struct gray {
    uint32_t width, height;
    uint8_t *data;
};

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

/* Write a picture of at most `most` x `most` pixels on the page. */
static enum chex_status
put_gray(struct html *h, struct gray *g, enum html_picture kind, uint32_t most, const char *alt, struct chex_error *err)
{
    uint32_t longest = g->width > g->height ? g->width : g->height, side = longest < most ? longest : most;
    struct picture_spec spec = {.width = g->width, .height = g->height, .channels = 1, .pixels = g->data};
    struct buffer file = {0};
    enum chex_status status = kind == HTML_JPEG ? picture_jpeg(&spec, &file, err) : picture_png(&spec, &file, err);

    if (status == CHEX_OK)
        html_picture(h, kind, &file, (g->width * side + longest / 2) / longest,
                     (g->height * side + longest / 2) / longest, alt);
    buffer_release(&file);
    return status;
}

/* ---- mean images ------------------------------------------------------------------------------------------------- */

static enum chex_status
put_mean(struct html *h, const struct html_report *r, const struct report_mean *mean, const char *name,
         struct chex_error *err)
{
    struct gray g = {.width = r->mean_width, .height = r->mean_height};
    size_t cells = (size_t)g.width * g.height, i;
    uint32_t width = r->dataset->info.width, height = r->dataset->info.height, cell = r->mean_cell;
    uint64_t of = mean->images * (cell < width ? cell : width) * (cell < height ? cell : height);
    enum chex_status status;

    if (mean->images == 0)
        return CHEX_OK;
    g.data = malloc(cells);
    if (!g.data)
        return error_memory(err);
    for (i = 0; i < cells; i++)
        g.data[i] = (uint8_t)((mean->sum[i] + of / 2) / of);
    html_raw(h, "<figure class=\"tile\">");
    status = put_gray(h, &g, HTML_PNG, REPORT_MEAN, name, err);
    html_format(h, "<figcaption>%s<br><span class=\"dim\">%s images</span></figcaption></figure>\n", name,
                TEXT(mean->images));
    free(g.data);
    return status;
}

const char *
report_view_name(enum report_view view)
{
    static const char *const names[REPORT_VIEWS] = {"PA", "AP", "other view", "unknown view"};

    return names[view];
}

enum chex_status
report_mean_images(struct html *h, const struct html_report *r, struct chex_error *err)
{
    enum chex_status status = put_mean(h, r, &r->mean_all, "all images", err);
    unsigned v;

    for (v = 0; v < REPORT_VIEWS && status == CHEX_OK; v++)
        if (r->mean[v].images < r->mean_all.images)
            status = put_mean(h, r, &r->mean[v], report_view_name(v), err);
    return status;
}

/* ---- one image --------------------------------------------------------------------------------------------------- */

static enum chex_status
shrink(const struct chex_record *record, struct gray *g, struct chex_error *err)
{
    uint32_t longest = record->width > record->height ? record->width : record->height, x, y, i, j;
    uint32_t cell = (longest + LARGE - 1) / LARGE;

    g->width = record->width / cell ? record->width / cell : 1;
    g->height = record->height / cell ? record->height / cell : 1;
    g->data = malloc((size_t)g->width * g->height);
    if (!g->data)
        return error_memory(err);
    for (y = 0; y < g->height; y++) {
        for (x = 0; x < g->width; x++) {
            uint64_t sum = 0, n = 0;

            for (i = y * cell; i < (y + 1) * cell && i < record->height; i++)
                for (j = x * cell; j < (x + 1) * cell && j < record->width; j++, n++)
                    sum += record->pixels[(size_t)i * record->width + j];
            g->data[(size_t)y * g->width + x] = (uint8_t)((sum + n / 2) / n);
        }
    }
    return CHEX_OK;
}

static enum chex_status
put_image(struct html *h, const struct html_report *r, const struct seen *seen, struct buffer *b,
          struct chex_error *err)
{
    const struct chex_dataset *ds = r->dataset;
    struct chex_shard *shard;
    struct chex_record record;
    struct gray g = {0};
    enum chex_status status = buffer_reserve(b, ds->info.stride, err);

    if (status == CHEX_OK)
        status = chex_shard_open(ds, seen->shard, &shard, err);
    if (status != CHEX_OK)
        return status;
    status = chex_shard_read(shard, seen->index, 1, b->data, err);
    if (status == CHEX_OK)
        status = chex_record_view(ds, seen->shard, seen->index, b->data, true, &record, err);
    if (status == CHEX_OK)
        status = shrink(&record, &g, err);
    if (status == CHEX_OK)
        status = put_gray(h, &g, HTML_JPEG, THUMB, "chest X-ray", err);
    free(g.data);
    chex_shard_close(shard);
    return status;
}

static enum chex_status
put_tile(struct html *h, const struct html_report *r, const struct seen *seen, const char *more, struct buffer *b,
         struct chex_error *err)
{
    const struct report_image *image = report_image_of(r, seen);
    char labels[INSPECT_LABELS_TEXT];
    enum chex_status status;
    size_t i;

    /* The label toggles its checkbox without a script; the style sheet enlarges the picture of a checked box. */
    html_raw(h, "<figure class=\"tile\"><label class=\"zoom\"><input type=\"checkbox\" aria-label=\"larger\">");
    status = put_image(h, r, seen, b, err);
    html_raw(h, "</label>");
    inspect_labels_text(&r->dataset->manifest.findings, seen->label, labels);
    for (i = 0; labels[i]; i++)
        if (labels[i] == '|')
            labels[i] = ' ';
    html_raw(h, "<figcaption>");
    html_text(h, seen->name);
    html_raw(h, "<br>");
    html_text(h, labels);
    html_raw(h, "<br><span class=\"dim\">");
    html_text(h, r->dataset->split[seen->split].name);
    html_format(h, ", %s", report_view_name(image->view));
    if (image->age >= 0)
        html_format(h, ", %.3g y", (double)image->age);
    html_format(h, "%s%s</span></figcaption></figure>\n", more[0] ? ", " : "", more);
    return status;
}

/* ---- the contact sheet ------------------------------------------------------------------------------------------- */

/* Returns true if the selection has an image with the same pixels. */
static bool
chosen(struct seen *const *list, unsigned count, const struct seen *seen)
{
    unsigned i;

    for (i = 0; i < count; i++)
        if (memcmp(list[i]->hash, seen->hash, sizeof(seen->hash)) == 0)
            return true;
    return false;
}

/* Returns whether the image has the finding, and with `alone` no other.  VARIABLE_NONE: whether it has none. */
static bool
fits(const struct html_report *r, const struct seen *seen, unsigned finding, bool alone)
{
    unsigned count = r->dataset->info.finding_count, positives = 0;

    for (unsigned f = 0; f < count; f++)
        positives += seen->label[f] == 1;
    if (finding == VARIABLE_NONE)
        return alone && positives == 0;
    return seen->label[finding] == 1 && (!alone || positives == 1);
}

/* Select images with this finding, preferring those without another; VARIABLE_NONE means none. */
static unsigned
choose(const struct html_report *r, unsigned finding, struct seen **list, unsigned count)
{
    unsigned wanted = count + PER_FINDING, alone;
    size_t i;

    for (alone = 1; alone + 1 > 0 && count < wanted; alone--) {
        for (i = 0; i < r->check.count && count < wanted; i++) {
            struct seen *seen = r->check.by_hash[i];

            if (fits(r, seen, finding, alone) && !chosen(list, count, seen))
                list[count++] = seen;
        }
        if (alone == 0)
            break;
    }
    return count;
}

enum chex_status
report_contact_sheet(struct html *h, const struct html_report *r, struct chex_error *err)
{
    struct seen *list[(FINDINGS_MAX + 1) * PER_FINDING];
    struct buffer b = {0};
    enum chex_status status = CHEX_OK;
    unsigned count = 0, i;

    for (i = 0; i < r->dataset->info.finding_count; i++)
        count = choose(r, i, list, count);
    count = choose(r, VARIABLE_NONE, list, count);
    html_raw(h, "<div class=\"tiles\">\n");
    for (i = 0; i < count && status == CHEX_OK; i++)
        status = put_tile(h, r, list[i], "", &b, err);
    html_raw(h, "</div>\n");
    buffer_release(&b);
    return status;
}

/* ---- flagged images ---------------------------------------------------------------------------------------------- */

enum chex_status
report_flagged_images(struct html *h, const struct html_report *r, struct chex_error *err)
{
    static const char *const names[REPORT_FLAGS] = {"constant",     "near-black", "near-white",
                                                    "low contrast", "inverted?",  "unlike the others"};
    struct buffer b = {0};
    enum chex_status status = CHEX_OK;
    unsigned flag, shown;
    size_t i;

    html_raw(h, "<div class=\"tiles\">\n");
    for (flag = 0; flag < REPORT_FLAGS; flag++) {
        for (i = 0, shown = 0; i < r->check.count && shown < PER_FLAG && status == CHEX_OK; i++) {
            if (!(report_image_of(r, &r->check.seen[i])->flags >> flag & 1))
                continue;
            status = put_tile(h, r, &r->check.seen[i], names[flag], &b, err);
            shown++;
        }
    }
    html_raw(h, "</div>\n");
    buffer_release(&b);
    return status;
}
