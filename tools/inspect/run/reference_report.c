/*
 * reference_report.c - published results (--reference) next to those of the run; see run.h
 *
 * A number on another split or on other images is no comparison: the two usual splits of ChestX-ray14 differ by 0.03 in
 * mean AUROC.  So each reference has a word on whether its images are those of the run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(n) format_count(n, (char[FORMAT_TEXT]){0})

enum chex_status
run_report_references(struct run_report *r, struct chex_error *err)
{
    if (!r->in->options->reference)
        return CHEX_OK;
    r->references = malloc(sizeof(*r->references));
    return r->references ? references_read(r->in->options->reference, &r->p, r->references, err) : error_memory(err);
}

/* Write the split of the run as a reference names it: "official test", without the fold of the training. */
static void
own_split(const struct run_report *r, char *out, size_t size)
{
    const char *fold = strstr(r->rule, ", fold ");

    snprintf(out, size, "%.*s %s", (int)(fold ? (size_t)(fold - r->rule) : strlen(r->rule)), r->rule, r->split);
}

enum sameness { SAME, SAME_NAME, OTHER_IMAGES, OTHER_SPLIT, SYNTHETIC, SAMENESSES };

static enum sameness
compare(const struct run_report *r, const struct reference *of)
{
    char own[sizeof(r->rule) + RUN_TEXT_MAX + 2];

    own_split(r, own, sizeof(own));
    if (r->synthetic)
        return SYNTHETIC;
    if (strcmp(of->split, own) != 0)
        return OTHER_SPLIT;
    if (of->images == 0 || !r->dataset_read)
        return SAME_NAME;
    return of->images == r->p.count + r->skipped ? SAME : OTHER_IMAGES;
}

static const char *const sameness_text[SAMENESSES] = {
    [SAME] = "split of the same name and size",
    [SAME_NAME] = "split of the same name; not known whether of the same images",
    [OTHER_IMAGES] = "other images: the split has another size",
    [OTHER_SPLIT] = "other split: not comparable",
    [SYNTHETIC] = "other images: those of this run are synthetic",
};

static void
put_sources(struct html *h, const struct run_report *r)
{
    static const char *const heading[] = {"", "<source", "<split", "images", "<next to this run", NULL};
    char number[16], own[sizeof(r->rule) + RUN_TEXT_MAX + 2];
    unsigned i;

    own_split(r, own, sizeof(own));
    html_raw(h, "<p>The split of this run is '");
    html_text(h, own);
    html_format(h, "', %s images. A result of another split or of other images is no comparison.</p>\n",
                COUNT(r->p.count));
    run_table_begin(h, heading);
    for (i = 0; i < r->references->count; i++) {
        const struct reference *of = &r->references->of[i];
        enum sameness same = compare(r, of);

        snprintf(number, sizeof(number), "[%u]", i + 1);
        run_table_row(h, number);
        html_raw(h, "<td class=\"t\">");
        html_text(h, of->source);
        html_raw(h, "</td><td class=\"t\">");
        html_text(h, of->split);
        html_raw(h, "</td>");
        if (of->images > 0)
            run_cell_count(h, of->images);
        else
            run_cell_note(h, 1, "not given");
        html_format(h, "<td class=\"t%s\">%s</td></tr>\n", same <= SAME_NAME ? "" : " look", sameness_text[same]);
    }
    run_table_end(h);
}

/* k = outputs: the mean */
static void
put_row(struct html *h, const struct run_report *r, unsigned k)
{
    bool mean = k == r->p.outputs, enough = mean ? r->enough == k : r->finding[k].enough;
    unsigned i;

    run_table_row(h, mean ? "mean" : r->finding[k].name);
    if (enough)
        run_cell_measured(h, mean ? &r->metrics->mean[METRIC_AUROC] : &r->metrics->finding[k].metric[METRIC_AUROC]);
    else
        run_cell_note(h, 1, "too few");
    for (i = 0; i < r->references->count; i++) {
        const struct reference *of = &r->references->of[i];
        double auroc = mean ? of->mean : of->auroc[k];

        html_format(h, compare(r, of) <= SAME_NAME || isnan(auroc) ? "<td>%s</td>" : "<td class=\"dim\">(%s)</td>",
                    run_number(auroc, 3, (char[RUN_DIGITS]){0}));
    }
    html_raw(h, "</tr>\n");
}

void
run_tables_references(struct html *h, const struct run_report *r)
{
    char number[REFERENCES_MOST][16];
    const char *heading[REFERENCES_MOST + 3] = {"finding", "AUROC of this run"};
    unsigned i, k;

    if (!r->references)
        return;
    put_sources(h, r);
    for (i = 0; i < r->references->count; i++) {
        snprintf(number[i], sizeof(number[i]), "[%u]", i + 1);
        heading[i + 2] = number[i];
    }
    html_raw(h, "<h3>AUROC; in brackets: of other images</h3>\n");
    run_table_begin(h, heading);
    for (k = 0; k <= r->p.outputs; k++)
        put_row(h, r, k);
    run_table_end(h);
    if (r->references->others > 0)
        html_format(h, "<p class=\"dim\">%s result%s of findings that the run does not have.</p>\n",
                    COUNT(r->references->others), r->references->others == 1 ? " is" : "s are");
}

json_t *
run_references_json(const struct run_report *r)
{
    json_t *list;
    unsigned i, k;

    if (!r->references)
        return json_null();
    list = json_array();
    for (i = 0; i < r->references->count; i++) {
        const struct reference *of = &r->references->of[i];
        json_t *values = json_array();

        for (k = 0; k < r->p.outputs; k++)
            inspect_json_push(&values, real_json(of->auroc[k]));
        inspect_json_push(&list,
                          json_pack("{s:o,s:o,s:o,s:s,s:o,s:o}", "source", text_json(of->source), "split",
                                    text_json(of->split), "images",
                                    of->images > 0 ? count_json(of->images) : json_null(), "comparison",
                                    sameness_text[compare(r, of)], "auroc", values, "mean", real_json(of->mean)));
    }
    return list;
}
