/*
 * scaling.c - the command `scaling`: compares runs with different numbers of ranks; see scaling.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/scaling/scaling.h"

#include "draw/canvas.h"
#include "inspect/command.h"

#include <stdlib.h>
#include <string.h>

/* ---- files of -o ------------------------------------------------------------------------------------------------- */

static enum chex_status
format_csv(struct scaling *s, struct buffer *out, struct chex_error *err)
{
    struct table_writer t = {.format = TABLE_CSV, .column = scaling_columns};
    char *text = NULL;
    size_t size = 0;
    enum chex_status status = CHEX_OK;

    t.file = open_memstream(&text, &size);
    if (!t.file)
        return error_memory(err);
    table_begin(&t);
    scaling_rows(&t, s);
    if (fclose(t.file) != 0 || t.failed)
        status = error_memory(err);
    else
        status = buffer_append(out, text, size, err);
    free(text);
    return status;
}

static enum chex_status
format_json(struct scaling *s, struct buffer *out, struct chex_error *err)
{
    json_t *document = scaling_document(s);
    enum chex_status status = append_json(document, JSON_INDENT(2) | JSON_REAL_PRECISION(17), out, err);

    json_decref(document);
    return status;
}

static enum chex_status
write_output(struct scaling *s, const char *output, struct chex_error *err)
{
    struct buffer out = {0};
    enum chex_status status;

    if (picture_name_ends(output, ".csv"))
        status = format_csv(s, &out, err);
    else if (picture_name_ends(output, ".json"))
        status = format_json(s, &out, err);
    else
        status = scaling_plot(s, &out, err);
    if (status == CHEX_OK)
        status = inspect_put_file(output, &out, err);
    buffer_release(&out);
    return status;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static enum chex_status
read_runs(struct scaling *s, const struct inspect_options *o, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    s->run = calloc(o->path_count, sizeof(*s->run));
    if (!s->run)
        return error_memory(err);
    for (; status == CHEX_OK && s->count < o->path_count; s->count++)
        status = scaling_run_read(o->path[s->count], &s->run[s->count], err);
    return status;
}

static enum chex_status
refuse(const struct scaling *s, struct chex_error *err)
{
    const struct scaling_run *r = s->run;

    while (!r->differs[0])
        r++;
    return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' and '%s' are not comparable: %s; --force shows them",
                     s->reference->path, r->path, r->differs);
}

static int
compare_runs(struct inspect *in)
{
    const struct inspect_options *o = in->options;
    static const struct inspect_result how = {
        .column = scaling_columns, .rows = scaling_rows, .document = scaling_document, .print = scaling_print};
    struct scaling s = {.in = in};
    struct chex_error err;
    int code = EXIT_GOOD;
    size_t i;
    enum chex_status status = read_runs(&s, o, &err);

    if (status == CHEX_OK) {
        scaling_compare(&s);
        status = scaling_comparable(&s) || o->force ? CHEX_OK : refuse(&s, &err);
    }
    if (status == CHEX_OK && o->reference)
        status = scaling_add_reference(&s, o->reference, &err);
    if (status == CHEX_OK && o->predict)
        status = scaling_predict(&s, o->path[0], &err);
    if (status == CHEX_OK && o->output)
        status = write_output(&s, o->output, &err);
    if (status == CHEX_OK)
        inspect_print_result(in, &how, &s);
    else
        code = inspect_fail(in, o->path[s.count > 0 ? s.count - 1 : 0], &err);
    for (i = 0; i < s.count; i++)
        scaling_run_release(&s.run[i]);
    free(s.run);
    return code;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    if (inspect_wants_rows(o) && common->json)
        return error_set(err, CHEX_ERR_USAGE, "--json goes with --format json");
    if ((o->predict > 0) != (o->network >= 0))
        return error_set(err, CHEX_ERR_USAGE, "--predict and --network go together");
    if (o->node && !o->predict)
        return error_set(err, CHEX_ERR_USAGE, "--node goes with --predict");
    if (o->output && !picture_name_ends(o->output, ".svg") && !picture_name_ends(o->output, ".csv") &&
        !picture_name_ends(o->output, ".json"))
        return error_set(err, CHEX_ERR_USAGE, "'%s': the name must end in .svg, .csv or .json", o->output);
    return CHEX_OK;
}

static const struct cli_option options[] = {
    {AT_TEXT(output), 'o', "output", "FILE", NULL, NULL, "file to write: FILE.svg, FILE.csv or FILE.json"},
    {AT_TEXT(reference), 0, "reference", "WHICH", NULL, NULL,
     "show published points too: dell, rwth, or a CSV file with source, gpus, images_per_second, parallel_efficiency"},
    {ID_PREDICT, 0, "predict", "N", NULL, NULL, "model an epoch of N ranks from the parts of the first RUN"},
    {ID_NETWORK, 0, "network", "LINK", scale_network_names, NULL,
     "with --predict: the links between nodes, edr, hdr, ndr or 10g"},
    {ID_NODE, 0, "node", "N", NULL, NULL, "with --predict: ranks of a node; default: the most of a RUN"},
    {AT_FLAG(force), 0, "force", NULL, NULL, NULL, "show runs that are not comparable, with a mark"},
    ROW_FORMAT,
    ROW_END,
};

const struct inspect_command inspect_scaling_command = {
    .cli = {.name = "scaling",
            .summary = "compare runs with different numbers of ranks",
            .usage = "[--reference dell|rwth|FILE.csv] [--force]\n"
                     "  [--predict N --network edr|hdr|ndr|10g [--node N]]\n"
                     "  [-o FILE.svg|FILE.csv|FILE.json]\n"
                     "  [--format HOW] RUN...",
            .examples = "chex-inspect scaling -o scaling.svg runs/1 runs/2 runs/4\n"
                        "chex-inspect scaling --reference dell runs/1 runs/2 runs/4\n"
                        "chex-inspect scaling --predict 64 --network edr runs/1 runs/2",
            .notes = "A RUN is the folder of a run of chex-train.  The run with the fewest ranks is\n"
                     "the reference.",
            .options = options},
    .action = INSPECT_SCALING,
    .min = 1,
    .max = UINT_MAX,
    .operands = "one RUN or more",
    .check = check_options,
    .all = compare_runs,
};
