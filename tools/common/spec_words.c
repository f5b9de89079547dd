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

static void
add_places(const struct manifest *m, bool all, char *out)
{
    const struct spec usual = spec_default();
    const char *listed = all ? "file:split.csv" : "file:PATH";
    char word[SHELL_WORD];

    if (strcmp(m->split_rule, "file") != 0 || m->source_count <= 1)
        add(out, "--split %s\n", strcmp(m->split_rule, "file") == 0 ? listed : shell_word(m->split_rule, word));
    if (m->leaks.patients > 0)
        add(out, "--allow-leak\n");
    if (all || m->shard_size != usual.shard_size)
        add(out, "--shard-size %u\n", m->shard_size);
    if (all || strcmp(m->tail, tail_names[usual.tail]) != 0)
        add(out, "--tail %s\n", shell_word(m->tail, word));
    if (all || m->seed != usual.seed)
        add(out, "--seed %llu\n", (unsigned long long)m->seed);
    if (all || m->layout.align != usual.align)
        add(out, "--align %u\n", (unsigned)m->layout.align);
}

/* A list that has no short form is a file. */
static void
add_findings(const struct manifest *m, bool all, char *out)
{
    char text[FINDINGS_TEXT], word[SHELL_WORD];
    struct findings list = {0};
    bool same;

    if (findings_equal(&m->findings, &findings_nih14))
        return;
    findings_describe(&m->findings, text);
    for (char *bar = strchr(text, '|'); bar; bar = strchr(bar, '|'))
        *bar = ',';
    same = findings_choose(text, &list, NULL) == CHEX_OK && findings_equal(&list, &m->findings);
    add(out, "--findings %s\n", same ? shell_word(text, word) : all ? "findings.txt" : "LIST");
    findings_release(&list);
}

/* The manifest has all texts of --where in one line. */
static void
add_where(const struct manifest *m, char *out)
{
    char text[WHERE_TEXT], word[SHELL_WORD], *next;

    snprintf(text, sizeof(text), "%s", m->left_out.where);
    for (char *at = text; at; at = next) {
        next = strstr(at, WHERE_AND);
        if (next) {
            *next = '\0';
            next += strlen(WHERE_AND);
        }
        add(out, "--where %s\n", shell_word(at, word));
    }
}

/* The prefixes of the sources, in their order; no option if all are empty. */
static void
add_prefixes(const struct manifest *m, char *out)
{
    bool given = false;

    for (unsigned i = 0; i < m->source_count; i++)
        given |= m->source[i].id_prefix != NULL;
    for (unsigned i = 0; given && i < m->source_count; i++)
        add(out, "%s%s", i > 0 ? "," : "--id-prefix ", m->source[i].id_prefix ? m->source[i].id_prefix : "");
    if (given)
        add(out, "\n");
}

char *
spec_words(const struct manifest *m, bool all, char out[SPEC_WORDS])
{
    const struct spec usual = spec_default();
    bool resized = strcmp(m->resize, resample_names[RESAMPLE_NONE]) != 0;
    char word[SHELL_WORD];

    out[0] = '\0';
    if (all || m->source_count > 0 || m->layout.width != (resized ? usual.size : 1024))
        add(out, "--size %u\n", m->layout.width);
    add_prefixes(m, out);
    /* The manifest does not record whether a patient is in two sources.  If none is, the option changes nothing. */
    if (m->source_count > 1)
        add(out, "--same-patients\n");
    if (all || strcmp(m->resize, resample_names[usual.resize]) != 0)
        add(out, "--resize %s\n", shell_word(m->resize, word));
    if (!all)
        add_places(m, all, out);
    if (all || m->max_pixels != usual.limits.max_pixels)
        add(out, "--max-pixels %llu\n", (unsigned long long)m->max_pixels);
    if (all || m->min_side != usual.limits.min_side)
        add(out, "--min-size %u\n", m->min_side);
    if (m->lenient)
        add(out, "--lenient\n");
    if (m->left_out.other_views > 0)
        add(out, "--view %s\n", shell_word(m->left_out.views, word));
    if (m->left_out.excluded > 0)
        add(out, "--exclude %s\n", all ? "exclude.txt" : "LIST");
    if (m->left_out.where)
        add_where(m, out);
    add_findings(m, all, out);
    if (m->empty_labels > 0)
        add(out, "--empty-is-no-finding\n");
    if (m->left_out.missing > 0)
        add(out, "--allow-missing\n");
    if (all && m->rejects > 0)
        add(out, "--allow-rejects %llu\n", (unsigned long long)m->rejects);
    if (all)
        add_places(m, all, out);
    return out;
}
