/*
 * convert_report.c - see convert_report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_report.h"

#include "base/number_format.h"
#include "base/progress.h"
#include "common/printable.h"
#include "common/progress_line.h"
#include "common/shell_word.h"
#include "common/wrap.h"
#include "labels/label_kinds.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

bool
rejects_allowed(const struct convert *c)
{
    const struct convert_options *o = c->options;

    return c->counts.rejects <= o->allow_rejects ||
           c->counts.rejects * 100 <= (uint64_t)o->allow_reject_percent * c->counts.images;
}

/* ---- plan ----------------------------------------------------------------------------------------------------- */

static void
report_labels(const struct convert *c)
{
    const struct labels *l = &c->labels;
    char n[FORMAT_THINGS], patients[FORMAT_THINGS];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "labels   %s", l->kind ? l->kind->title : "records of the data set");
    wrap_put(&w, ", ", "%s, %s, %u finding%s", format_things(l->row_count, "row", n),
             format_things(l->patient_count, "patient", patients), l->findings.count,
             l->findings.count == 1 ? "" : "s");
    if (!isnan(l->age_min))
        wrap_put(&w, ", ", "ages %d-%d", (int)l->age_min, (int)l->age_max);
    if (l->impossible_ages > 0)
        wrap_put(&w, " ", "(%s taken as unknown)", format_things(l->impossible_ages, "impossible one", n));
    wrap_end(&w);
    if (l->duplicate_rows > 0)
        fprintf(stderr, "         %s dropped\n", format_things(l->duplicate_rows, "repeated row", n));
    if (l->reject_count > 0) {
        wrap_put(&w, "", "         %s that cannot be used", format_things(l->reject_count, "row", n));
        wrap_put(&w, ", ", "the first in line %u", l->reject[0].line);
        wrap_put(&w, ": ", "%s", l->reject[0].reason);
        wrap_end(&w);
    }
    if (l->ignored_labels > 0)
        fprintf(stderr, "         %s of other findings ignored\n", format_things(l->ignored_labels, "label", n));
    if (c->excluded > 0)
        fprintf(stderr, "         %s left out by --exclude\n", format_things(c->excluded, "image", n));
    if (c->unmatched > 0)
        fprintf(stderr, "         %s of --exclude %s in no row\n", format_things(c->unmatched, "name", n),
                c->unmatched == 1 ? "is" : "are");
    if (c->filtered > 0)
        fprintf(stderr, "         %s left out by --view\n", format_things(c->filtered, "image", n));
    if (c->unselected > 0)
        fprintf(stderr, "         %s left out by --where\n", format_things(c->unselected, "image", n));
}

static void
report_images(const struct convert *c)
{
    char found[FORMAT_TEXT], inputs[FORMAT_THINGS], missing[FORMAT_TEXT], extra[FORMAT_THINGS];
    size_t folders = c->source.folder_count, archives = c->source.archive_count;
    bool expected = c->preflight.expected > 0;
    struct wrap w = {.out = stderr};

    if (c->source.dataset_count > 0)
        wrap_put(&w, "", "images   %s found in data set%s", format_count(c->preflight.found, found),
                 c->source.dataset_count > 1 ? "s" : "");
    for (size_t i = 0; i < c->source.dataset_count; i++)
        wrap_put(&w, i > 0 ? ", " : " ", "%.8s (%ux%u)", c->stored[i].dataset_id, c->stored[i].size, c->stored[i].size);
    if (c->source.dataset_count == 0 && (folders > 0 || !expected))
        wrap_put(&w, "", "images   %s found in %s", format_count(c->preflight.found, found),
                 folders > 0 || archives == 0 ? format_things(folders, "folder", inputs)
                                              : format_things(archives, "archive", inputs));
    if (expected)
        wrap_put(&w, folders > 0 ? ", " : "", "%s%s expected in %s", folders > 0 ? "" : "images   ",
                 format_count(c->preflight.expected, found), format_things(archives, "archive", inputs));
    else if (folders > 0 && archives > 0)
        wrap_put(&w, " ", "and %s", format_things(archives, "archive", inputs));
    /* Before all inputs were read, we cannot say that nothing is missing. */
    if (expected)
        wrap_put(&w, ", ", "not read yet");
    else
        wrap_put(&w, ", ", "%s missing", format_count(c->preflight.missing, missing));
    wrap_put(&w, ", ", "%s without a row", format_count(c->unlabeled.count, extra));
    wrap_end(&w);
    if (c->source.repeated > 0)
        fprintf(stderr, "         %s identical %s ignored\n", format_count(c->source.repeated, extra),
                c->source.repeated == 1 ? "copy" : "copies");
    if (c->source.unopened > 0)
        fprintf(stderr, "         %s in these folders not looked into;\n         give archives by name, with -i\n",
                format_things(c->source.unopened, "archive", extra));
    if (c->source.unreadable > 0)
        fprintf(stderr, "         %s that may not be read left out\n",
                format_things(c->source.unreadable, "folder", extra));
}

static void
report_shards(const struct convert *c)
{
    const struct slot_plan *p = &c->plan;
    char bytes[FORMAT_TEXT], space[FORMAT_TEXT], n[FORMAT_THINGS];
    uint64_t there = convert_free_space(c->options->out);
    struct wrap w = {.out = stderr};
    unsigned split;
    size_t i;

    for (split = 0; split < p->splits.count; split++) {
        size_t shards = 0;

        for (i = 0; i < p->shard_count; i++)
            shards += p->shard[i].split == split;
        wrap_put(&w, split ? " + " : "", "%s%s %s", split ? "" : "plan     ", p->splits.name[split],
                 format_count(shards, n));
    }
    wrap_put(&w, " ", "shard%s of %s x %ux%u gray8", p->shard_count == 1 ? "" : "s",
             format_count(p->spec.shard_size, n), p->spec.size, p->spec.size);
    wrap_put(&w, ", ", "%s", format_bytes(plan_size(p), bytes));
    if (there > 0)
        wrap_put(&w, " ", "(%s free)", format_bytes(there, space));
    wrap_put(&w, ", ", "%s", format_things(c->options->threads, "thread", n));
    wrap_end(&w);
    if (p->dropped > 0)
        fprintf(stderr, "         %s left out by --tail drop\n", format_things(p->dropped, "image", n));
}

static void
report_splits(const struct convert *c)
{
    char rule[64], images[FORMAT_THINGS], patients[FORMAT_THINGS];
    struct wrap w = {.out = stderr};
    unsigned split;

    split_rule_format(&c->plan.spec.split, rule, sizeof(rule));
    wrap_put(&w, "", "split    %s", rule);
    for (split = 0; split < c->plan.splits.count; split++)
        wrap_put(&w, split ? ", " : ": ", "%s %s of %s", c->plan.splits.name[split],
                 format_things(c->plan.splits.images[split], "image", images),
                 format_things(c->plan.splits.patients[split], "patient", patients));
    wrap_end(&w);
    if (c->plan.splits.leaky_patients > 0)
        wrap_line(stderr, "leaky", "%s with %s %s in two splits: every result of chex-train is marked leaky",
                  format_things(c->plan.splits.leaky_patients, "patient", patients),
                  format_things(c->plan.splits.leaky_images, "image", images),
                  c->plan.splits.leaky_patients == 1 ? "is" : "are");
    if (!c->options->split_given && c->plan.spec.split.kind != SPLIT_OFFICIAL)
        fprintf(stderr, "         no lists next to the label file (--lists): not the official split\n");
}

/* Shards among the inputs are usually a mistake on the command line. */
static void
report_foreign(const struct convert *c)
{
    struct folder_names names = {.count = 0};
    char n[FORMAT_THINGS];
    bool images;

    convert_list_foreign(c, &names, &images);
    if (images)
        printable_line(stderr, "note     '%s' is also a folder of the images", c->options->out);
    else if (names.count > 0)
        printable_line(stderr, "note     '%s' holds %s, such as '%s'", c->options->out,
                       format_things(names.count, "other file", n), names.name[0]);
    folder_names_release(&names);
}

void
report_missing(const struct convert *c)
{
    const struct preflight *p = &c->preflight;
    char found[FORMAT_TEXT], wanted[FORMAT_THINGS], name[PRINTABLE_TEXT];
    struct wrap w = {.out = stderr};
    size_t i;

    if (p->missing == 0)
        return;
    wrap_put(&w, "", "missing  %s of %s", format_count(p->missing, found), format_things(p->wanted, "image", wanted));
    for (i = 0; i < PREFLIGHT_SAMPLES && i < p->missing; i++)
        wrap_put(&w, i ? ", " : ": ", "%s", printable_text(p->sample[i], name));
    if (p->missing > PREFLIGHT_SAMPLES)
        wrap_put(&w, ", ", "...");
    wrap_end(&w);
    for (i = 0; p->whole && p->found > 0 && i < PREFLIGHT_ARCHIVES; i++)
        if (p->archive[i].found < p->archive[i].wanted)
            fprintf(stderr, "         images_%03zu: %s of %s found\n", i + 1, format_count(p->archive[i].found, found),
                    format_count(p->archive[i].wanted, wanted));
}

void
report_unread(const struct convert *c)
{
    char archives[FORMAT_THINGS];

    if (c->preflight.expected > 0)
        wrap_line(stderr, "next",
                  "-n does not read %s: with --allow-missing it does, without decoding, and says what is missing",
                  c->source.archive_count == 1 ? "the archive"
                                               : format_things(c->source.archive_count, "archive", archives));
}

void
report_incomplete(const struct convert *c)
{
    wrap_line(stderr, "next", "the same command with the other archives in addition resumes: what is in '%s' is kept",
              relative_path(c->options->out));
    if (c->resumed.shards_done == 0 && c->resumed.slots_full == 0)
        wrap_line(stderr, "",
                  "or with --allow-missing: it leaves out what is missing, and decodes the other images again");
    else /* this plan lacks the images of other inputs */
        wrap_line(stderr, "",
                  "or with --allow-missing and all archives so far: they are decoded once more, and what is "
                  "in none of those named is left out");
}

void
report_plan(const struct convert *c, const struct cli_common *common, bool dry_run)
{
    if (common->quiet)
        return;
    progress_line_begin_log(common, convert_program.name);
    report_labels(c);
    report_notes(c, common->verbose);
    report_images(c);
    if (dry_run || common->verbose)
        report_missing(c);
    report_splits(c);
    report_shards(c);
    report_foreign(c);
    if (dry_run || common->verbose)
        fprintf(stderr, "data     %s, stride %s bytes, pixels at byte %s of a record\n", c->plan.dataset_id,
                COUNT_TEXT(c->plan.layout.stride), COUNT_TEXT(c->plan.layout.pixel_offset));
}

void
report_resumed(const struct convert *c)
{
    char done[FORMAT_TEXT], all[FORMAT_THINGS], images[FORMAT_THINGS];
    struct wrap w = {.out = stderr};

    if (c->replaced)
        fprintf(stderr, "again    the unfinished conversion here counted on the images that are missing: "
                        "its plan differs, so the conversion starts again\n");
    if (c->retried > 0)
        fprintf(stderr, "again    %s that could not be read, and can be now\n",
                format_things(c->retried, "rejected image", images));
    if (c->resumed.shards_done == 0 && c->resumed.slots_full == 0)
        return;
    wrap_put(&w, "", "resume   %s of %s done and verified", format_count(c->resumed.shards_done, done),
             format_things(c->plan.shard_count, "shard", all));
    wrap_put(&w, ", ", "%s in their slots", format_things(c->resumed.slots_full, "more image", images));
    wrap_end(&w);
}

/* ---- progress ------------------------------------------------------------------------------------------------- */

void
report_progress(const struct progress *p, struct part part, uint64_t rejects, char *text, size_t size)
{
    char done[FORMAT_TEXT], total[FORMAT_TEXT], rate[FORMAT_TEXT], left[FORMAT_TEXT], bad[FORMAT_TEXT];
    double seconds = progress_left(p);
    char whose[40] = "";

    if (!part_is_whole(part))
        snprintf(whose, sizeof(whose), "part %u of %u  ", part.index + 1, part.count);
    snprintf(text, size, "convert  %s%3u %%  %s/%s  %s img/s  rejects %s  %s left", whose,
             (unsigned)(p->total ? p->done * 100 / p->total : 100), format_count(p->done, done),
             format_count(p->total, total), format_count((uint64_t)p->rate, rate), format_count(rejects, bad),
             seconds < 0 ? "?" : format_seconds(seconds, left));
}

/* ---- summary -------------------------------------------------------------------------------------------------- */

/* Prints the name of the file that lists the rejects. */
static void
end_rejects(struct wrap *w, const struct convert *c)
{
    char out[PRINTABLE_TEXT];

    wrap_put(w, "      ", "%s/rejects.jsonl", printable_text(relative_path(c->options->out), out));
    wrap_end(w);
}

static void
report_rejects(const struct convert *c, const struct cli_common *common)
{
    struct color color = color_for(common, stderr);
    struct wrap w = {.out = stderr};
    char n[FORMAT_THINGS];
    bool first = true;
    int status;

    if (c->counts.rejects > 0) {
        wrap_put(&w, "", "         %s%s rejected%s:", color.red, format_count(c->counts.rejects, n), color.off);
        for (status = 0; status < CHEX_ERR_BUG; status++) {
            if (c->counts.reject_of[status] == 0)
                continue;
            wrap_put(&w, first ? " " : ", ", "%s %s", format_count(c->counts.reject_of[status], n),
                     chex_status_name((enum chex_status)status));
            first = false;
        }
        end_rejects(&w, c);
        if (c->counts.reject_of[CHEX_ERR_READ] + c->counts.reject_of[CHEX_ERR_MISSING] > 0)
            fprintf(stderr, "         the same command tries those again that could not be read\n");
    }
    if (c->labels.reject_count > 0) {
        wrap_put(&w, "", "         %s not used", format_things(c->labels.reject_count, "row", n));
        end_rejects(&w, c);
    }
    if (c->unlabeled.count > 0) {
        wrap_put(&w, "", "         %s without a row skipped", format_things(c->unlabeled.count, "image", n));
        end_rejects(&w, c);
    }
}

static void
report_noticed(const struct convert *c)
{
    const struct convert_counts *k = &c->counts;
    const struct {
        uint64_t count;
        const char *noun, *rest;
    } lines[] = {
        {k->rgba, "RGBA image", "normalised to gray"},
        {k->colour, "image", "in colour reduced to luma: are these X-rays?"},
        {k->composited, "image", "with transparent pixels, put on black"},
        {k->deep, "image", "of 16 bits scaled to 8"},
        {k->palette, "image", "with a palette expanded"},
        {k->interlaced, "image", "interlaced or progressive"},
        {k->jpeg, "image", "in JPEG"},
        {k->animated, "image", "animated: first frame taken"},
        {k->mismatched, "image", "named like the other of PNG and JPEG"},
        {k->warned, "image", "with damage that does not touch pixels"},
        {k->shards_rewritten, "shard", "written again, since the disk failed: check the disk"},
    };
    char n[FORMAT_THINGS];
    size_t i;

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (lines[i].count > 0)
            fprintf(stderr, "         %s %s\n", format_things(lines[i].count, lines[i].noun, n), lines[i].rest);
}

/* Prints the result of --cross-check; a difference would have ended the run. */
static void
report_cross_check(const struct convert *c)
{
    char n[FORMAT_THINGS];

    if (c->options->cross_check > 0 && c->counts.cross_checked == 0)
        fprintf(stderr, "         --cross-check: no PNG image was decoded again, so nothing was compared\n");
    else if (c->options->cross_check > 0)
        fprintf(stderr, "         %s decoded again by libpng: no difference\n",
                format_things(c->counts.cross_checked, "image", n));
}

/* Prints the other contents of the archives, apart from the images. */
static void
report_archives(const struct convert *c)
{
    char n[FORMAT_THINGS];
    uint64_t others = 0;
    size_t i;

    for (i = 0; i < c->source.archive_count; i++)
        others += c->archive[i].others;
    if (c->repeated > c->source.repeated)
        fprintf(stderr, "         %s identical %s in archives ignored\n",
                format_count(c->repeated - c->source.repeated, n),
                c->repeated - c->source.repeated == 1 ? "copy" : "copies");
    if (others > 0)
        fprintf(stderr, "         %s of archives ignored\n", format_things(others, "other member", n));
    if (c->archives_damaged > 0)
        fprintf(stderr, "         %s\n", format_things(c->archives_damaged, "damaged archive", n));
}

void
report_shortage(const struct chex_error *err, unsigned threads)
{
    struct rusage used;
    char bytes[FORMAT_TEXT], n[FORMAT_THINGS], fewer[64];

    if (strstr(err->text, strerror(EMFILE))) {
        /* Each thread has an image open and perhaps a shard; then the journal, folders and standard streams. */
        wrap_line(stderr, "next", "%s need%s up to %s open files: 'ulimit -n' raises the limit",
                  format_things(threads, "thread", n), threads == 1 ? "s" : "", COUNT_TEXT(2 * threads + 8));
        return;
    }
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return;
    snprintf(fewer, sizeof(fewer), threads > 1 ? "try --threads %u" : "more is needed", (threads + 3) / 4);
    wrap_line(stderr, "next", "%s were in use with %s; %s", format_bytes((uint64_t)used.ru_maxrss * 1024, bytes),
              format_things(threads, "thread", n), fewer);
}

void
report_left(const struct convert *c, const struct cli_common *common)
{
    const struct {
        uint64_t count;
        const char *noun, *one, *several;
    } part[] = {
        {c->counts.rejects, "image", "of this data set was rejected", "of this data set were rejected"},
        {c->labels.reject_count, "row", "of the label file cannot be used", "of the label file cannot be used"},
        {c->archives_damaged, "archive", "is damaged", "are damaged"},
        {c->counts.shards_other, "shard", "came out with another SHA-256", "came out with another SHA-256"},
    };
    char text[400] = "", n[FORMAT_THINGS];
    size_t used = 0, i;

    for (i = 0; i < sizeof(part) / sizeof(part[0]); i++)
        if (part[i].count > 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s", used > 0 ? ", " : "",
                                     format_things(part[i].count, part[i].noun, n),
                                     part[i].count == 1 ? part[i].one : part[i].several);
    if (used == 0)
        return;
    if (c->counts.rejects + c->labels.reject_count > 0)
        cli_complain(&convert_program, common, "%s, see %s/rejects.jsonl%s", text, c->options->out,
                     c->counts.rejects > 0 ? " (--repair tries again)" : "");
    else
        cli_complain(&convert_program, common, "%s", text);
}

void
report_done(const struct convert *c, const struct cli_common *common, bool within_allowance)
{
    char shards[FORMAT_THINGS], images[FORMAT_THINGS], bytes[FORMAT_TEXT], word[SHELL_WORD];

    if (common->quiet)
        return;
    if (c->resumed.complete) {
        wrap_line(stderr, "done", "'%s' is complete already: nothing to do", relative_path(c->options->out));
    } else {
        uint64_t tenths = (uint64_t)(c->seconds * 10 + 0.5);

        fprintf(stderr, "done     %s, %s, %s in %s.%llu s\n", format_things(c->plan.shard_count, "shard", shards),
                format_things(c->counts.converted, "image", images), format_bytes(plan_size(&c->plan), bytes),
                COUNT_TEXT(tenths / 10), (unsigned long long)(tenths % 10));
        report_rejects(c, common);
        report_noticed(c);
        report_cross_check(c);
        report_archives(c);
        if (c->counts.rejects > 0 && within_allowance && c->labels.reject_count == 0)
            fprintf(stderr, "         within --allow-rejects\n");
    }
    fprintf(stderr, "         data set %s; patients in two splits: %s%s\n", c->plan.dataset_id,
            format_count(c->plan.splits.leaky_patients, images), c->plan.splits.leaky_patients > 0 ? " (leaky)" : "");
    fprintf(stderr, "next     chex-inspect check --full %s\n", shell_word(relative_path(c->options->out), word));
}
