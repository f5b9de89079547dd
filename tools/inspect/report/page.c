/*
 * page.c - fills the values and parts of the report into the page; see report.h
 *
 * page.html has the text of the page.  The page is one file without scripts.  It loads nothing, can be printed, and
 * follows the dark mode of the reader's system.  It contains neither paths nor times, so a data set always gives the
 * same page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/report.h"

#include "base/number_format.h"
#include "common/spec_words.h"
#include "draw/canvas.h"
#include "draw/template.h"

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------------------------- */

#define TEXT(number) format_count(number, (char[FORMAT_TEXT]){0})
#define SIZE(number) format_bytes(number, (char[FORMAT_TEXT]){0})
#define add          template_add
#define add_some     template_add_some

extern const char *const report_template[]; /* page.html */

static void
add_levels(struct template_values *v, const struct html_report *r)
{
    unsigned level[REPORT_LEVELS] = {0}, i;

    for (i = 0; i < r->check_count; i++)
        level[r->checks[i].level]++;
    add(v, "fault", "%u", level[LEVEL_FAULT]);
    add(v, "fault_s", "%s", level[LEVEL_FAULT] == 1 ? "" : "s");
    add_some(v, "has_fault", level[LEVEL_FAULT]);
    add(v, "look", "%u", level[LEVEL_LOOK]);
    add_some(v, "has_look", level[LEVEL_LOOK]);
    add(v, "note", "%u", level[LEVEL_NOTE]);
    add(v, "note_s", "%s", level[LEVEL_NOTE] == 1 ? "" : "s");
    add(v, "good", "%u", level[LEVEL_GOOD]);
}

static void
add_counts(struct template_values *v, const struct html_report *r)
{
    const struct chex_dataset_info *info = &r->dataset->info;
    uint64_t flagged = 0;
    unsigned i;

    for (i = 0; i < REPORT_FLAGS; i++)
        flagged += r->flagged[i];
    add(v, "title", "%s", r->title ? r->title : "");
    add(v, "id", "%s", info->id);
    add(v, "version", "%s", chex_version());
    add(v, "images", "%s", TEXT(r->all.images));
    add(v, "patients", "%s", TEXT(r->all.patients));
    add(v, "splits", "%u", info->split_count);
    add(v, "splits_s", "%s", info->split_count == 1 ? "" : "s");
    add(v, "shards", "%s", TEXT(info->shard_count));
    add(v, "size", "%s", SIZE(dataset_bytes(r->dataset)));
    add_some(v, "flagged", flagged);
    add_some(v, "equal", r->check.shared_images + r->repeated);
    if (r->all.images > 0)
        add(v, "least_like", "%.2f", (double)r->least_like);
    else
        add_some(v, "least_like", 0);
    add(v, "most_like", "%.2f", (double)r->most_like);
}

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

static void
add_card(struct template_values *v, const struct html_report *r)
{
    const struct manifest *m = &r->dataset->manifest;
    const struct chex_dataset_info *info = &r->dataset->info;
    const char *labels = report_label_file(m->labels_sha256);
    char patients[FORMAT_THINGS];

    add(v, "synthetic", "%s", m->synthetic ? PICTURE_SYNTHETIC : "");
    add(v, "leaky", "%s", m->leaks.patients > 0 ? format_things(m->leaks.patients, "patient", patients) : "");
    add(v, "width", "%u", info->width);
    add(v, "height", "%u", info->height);
    add(v, "resize", "%.60s", m->resize);
    add(v, "min_side", "%u", m->min_side);
    add(v, "max_pixels", "%s", TEXT(m->max_pixels));
    add_some(v, "lenient", m->lenient);
    add(v, "split_rule", "%.60s", m->split_rule);
    add(v, "seed", "%llu", (unsigned long long)m->seed);
    add(v, "labels", "%s",
        labels         ? labels
        : m->synthetic ? "written by chex-synth"
                       : "not one of the two releases of NIH that are known here");
    add(v, "labels_sha256", "%.64s", m->labels_sha256);
    add(v, "format", "%u", info->format_version);
    add(v, "stride", "%s", TEXT(info->stride));
    add(v, "pixel_offset", "%zu", info->pixel_offset);
    add(v, "shard_size", "%u", info->shard_size);
    add(v, "tail", "%.20s", m->tail);
    add(v, "mean", "%.4f", info->pixel_mean);
    add(v, "deviation", "%.4f", info->pixel_deviation);
    add(v, "unit_mean", "%.6f", info->pixel_mean / 255);
    add(v, "unit_deviation", "%.6f", info->pixel_deviation / 255);
    add(v, "tool_version", "%.40s", m->tool_version);
    add_some(v, "official", strcmp(m->split_rule, "official") == 0);
    add_some(v, "by_file", strcmp(m->split_rule, "file") == 0);
    add_some(v, "excluded", m->left_out.excluded);
    add_some(v, "missing", m->left_out.missing);
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

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
}

/* "shards", or of several sources "shards1", "shards2" ... */
static const char *
source_name(const struct manifest *m, unsigned i, char out[32])
{
    if (m->source_count > 1)
        snprintf(out, 32, "shards%u", i + 1);
    else
        snprintf(out, 32, "shards");
    return out;
}

/* Write every option that affects the bytes, also defaults, as they may change.  Names are those of the NIH release. */
static void
put_command(struct html *h, const struct html_report *r)
{
    const struct manifest *m = &r->dataset->manifest;
    char words[SPEC_WORDS], name[32], *option, *newline;

    html_raw(h, "<pre id=\"again\">");
    if (m->source_count > 0) {
        for (unsigned i = 0; i < m->source_count; i++)
            html_format(h, "# %s is the data set %s\n", source_name(m, i, name), m->source[i].dataset_id);
        html_words(h, "chex-convert");
        for (unsigned i = 0; i < m->source_count; i++)
            html_format(h, " -i %s", source_name(m, i, name));
    } else {
        html_words(h, "chex-convert -i images -l ");
        html_words(h, strcmp(m->labels_sha256, LABELS_2017) == 0 ? "Data_Entry_2017.csv" : "Data_Entry_2017_v2020.csv");
    }
    html_raw(h, " -o again");
    for (option = spec_words(m, true, words); (newline = strchr(option, '\n')) != NULL; option = newline + 1) {
        *newline = '\0';
        html_raw(h, option == words || strncmp(option, "--split", 7) == 0 ? " \\\n    " : " ");
        html_words(h, option);
    }
    html_words(h, "\nchex-inspect check --full again\nchex-inspect report -o report.html again");
    html_raw(h, "</pre>\n");
}

static void
put_list_command(struct html *h, const struct html_report *r)
{
    (void)r;
    html_command(h, "chex-inspect list --format csv --fields name,split");
}

/* The functions that replace {{name}} by a table, a plot or pictures.  A plot is drawn twice, see report.h. */
static const struct page_part {
    const char *name;
    void (*put)(struct html *h, const struct html_report *r);
    void (*draw)(struct html *h, const struct html_report *r, bool slim);
    enum chex_status (*picture)(struct html *h, const struct html_report *r, struct chex_error *err);
} parts[] = {
    {"checks", .put = put_checks},
    {"command", .put = put_command},
    {"list_command", .put = put_list_command},
    {"table_splits", .put = report_table_splits},
    {"plot_ages", .put = report_draw_ages},
    {"plot_visits", .put = report_draw_visits},
    {"plot_sex_view", .draw = report_draw_sex_view},
    {"plot_prevalence", .draw = report_draw_prevalence},
    {"table_prevalence", .put = report_table_prevalence},
    {"plot_together", .draw = report_draw_together},
    {"plot_levels", .draw = report_draw_levels},
    {"mean_images", .picture = report_mean_images},
    {"plot_shards", .draw = report_draw_shards},
    {"table_shards", .put = report_table_shards},
    {"table_rejects", .put = report_table_rejects},
    {"contact_sheet", .picture = report_contact_sheet},
    {"flagged_images", .picture = report_flagged_images},
    {"table_equal", .put = report_table_equal},
};

static enum chex_status
put_part(struct html *h, const struct html_report *r, const struct page_part *part, struct chex_error *err)
{
    if (part->picture)
        return part->picture(h, r, err);
    if (part->put) {
        part->put(h, r);
    } else {
        part->draw(h, r, false);
        part->draw(h, r, true);
    }
    return CHEX_OK;
}

/* ---- the page -------------------------------------------------------------------------------------------------- */

static enum chex_status
put_named_part(struct html *h, const void *context, const char *name, size_t length, bool *found,
               struct chex_error *err)
{
    size_t i;

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strlen(parts[i].name) != length || memcmp(parts[i].name, name, length) != 0)
            continue;
        *found = true;
        return put_part(h, context, &parts[i], err);
    }
    return CHEX_OK;
}

enum chex_status
report_page(struct html_report *r, struct html *h, struct chex_error *err)
{
    struct template_values values = {.count = 0};

    add_levels(&values, r);
    add_counts(&values, r);
    add_card(&values, r);
    return template_fill(report_template, &values, put_named_part, r, h, err);
}
