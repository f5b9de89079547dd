/*
 * chex-synth.c - makes a synthetic substitute for ChestX-ray14: images, labels and lists of patients who do not exist
 *
 * It serves demonstrations, tests and benchmarks without the 42 GB of the real data set.  synth_people.c draws the
 * patients, synth_lists.c writes the texts, synth_body.c, synth_findings.c and synth_film.c draw the pixels,
 * synth_png.c encodes the files, synth_write.c writes the folder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/number_format.h"
#include "common/cli.h"
#include "common/progress_line.h"
#include "common/shell_word.h"
#include "common/wrap.h"
#include "dataset/findings.h"
#include "synth/synth_write.h"

enum { OPT_COUNT = 1, OPT_OUTPUT, OPT_SIZE, OPT_SEED, OPT_ODD, OPT_LABELS, OPT_FINDINGS };

struct options {
    uint64_t images, size, seed, odd;
    const char *output;
    struct synth_labels labels; /* labels.findings: owned; count 0: those of the kind */
    const char *findings;       /* as given, or NULL */
};

static const struct cli_option option_table[] = {
    {OPT_COUNT, 'n', "count", "N", NULL, "What to make", "number of images, 1 to 1,000,000"},
    {OPT_OUTPUT, 'o', "output", "DIR", NULL, NULL, "folder to fill; made if missing"},
    {OPT_SIZE, 0, "size", "N", NULL, NULL, "side of the images in pixels, 64 to 4096; default 1024, as the real ones"},
    {OPT_SEED, 0, "seed", "N", NULL, NULL, "seed of the patients and their images; default 1"},
    {OPT_ODD, 0, "odd", "P%", NULL, NULL,
     "per cent of the images in an unusual PNG format: mostly RGBA, also 16-bit, palette, interlaced, gray with "
     "alpha, RGB; default 0"},
    {OPT_LABELS, 0, "labels", "KIND", synth_kind_names, NULL,
     "form of the label file and of the names: nih (default), cxr-lt, chexpert or padchest"},
    {OPT_FINDINGS, 0, "findings", "LIST", NULL, NULL,
     "findings of the label file, as for chex-convert; default: those of the kind"},
    {0, 0, NULL, NULL, NULL, NULL, NULL},
};

static enum chex_status
apply(void *into, const struct cli_option *option, const char *value, struct chex_error *err)
{
    struct options *o = into;
    char digits[8];
    size_t length;

    if (!option)
        return error_set(err, CHEX_ERR_USAGE, "'%s': this program has no operands", value);
    switch (option->id) {
    case OPT_COUNT:
        return cli_count(value, 1, PEOPLE_MAX_STUDIES, &o->images, err);
    case OPT_OUTPUT:
        o->output = value;
        return CHEX_OK;
    case OPT_SIZE:
        return cli_number(value, 64, 4096, &o->size, err);
    case OPT_SEED:
        return cli_number(value, 0, INT64_MAX, &o->seed, err);
    case OPT_LABELS:
        o->labels.kind = (enum synth_kind)name_index(synth_kind_names, value);
        return CHEX_OK;
    case OPT_FINDINGS:
        findings_release(&o->labels.findings);
        o->findings = value;
        return findings_choose(value, &o->labels.findings, err);
    default:
        length = strlen(value);
        length -= length > 0 && value[length - 1] == '%';
        snprintf(digits, sizeof(digits), "%.*s", (int)(length < sizeof(digits) ? length : 0), value);
        if (cli_number(digits, 0, 100, &o->odd, NULL) != CHEX_OK)
            return error_set(err, CHEX_ERR_USAGE, "takes 0%% to 100%%, not '%s'", value);
        return CHEX_OK;
    }
}

static const struct cli_alias aliases[] = {
    {"image-size", "size"},  {"images", "count"},    {"img-size", "size"},
    {"num-images", "count"}, {"resolution", "size"}, {NULL, NULL},
};

static const struct cli_program program = {
    .name = "chex-synth",
    .summary = "make a synthetic stand-in for the ChestX-ray14 data set",
    .usage = "-n N -o DIR [OPTION...]",
    .examples = "chex-synth -n 600 -o demo\n"
                "chex-convert -i demo/images -l demo/Data_Entry_2017_v2020.csv -o shards",
    .notes = "The people do not exist, and the images are drawings: they show nothing about\n"
             "any disease.  The same options give the same bytes, on any machine and with any\n"
             "number of threads.",
    .options = option_table,
    .aliases = aliases,
    .threads = true,
    .progress = true,
    .apply = apply,
};

/* Counts of the population, for the report. */
struct synth_counts {
    uint64_t finding[FINDINGS_MAX], none, test, odd, test_patients; /* none: no other finding is 1 */
};

static struct synth_counts
count(const struct population *p)
{
    const struct findings *list = &p->labels.findings;
    struct synth_counts c = {0};
    size_t i;
    unsigned k;

    for (i = 0; i < p->study_count; i++) {
        bool none = true;

        for (k = 0; k < list->count; k++) {
            bool present = population_label(p, &p->study[i], k) == 1;

            c.finding[k] += present;
            none &= !present || p->drawing[k] == NO_FINDING;
        }
        c.none += none;
        c.odd += p->study[i].form != FORM_GRAY8;
        c.test += p->person[p->study[i].person].test;
    }
    for (i = 0; i < p->person_count; i++)
        c.test_patients += p->person[i].test;
    return c;
}

static void
say_plan(struct progress_line *line, const struct cli_common *common, const struct options *o,
         const struct population *p, const struct synth_counts *c)
{
    char images[FORMAT_THINGS], people[FORMAT_THINGS], train[FORMAT_TEXT], test[FORMAT_TEXT];

    progress_line_begin_log(common, program.name);
    progress_line_print(line, "plan     %s of %s, %" PRIu64 "x%" PRIu64 ", seed %" PRIu64,
                        format_things(p->study_count, "image", images),
                        format_things(p->person_count, "invented patient", people), o->size, o->size, o->seed);
    progress_line_print(line, "         train and val %s, test %s; No Finding %.0f %%",
                        format_count(p->study_count - c->test, train), format_count(c->test, test),
                        100.0 * (double)c->none / (double)p->study_count);
}

static void
say_findings(struct progress_line *line, const struct population *p, const struct synth_counts *c)
{
    char text[FORMAT_TEXT];
    unsigned k;

    for (k = 0; k < p->labels.findings.count; k++)
        progress_line_print(line, "         %-18s %9s  %5.2f %%", p->labels.findings.name[k],
                            format_count(c->finding[k], text), 100.0 * (double)c->finding[k] / (double)p->study_count);
}

static void
say_done(struct progress_line *line, const struct options *o, const struct synth_job *job, const struct synth_counts *c,
         double seconds)
{
    size_t images = job->population->study_count;
    uint64_t tenths = (uint64_t)(seconds * 10 + 0.5);
    char count_text[FORMAT_THINGS], size[FORMAT_TEXT], odd[FORMAT_TEXT], word[SHELL_WORD];
    const char *output;
    struct wrap w = {.out = stderr};

    progress_line_print(line, "done     %s in %s.%u s, %s img/s, %s", format_things(images, "image", count_text),
                        COUNT_TEXT(tenths / 10), (unsigned)(tenths % 10),
                        COUNT_TEXT((double)images / (seconds > 0.001 ? seconds : 0.001) + 0.5),
                        format_bytes(job->bytes, size));
    if (c->odd > 0)
        progress_line_print(line, "         %s of them in an odd form", format_count(c->odd, odd));
    output = shell_word(relative_path(o->output), word);
    progress_line_clear(line);
    wrap_command(&w, "next     chex-convert");
    wrap_put(&w, " ", "-i %s/" SYNTH_IMAGES, output);
    wrap_put(&w, " ", "-l %s/%s", output, population_csv_name(job->population));
    if (o->findings) {
        wrap_put(&w, " ", "--label-kind %s", synth_kind_names[o->labels.kind]);
        wrap_put(&w, " ", "--findings %s", shell_word(o->findings, word));
    }
    wrap_put(&w, " ", "-o shards");
    wrap_end(&w);
}

static enum chex_status
print_json(const struct options *o, const struct synth_job *job, const struct synth_counts *c, double seconds,
           struct chex_error *err)
{
    const struct population *p = job->population;
    json_t *findings = json_object(), *all, *output = json_string(o->output);
    unsigned k;
    int failed;

    for (k = 0; k < p->labels.findings.count; k++)
        json_object_set_new(findings, p->labels.findings.name[k], json_integer((json_int_t)c->finding[k]));
    /* JSON must be UTF-8, but the name of a folder can be any bytes. */
    if (!output)
        output = json_null();
    all = json_pack("{s:s,s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:I,s:I,s:f}", "tool", "chex-synth", "version",
                    chex_version(), "output", output, "size", (json_int_t)o->size, "seed", (json_int_t)o->seed,
                    "images", (json_int_t)p->study_count, "patients", (json_int_t)p->person_count, "train_val_images",
                    (json_int_t)(p->study_count - c->test), "test_images", (json_int_t)c->test, "test_patients",
                    (json_int_t)c->test_patients, "odd_images", (json_int_t)c->odd, "findings", findings, "no_finding",
                    (json_int_t)c->none, "bytes", (json_int_t)job->bytes, "seconds", seconds);
    if (!all)
        return error_memory(err);
    failed = json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
    return failed ? error_set(err, CHEX_ERR_WRITE, "cannot write to standard output") : CHEX_OK;
}

static int
synth(const struct options *o, const struct cli_common *common)
{
    struct population population = {0};
    struct progress_line line;
    struct chex_error err;
    struct synth_counts counts;
    struct synth_job job = {
        .folder = o->output, .size = (unsigned)o->size, .threads = common->threads, .quiet = common->quiet};
    double started = clock_now();
    enum chex_status status = population_make((uint32_t)o->images, o->seed, (unsigned)o->odd, &o->labels, &population,
                                              &err);

    progress_line_init(&line, common);
    if (status == CHEX_OK) {
        counts = count(&population);
        job.population = &population;
        job.line = &line;
        if (!common->quiet)
            say_plan(&line, common, o, &population, &counts);
        if (!common->quiet && common->verbose)
            say_findings(&line, &population, &counts);
        status = synth_write(&job, &err);
    }
    progress_line_clear(&line);
    if (status == CHEX_OK && common->json)
        status = print_json(o, &job, &counts, clock_now() - started, &err);
    if (status == CHEX_OK && !common->quiet)
        say_done(&line, o, &job, &counts, clock_now() - started);
    progress_line_release(&line);
    population_release(&population);
    return status == CHEX_OK ? EXIT_GOOD : cli_error(&program, common, &err);
}

static enum chex_status
check_options(const struct options *o, struct chex_error *err)
{
    if (o->images == 0)
        return error_set(err, CHEX_ERR_USAGE, "no number of images: give it with -n");
    if (!o->output)
        return error_set(err, CHEX_ERR_USAGE, "no output folder: give one with -o");
    return CHEX_OK;
}

int
main(int argc, char **argv)
{
    struct options options = {.size = 1024, .seed = 1};
    struct cli_common common;
    struct chex_error err;
    int code = cli_parse(&program, argc, argv, &options, &common);

    if (code != CLI_GO_ON)
        return code;
    code = check_options(&options, &err) == CHEX_OK ? synth(&options, &common) : cli_error(&program, &common, &err);
    findings_release(&options.labels.findings);
    return cli_finish(&program, &common, code);
}
