/*
 * number_format.c - see number_format.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/number_format.h"

#include <stdio.h>
#include <string.h>

char *
format_count(uint64_t n, char out[FORMAT_TEXT])
{
    char digits[FORMAT_TEXT];
    int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    int i, used = 0;

    for (i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

char *
format_things(uint64_t n, const char *noun, char out[FORMAT_THINGS])
{
    char number[FORMAT_TEXT];

    snprintf(out, FORMAT_THINGS, "%s %s%s", format_count(n, number), noun, n == 1 ? "" : "s");
    return out;
}

char *
format_bytes(uint64_t n, char out[FORMAT_TEXT])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t whole = n, tenths = 0;
    size_t unit = 0;

    /* Integer arithmetic avoids the decimal comma of some locales. */
    while (whole >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        tenths = whole % 1000 / 100;
        whole /= 1000;
        unit++;
    }
    if (unit > 0 && whole < 100)
        snprintf(out, FORMAT_TEXT, "%llu.%llu %s", (unsigned long long)whole, (unsigned long long)tenths, units[unit]);
    else
        snprintf(out, FORMAT_TEXT, "%llu %s", (unsigned long long)whole, units[unit]);
    return out;
}

char *
format_bytes_compared(uint64_t n, uint64_t other, char out[FORMAT_TEXT])
{
    char text[FORMAT_TEXT];

    if (n == other || strcmp(format_bytes(n, out), format_bytes(other, text)) != 0)
        return format_bytes(n, out);
    snprintf(out, FORMAT_TEXT, "%s bytes", format_count(n, text));
    return out;
}

char *
format_seconds(double seconds, char out[FORMAT_TEXT])
{
    unsigned long long s = seconds > 0 && seconds < 1e9 ? (unsigned long long)(seconds + 0.5) : 0;

    if (s >= 3600)
        snprintf(out, FORMAT_TEXT, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, FORMAT_TEXT, "%llu:%02llu", s / 60, s % 60);
    return out;
}
