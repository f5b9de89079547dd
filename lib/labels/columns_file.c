/*
 * columns_file.c - see columns_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/columns_file.h"

#include "base/ascii.h"
#include "base/memory.h"
#include "io/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX    65536 /* bytes; 254 lines of two names with 64 letters have 34,000 */
#define FOLDERS_MAX 8

enum key {
    KEY_IMAGE,
    KEY_PATIENT,
    KEY_AGE,
    KEY_SEX,
    KEY_VIEW,
    KEY_LIST,
    KEY_SEPARATOR,
    KEY_EMPTY,
    KEY_FOLDERS,
    KEY_SUFFIX,
    KEYS
};

static const char *const key_names[] = {"image",     "patient", "age",     "sex",    "view", "list",
                                        "separator", "empty",   "folders", "suffix", NULL};

/* The kind and the memory that it refers to. */
struct columns_file {
    struct label_kind kind; /* first: columns_file_free() gets its address */
    struct findings findings;
    struct arena strings;
    const char *column[FINDINGS_MAX + 1]; /* of each finding */
    const char *names[KEYS][2];           /* of the other columns, each followed by NULL */
};

struct columns_reading {
    struct columns_file *out;
    const char *path;
    unsigned long line;
    const char *value[KEYS]; /* NULL: not given */
    struct chex_bytes finding[FINDINGS_MAX + 1];
    size_t count;
};

static enum chex_status
fail(const struct columns_reading *r, struct chex_error *err, const char *what, struct chex_bytes of)
{
    char shown[200];

    return error_set(err, CHEX_ERR_USAGE, "%s:%lu: %s \"%s\"", r->path, r->line, what,
                     ascii_escape(of.data, of.size, shown, sizeof(shown)));
}

static enum chex_status
add_finding(struct columns_reading *r, struct chex_bytes name, struct chex_bytes column, struct chex_error *err)
{
    const char *copy = arena_copy(&r->out->strings, column.data, column.size);

    if (!copy)
        return error_memory(err);
    if (r->count == FINDINGS_MAX)
        return error_set(err, CHEX_ERR_USAGE, "%s:%lu: more than %d findings", r->path, r->line, FINDINGS_MAX);
    r->out->column[r->count] = copy;
    r->finding[r->count++] = name;
    return CHEX_OK;
}

/* Add the findings of "Mass, Rib fracture"; their columns have the same names. */
static enum chex_status
add_findings(struct columns_reading *r, struct chex_bytes names, struct chex_error *err)
{
    const char *end = names.data + names.size;
    enum chex_status status = CHEX_OK;

    for (const char *part = names.data, *next; status == CHEX_OK && part; part = next) {
        const char *comma = memchr(part, ',', (size_t)(end - part));
        size_t length = (size_t)((comma ? comma : end) - part);

        next = comma ? comma + 1 : NULL;
        ascii_trim(&part, &length);
        status = add_finding(r, (struct chex_bytes){part, length}, (struct chex_bytes){part, length}, err);
    }
    return status;
}

static enum chex_status
add_value(struct columns_reading *r, struct chex_bytes key, struct chex_bytes value, struct chex_error *err)
{
    int k = 0;

    while (k < KEYS && !ascii_is(key.data, key.size, key_names[k]))
        k++;
    if (k == KEYS)
        return fail(r, err, "unknown key", key);
    if (r->value[k])
        return fail(r, err, "a second line with the key", key);
    r->value[k] = arena_copy(&r->out->strings, value.data, value.size);
    return r->value[k] ? CHEX_OK : error_memory(err);
}

static enum chex_status
read_line(struct columns_reading *r, const char *text, size_t length, struct chex_error *err)
{
    const char *equals, *value;
    size_t key_length, value_length;

    ascii_trim(&text, &length);
    if (length == 0 || *text == '#')
        return CHEX_OK;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\t')
            return fail(r, err, "a control character in", (struct chex_bytes){text, length});
    equals = memchr(text, '=', length);
    if (!equals)
        return fail(r, err, "expected key = value, found", (struct chex_bytes){text, length});
    key_length = (size_t)(equals - text);
    value = equals + 1;
    value_length = length - key_length - 1;
    ascii_trim(&text, &key_length);
    ascii_trim(&value, &value_length);
    if (value_length == 0)
        return fail(r, err, "no value for", (struct chex_bytes){text, key_length});
    if (ascii_is(text, key_length, "findings"))
        return add_findings(r, (struct chex_bytes){value, value_length}, err);
    if (key_length > 8 && ascii_is(text, 8, "finding ")) {
        text += 8;
        key_length -= 8;
        ascii_trim(&text, &key_length);
        return add_finding(r, (struct chex_bytes){text, key_length}, (struct chex_bytes){value, value_length}, err);
    }
    return add_value(r, (struct chex_bytes){text, key_length}, (struct chex_bytes){value, value_length}, err);
}

static enum chex_status
read_lines(struct columns_reading *r, const char *text, size_t size, struct chex_error *err)
{
    const char *end = text + size;
    enum chex_status status = CHEX_OK;

    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    for (const char *next; status == CHEX_OK && text; text = next) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((newline ? newline : end) - text);

        next = newline ? newline + 1 : NULL;
        r->line++;
        status = read_line(r, text, length - (length > 0 && text[length - 1] == '\r'), err);
    }
    return status;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Returns NULL, or why the values do not describe a label file.  Sets the parts of the kind that are not columns. */
static const char *
set_rules(const struct columns_reading *r, struct label_kind *kind)
{
    const char *separator = r->value[KEY_SEPARATOR], *empty = r->value[KEY_EMPTY], *folders = r->value[KEY_FOLDERS];

    kind->style = r->value[KEY_LIST] ? LABEL_LIST : LABEL_COLUMNS;
    kind->separator = separator ? separator[0] : '|';
    if (separator && strcmp(separator, "python") == 0)
        kind->style = LABEL_PYTHON_LIST;
    else if (separator && (separator[1] || !strchr("|;:/+&~", separator[0])))
        return "separator must be one of | ; : / + & ~, or python";
    kind->empty = CHEX_LABEL_UNKNOWN;
    if (empty && strcmp(empty, "0") == 0)
        kind->empty = 0;
    else if (empty && strcmp(empty, "unknown") != 0)
        return "empty must be 0 or unknown";
    kind->name_parts = 1;
    if (folders && (folders[1] || folders[0] < '0' || folders[0] > '0' + FOLDERS_MAX))
        return "folders must be 0 to 8";
    if (folders)
        kind->name_parts += (unsigned)(folders[0] - '0');
    kind->patient_is_folder = !r->value[KEY_PATIENT] && kind->name_parts > 1;
    kind->suffix = r->value[KEY_SUFFIX] ? r->value[KEY_SUFFIX] : "";
    return strchr(kind->suffix, '/') ? "suffix must have no slash" : NULL;
}

/* Returns NULL, or which key is missing or of no use. */
static const char *
key_fault(const struct columns_reading *r)
{
    if (!r->value[KEY_IMAGE])
        return "no line with the key \"image\"";
    if (!r->value[KEY_PATIENT] && (!r->value[KEY_FOLDERS] || r->value[KEY_FOLDERS][0] == '0'))
        return "no line with the key \"patient\"; without it, folders = 1 or more, and the first folder is the patient";
    if (r->count == 0)
        return "no line with the key \"findings\"";
    if (!r->value[KEY_LIST] && r->value[KEY_SEPARATOR])
        return "separator is only for a list";
    if (r->value[KEY_LIST] && r->value[KEY_EMPTY])
        return "empty is not for a list";
    for (size_t i = 0; r->value[KEY_LIST] && i < r->count; i++)
        if (strlen(r->out->column[i]) != r->finding[i].size ||
            memcmp(r->out->column[i], r->finding[i].data, r->finding[i].size) != 0)
            return "a list has findings = NAME, ..., not finding NAME = COLUMN";
    return NULL;
}

static enum chex_status
make_kind(const struct columns_reading *r, struct chex_error *err)
{
    struct columns_file *f = r->out;
    struct label_kind *kind = &f->kind;
    const struct {
        enum key key;
        label_names *names;
    } columns[] = {{KEY_IMAGE, &kind->image}, {KEY_PATIENT, &kind->patient}, {KEY_AGE, &kind->age},
                   {KEY_SEX, &kind->sex},     {KEY_VIEW, &kind->view},       {KEY_LIST, &kind->list}};
    const char *fault = key_fault(r);
    enum chex_status status;

    fault = fault ? fault : set_rules(r, kind);
    if (fault)
        return error_set(err, CHEX_ERR_USAGE, "%s: %s", r->path, fault);
    status = findings_make(r->finding, r->count, &f->findings, err);
    if (status != CHEX_OK)
        return error_context(err, status, "%s", r->path);
    kind->findings = &f->findings;
    kind->finding_column = f->column;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        enum key key = columns[i].key;

        f->names[key][0] = r->value[key];
        *columns[i].names = r->value[key] ? f->names[key] : NULL;
    }
    return CHEX_OK;
}

static enum chex_status
set_title(struct columns_file *f, const char *path, struct chex_error *err)
{
    char shown[200], title[sizeof(shown) + 16];

    path = path_tail(path, strlen(path), 1);
    snprintf(title, sizeof(title), "columns of %s", ascii_escape(path, strlen(path), shown, sizeof(shown)));
    f->kind.name = "";
    f->kind.title = arena_copy(&f->strings, title, strlen(title));
    return f->kind.title ? CHEX_OK : error_memory(err);
}

enum chex_status
columns_file_read(const char *path, struct label_kind **out, struct chex_error *err)
{
    struct columns_reading r = {.out = calloc(1, sizeof(*r.out)), .path = path};
    struct buffer text = {0};
    enum chex_status status;

    *out = NULL;
    if (!r.out)
        return error_memory(err);
    status = file_read(AT_FDCWD, path, FILE_MAX, &text, err);
    if (status == CHEX_ERR_NOT_IMAGE) /* not a regular file */
        status = CHEX_ERR_MISSING;
    else if (chex_status_is_data(status)) /* of the command line, not of an image */
        status = CHEX_ERR_USAGE;
    if (status != CHEX_OK)
        status = error_context(err, status, "%s", path);
    if (status == CHEX_OK)
        status = read_lines(&r, (const char *)text.data, text.size, err);
    if (status == CHEX_OK)
        status = make_kind(&r, err);
    if (status == CHEX_OK)
        status = set_title(r.out, path, err);
    buffer_release(&text);
    if (status == CHEX_OK)
        *out = &r.out->kind;
    else
        columns_file_free(&r.out->kind);
    return status;
}

void
columns_file_free(struct label_kind *kind)
{
    struct columns_file *f = (struct columns_file *)kind;

    if (!f)
        return;
    findings_release(&f->findings);
    arena_release(&f->strings);
    free(f);
}
