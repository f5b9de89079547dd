/*
 * spec_words.c - see spec_words.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/spec_words.h"

#include "common/shell_word.h"
#include "plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
add(char *out, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;

    va_start(args, format);
    vsnprintf(out + used, SPEC_WORDS - used, format, args);
    va_end(args);
}

char *
spec_words(const struct manifest *m, char out[SPEC_WORDS])
{
    const struct spec usual = spec_default();
    bool resized = strcmp(m->resize, resample_names[RESAMPLE_NONE]) != 0;
    char word[SHELL_WORD];

    out[0] = '\0';
    if (m->layout.width != (resized ? usual.size : 1024))
        add(out, " --size %u", m->layout.width);
    if (strcmp(m->resize, resample_names[usual.resize]) != 0)
        add(out, " --resize %s", shell_word(m->resize, word));
    add(out, " --split %s", strcmp(m->split_rule, "file") == 0 ? "file:PATH" : shell_word(m->split_rule, word));
    if (m->shard_size != usual.shard_size)
        add(out, " --shard-size %u", m->shard_size);
    if (strcmp(m->tail, tail_names[usual.tail]) != 0)
        add(out, " --tail %s", shell_word(m->tail, word));
    if (m->seed != usual.seed)
        add(out, " --seed %llu", (unsigned long long)m->seed);
    if (m->layout.align != usual.align)
        add(out, " --align %u", (unsigned)m->layout.align);
    if (m->max_pixels != usual.limits.max_pixels)
        add(out, " --max-pixels %llu", (unsigned long long)m->max_pixels);
    if (m->min_side != usual.limits.min_side)
        add(out, " --min-size %u", m->min_side);
    if (m->lenient)
        add(out, " --lenient");
    if (m->left_out.other_views > 0)
        add(out, " --view %s", shell_word(m->left_out.views, word));
    if (m->left_out.missing > 0)
        add(out, " --allow-missing");
    return out;
}
