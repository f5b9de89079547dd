/*
 * output.c - see inspect.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect.h"

#include "base/ascii.h"
#include "base/json.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

/* ---- exit codes -------------------------------------------------------------------------------------------------- */

static int
badness(int code)
{
    static const int order[] = {EXIT_GOOD, EXIT_DATA, EXIT_MISSING, EXIT_INCOMPATIBLE, EXIT_USAGE, EXIT_OUTPUT};
    int i;

    for (i = 0; i < (int)(sizeof(order) / sizeof(order[0])); i++)
        if (order[i] == code)
            return i;
    return i;
}

int
inspect_worse(int a, int b)
{
    return badness(a) >= badness(b) ? a : b;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

char *
inspect_text(struct chex_bytes text, char out[INSPECT_TEXT])
{
    return ascii_escape(text.data, text.size, out, INSPECT_TEXT);
}

struct chex_bytes
inspect_bytes(const char *text)
{
    return (struct chex_bytes){text, strlen(text)};
}

const char *
inspect_count(const char *text, char out[FORMAT_TEXT])
{
    size_t length = strlen(text);

    if (length == 0 || length > 15 || strspn(text, "0123456789") != length)
        return text;
    return format_count(strtoull(text, NULL, 10), out);
}

const char *
inspect_none_name(const struct findings *findings)
{
    return findings_equal(findings, &findings_nih14) ? "No Finding" : "none";
}

/* Write the name of finding i as inspect_labels_text() shows it.  Returns false if the label is 0. */
static bool
label_name(const struct findings *findings, const uint8_t *label, unsigned i, char out[FINDING_NAME_MAX + 2])
{
    if (!label || label[i] == 0)
        return false;
    snprintf(out, FINDING_NAME_MAX + 2, "%s%s", findings->name[i], label[i] == 1 ? "" : "?");
    return true;
}

char *
inspect_labels_text(const struct findings *findings, const uint8_t *label, char out[INSPECT_LABELS_TEXT])
{
    char name[FINDING_NAME_MAX + 2];
    size_t used = 0;
    unsigned i;

    for (i = 0; i < findings->count; i++)
        if (label_name(findings, label, i, name))
            used += (size_t)snprintf(out + used, INSPECT_LABELS_TEXT - used, "%s%s", used ? "|" : "", name);
    if (used == 0)
        snprintf(out, INSPECT_LABELS_TEXT, "%s", inspect_none_name(findings));
    return out;
}

json_t *
inspect_json_labels(const struct findings *findings, const uint8_t *label)
{
    char name[FINDING_NAME_MAX + 2];
    json_t *list = json_array();
    unsigned i;

    for (i = 0; i < findings->count; i++)
        if (label_name(findings, label, i, name))
            inspect_json_push(&list, json_string(name));
    return list;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

void
inspect_json_push(json_t **list, json_t *value)
{
    if (json_array_append_new(*list, value) != 0) {
        json_decref(*list);
        *list = NULL;
    }
}

void
inspect_json_set(json_t **object, const char *key, json_t *value)
{
    if (json_object_set_new(*object, key, value) != 0) {
        json_decref(*object);
        *object = NULL;
    }
}

void
inspect_json_begin(struct inspect *in)
{
    static const char *const names[] = {
        [INSPECT_DESCRIBE] = "describe",  [INSPECT_VERIFY] = "verify",   [INSPECT_LIST] = "list",
        [INSPECT_TRAINED] = "trained-on", [INSPECT_EXTRACT] = "extract", [INSPECT_LABELS] = "labels",
        [INSPECT_SPLIT] = "check-split",  [INSPECT_SHEET] = "sheet",     [INSPECT_SHOW] = "show",
        [INSPECT_REPORT] = "report",      [INSPECT_DIFF] = "diff",       [INSPECT_SOURCE] = "source",
        [INSPECT_SCALING] = "scaling"};

    printf("{\"tool\": \"%s\", \"version\": \"%s\", \"action\": \"%s\", \"results\": [", in->program->name,
           chex_version(), names[in->options->action]);
}

void
inspect_json_next(struct inspect *in)
{
    printf("%s\n", in->have_result ? "," : "");
    in->have_result = true;
}

void
inspect_json_add(struct inspect *in, json_t *result)
{
    inspect_json_next(in);
    if (!result || json_dumpf(result, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) != 0) {
        in->output_failed = true;
        printf("null");
    }
    json_decref(result);
}

int
inspect_json_end(struct inspect *in, int code)
{
    if (in->output_failed) {
        code = EXIT_OUTPUT;
        if (!ferror(stdout))
            cli_complain(in->program, in->common, "out of memory");
    }
    printf("\n], \"exit_code\": %d}\n", code);
    return code;
}

/* ---- results as text, rows or JSON ------------------------------------------------------------------------------- */

struct cell
inspect_name(const struct table_writer *t, const char *name, char *out, size_t size)
{
    return t->list ? cell_json(text_json(name), "") : cell_text(ascii_escape(name, strlen(name), out, size));
}

enum table_format
inspect_format(const struct inspect *in)
{
    return in->common->json ? TABLE_JSON : in->options->format;
}

void
inspect_print_result(struct inspect *in, const struct inspect_result *how, void *result)
{
    struct table_writer t = {.format = inspect_format(in), .column = how->column};

    if (t.format == TABLE_TEXT) {
        how->print(result);
    } else if (t.format == TABLE_JSON) {
        inspect_json_add(in, how->document(result));
    } else {
        table_begin(&t);
        how->rows(&t, result);
        in->output_failed |= t.failed;
    }
}

json_t *
inspect_rows_json(const struct table_column *column, rows_fn *rows, void *result)
{
    struct table_writer t = {.format = TABLE_JSON, .column = column, .list = json_array()};

    rows(&t, result);
    if (t.failed)
        json_decref(t.list);
    return t.failed ? NULL : t.list;
}

/* ---- a file of the trainer --------------------------------------------------------------------------------------- */

int
inspect_print_head(const struct inspect *in, const struct target *t, const char *what, const char *fault)
{
    char path[PRINTABLE_TEXT], text[PRINTABLE_TEXT];

    if (fault)
        printf("%s: %s%s: %s%s\n", printable_text(t->path, path), in->color.red, what, printable_text(fault, text),
               in->color.off);
    else if (!in->common->quiet)
        printf("%s: %s\n", printable_text(t->path, path), what);
    return fault ? EXIT_DATA : EXIT_GOOD;
}

void
inspect_json_file(struct inspect *in, const struct target *t, const char *kind, const char *what, const char *fault,
                  json_t *details)
{
    inspect_json_add(in, json_pack("{s:o, s:s, s:o, s:o, s:o}", "path", text_json(t->path), "kind", kind, "text",
                                   text_json(what), "fault", text_json(fault), kind, details));
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

int
inspect_fail(struct inspect *in, const char *path, struct chex_error *err)
{
    int code;

    if (!cli_suggest_command(in->program, in->common, err, path))
        cli_suggest_path(err, path);
    progress_line_clear(&in->line);
    fflush(stdout);
    code = cli_error(in->program, in->common, err);
    if (in->common->json)
        inspect_json_add(in, json_pack("{s:o, s:{s:s, s:o}}", "path", text_json(path), "error", "status",
                                       chex_status_name(err->status), "text", text_json(err->text)));
    return code;
}

enum chex_status
inspect_no_image(const struct target *t, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_MISSING, "'%s' has no image of this selection", t->path);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

enum chex_status
inspect_put_file(const char *path, const struct buffer *data, struct chex_error *err)
{
    const char *name;
    struct folder folder;
    enum chex_status status = store_open_output(path, &folder, &name, err);

    if (status == CHEX_OK)
        status = safe_file_put(&folder, name, data->data, data->size, err);
    folder_close(&folder);
    return status;
}
