/*
 * convert_json.c - the --json document of chex-convert (schemas/convert.schema.json)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_report.h"

#include "base/json.h"
#include "ranks/collective.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

static json_t *
number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *
splits_json(const struct convert *c)
{
    json_t *list = json_array();
    unsigned i;

    for (i = 0; i < c->plan.splits.count; i++)
        json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "name", c->plan.splits.name[i], "images",
                                              number(c->plan.splits.images[i]), "patients",
                                              number(c->plan.splits.patients[i])));
    return list;
}

static json_t *
rejects_json(const struct convert *c)
{
    json_t *object = json_object();
    int status;

    for (status = 0; status < CHEX_ERR_BUG; status++)
        if (c->counts.reject_of[status] > 0)
            json_object_set_new(object, chex_status_name((enum chex_status)status),
                                number(c->counts.reject_of[status]));
    return object;
}

static json_t *
missing_json(const struct convert *c)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; c->preflight.whole && i < PREFLIGHT_ARCHIVES; i++)
        json_array_append_new(list, json_pack("{s:o,s:o}", "wanted", number(c->preflight.archive[i].wanted), "found",
                                              number(c->preflight.archive[i].found)));
    return list;
}

/* Returns the data sets that are the inputs. */
static json_t *
sources_json(const struct convert *c)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; c->stored && i < c->source.dataset_count; i++) {
        const struct manifest_source *s = &c->stored[i];
        json_t *one = json_pack("{s:s,s:o,s:s}", "dataset_id", s->dataset_id, "size", number(s->size), "resize",
                                s->resize);

        if (s->id_prefix)
            json_object_set_new(one, "id_prefix", json_string(s->id_prefix));
        json_array_append_new(list, one);
    }
    return list;
}

/* Returns the data set that is the only input, or null. */
static json_t *
source_json(const struct convert *c)
{
    json_t *list = sources_json(c),
           *one = json_array_size(list) == 1 ? json_incref(json_array_get(list, 0)) : json_null();

    json_decref(list);
    return one;
}

/* Returns the input archives and the counts of their contents. */
static json_t *
inputs_json(const struct convert *c)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; c->archive && i < c->source.archive_count; i++) {
        const struct archive_content *a = &c->archive[i];
        json_t *damage = a->damaged ? json_pack("{s:o,s:o}", "byte", number(a->fault.offset), "reason",
                                                text_json(a->fault.error.text))
                                    : json_null();

        json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:o}", "path", text_json(c->source.archive[i]), "images",
                                              number(a->images), "others", number(a->others), "damage", damage));
    }
    return list;
}

static json_t *
noticed_json(const struct convert_counts *k)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "rgba", number(k->rgba), "colour",
                     number(k->colour), "composited", number(k->composited), "deep", number(k->deep), "palette",
                     number(k->palette), "interlaced", number(k->interlaced), "jpeg", number(k->jpeg), "animated",
                     number(k->animated), "mismatched", number(k->mismatched), "warned", number(k->warned),
                     "shards_again", number(k->shards_rewritten));
}

static json_t *
part_json(const struct convert *c)
{
    struct part part = c->options ? c->options->part : (struct part){0};

    return json_pack("{s:i,s:o,s:o}", "ranks", collective_size(c->ranks), "part",
                     part.count ? number(part.index + 1) : json_null(), "parts",
                     part.count ? number(part.count) : json_null());
}

static json_t *
plan_json(const struct convert *c)
{
    char rule[64];

    if (c->plan.shard_count == 0)
        return json_null();
    split_rule_format(&c->plan.spec.split, rule, sizeof(rule));
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "dataset_id", c->plan.dataset_id, "split_rule", rule,
                     "splits", splits_json(c), "leaky_patients", number(c->plan.splits.leaky_patients), "leaky_images",
                     number(c->plan.splits.leaky_images), "shards", number(c->plan.shard_count), "images",
                     number(c->plan.image_count), "dropped", number(c->plan.dropped), "stride",
                     number(c->plan.layout.stride), "bytes", number(plan_size(&c->plan)));
}

void
report_json(const struct convert *c, const struct chex_error *err, int exit_code, bool dry_run, const char *key,
            json_t *value)
{
    json_t *document = json_pack("{s:s,s:s,s:i,s:o,s:b,s:o}", "tool", "chex-convert", "version", chex_version(),
                                 "exit_code", exit_code, "error", text_json(err ? err->text : NULL), "dry_run", dry_run,
                                 "output", text_json(c->options ? c->options->out : NULL));

    json_object_set_new(document, "share", part_json(c));
    json_object_set_new(document, "labels",
                        json_pack("{s:o,s:o,s:o,s:o,s:o}", "rows", number(c->labels.row_count), "patients",
                                  number(c->labels.patient_count), "rejected_rows", number(c->labels.reject_count),
                                  "duplicate_rows", number(c->labels.duplicate_rows), "impossible_ages",
                                  number(c->labels.impossible_ages)));
    json_object_set_new(document, "images",
                        json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "wanted",
                                  number(c->preflight.wanted), "found", number(c->preflight.found), "missing",
                                  number(c->preflight.missing), "expected", number(c->preflight.expected), "unlabelled",
                                  number(c->unlabeled.count), "repeated", number(c->repeated), "excluded",
                                  number(c->excluded + c->filtered + c->unselected), "archives", missing_json(c),
                                  "inputs", inputs_json(c), "source", source_json(c), "sources", sources_json(c)));
    json_object_set_new(document, "plan", plan_json(c));
    json_object_set_new(document, "result",
                        json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:f,s:i}", "already_complete", c->resumed.complete,
                                  "converted", number(c->counts.converted), "resumed", number(c->counts.resumed),
                                  "rejects", number(c->counts.rejects), "rejects_by_reason", rejects_json(c), "noticed",
                                  noticed_json(&c->counts), "cross_checked", number(c->counts.cross_checked), "seconds",
                                  c->seconds, "threads", (int)c->threads_used));
    if (key)
        json_object_set_new(document, key, value);
    json_dumpf(document, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(document);
}
