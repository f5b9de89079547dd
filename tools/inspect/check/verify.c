/*
 * verify.c - check --quick, --sample, --full, and the overview of a PATH without a command; see check.h
 *
 * Faults are the result of the action: it prints them on stdout, grouped by file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "base/json.h"
#include "common/shell_word.h"
#include "common/spec_words.h"
#include "common/wrap.h"
#include "dataset/dali_index.h"
#include "inspect/check/check.h"
#include "inspect/describe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define WIDTH 80

struct verify_output {
    struct inspect *in;
    const struct chex_dataset *dataset; /* or NULL */
    char last_file[4096];               /* the file of the last printed heading */
    json_t *faults;                     /* with --json */
    const char *depth;
    struct progress progress;
    uint64_t unrelated; /* faults of files that are not part of the data set */
    bool sums;          /* the manifest itself has a fault */
};

static const char *
depth_name(const struct inspect *in, const struct target *t)
{
    const struct inspect_options *options = in->options;

    /* Without a manifest there is only one way to check. */
    if (options->depth == VERIFY_FULL || !t->dataset)
        return "full";
    return options->depth == VERIFY_SAMPLE ? "sample" : "quick";
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static void
on_tick(void *context, uint64_t done, uint64_t total)
{
    struct verify_output *r = context;
    char text[256], read[FORMAT_TEXT], all[FORMAT_TEXT], rate[FORMAT_TEXT], left[FORMAT_TEXT];
    double seconds;
    int used;

    if (r->progress.started == 0)
        progress_start(&r->progress, total);
    progress_update(&r->progress, done);
    if (total == 0 || !progress_line_due(&r->in->line))
        return;
    seconds = progress_left(&r->progress);
    used = snprintf(text, sizeof(text), "%-8s %3u %%  %s of %s", r->depth,
                    (unsigned)(100 * (double)done / (double)total), format_bytes(done, read), format_bytes(total, all));
    if (seconds >= 0)
        snprintf(text + used, sizeof(text) - (size_t)used, "  %s/s  %s left",
                 format_bytes((uint64_t)r->progress.rate, rate), format_seconds(seconds, left));
    progress_line_update(&r->in->line, text);
}

static json_t *
fault_json(const struct verify_fault *fault)
{
    bool placed = fault->record >= 0;

    return json_pack("{s:o, s:o, s:o, s:s, s:s, s:o}", "file", text_json(fault->file), "record",
                     placed ? count_json((uint64_t)fault->record) : json_null(), "offset",
                     placed ? count_json(fault->offset) : json_null(), "status", chex_status_name(fault->status),
                     "text", fault->text, "image", text_json(fault->image));
}

/* "  record 37 @2,430,789: TEXT  (IMAGE)", with the image on its own line where there is no room. */
static void
print_fault(const struct verify_output *r, const struct verify_fault *fault)
{
    char line[512], offset[FORMAT_TEXT], image[INSPECT_TEXT];
    int used = 0;

    if (fault->record >= 0)
        used = snprintf(line, sizeof(line), "record %lld @%s: ", (long long)fault->record,
                        format_count(fault->offset, offset));
    snprintf(line + used, sizeof(line) - (size_t)used, "%s", fault->text);
    printf("  %s%s%s", r->in->color.red, line, r->in->color.off);
    if (fault->image) {
        inspect_text(inspect_bytes(fault->image), image);
        printf("%s(%s)", 2 + strlen(line) + strlen(image) + 4 > WIDTH ? "\n    " : "  ", image);
    }
    printf("\n");
}

/* Returns true if the file is a shard of the manifest or its index for DALI. */
static bool
is_part(const struct chex_dataset *ds, const char *file)
{
    unsigned i;

    for (i = 0; i < ds->info.shard_count; i++) {
        size_t length = strlen(ds->shard[i].name);

        if (strncmp(file, ds->shard[i].name, length) == 0 &&
            (file[length] == '\0' || strcmp(file + length, DALI_INDEX_SUFFIX) == 0))
            return true;
    }
    return false;
}

static void
on_fault(void *context, const struct verify_fault *fault)
{
    struct verify_output *r = context;
    char name[INSPECT_TEXT];

    r->sums |= strcmp(fault->file, MANIFEST_NAME) == 0;
    r->unrelated += r->dataset && strcmp(fault->file, MANIFEST_NAME) != 0 && !is_part(r->dataset, fault->file);
    if (r->in->common->json) {
        inspect_json_push(&r->faults, fault_json(fault));
        return;
    }
    progress_line_clear(&r->in->line);
    if (strcmp(r->last_file, fault->file) != 0) {
        printf("%s%s%s\n", r->in->color.bold, inspect_text(inspect_bytes(fault->file), name), r->in->color.off);
        snprintf(r->last_file, sizeof(r->last_file), "%s", fault->file);
    }
    print_fault(r, fault);
    fflush(stdout);
}

/* ---- afterwards -------------------------------------------------------------------------------------------------- */

static void
print_speed(const struct verify *v, double seconds)
{
    char bytes[FORMAT_TEXT], rate[FORMAT_TEXT], records[FORMAT_THINGS];

    printf(", %s, %s", format_things(v->records_read, "record", records), format_bytes(v->bytes_read, bytes));
    /* Below a tenth of a second a rate is meaningless. */
    if (seconds >= 0.1)
        printf(" in %.1f s (%s/s)", seconds, format_bytes((uint64_t)((double)v->bytes_read / seconds), rate));
}

/* Returns true if the folder has an index for DALI; the manifest does not record --index. */
static bool
has_index(const struct chex_dataset *ds)
{
    char name[SHARD_NAME_MAX + sizeof(DALI_INDEX_SUFFIX)];
    struct stat st;
    unsigned i;

    for (i = 0; i < ds->info.shard_count; i++) {
        snprintf(name, sizeof(name), "%s%s", ds->shard[i].name, DALI_INDEX_SUFFIX);
        if (fstatat(ds->folder.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

/* The number of a source in the placeholder SHARDS, if there are several. */
static const char *
source_number(const struct chex_dataset *ds, unsigned i, char out[FORMAT_TEXT])
{
    snprintf(out, FORMAT_TEXT, "%u", i + 1);
    return ds->manifest.source_count > 1 ? out : "";
}

/*
 * Print the command that repairs the data set.  It has placeholders for the inputs, because a manifest does not name
 * them: a conversion on another machine must write the same bytes.  --repair trusts a readable manifest and does not
 * touch files that are not part of the data set.
 */
static void
print_repair(const struct verify_output *r, uint64_t faults)
{
    const struct chex_dataset *ds = r->dataset;
    char words[SPEC_WORDS], folder[SHELL_WORD], excluded[FORMAT_THINGS], number[FORMAT_TEXT];
    const char *path = shell_word(relative_path(ds->folder.path), folder);
    struct wrap w = {.out = stdout};

    if (r->unrelated == faults) {
        printf("next     remove the files named above, unless a conversion is running\n");
        return;
    }
    if (ds->manifest.withdrawal_count > 0) {
        wrap_line(stdout, "next",
                  "convert again without the withdrawn images (chex-convert --exclude), or restore a "
                  "copy made after the last withdrawal: --repair would bring them back");
        return;
    }
    if (ds->manifest.left_out.excluded > 0)
        printf("         LIST is the list of the %s that --exclude left out\n",
               format_things(ds->manifest.left_out.excluded, "image", excluded));
    for (unsigned i = 0; i < ds->manifest.source_count; i++)
        printf("         SHARDS%s is the data set %s%s\n", source_number(ds, i, number),
               ds->manifest.source[i].dataset_id,
               i + 1 < ds->manifest.source_count ? ""
               : ds->manifest.source_count > 1   ? "; give -l and --split if they were given before"
                                                 : "; give -l if it was given before");
    wrap_command(&w, "next    ");
    if (r->sums)
        wrap_put(&w, " ", "rm %s/" MANIFEST_NAME " &&", path);
    wrap_put(&w, " ", "chex-convert --repair%s", ds->manifest.source_count > 0 ? "" : " -i IMAGES -l LABELS.csv");
    for (unsigned i = 0; i < ds->manifest.source_count; i++)
        wrap_put(&w, " ", "-i SHARDS%s", source_number(ds, i, number));
    wrap_put(&w, " ", "-o %s", path);
    wrap_words(&w, spec_words(&ds->manifest, false, words), '\n');
    if (has_index(ds))
        wrap_put(&w, " ", "--index dali");
    wrap_end(&w);
}

static void
print_summary(const struct verify_output *r, const struct target *t, const struct verify *v, double seconds)
{
    const struct inspect *in = r->in;
    char good[FORMAT_TEXT], all[FORMAT_THINGS], text[FORMAT_THINGS], word[SHELL_WORD];
    unsigned count = t->kind == TARGET_DATASET ? t->dataset->info.shard_count : 1;

    if (in->common->quiet)
        return;
    printf("%-8s %s of %s good", depth_name(in, t), format_count(v->shards_good, good),
           format_things(count, t->dataset ? "shard" : "file", all));
    if (v->records_read > 0)
        print_speed(v, seconds);
    printf("\n");
    if (v->faults > 0)
        printf("         %s%s%s\n", in->color.red, format_things(v->faults, "fault", text), in->color.off);
    if (v->notes > 0)
        printf("         note: %s of one value only\n", format_things(v->notes, "image", text));
    if (!t->dataset)
        printf("         in no manifest: only framing, checksums and order are known\n");
    else if (v->faults > 0)
        print_repair(r, v->faults);
    else if (in->options->depth != VERIFY_FULL)
        printf("next     chex-inspect check --full %s\n", shell_word(relative_path(t->path), word));
}

static json_t *
result_json(const struct inspect *in, const struct target *t, const struct verify *v, json_t *faults)
{
    const char *kind = t->kind == TARGET_DATASET ? "dataset" : t->kind == TARGET_SHARD ? "shard" : "file";

    return json_pack("{s:o, s:s, s:o, s:{s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o}, s:o}", "path", text_json(t->path),
                     "kind", kind, "dataset", t->dataset ? describe_json(t) : json_null(), "check", "depth",
                     depth_name(in, t), "manifest", t->dataset != NULL, "sha256", in->options->sha256, "shards_good",
                     count_json(v->shards_good), "records_read", count_json(v->records_read), "bytes_read",
                     count_json(v->bytes_read), "faults", count_json(v->faults), "constant_images",
                     count_json(v->notes), "fault_list", faults);
}

static int
unfinished(struct inspect *in, const struct target *t)
{
    char text[PRINTABLE_TEXT];

    if (in->common->json) {
        inspect_json_add(
            in, json_pack("{s:o, s:s, s:s}", "path", text_json(t->path), "kind", "unfinished", "text", t->unfinished));
        return EXIT_DATA;
    }
    printf("%s: %s%s%s\n", printable_text(t->path, text), in->color.yellow, t->unfinished, in->color.off);
    if (t->spec[0])
        printf("         %s\n", t->spec);
    wrap_line(stdout, "next", "%s", t->next);
    return EXIT_DATA;
}

static enum chex_status
run_target(struct verify *v, const struct target *t, struct chex_error *err)
{
    if (!t->dataset)
        return verify_file(v, t->path, err);
    v->dataset = t->dataset;
    v->only = t->kind == TARGET_SHARD;
    v->only_shard = t->first;
    return verify_run(v, err);
}

int
inspect_verify(struct inspect *in, struct target *t)
{
    struct verify_output r = {.in = in, .dataset = t->dataset, .depth = depth_name(in, t)};
    struct verify v = {.depth = in->options->depth,
                       .sha256 = in->options->sha256,
                       .sample_percent = in->options->sample_percent,
                       .threads = in->common->threads,
                       .fault = on_fault,
                       .tick = on_tick,
                       .context = &r};
    struct chex_error err;
    double started = clock_now();
    enum chex_status status;

    if (t->kind == TARGET_UNFINISHED)
        return unfinished(in, t);
    if (t->kind == TARGET_CHECKPOINT)
        return inspect_checkpoint(in, t);
    if (in->common->json)
        r.faults = json_array();
    else if (t->dataset && !in->common->quiet)
        describe_head(in, t);
    if (in->options->action == INSPECT_DESCRIBE && t->dataset && !in->common->json && !in->common->quiet)
        describe_rest(in, t);
    fflush(stdout);
    status = run_target(&v, t, &err);
    progress_line_clear(&in->line);
    if (status != CHEX_OK && status != CHEX_ERR_READ) {
        json_decref(r.faults);
        return inspect_fail(in, t->path, &err);
    }
    if (in->common->json)
        inspect_json_add(in, result_json(in, t, &v, r.faults));
    else
        print_summary(&r, t, &v, clock_now() - started);
    if (status == CHEX_ERR_READ)
        return EXIT_MISSING;
    return v.faults > 0 ? EXIT_DATA : EXIT_GOOD;
}
