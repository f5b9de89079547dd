/*
 * name_list.c - see name_list.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/name_list.h"

#include "base/ascii.h"
#include "io/csv.h"

#include <stdlib.h>
#include <string.h>

#define NAME_LENGTH_MAX 255

static const char *const image_names[] = {"Image Index", NULL};

/* ---- adding --------------------------------------------------------------------------------------------------- */

struct adding {
    struct names *out;
    size_t capacity;
    unsigned parts;
    int column; /* column of the image names in a CSV */
    bool have_header;
};

/* Returns the position after the first image suffix in the name, or NULL. */
static const char *
after_ending(const char *name, size_t length)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};

    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++)
            if (length - i >= strlen(endings[k]) &&
                ascii_same(name + i, strlen(endings[k]), endings[k], strlen(endings[k])))
                return name + i + strlen(endings[k]);
    return NULL;
}

/*
 * Note a name that is not an image's, or consists of two (00000001_000.png00000001_001.png).  It was added anyway: it
 * matches nothing.
 */
static enum chex_status
note_odd(struct adding *a, const char *name, size_t length, const char *path, unsigned long line,
         struct chex_error *err)
{
    const char *end = name + length, *after = after_ending(name, length);

    if (after == end)
        return CHEX_OK;
    if (after && after[0] != '.' && after_ending(after, (size_t)(end - after)) == end)
        return notes_add(&a->out->notes, NOTE_GLUED, path, line, name, length, err);
    return after && after[0] == '.' ? CHEX_OK : notes_add(&a->out->notes, NOTE_JUNK, path, line, name, length, err);
}

/* Add the last components of a path, trimmed like a field of a CSV. */
static enum chex_status
add_name(struct adding *a, const char *name, size_t length, const char *path, unsigned long line,
         struct chex_error *err)
{
    const char *tail = path_tail(name, length, a->parts);
    const char **grown;
    const char *copy;
    char shown[64];

    length -= (size_t)(tail - name);
    name = tail;
    ascii_trim(&name, &length);
    if (length == 0)
        return error_set(err, CHEX_ERR_USAGE, "%s:%lu: no file name", path, line);
    if (length > NAME_LENGTH_MAX)
        return error_set(err, CHEX_ERR_USAGE, "%s:%lu: the file name \"%s\" is longer than 255 bytes", path, line,
                         ascii_escape(name, length, shown, sizeof(shown)));
    grown = array_grow(a->out->name, &a->capacity, a->out->count, sizeof(*grown));
    if (!grown)
        return error_memory(err);
    a->out->name = grown;
    copy = arena_copy(&a->out->strings, name, length);
    if (!copy)
        return error_memory(err);
    a->out->name[a->out->count++] = copy;
    return note_odd(a, name, length, path, line, err);
}

/* ---- a CSV ---------------------------------------------------------------------------------------------------- */

/* Returns whether the line has comma-separated tokens and one of them is `Image Index`. */
static bool
is_csv_header(const struct text_line *line)
{
    const char *end = line->data + line->size;

    for (const char *token = line->data, *next; token; token = next) {
        const char *comma = memchr(token, ',', (size_t)(end - token));
        size_t length = (size_t)((comma ? comma : end) - token);
        char name[32];
        struct table_row row = {.count = 1, .field = {name}};

        next = comma ? comma + 1 : NULL;
        ascii_trim(&token, &length);
        if (length >= 2 && token[0] == '"' && token[length - 1] == '"') {
            token++;
            length -= 2;
        }
        if (length >= sizeof(name))
            continue;
        memcpy(name, token, length);
        name[length] = '\0';
        if (table_column(&row, image_names) == 0)
            return true;
    }
    return false;
}

static enum chex_status
on_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct adding *a = context;

    if (!a->have_header) {
        a->have_header = true;
        a->column = table_column(row, image_names);
        if (a->column < 0)
            return table_fail(row, err, "no column \"%s\"", image_names[0]);
        return table_column_once(row, image_names, err);
    }
    if ((size_t)a->column >= row->count)
        return table_fail(row, err, "expected at least %d fields, got %zu", a->column + 1, row->count);
    return add_name(a, row->field[a->column], row->length[a->column], row->path, row->line, err);
}

/* ---- a list --------------------------------------------------------------------------------------------------- */

/* Add the first word of each line.  If *is_csv is set, the file is a CSV and nothing was added. */
static enum chex_status
read_list(struct adding *a, const char *path, bool *is_csv, struct chex_error *err)
{
    struct line_reader *text;
    struct text_line line;
    bool first = true;
    enum chex_status status = text_open(path, false, &text, err);

    *is_csv = false;
    if (status != CHEX_OK)
        return status;
    while ((status = text_next(text, &line, err)) == CHEX_OK && line.data) {
        const char *word = line.data;
        size_t length = line.size;
        size_t i = 0;

        ascii_trim(&word, &length);
        if (length == 0)
            continue;
        *is_csv = first && is_csv_header(&line);
        if (*is_csv)
            break;
        first = false;
        while (i < length && !ascii_is_blank(word[i]))
            i++;
        status = add_name(a, word, i, path, line.number, err);
        if (status != CHEX_OK)
            break;
    }
    text_close(text);
    return status;
}

static void
sort_unique(struct names *names)
{
    size_t kept = 0;

    for (size_t i = 1; i < names->count; i++) {
        if (strcmp(names->name[i - 1], names->name[i]) > 0) { /* NIH's lists are sorted */
            qsort(names->name, names->count, sizeof(*names->name), compare_texts);
            break;
        }
    }
    for (size_t i = 0; i < names->count; i++) {
        if (kept > 0 && strcmp(names->name[kept - 1], names->name[i]) == 0)
            names->repeated++;
        else
            names->name[kept++] = names->name[i];
    }
    names->count = kept;
}

enum chex_status
names_read(const char *path, unsigned parts, struct names *out, struct chex_error *err)
{
    struct adding a = {.out = out, .parts = parts};
    bool is_csv;
    enum chex_status status = read_list(&a, path, &is_csv, err);

    if (status == CHEX_OK && is_csv)
        status = table_read(path, on_row, &a, NULL, err);
    if (status == CHEX_OK)
        sort_unique(out);
    return status;
}

void
names_release(struct names *names)
{
    free(names->name);
    notes_release(&names->notes);
    arena_release(&names->strings);
    *names = (struct names){0};
}

bool
names_have(const struct names *names, const char *name)
{
    return names->count > 0 && bsearch(&name, names->name, names->count, sizeof(*names->name), compare_texts) != NULL;
}
