/*
 * label_row.c - see label_row.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/label_row.h"

#include "base/ascii.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define AGE_MAX          120
#define DAYS_A_YEAR      365.25
#define COLUMN_FAR       3 /* the most edits between a column's name and a name that is suggested for it */
#define NIH_NAME_DIGITS  8 /* NNNNNNNN_NNN.png */
#define NIH_NAME_DIGITS2 3

/* ---- columns -------------------------------------------------------------------------------------------------- */

/* Recognise BBox_List_2017.csv by "Bbox [x,y,w,h]"; these commas are not quoted either. */
static bool
is_box_list(const struct table_row *header)
{
    for (size_t i = 0; i < header->count; i++)
        if (header->length[i] >= 4 && ascii_same(header->field[i], 4, "Bbox", 4))
            return true;
    return false;
}

/* finding: the column has the name of a finding of the list, not one that the kind gives. */
static enum chex_status
missing_column(const struct table_row *header, const char *wanted, bool finding, struct chex_error *err)
{
    char found[600], shown[64], name[200], hint[300] = "";
    unsigned least = COLUMN_FAR + 1;
    size_t used = 0;

    if (table_check_separator(header, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    ascii_escape(wanted, strlen(wanted), name, sizeof(name));
    found[0] = '\0';
    for (size_t i = 0; i < header->count; i++) {
        unsigned distance = ascii_distance(header->field[i], header->length[i], wanted, strlen(wanted));

        ascii_escape(header->field[i], header->length[i], shown, sizeof(shown));
        if (used + strlen(shown) + 3 < sizeof(found))
            used += (size_t)sprintf(found + used, "%s%s", used > 0 ? ", " : "", shown);
        if (distance < least) {
            least = distance;
            if (finding)
                snprintf(hint, sizeof(hint), "; did you mean \"%s\"?", shown);
            else
                snprintf(hint, sizeof(hint), "; is \"%s\" the column \"%s\"?", shown, name);
        }
    }
    return table_fail(header, err, "no column %s\"%s\"%s (columns found: %s)", finding ? "for the finding " : "", name,
                      hint, found);
}

/* Find a column, or -1: the kind lacks it, or the header does.  CHEX_ERR_USAGE if it occurs twice. */
static enum chex_status
find_column(const struct table_row *header, const char *const *names, int *out, struct chex_error *err)
{
    *out = names ? table_column(header, names) : -1;
    return names ? table_column_once(header, names, err) : CHEX_OK;
}

/* Returns the first required column that the header lacks, or NULL.  *finding: whether it has a finding's name. */
static const char *
find_missing(const struct label_columns *c, const struct findings *findings, bool *finding)
{
    *finding = false;
    if (c->image < 0)
        return c->kind->image[0];
    if (c->kind->style != LABEL_COLUMNS && c->list < 0)
        return c->kind->list[0];
    if (c->kind->patient && c->patient < 0)
        return c->kind->patient[0];
    for (unsigned i = 0; c->kind->style == LABEL_COLUMNS && i < findings->count; i++) {
        const char *column = label_kind_column(c->kind, findings->name[i]);

        *finding = strcmp(column, findings->name[i]) == 0;
        if (c->finding[i] < 0)
            return column;
    }
    return NULL;
}

static enum chex_status
find_columns(const struct table_row *header, const struct findings *findings, struct label_columns *c,
             struct chex_error *err)
{
    const struct label_kind *kind = c->kind;
    const struct {
        const char *const *names;
        int *out;
    } columns[] = {
        {kind->image, &c->image},     {kind->list, &c->list}, {kind->patient, &c->patient},     {kind->age, &c->age},
        {kind->sex, &c->sex},         {kind->view, &c->view}, {kind->view_else, &c->view_else}, {kind->born, &c->born},
        {kind->studied, &c->studied},
    };
    enum chex_status status = CHEX_OK;

    for (size_t i = 0; status == CHEX_OK && i < sizeof(columns) / sizeof(columns[0]); i++)
        status = find_column(header, columns[i].names, columns[i].out, err);
    for (unsigned i = 0; status == CHEX_OK && kind->style == LABEL_COLUMNS && i < findings->count; i++)
        status = find_column(header, (const char *const[]){label_kind_column(kind, findings->name[i]), NULL},
                             &c->finding[i], err);
    return status;
}

/* Fail if two findings have the same column: a name of the list is that of a column, another one has this column. */
static enum chex_status
check_shared(const struct table_row *header, const struct label_columns *c, const struct findings *findings,
             struct chex_error *err)
{
    const char *of[TABLE_MAX_FIELDS] = {NULL};

    for (unsigned i = 0; c->kind->style == LABEL_COLUMNS && i < findings->count; i++) {
        const char **first = &of[c->finding[i]];

        if (*first)
            return table_fail(header, err, "the findings \"%s\" and \"%s\" have the same column", *first,
                              findings->name[i]);
        *first = findings->name[i];
    }
    return CHEX_OK;
}

enum chex_status
label_columns_find(const struct table_row *header, const struct label_kind *kind, const struct findings *findings,
                   struct label_columns *out, struct chex_error *err)
{
    size_t named = header->count;
    const char *missing;
    bool finding;

    out->kind = kind;
    if (find_columns(header, findings, out, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    missing = find_missing(out, findings, &finding);
    if (missing && is_box_list(header))
        return table_fail(header, err,
                          "this is a list of boxes (BBox_List_2017.csv), not the label file "
                          "(Data_Entry_2017_v2020.csv)");
    if (missing)
        return missing_column(header, missing, finding, err);
    while (named > 0 && header->length[named - 1] == 0)
        named--;
    out->fields_min = named;
    out->fields_max = header->count;
    return check_shared(header, out, findings, err);
}

/* ---- fields --------------------------------------------------------------------------------------------------- */

size_t
label_image(const struct table_row *row, const struct label_columns *columns, char out[LABELS_MAX_NAME + 2])
{
    const struct label_kind *kind = columns->kind;
    const char *path = row->field[columns->image];

    /* A name without folders is not cut: a slash in it is a fault. */
    if (kind->name_parts > 1)
        path = path_tail(path, row->length[columns->image], kind->name_parts);
    return (size_t)snprintf(out, LABELS_MAX_NAME + 2, "%s%s", path, kind->suffix);
}

/* Parse a cell into *label.  Returns whether its value is valid. */
static bool
parse_cell(const char *text, size_t length, uint8_t empty, uint8_t *label)
{
    static const struct {
        const char *text; /* lower case */
        uint8_t label;
    } values[] = {
        {"1", 1},
        {"1.0", 1},
        {"yes", 1},
        {"0", 0},
        {"0.0", 0},
        {"no", 0},
        {"-1", CHEX_LABEL_UNKNOWN},
        {"-1.0", CHEX_LABEL_UNKNOWN},
    };

    *label = empty;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (ascii_is(text, length, values[i].text)) {
            *label = values[i].label;
            return true;
        }
    }
    return length == 0;
}

enum chex_status
label_cells(const struct table_row *row, const struct label_columns *columns, const struct findings *findings,
            uint8_t *label, struct chex_error *err)
{
    char shown[64], column[200];

    for (unsigned i = 0; i < findings->count; i++) {
        const char *text = row->field[columns->finding[i]];
        size_t length = row->length[columns->finding[i]];
        const char *name = label_kind_column(columns->kind, findings->name[i]);

        if (!parse_cell(text, length, columns->kind->empty, &label[i]))
            return table_fail(row, err, "\"%s\" in column \"%s\" is none of 1, 0, YES, NO, -1 and empty",
                              ascii_escape(text, length, shown, sizeof(shown)),
                              ascii_escape(name, strlen(name), column, sizeof(column)));
    }
    return CHEX_OK;
}

/* Apply a name of a list to label[].  Returns whether the name is one of kind->unsure. */
static bool
apply_name(const struct label_kind *kind, const struct findings *findings, const char *name, size_t length,
           uint8_t *label)
{
    int index = finding_index(findings, name, length);

    if (index >= 0)
        label[index] = 1;
    for (label_names unsure = kind->unsure; unsure && *unsure; unsure++)
        if (ascii_is(name, length, *unsure))
            return true;
    return false;
}

enum chex_status
label_python_list(const struct table_row *row, const struct label_columns *columns, const struct findings *findings,
                  uint8_t *label, bool *empty, struct chex_error *err)
{
    const char *p = row->field[columns->list], *end = p + row->length[columns->list];
    bool unsure = false, good = end - p >= 2 && *p == '[' && end[-1] == ']';
    char shown[64];

    memset(label, 0, findings->count);
    *empty = true;
    if (p == end || ascii_is(p, (size_t)(end - p), "nan"))
        return CHEX_OK;
    for (p++, end--; good && p < end; p++) {
        const char *name = p + 1, *quote;
        size_t length;

        if (*p == ' ' || *p == ',')
            continue;
        quote = *p == '\'' || *p == '"' ? memchr(name, *p, (size_t)(end - name)) : NULL;
        good = quote && (quote + 1 == end || quote[1] == ',');
        if (!good)
            break;
        length = (size_t)(quote - name);
        p = quote;
        ascii_trim(&name, &length);
        *empty &= length == 0;
        unsure |= length > 0 && apply_name(columns->kind, findings, name, length, label);
    }
    if (!good)
        return table_fail(row, err, "\"%s\" is not a list such as ['a', 'b']",
                          ascii_escape(row->field[columns->list], row->length[columns->list], shown, sizeof(shown)));
    for (unsigned i = 0; unsure && i < findings->count; i++)
        label[i] = label[i] == 1 ? 1 : CHEX_LABEL_UNKNOWN;
    return CHEX_OK;
}

/* Returns whether a component of a path is empty, "." or "..". */
static bool
is_unsafe_part(const char *part, size_t length)
{
    return length == 0 || (length <= 2 && memcmp(part, "..", length) == 0);
}

const char *
label_name_fault(const char *name, size_t length, bool folders)
{
    size_t start = 0;

    if (length == 0)
        return "empty file name";
    if (length > LABELS_MAX_NAME)
        return "file name longer than 255 bytes";
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];

        if ((c == '/' && !folders) || c == '\\' || c < 0x20 || c == 0x7f)
            return "unsafe file name";
        if (c == 0xc2 && (unsigned char)name[i + 1] < 0xa0) /* U+0080 to U+009F are control characters too */
            return "unsafe file name";
        if (c == '/' && is_unsafe_part(name + start, i - start))
            return "unsafe file name";
        start = c == '/' ? i + 1 : start;
    }
    return is_unsafe_part(name + start, length - start) ? "unsafe file name" : NULL;
}

/* Returns whether the name has NIH's form NNNNNNNN_NNN.*, whose first part is the patient. */
static bool
is_nih_name(const char *name)
{
    size_t first = strspn(name, "0123456789");

    return first == NIH_NAME_DIGITS && name[first] == '_' &&
           strspn(name + first + 1, "0123456789") == NIH_NAME_DIGITS2 && name[first + 1 + NIH_NAME_DIGITS2] == '.';
}

enum chex_status
label_patient(const struct table_row *row, const struct label_columns *columns, const char *name,
              char out[PATIENT_MAX + 1], struct chex_error *err)
{
    const bool folder = columns->kind->patient_is_folder;
    const char *id = folder ? name : row->field[columns->patient];
    const char *fault = patient_fold(id, folder ? strcspn(name, "/") : row->length[columns->patient], out);
    char shown_id[4 * PATIENT_MAX + 1], shown_name[300];

    if (fault)
        return table_fail(row, err, "%s", fault);
    if (columns->kind->nih_names && is_nih_name(name) &&
        (strlen(out) != NIH_NAME_DIGITS || strncmp(name, out, NIH_NAME_DIGITS) != 0))
        return table_fail(row, err, "patient id %s does not fit the image %s",
                          ascii_escape(out, strlen(out), shown_id, sizeof(shown_id)),
                          ascii_escape(name, strlen(name), shown_name, sizeof(shown_name)));
    return CHEX_OK;
}

/* strtod() would use the locale's decimal point and accept hexadecimal and "nan". */
static const char *
parse_number(const char *p, double *out)
{
    double value = 0, unit = 1;
    const char *first = p;

    for (; ascii_is_digit(*p); p++)
        value = value * 10 + (*p - '0');
    if (p == first)
        return NULL;
    if (*p == '.') {
        for (p++; ascii_is_digit(*p); p++) {
            unit *= 10;
            if (unit <= 1e9) /* more digits do not matter for an age */
                value = value + (*p - '0') / unit;
        }
    }
    *out = value;
    return p;
}

float
label_age(const char *text, bool *impossible)
{
    bool negative = text[0] == '-';
    double years;
    const char *p = parse_number(text + negative, &years);

    *impossible = false;
    if (!p)
        return NAN;
    while (ascii_is_blank(*p))
        p++;
    switch (ascii_upper(*p)) {
    case 'M':
        years /= 12;
        break;
    case 'W':
        years *= 7 / DAYS_A_YEAR;
        break;
    case 'D':
        years /= DAYS_A_YEAR;
        break;
    case 'Y':
    case '\0':
        break;
    default:
        return NAN;
    }
    if (*p != '\0' && p[1] != '\0')
        return NAN;
    *impossible = (negative && years > 0) || years > AGE_MAX;
    return *impossible ? NAN : (float)years;
}

/* Parse the first four digits of a year or date such as 20140915.  Returns -1 if there are fewer. */
static int
parse_year(const char *text)
{
    int year = 0;

    for (int i = 0; i < 4; i++) {
        if (!ascii_is_digit(text[i]))
            return -1;
        year = year * 10 + (text[i] - '0');
    }
    return year;
}

float
label_row_age(const struct table_row *row, const struct label_columns *columns, bool *impossible)
{
    int born, studied;
    char text[16];

    *impossible = false;
    if (columns->age >= 0)
        return label_age(row->field[columns->age], impossible);
    if (columns->born < 0 || columns->studied < 0)
        return NAN;
    born = parse_year(row->field[columns->born]);
    studied = parse_year(row->field[columns->studied]);
    if (born < 0 || studied < 0)
        return NAN;
    snprintf(text, sizeof(text), "%d", studied - born);
    return label_age(text, impossible);
}

int
label_view_column(const struct table_row *row, const struct label_columns *columns)
{
    return columns->view_else >= 0 && columns->view >= 0 && row->length[columns->view] == 0 ? columns->view_else
                                                                                            : columns->view;
}

char
label_sex(const char *text)
{
    char c = ascii_upper(text[0]);

    return c == 'M' || c == 'F' ? c : 'U';
}

void
label_view(const char *text, size_t length, char out[8])
{
    bool good = length > 0 && length < 8;

    memset(out, 0, 8); /* all 8 bytes: entries are compared and copied whole */
    for (size_t i = 0; good && i < length; i++) {
        out[i] = ascii_upper(text[i]);
        good = ascii_is_digit(out[i]) || (out[i] >= 'A' && out[i] <= 'Z');
    }
    if (!good) {
        memset(out, 0, 8);
        out[0] = 'U';
    }
}
