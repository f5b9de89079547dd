/*
 * describe.c - describes a data set from its manifest, without reading records; see inspect.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/describe.h"

#include "base/number_format.h"
#include "common/wrap.h"

/* ---- text -------------------------------------------------------------------------------------------------------- */

void
describe_head(const struct inspect *in, const struct target *t)
{
    const struct chex_dataset *ds = t->dataset;
    char images[FORMAT_THINGS], shards[FORMAT_THINGS], bytes[FORMAT_TEXT];

    printf("%sdata%s     %s, %s in %s, %s\n", in->color.bold, in->color.off, ds->info.id,
           format_things(ds->info.image_count, "image", images), format_things(ds->info.shard_count, "shard", shards),
           format_bytes(dataset_bytes(ds), bytes));
    if (t->kind == TARGET_SHARD)
        printf("shard    %u of these: %s\n", t->first, ds->shard[t->first].name);
}

void
describe_rest(const struct inspect *in, const struct target *t)
{
    const struct chex_dataset *ds = t->dataset;
    const struct manifest *m = &ds->manifest;
    char images[FORMAT_TEXT], patients[FORMAT_TEXT], shards[FORMAT_THINGS];
    uint64_t padding = dataset_records(ds) - ds->info.image_count;
    char text[FORMAT_THINGS], path[PRINTABLE_TEXT];
    struct wrap w = {.out = stdout};
    unsigned i;

    printf("images   %ux%u %s, %s; mean %.2f, standard deviation %.2f\n", ds->info.width, ds->info.height,
           m->gray_rule ? m->gray_rule : "gray8", m->resize, ds->info.pixel_mean, ds->info.pixel_deviation);
    wrap_put(&w, "", "records  %s bytes each", COUNT_TEXT(ds->info.stride));
    wrap_put(&w, ", ", "pixels at byte %s", COUNT_TEXT(ds->info.pixel_offset));
    wrap_put(&w, "; ", "%s a shard", COUNT_TEXT(ds->info.shard_size));
    wrap_put(&w, ", ", "tail %s", m->tail);
    if (padding > 0)
        wrap_put(&w, ", ", "%s", format_things(padding, "padding record", text));
    wrap_end(&w);
    printf("split    %s\n", m->split_rule);
    if (m->leaks.patients > 0)
        printf("         %sleaky: %s with %s in two splits%s\n", in->color.red,
               format_things(m->leaks.patients, "patient", text), format_things(m->leaks.images, "image", shards),
               in->color.off);
    printf("%s         %-12s %12s %12s %8s%s\n", in->color.dim, "", "images", "patients", "shards", in->color.off);
    for (i = 0; i < ds->info.split_count; i++)
        printf("         %-12s %12s %12s %8s\n", ds->split[i].name, format_count(ds->split[i].image_count, images),
               format_count(ds->split[i].patient_count, patients), format_count(ds->split[i].shard_count, shards));
    if (m->rejects > 0) {
        wrap_put(&w, "", "rejects  %s could not be used", format_things(m->rejects, "image", text));
        wrap_put(&w, ": ", "%s/rejects.jsonl", printable_text(ds->folder.path, path));
        wrap_end(&w);
    }
    if (m->withdrawal_count > 0)
        wrap_line(stdout, "removed", "%s withdrawn in %s, the last at %s; the records keep the id %s",
                  format_things(manifest_withdrawn(m), "image", text),
                  format_things(m->withdrawal_count, "step", shards), m->withdrawal[m->withdrawal_count - 1].time,
                  manifest_record_id(m));
    printf("made by  chex-tools %s\n", m->tool_version);
    if (in->common->verbose == 0)
        return;
    printf("order    seed %llu; records a multiple of %s bytes\n", (unsigned long long)m->seed,
           COUNT_TEXT(m->layout.align));
    wrap_put(&w, "", "limits   at most %s pixels", COUNT_TEXT(m->max_pixels));
    wrap_put(&w, ", ", "sides from %s", COUNT_TEXT(m->min_side));
    if (m->lenient)
        wrap_put(&w, ", ", "files without their end accepted");
    wrap_end(&w);
    wrap_put(&w, "", "labels   SHA-256");
    wrap_put(&w, " ", "%s", m->labels_sha256);
    wrap_end(&w);
    for (i = 0; i < ds->info.split_count; i++) {
        wrap_put(&w, "", "members  %s", ds->split[i].name);
        wrap_put(&w, " ", "%s", ds->split[i].members_sha256);
        wrap_end(&w);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* {"Atelectasis": 12, ...} */
static json_t *
describe_counts(const struct findings *findings, const uint64_t *counts)
{
    json_t *object = json_object();
    unsigned i;

    for (i = 0; i < findings->count; i++)
        inspect_json_set(&object, findings->name[i], count_json(counts[i]));
    return object;
}

static json_t *
splits_json(const struct chex_dataset *ds)
{
    json_t *list = json_array();
    unsigned i;

    for (i = 0; i < ds->info.split_count; i++) {
        const struct chex_split_info *split = &ds->split[i];

        inspect_json_push(&list,
                          json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:o}", "name", split->name, "images",
                                    count_json(split->image_count), "patients", count_json(split->patient_count),
                                    "shards", count_json(split->shard_count), "members_sha256", split->members_sha256,
                                    "positives", describe_counts(&ds->manifest.findings, split->positives), "known",
                                    describe_counts(&ds->manifest.findings, split->known)));
    }
    return list;
}

static json_t *
withdrawals_json(const struct manifest *m)
{
    json_t *list = json_array();
    unsigned i;

    for (i = 0; i < m->withdrawal_count; i++)
        inspect_json_push(&list, json_pack("{s:s, s:o, s:s}", "dataset_id", m->withdrawal[i].dataset_id, "slots",
                                           count_json(m->withdrawal[i].slots), "time", m->withdrawal[i].time));
    return list;
}

json_t *
describe_json(const struct target *t)
{
    const struct chex_dataset *ds = t->dataset;
    const struct manifest *m = &ds->manifest;

    return json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s?, s:s, s:o, s:o, s:o, s:o, s:o, "
                     "s:o, s:o, s:f, s:f, s:o, s:o}",
                     "id", ds->info.id, "format", (int)ds->info.format_version, "tool_version", m->tool_version,
                     "height", count_json(ds->info.height), "width", count_json(ds->info.width), "channels",
                     count_json(ds->info.channels), "stride", count_json(ds->info.stride), "pixel_offset",
                     count_json(ds->info.pixel_offset), "shard_size", count_json(ds->info.shard_size), "tail", m->tail,
                     "resize", m->resize, "gray_rule", m->gray_rule, "split_rule", m->split_rule, "leaky_patients",
                     count_json(m->leaks.patients), "leaky_images", count_json(m->leaks.images), "shards",
                     count_json(ds->info.shard_count), "records", count_json(dataset_records(ds)), "images",
                     count_json(ds->info.image_count), "bytes", count_json(dataset_bytes(ds)), "rejects",
                     count_json(m->rejects), "pixel_mean", ds->info.pixel_mean, "pixel_deviation",
                     ds->info.pixel_deviation, "withdrawals", withdrawals_json(m), "splits", splits_json(ds));
}
