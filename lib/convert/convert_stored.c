/*
 * convert_stored.c - what a conversion takes from data sets that are its inputs: options of the images, split
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/ascii.h"
#include "input/stored_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options of the images ------------------------------------------------------------------------------------- */

static bool
same_limits(const struct decode_limits *a, const struct decode_limits *b)
{
    return a->max_pixels == b->max_pixels && a->min_side == b->min_side && a->lenient == b->lenient;
}

static struct decode_limits
limits_of(const struct chex_dataset *ds)
{
    const struct manifest *m = &ds->manifest;

    return (struct decode_limits){.max_pixels = m->max_pixels, .min_side = m->min_side, .lenient = m->lenient};
}

/* The limits decided which image files became records: they cannot be changed now. */
static enum chex_status
take_limits(const struct source *source, struct spec *spec, struct chex_error *err)
{
    const struct decode_limits usual = spec_default().limits, limits = limits_of(source->dataset[0]);
    size_t i;

    for (i = 1; i < source->dataset_count; i++) {
        const struct decode_limits other = limits_of(source->dataset[i]);

        if (!same_limits(&limits, &other))
            return error_set(err, CHEX_ERR_USAGE,
                             "'%s' and '%s' were made with different --max-pixels, --min-size or "
                             "--lenient",
                             source->dataset[0]->folder.path, source->dataset[i]->folder.path);
    }
    if (!same_limits(&spec->limits, &usual) && !same_limits(&spec->limits, &limits))
        return error_set(err, CHEX_ERR_USAGE,
                         "--max-pixels, --min-size and --lenient are for image files; '%s' was made with others",
                         source->dataset[0]->folder.path);
    spec->limits = limits;
    return CHEX_OK;
}

/* Set the size from --size, or from the data sets, whose images must then have the same size. */
static enum chex_status
choose_size(const struct convert_options *o, const struct source *source, struct spec *spec, struct chex_error *err)
{
    const struct chex_dataset *first = source->dataset[0];
    size_t i;

    if (!o->size_given)
        spec->size = first->manifest.layout.height;
    for (i = 0; i < source->dataset_count; i++) {
        const struct chex_dataset *ds = source->dataset[i];
        uint32_t size = ds->manifest.layout.height;

        if (ds->manifest.layout.width != size)
            return error_set(err, CHEX_ERR_USAGE, "the images of '%s' are not square", ds->folder.path);
        if (!o->size_given && size != spec->size)
            return error_set(err, CHEX_ERR_USAGE,
                             "the images of '%s' are %ux%u, those of '%s' are %ux%u: give --size %u",
                             first->folder.path, spec->size, spec->size, ds->folder.path, size, size,
                             size < spec->size ? size : spec->size);
        if (spec->size > size)
            return error_set(err, CHEX_ERR_USAGE, "--size %u is larger than the images of '%s', which are %ux%u",
                             spec->size, ds->folder.path, size, size);
    }
    return CHEX_OK;
}

/* Check --resize.  Images that already have the size keep their pixels, so their method becomes that of *spec. */
static enum chex_status
choose_resize(const struct convert_options *o, const struct source *source, struct spec *spec, struct chex_error *err)
{
    const struct chex_dataset *kept = NULL;
    size_t i;

    for (i = 0; i < source->dataset_count; i++) {
        const struct chex_dataset *ds = source->dataset[i];

        if (ds->manifest.layout.height > spec->size)
            continue;
        if (kept && strcmp(kept->manifest.resize, ds->manifest.resize) != 0)
            return error_set(err, CHEX_ERR_USAGE, "'%s' was made with --resize %s and '%s' with --resize %s",
                             kept->folder.path, kept->manifest.resize, ds->folder.path, ds->manifest.resize);
        kept = ds;
    }
    if (kept && o->resize_given && strcmp(resample_names[spec->resize], kept->manifest.resize) != 0)
        return error_set(err, CHEX_ERR_USAGE, "--resize %s needs a smaller --size: '%s' was made with --resize %s",
                         resample_names[spec->resize], kept->folder.path, kept->manifest.resize);
    if (kept)
        spec->resize = (enum resample_method)name_index(resample_names, kept->manifest.resize);
    for (i = 0; i < source->dataset_count; i++) {
        const struct chex_dataset *ds = source->dataset[i];
        uint32_t size = ds->manifest.layout.height;

        if (size > spec->size && spec->resize == RESAMPLE_NONE)
            return error_set(err, CHEX_ERR_USAGE, "--size %u with --resize none: the images of '%s' are %ux%u",
                             spec->size, ds->folder.path, size, size);
    }
    return CHEX_OK;
}

/* ---- description of the data sets -------------------------------------------------------------------------------- */

static int
compare_sources(const void *a, const void *b)
{
    return strcmp(((const struct manifest_source *)a)->dataset_id, ((const struct manifest_source *)b)->dataset_id);
}

/* Describe data set i.  The texts belong to the data set, to the options, or to the source. */
static enum chex_status
describe_source(struct convert *c, size_t i, struct chex_error *err)
{
    const struct manifest *m = &c->source.dataset[i]->manifest;
    const struct manifest_left_out *l = &m->left_out;
    const char *prefix = c->source.prefix ? c->source.prefix[i] : "";
    struct manifest_source *s = &c->stored[i];
    char from[MANIFEST_FROM];

    if (!manifest_from(m->source, m->source_count, m->layout.height, from))
        return error_memory(err);
    *s = (struct manifest_source){.size = m->layout.height,
                                  .resize = m->resize,
                                  .from = arena_copy(&c->source.strings, from, strlen(from)),
                                  .withdrawn = manifest_withdrawn(m),
                                  .id_prefix = prefix[0] ? prefix : NULL};
    memcpy(s->dataset_id, m->dataset_id, sizeof(s->dataset_id));
    if (c->source.dataset_count > 1 && !c->options->labels) {
        s->left_out = l->other_views + l->excluded + l->missing + l->not_selected;
        s->where = l->where;
    }
    if (!s->from)
        return error_memory(err);
    s->from = from[0] ? s->from : NULL;
    return CHEX_OK;
}

/* Describe all data sets, in the order of their ids, so that the order of the inputs changes nothing. */
static enum chex_status
describe_sources(struct convert *c, struct spec *spec, struct chex_error *err)
{
    const struct source *source = &c->source;
    enum chex_status status = CHEX_OK;
    size_t i;

    c->stored = calloc(source->dataset_count, sizeof(*c->stored));
    if (!c->stored)
        return error_memory(err);
    for (i = 0; status == CHEX_OK && i < source->dataset_count; i++) {
        status = describe_source(c, i, err);
        if (status == CHEX_OK && !manifest_from(&c->stored[i], 1, spec->size, spec->from))
            return error_set(err, CHEX_ERR_USAGE,
                             "the images of '%s' were made smaller twice (%s): start from larger ones",
                             source->dataset[i]->folder.path, c->stored[i].from);
    }
    qsort(c->stored, source->dataset_count, sizeof(*c->stored), compare_sources);
    if (status == CHEX_OK && !manifest_from(c->stored, (unsigned)source->dataset_count, spec->size, spec->from))
        return error_memory(err);
    return status;
}

enum chex_status
convert_stored_spec(struct convert *c, struct spec *spec, struct chex_error *err)
{
    const struct chex_dataset *ds = c->source.dataset[0];
    enum chex_status status;

    if (c->options->cross_check > 0)
        return error_set(err, CHEX_ERR_USAGE, "--cross-check compares decoders of image files: '%s' is a data set",
                         ds->folder.path);
    status = choose_size(c->options, &c->source, spec, err);
    if (status == CHEX_OK)
        status = choose_resize(c->options, &c->source, spec, err);
    if (status == CHEX_OK)
        status = take_limits(&c->source, spec, err);
    if (status == CHEX_OK)
        status = describe_sources(c, spec, err);
    /* Rows from the records of one data set are a selection of the selection that made them. */
    if (status == CHEX_OK && c->source.dataset_count == 1 && !c->options->labels && ds->manifest.left_out.where)
        snprintf(spec->where, sizeof(spec->where), "%s", ds->manifest.left_out.where);
    return status;
}

/* ---- split ----------------------------------------------------------------------------------------------------- */

/* Number the splits of all data sets by name: place[i][k] is the number of split k of data set i. */
static enum chex_status
number_splits(const struct source *source, uint8_t (*place)[SPLIT_MAX], struct split_given *given,
              struct chex_error *err)
{
    for (size_t i = 0; i < source->dataset_count; i++) {
        const struct chex_dataset *ds = source->dataset[i];

        for (unsigned k = 0; k < ds->info.split_count; k++) {
            unsigned n = 0;

            while (n < given->count && strcmp(given->name[n], ds->split[k].name) != 0)
                n++;
            if (n == SPLIT_MAX)
                return error_set(err, CHEX_ERR_USAGE, "the data sets have more than %d splits", SPLIT_MAX);
            given->name[n] = ds->split[k].name;
            given->count += n == given->count;
            place[i][k] = (uint8_t)n;
        }
    }
    return CHEX_OK;
}

/* Copy the split of each row's record. */
static enum chex_status
copy_splits(struct convert *c, struct chex_error *err)
{
    uint8_t(*place)[SPLIT_MAX] = calloc(c->source.dataset_count, sizeof(*place));
    struct split_given *given = &c->given;
    enum chex_status status;
    size_t i;

    given->of_entry = malloc(c->labels.count + 1);
    if (!place || !given->of_entry) {
        free(place);
        return error_memory(err);
    }
    status = number_splits(&c->source, place, given, err);
    for (i = 0; status == CHEX_OK && i < c->labels.count; i++) {
        const struct source_file *file = source_find(&c->source, c->labels.entry[i].name);

        given->of_entry[i] = file ? place[file->folder][c->source.stored[file->stored].split] : SPLIT_OUTSIDE;
    }
    free(place);
    return status;
}

/* Returns whether the rule of the first data set gives the rows of all of them their splits again. */
static bool
is_common_rule(const struct source *source, const struct split_rule *rule)
{
    for (size_t i = 0; i < source->dataset_count; i++) {
        if (strcmp(source->dataset[i]->manifest.split_rule, source->dataset[0]->manifest.split_rule) != 0)
            return false;
        /* This rule hashes the patient's id, so a prefix would change the split. */
        if (rule->kind == SPLIT_PATIENT && source->prefix && source->prefix[i][0])
            return false;
    }
    return true;
}

enum chex_status
convert_stored_split(struct convert *c, struct split_rule *rule, struct chex_error *err)
{
    const struct source *source = &c->source;
    const struct chex_dataset *ds = source->dataset[0];
    enum chex_status status = split_rule_of_dataset(ds->manifest.split_rule, rule, err);
    struct split_rule own;
    size_t used = 0, i;

    if (status != CHEX_OK)
        return error_context(err, status, "the split of '%s'", ds->folder.path);
    if (!is_common_rule(source, rule))
        *rule = (struct split_rule){.kind = SPLIT_FILE};
    for (i = 0; c->options->split_given && rule->kind != SPLIT_OFFICIAL && i < source->dataset_count; i++)
        if (split_rule_of_dataset(source->dataset[i]->manifest.split_rule, &own, NULL) != CHEX_OK ||
            own.kind != SPLIT_OFFICIAL)
            return error_set(err, CHEX_ERR_USAGE, "--split official needs --lists: the split of '%s' is %s",
                             source->dataset[i]->folder.path, source->dataset[i]->manifest.split_rule);
    if (rule->kind != SPLIT_OFFICIAL && rule->kind != SPLIT_FILE)
        return CHEX_OK;
    rule->given = &c->given;
    for (i = 0; i < source->dataset_count && used < sizeof(rule->path); i++)
        used += (size_t)snprintf(rule->path + used, sizeof(rule->path) - used, "%s%s", i > 0 ? ", " : "",
                                 source->dataset[i]->folder.path);
    return copy_splits(c, err);
}

/* ---- manifest -------------------------------------------------------------------------------------------------- */

void
convert_stored_describe(const struct convert *c, struct manifest *m)
{
    const struct manifest_left_out *before;

    if (c->source.dataset_count == 0)
        return;
    m->source = c->stored;
    m->source_count = (unsigned)c->source.dataset_count;
    for (unsigned i = 0; i < m->source_count; i++) {
        const struct manifest *from = &c->source.dataset[i]->manifest;

        m->synthetic |= from->synthetic;
        if (from->gray_rule)
            m->gray_rule = from->gray_rule;
    }
    /*
     * The rows are those of the data set, so what it left out is still left out.  Numbers of several data sets cannot
     * be added up: one may contain what another left out.  m->source has them.
     */
    if (c->options->labels || m->source_count > 1)
        return;
    before = &c->source.dataset[0]->manifest.left_out;
    if (m->left_out.other_views == 0 && before->views)
        m->left_out.views = before->views;
    m->left_out.other_views += before->other_views;
    m->left_out.excluded += before->excluded;
    m->left_out.missing += before->missing;
    m->left_out.not_selected += before->not_selected;
}
