/*
 * page.c - writes the page of the report from top to bottom; see report.h
 *
 * The page is one file without scripts.  It loads nothing, can be printed, and follows the dark mode of the reader's
 * system.  It contains neither paths nor times, so a data set always gives the same page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/report.h"

#include "base/number_format.h"
#include "common/spec_words.h"
#include "draw/canvas.h"
#include "inspect/report/style.h"

#include <string.h>

#define TEXT(number) format_count(number, (char[FORMAT_TEXT]){0})
#define SIZE(number) format_bytes(number, (char[FORMAT_TEXT]){0})

static void
put_head(struct html *h, const struct html_report *r)
{
    const char *const *piece;

    html_raw(h, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
                "style-src 'unsafe-inline'\"><link rel=\"icon\" href=\"data:,\">\n");
    html_raw(h, "<title>");
    if (r->title) {
        html_text(h, r->title);
        html_raw(h, " - ");
    }
    html_format(h, "%s %s</title>\n<style>", r->dataset->manifest.synthetic ? "SYNTHETIC data set" : "Data set",
                r->dataset->info.id);
    for (piece = report_style; *piece; piece++)
        html_raw(h, *piece);
    html_raw(h, "</style></head>\n<body><main>\n");
}

static void
put_number(struct html *h, const char *number, const char *what)
{
    html_format(h, "<span><b>%s</b>%s</span>", number, what);
}

static void
put_title(struct html *h, const struct html_report *r)
{
    unsigned level[REPORT_LEVELS] = {0}, i;

    for (i = 0; i < r->check_count; i++)
        level[r->checks[i].level]++;
    html_raw(h, "<header><h1>");
    if (r->title)
        html_text(h, r->title);
    else
        html_format(h, "Chest X-ray data set %s", r->dataset->info.id);
    html_raw(h, "</h1>\n");
    if (r->dataset->manifest.synthetic)
        html_raw(h, "<p class=\"synthetic\">" PICTURE_SYNTHETIC ": the people do not exist, and nothing here shows "
                    "anything about a disease.</p>\n");
    html_raw(h, "<p class=\"dim\">");
    if (r->title)
        html_format(h, "Data set %s. ", r->dataset->info.id);
    html_format(h, "Report of chex-inspect %s. ", chex_version());
    html_raw(h, "Research use only, not for diagnosis.</p>\n<div class=\"sum\">");
    put_number(h, TEXT(r->all.images), "images");
    put_number(h, TEXT(r->all.patients), "patients");
    put_number(h, TEXT(r->dataset->info.split_count), r->dataset->info.split_count == 1 ? "split" : "splits");
    put_number(h, TEXT(r->dataset->info.shard_count), "shards");
    put_number(h, SIZE(dataset_bytes(r->dataset)), "of records");
    /* Colour only nonzero counts. */
    html_format(h, "<span%s><b>%u</b>fault%s</span>", level[LEVEL_FAULT] ? " class=\"fault\"" : "", level[LEVEL_FAULT],
                level[LEVEL_FAULT] == 1 ? "" : "s");
    html_format(h, "<span%s><b>%u</b>to look at</span>", level[LEVEL_LOOK] ? " class=\"look\"" : "", level[LEVEL_LOOK]);
    html_format(h, "<span><b>%u</b>note%s</span>", level[LEVEL_NOTE], level[LEVEL_NOTE] == 1 ? "" : "s");
    html_format(h, "<span class=\"good\"><b>%u</b>good</span></div>\n", level[LEVEL_GOOD]);
    html_raw(h, "<nav><a href=\"#checks\">Checks</a><a href=\"#card\">Data card</a><a href=\"#splits\">Splits</a>"
                "<a href=\"#findings\">Findings</a><a href=\"#pixels\">Pixels</a><a href=\"#shards\">Shards</a>"
                "<a href=\"#rejects\">Rejects</a><a href=\"#images\">Images</a><a href=\"#methods\">Methods</a>"
                "</nav></header>\n");
}

static void
put_checks(struct html *h, const struct html_report *r)
{
    static const struct {
        enum report_level level;
        const char *kind, *mark;
    } of[] = {{LEVEL_FAULT, "fault", "&#10007; fault"},
              {LEVEL_LOOK, "look", "&#9679; look"},
              {LEVEL_NOTE, "note", "&#9675; note"},
              {LEVEL_GOOD, "good", "&#10003; good"}};
    unsigned i, k;

    html_raw(h, "<section id=\"checks\"><h2>What a reviewer would ask</h2>\n<table class=\"checks\"><tbody>\n");
    for (k = 0; k < REPORT_LEVELS; k++)
        for (i = 0; i < r->check_count; i++) {
            const struct report_check *c = &r->checks[i];

            if (c->level != of[k].level)
                continue;
            html_format(h, "<tr id=\"check-%s\"><td class=\"lv %s\">%s</td><th>%s</th><td>", c->id, of[k].kind,
                        of[k].mark, c->title);
            html_words(h, c->text);
            html_raw(h, "</td></tr>\n");
        }
    html_raw(h, "</tbody></table></section>\n");
}

/* ---- the card ---------------------------------------------------------------------------------------------------- */

#define LABELS_2020 "dc1d2df67fdc1c5a7601d48699cda2b13dc2c4841488b4183dcf04884dbaca11"
#define LABELS_2017 "3c3e24f0b580e4e976499473fa29d7bbee1f6be93aa0b8bc764e1688ca101d37"

const char *
report_label_file(const char *sha256)
{
    if (strcmp(sha256, LABELS_2020) == 0)
        return "Data_Entry_2017_v2020.csv of NIH";
    if (strcmp(sha256, LABELS_2017) == 0)
        return "Data_Entry_2017.csv of NIH, which the release of 2020 replaces";
    return NULL;
}

/* Write which inputs the command needs in its working folder. */
static void
put_needed(struct html *h, const struct manifest *m)
{
    html_raw(
        h,
        "<p class=\"dim\">Run it where the images and the label file are; their names may differ there, and archives "
        "are accepted. ");
    if (strcmp(m->split_rule, "official") == 0)
        html_raw(h, "train_val_list.txt and test_list.txt are next to the label file. ");
    if (strcmp(m->split_rule, "file") == 0) {
        html_raw(h, "split.csv is the list of splits: of a data set, ");
        html_command(h, "chex-inspect list --format csv --fields name,split");
        html_raw(h, " writes it. ");
    }
    if (m->left_out.excluded > 0)
        html_format(h, "exclude.txt is the list of the %s images that were left out by name. ",
                    TEXT(m->left_out.excluded));
    if (m->left_out.missing > 0)
        html_format(h, "%s images were missing; with any of them it is another data set. ", TEXT(m->left_out.missing));
    html_format(h, "The command must say data set %s, then every byte is the same, and this page is.</p></section>\n",
                m->dataset_id);
}

/* Write every option that affects the bytes, also defaults, as they may change.  Names are those of the NIH release. */
static void
put_command(struct html *h, const struct html_report *r)
{
    const struct manifest *m = &r->dataset->manifest;
    char words[SPEC_WORDS], *option, *newline;

    html_raw(h, "<pre id=\"again\">");
    html_words(h, "chex-convert -i images -l ");
    html_words(h, strcmp(m->labels_sha256, LABELS_2017) == 0 ? "Data_Entry_2017.csv" : "Data_Entry_2017_v2020.csv");
    html_raw(h, " -o again");
    for (option = spec_words(m, true, words); (newline = strchr(option, '\n')) != NULL; option = newline + 1) {
        *newline = '\0';
        html_raw(h, option == words || strncmp(option, "--split", 7) == 0 ? " \\\n    " : " ");
        html_words(h, option);
    }
    html_words(h, "\nchex-inspect check --full again\nchex-inspect report -o report.html again");
    html_raw(h, "</pre>\n");
    put_needed(h, m);
}

static void
card_row(struct html *h, const char *name, const char *value)
{
    html_format(h, "<tr><th>%s</th><td>", name);
    html_text(h, value);
    html_raw(h, "</td></tr>\n");
}

/* Write the source of NIH's images and labels, and how to cite them. */
static void
put_limits(struct html *h)
{
    card_row(h, "Known limits",
             "Labels were mined from reports by text processing; NIH states an accuracy above 90 %, and readers of "
             "samples found less for some findings. All images come from one hospital. The absence of a "
             "label does not prove the absence of the finding.");
    card_row(
        h, "Cite",
        "X. Wang, Y. Peng, L. Lu, Z. Lu, M. Bagheri, R. M. Summers: ChestX-ray8: Hospital-scale Chest X-ray Database "
        "and Benchmarks on Weakly-Supervised Classification and Localization of Common Thorax Diseases. IEEE CVPR "
        "2017, pp. 3462-3471, doi:10.1109/CVPR.2017.369. Acknowledge the NIH Clinical Center as provider of the "
        "images.");
}

static void
put_card(struct html *h, const struct html_report *r)
{
    const struct manifest *m = &r->dataset->manifest;
    const struct chex_dataset_info *info = &r->dataset->info;
    const char *labels = report_label_file(m->labels_sha256);
    char text[256];

    html_raw(h, "<section id=\"card\"><h2>Data card</h2>\n<table class=\"card\"><tbody>\n");
    card_row(h, "Data set id", info->id);
    card_row(h, "Source",
             m->synthetic
                 ? PICTURE_SYNTHETIC " in the form of ChestX-ray14"
                 : "ChestX-ray14 of the NIH Clinical Center, or files of its form: frontal chest X-rays with 14 "
                   "findings mined from the reports");
    snprintf(text, sizeof(text), "%s images, %u x %u, 8-bit gray, 0 = black", TEXT(r->all.images), info->width,
             info->height);
    card_row(h, "Images", text);
    snprintf(text, sizeof(text), "resize %.60s; colours to gray by BT.601; sides from %u, at most %s pixels%s",
             m->resize, m->min_side, TEXT(m->max_pixels), m->lenient ? "; files without their end accepted" : "");
    card_row(h, "Preprocessing", text);
    snprintf(text, sizeof(text), "%.60s; within a split in the order of a hash with seed %llu", m->split_rule,
             (unsigned long long)m->seed);
    card_row(h, "Split rule", text);
    card_row(h, "Label file",
             labels         ? labels
             : m->synthetic ? "written by chex-synth"
                            : "not one of the two releases of NIH that are known here");
    html_format(h, "<tr><th>Label file, SHA-256</th><td><code>%.64s</code></td></tr>\n", m->labels_sha256);
    snprintf(text, sizeof(text),
             "chex-shard %u: TFRecord files of tf.train.Example; records of %s bytes, pixels at byte "
             "%zu, %u a shard, tail %.20s",
             info->format_version, TEXT(info->stride), info->pixel_offset, info->shard_size, m->tail);
    card_row(h, "Format", text);
    snprintf(text, sizeof(text), "mean %.4f, standard deviation %.4f of all pixels (0 to 255); %.6f and %.6f of 0 to 1",
             info->pixel_mean, info->pixel_deviation, info->pixel_mean / 255, info->pixel_deviation / 255);
    card_row(h, "For normalisation", text);
    snprintf(text, sizeof(text), "chex-tools %.40s", m->tool_version);
    card_row(h, "Made by", text);
    card_row(h, "Use", "Research use only, not for diagnosis");
    if (!m->synthetic)
        put_limits(h);
    html_raw(h, "</tbody></table>\n<h3>To make it again</h3>\n");
    put_command(h, r);
}

/* ---- sections with plots ----------------------------------------------------------------------------------------- */

static void
caption(struct html *h, unsigned number, const char *text)
{
    html_format(h, "<figcaption><b>Figure %u.</b> %s</figcaption></figure>\n", number, text);
}

static void
draw_both(struct html *h, const struct html_report *r, void (*draw)(struct html *, const struct html_report *, bool))
{
    draw(h, r, false);
    draw(h, r, true);
}

static void
put_splits(struct html *h, const struct html_report *r)
{
    html_raw(h, "<section id=\"splits\"><h2>Splits</h2>\n");
    report_table_splits(h, r);
    html_raw(h, "<div class=\"pair\"><figure>");
    report_draw_ages(h, r);
    caption(h, 1, "Ages of the patients, counted by image.");
    html_raw(h, "<figure>");
    report_draw_visits(h, r);
    caption(h, 2, "How many images a patient has. A patient with many weighs more in every mean over images.");
    html_raw(h, "</div>\n<figure>");
    draw_both(h, r, report_draw_sex_view);
    caption(h, 3, "Sex and view position, counted by image.");
    html_raw(h, "</section>\n");
}

static void
put_findings(struct html *h, const struct html_report *r)
{
    html_raw(h, "<section id=\"findings\"><h2>Findings</h2>\n<figure>");
    draw_both(h, r, report_draw_prevalence);
    caption(h, 4,
            "Prevalence with 95 % Wilson intervals, for the number of images that is effective where images of a "
            "patient are alike. An interval without a marker: no image.");
    report_table_prevalence(h, r);
    html_raw(h, "<figure><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Figure 5\">");
    draw_both(h, r, report_draw_together);
    html_raw(h, "</div>");
    caption(h, 5,
            "Of the images with the finding of a row, how many per cent also have that of the column; on the "
            "diagonal the number of images. All splits.");
    html_raw(h, "</section>\n");
}

static enum chex_status
put_pixels(struct html *h, const struct html_report *r, struct chex_error *err)
{
    enum chex_status status;

    html_raw(h, "<section id=\"pixels\"><h2>Pixels</h2>\n<figure>");
    draw_both(h, r, report_draw_levels);
    caption(h, 6,
            "Gray levels of all pixels. A peak at 0 is black border, one at 255 overexposure or burnt-in text; a "
            "comb means that levels were stretched. Shares below 0.001 % are drawn at the bottom.");
    html_raw(h, "<figure><div class=\"tiles means\">\n");
    status = report_mean_images(h, r, err);
    html_raw(h, "</div>");
    caption(h, 7,
            "Mean images. The sharper they are, the better the images are aligned; a bright frame or corner that all "
            "images share can be seen here, and can be learnt.");
    html_raw(h, "</section>\n");
    return status;
}

static void
put_shards(struct html *h, const struct html_report *r)
{
    html_raw(h, "<section id=\"shards\"><h2>Shards</h2>\n<figure>");
    draw_both(h, r, report_draw_shards);
    caption(h, 8,
            "Each shard is a sample of its split by a hash, so the means scatter about one line; a shard away from "
            "it holds other images, or few, as the last of a split. Every checksum was tested; SHA-256 of whole files "
            "only by <code class=\"w\">chex-inspect check --full --sha256</code>.");
    report_table_shards(h, r);
    html_raw(h, "</section>\n<section id=\"rejects\"><h2>Rejects</h2>\n");
    report_table_rejects(h, r);
    html_raw(h, "</section>\n");
}

static enum chex_status
put_images(struct html *h, const struct html_report *r, struct chex_error *err)
{
    enum chex_status status;
    unsigned i;
    uint64_t flagged = 0;

    html_raw(
        h,
        "<section id=\"images\"><h2>Images</h2>\n<p>Two images of each finding, alone where there is one, and "
        "two without any: those with the lowest hashes of their pixels, as good as drawn by lot. A click on an image "
        "shows it larger, another one ends that.</p>\n");
    status = report_contact_sheet(h, r, err);
    for (i = 0; i < REPORT_FLAGS; i++)
        flagged += r->flagged[i];
    if (flagged > 0 && status == CHEX_OK) {
        html_format(h,
                    "<h3>Flagged images</h3><p>The first of each kind, of %s; the rules stand with the checks.</p>\n",
                    TEXT(flagged));
        status = report_flagged_images(h, r, err);
    }
    if (r->check.shared_images + r->repeated > 0) {
        html_raw(h,
                 "<h3 id=\"equal\">Equal images</h3><p>Each line begins a group of images with the same pixels.</p>\n");
        report_table_equal(h, r);
    }
    html_raw(h, "</section>\n");
    return status;
}

static void
put_methods(struct html *h, const struct html_report *r)
{
    html_raw(
        h,
        "<section id=\"methods\"><h2>Methods</h2>\n<ul>"
        "<li>Counted are records of weight 1, read once, with framing, both checksums, form and place of each "
        "checked.</li>"
        "<li>Images of one patient are alike. The standard error of a share is that of a ratio over patients: "
        "K/(K-1) &#183; &#931;(y<sub>k</sub> - p n<sub>k</sub>)&#178; / N&#178;, K patients with n<sub>k</sub> images, "
        "y<sub>k</sub> of them positive (Cochran, Sampling Techniques, 1977, ch. 9A).</li>"
        "<li>Drift: the difference from the first split in standard errors, p pooled; shown from |z| = 3.29, two-sided "
        "p &lt; .001, where at least 5 images are expected in both. Of the 30 comparisons of prevalences of three "
        "splits one would exceed it by chance in one data set of 34.</li>"
        "<li>Intervals: Wilson's score interval at n / deff images, deff the design effect, at least 1.</li>"
        "<li>Equal images: the same XXH3 hash of 128 bits of the pixels as they are stored, after resizing. It does "
        "not "
        "protect against forgery; cropped or edited copies are not found.</li>"
        "<li>Percentiles of the pixels flag constant, black, white and flat images. The likeness of an image is the "
        "correlation of its 8 &#215; 8 cell means with those of the mean of all images; below -0.2 its gray is "
        "probably inverted, up to 0.2 it may show something else. ");
    if (r->all.images > 0)
        html_format(h, "Here it is between %.2f and %.2f. ", (double)r->least_like, (double)r->most_like);
    html_raw(h,
             "An image past a limit should be looked at, but may be sound and only unusual.</li>"
             "<li>Width of an AUROC: half the 95 % interval by Hanley and McNeil (Radiology 1982), images taken as "
             "independent.</li>"
             "</ul></section>\n<footer class=\"dim\"><p>Made by chex-tools. Research use only, not for diagnosis.</p>"
             "</footer>\n");
}

enum chex_status
report_page(struct html_report *r, struct html *h, struct chex_error *err)
{
    enum chex_status status;

    put_head(h, r);
    put_title(h, r);
    put_checks(h, r);
    put_card(h, r);
    put_splits(h, r);
    put_findings(h, r);
    status = put_pixels(h, r, err);
    put_shards(h, r);
    if (status == CHEX_OK)
        status = put_images(h, r, err);
    put_methods(h, r);
    html_raw(h, "</main></body></html>\n");
    return status == CHEX_OK && h->failed ? error_memory(err) : status;
}
