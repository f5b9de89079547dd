/*
 * train_values.c - see train_values.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_values.h"

#include "io/line_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Accepts only digits, point, sign and exponent; strtod() would also accept "nan", "0x1p3" and blanks. */
static bool
parse_real(const char *text, double *out)
{
    char *end;

    if (!*text || strspn(text, "0123456789.eE+-") != strlen(text))
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

enum chex_status
value_real(const char *text, double min, double max, double *out, struct chex_error *err)
{
    double value;

    if (!parse_real(text, &value) || value < min || value > max)
        return error_set(err, CHEX_ERR_USAGE, "takes a number from %g to %g, not '%s'", min, max, text);
    *out = value == 0 ? 0 : value; /* -0 is stored as 0 */
    return CHEX_OK;
}

/* Parses "1:30:00" and "10:00". */
static bool
parse_clock(const char *text, double *out)
{
    double sum = 0;
    int parts = 0;

    while (parts < 3) {
        size_t digits = strspn(text, "0123456789");

        if (digits == 0 || digits > 6 || (parts > 0 && digits != 2))
            return false;
        sum = sum * 60 + atof(text);
        parts++;
        text += digits;
        if (*text == '\0')
            break;
        if (*text++ != ':')
            return false;
    }
    *out = sum;
    return parts > 1 && *text == '\0';
}

enum chex_status
value_duration(const char *text, double *out, struct chex_error *err)
{
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    size_t length = strlen(text), i;
    char number[32];
    double value = 0, unit = 1;
    bool good;

    if (strchr(text, ':')) {
        good = parse_clock(text, &value);
    } else {
        for (i = 0; length > 0 && i < sizeof(units) / sizeof(units[0]); i++)
            if (text[length - 1] == units[i].letter)
                unit = units[i].seconds;
        length -= unit != 1 || (length > 0 && text[length - 1] == 's');
        good = length > 0 && length < sizeof(number);
        if (good) {
            memcpy(number, text, length);
            number[length] = '\0';
            good = parse_real(number, &value);
        }
        value *= unit;
    }
    if (!good || value <= 0 || value > 1e9)
        return error_set(err, CHEX_ERR_USAGE, "takes a time such as 30s, 10m, 2h or 1:30:00, not '%s'", text);
    *out = value;
    return CHEX_OK;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Parses "Hernia,57.3". */
static enum chex_status
take_weight(const char *path, const char *example, const struct text_line *line,
            struct given_weight out[CHEX_FINDINGS_MAX], size_t *count, struct chex_error *err)
{
    struct given_weight *given = &out[*count];
    char text[FINDING_NAME_MAX + 64];
    size_t split, length;

    if (line->size == 0 || line->data[0] == '#')
        return CHEX_OK;
    if (*count == CHEX_FINDINGS_MAX)
        return error_set(err, CHEX_ERR_USAGE, "%s:%lu: more than %d weights", path, line->number, CHEX_FINDINGS_MAX);
    if (line->size < sizeof(text)) {
        memcpy(text, line->data, line->size);
        text[line->size] = '\0';
        split = strcspn(text, ",\t");
        if (text[split] == '\0')
            split = strcspn(text, " ");
        length = split + strspn(text + split, ", \t");
        if (split > 0 && split <= FINDING_NAME_MAX && parse_real(text + length, &given->weight) && given->weight > 0) {
            snprintf(given->name, sizeof(given->name), "%.*s", (int)split, text);
            given->line = line->number;
            ++*count;
            return CHEX_OK;
        }
    }
    return error_set(err, CHEX_ERR_USAGE, "%s:%lu: not a line such as '%s'", path, line->number, example);
}

enum chex_status
value_weights(const char *path, const char *example, struct given_weight out[CHEX_FINDINGS_MAX], size_t *count,
              struct chex_error *err)
{
    struct text_line line = {.data = NULL};
    struct line_reader *text;
    enum chex_status status = text_open(path, false, &text, err);

    *count = 0;
    if (status != CHEX_OK)
        return status;
    do {
        status = text_next(text, &line, err);
        if (status == CHEX_OK && line.data)
            status = take_weight(path, example, &line, out, count, err);
    } while (status == CHEX_OK && line.data);
    text_close(text);
    return status;
}
