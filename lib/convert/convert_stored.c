/*
 * convert_stored.c - what a conversion takes from a data set that is its input: options of the images, rows, split
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

/* The limits decided which image files became records: they cannot be changed now. */
static enum chex_status
take_limits(const struct chex_dataset *ds, struct spec *spec, struct chex_error *err)
{
    const struct manifest *m = &ds->manifest;
    const struct decode_limits usual = spec_default().limits,
                               limits = {.max_pixels = m->max_pixels, .min_side = m->min_side, .lenient = m->lenient};

    if (!same_limits(&spec->limits, &usual) && !same_limits(&spec->limits, &limits))
        return error_set(err, CHEX_ERR_USAGE,
                         "--max-pixels, --min-size and --lenient are for image files; '%s' was made with others",
                         ds->folder.path);
    spec->limits = limits;
    return CHEX_OK;
}

/* Check --size and --resize, and set both in *spec: images of the same size keep their pixels. */
static enum chex_status
choose_size(const struct convert_options *o, const struct chex_dataset *ds, struct spec *spec, struct chex_error *err)
{
    const uint32_t size = ds->manifest.layout.height;
    enum resample_method resize = (enum resample_method)name_index(resample_names, ds->manifest.resize);

    if (!o->size_given)
        spec->size = size;
    if (spec->size > size)
        return error_set(err, CHEX_ERR_USAGE, "--size %u is larger than the images of '%s', which are %ux%u",
                         spec->size, ds->folder.path, size, size);
    if (spec->size < size && spec->resize == RESAMPLE_NONE)
        return error_set(err, CHEX_ERR_USAGE, "--size %u with --resize none: the images of '%s' are %ux%u", spec->size,
                         ds->folder.path, size, size);
    if (spec->size < size)
        return CHEX_OK;
    if (o->resize_given && spec->resize != resize)
        return error_set(err, CHEX_ERR_USAGE, "--resize %s needs a smaller --size: '%s' was made with --resize %s",
                         resample_names[spec->resize], ds->folder.path, ds->manifest.resize);
    spec->resize = resize;
    return CHEX_OK;
}

enum chex_status
convert_stored_spec(struct convert *c, struct spec *spec, struct chex_error *err)
{
    const struct chex_dataset *ds = c->source.dataset[0];
    const struct manifest *m = &ds->manifest;
    enum chex_status status;

    if (c->options->cross_check > 0)
        return error_set(err, CHEX_ERR_USAGE, "--cross-check compares decoders of image files: '%s' is a data set",
                         ds->folder.path);
    if (m->layout.width != m->layout.height)
        return error_set(err, CHEX_ERR_USAGE, "the images of '%s' are not square", ds->folder.path);
    status = choose_size(c->options, ds, spec, err);
    if (status == CHEX_OK)
        status = take_limits(ds, spec, err);
    if (status != CHEX_OK)
        return status;
    manifest_from(m->source, m->layout.height, c->stored_from);
    c->stored = (struct manifest_source){.size = m->layout.height,
                                         .resize = m->resize,
                                         .from = c->stored_from[0] ? c->stored_from : NULL,
                                         .withdrawn = manifest_withdrawn(m)};
    memcpy(c->stored.dataset_id, m->dataset_id, sizeof(c->stored.dataset_id));
    /* Rows from the records are a selection of the selection that made them. */
    if (!c->options->labels && m->left_out.where)
        snprintf(spec->where, sizeof(spec->where), "%s", m->left_out.where);
    if (!manifest_from(&c->stored, spec->size, spec->from))
        return error_set(err, CHEX_ERR_USAGE, "the images of '%s' were made smaller twice (%s): start from larger ones",
                         ds->folder.path, c->stored_from);
    return CHEX_OK;
}

/* ---- split ----------------------------------------------------------------------------------------------------- */

/* Copy the split of each row's record. */
static enum chex_status
copy_splits(struct convert *c, struct chex_error *err)
{
    const struct chex_dataset *ds = c->source.dataset[0];
    struct split_given *given = &c->given;
    size_t i;

    given->of_entry = malloc(c->labels.count + 1);
    if (!given->of_entry)
        return error_memory(err);
    for (i = 0; i < c->labels.count; i++) {
        const struct source_file *file = source_find(&c->source, c->labels.entry[i].name);

        given->of_entry[i] = file ? c->source.stored[file->stored].split : SPLIT_OUTSIDE;
    }
    for (given->count = 0; given->count < ds->info.split_count; given->count++)
        given->name[given->count] = ds->split[given->count].name;
    return CHEX_OK;
}

enum chex_status
convert_stored_split(struct convert *c, struct split_rule *rule, struct chex_error *err)
{
    const struct chex_dataset *ds = c->source.dataset[0];
    enum chex_status status = split_rule_of_dataset(ds->manifest.split_rule, rule, err);

    if (status != CHEX_OK)
        return error_context(err, status, "the split of '%s'", ds->folder.path);
    if (c->options->split_given && rule->kind != SPLIT_OFFICIAL)
        return error_set(err, CHEX_ERR_USAGE, "--split official needs --lists: the split of '%s' is %s",
                         ds->folder.path, ds->manifest.split_rule);
    if (rule->kind != SPLIT_OFFICIAL && rule->kind != SPLIT_FILE)
        return CHEX_OK;
    rule->given = &c->given;
    snprintf(rule->path, sizeof(rule->path), "%s", ds->folder.path);
    return copy_splits(c, err);
}

/* ---- manifest -------------------------------------------------------------------------------------------------- */

void
convert_stored_describe(const struct convert *c, struct manifest *m)
{
    const struct manifest_left_out *before;

    if (c->source.dataset_count == 0)
        return;
    m->source = (struct manifest_source *)&c->stored;
    m->source_count = 1;
    m->synthetic |= c->source.dataset[0]->manifest.synthetic;
    if (c->options->labels)
        return;
    /* The rows are those of the data set, so what it left out is still left out. */
    before = &c->source.dataset[0]->manifest.left_out;
    if (m->left_out.other_views == 0 && before->views)
        m->left_out.views = before->views;
    m->left_out.other_views += before->other_views;
    m->left_out.excluded += before->excluded;
    m->left_out.missing += before->missing;
    m->left_out.not_selected += before->not_selected;
}
