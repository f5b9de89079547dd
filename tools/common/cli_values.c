/*
 * cli_values.c - parses numbers and counts cores; see cli.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/cli.h"

#include "base/ascii.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum chex_status
cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct chex_error *err)
{
    uint64_t value = 0;
    const char *p = text;

    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            break;
    if (p == text || *p || value < min || value > max)
        return error_set(err, CHEX_ERR_USAGE, "takes a number from %llu to %llu, not '%s'", (unsigned long long)min,
                         (unsigned long long)max, text);
    *out = value;
    return CHEX_OK;
}

enum chex_status
cli_count(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct chex_error *err)
{
    size_t length = strlen(text);
    uint64_t unit = 1;
    char digits[32];

    if (length > 1 && length < sizeof(digits)) {
        switch (text[length - 1]) {
        case 'K':
        case 'k':
            unit = 1u << 10;
            break;
        case 'M':
            unit = 1u << 20;
            break;
        case 'G':
            unit = 1u << 30;
            break;
        default:
            break;
        }
    }
    snprintf(digits, sizeof(digits), "%.*s", (int)(length - (unit != 1)), text);
    if (length >= sizeof(digits) || cli_number(digits, 0, max / unit, out, NULL) != CHEX_OK || *out * unit < min)
        return error_set(err, CHEX_ERR_USAGE, "takes a number from %llu to %llu (K, M, G allowed), not '%s'",
                         (unsigned long long)min, (unsigned long long)max, text);
    *out *= unit;
    return CHEX_OK;
}

/* Without strtod(), which follows the locale. */
enum chex_status
cli_percent(const char *text, double *out, struct chex_error *err)
{
    const char *p = text;
    double value = 0, unit = 1;

    for (; ascii_is_digit(*p) && value < 1000; p++)
        value = value * 10 + (*p - '0');
    if (*p == '.' && p > text)
        for (p++; ascii_is_digit(*p) && unit > 1e-9; p++)
            value += (*p - '0') * (unit /= 10);
    if (*p == '%')
        p++;
    if (p == text || *p || !(value > 0 && value <= 100))
        return error_set(err, CHEX_ERR_USAGE, "takes a percentage above 0 and up to 100, not '%s'", text);
    *out = value;
    return CHEX_OK;
}

/* Reads the cpu.max file of the cgroup (version 2): "max 100000" or "200000 100000".  Returns 0 without a limit. */
static unsigned
cgroup_cores(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    unsigned long quota = 0, period = 0;
    unsigned cores = 0;

    if (!f)
        return 0;
    if (fscanf(f, "%lu %lu", &quota, &period) == 2 && period > 0 && quota > 0)
        cores = (unsigned)((quota + period - 1) / period);
    fclose(f);
    return cores;
}

unsigned
cli_cores(void)
{
    unsigned limit = cgroup_cores();
    unsigned cores = 0;
#ifdef HAVE_SCHED_GETAFFINITY
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cores = (unsigned)CPU_COUNT(&set);
#endif
    if (cores == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);

        cores = online > 0 ? (unsigned)online : 1;
    }
    return limit > 0 && limit < cores ? limit : cores;
}
