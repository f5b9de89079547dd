/*
 * rank_times_json.c - see rank_times.h: times of ranks in a line of metrics.jsonl (schemas/metrics.schema.json)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/rank_times.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool
set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static json_t *
rank_json(const struct rank_time *r, unsigned number)
{
    json_t *parts = json_object(), *cpu = json_object(), *object = json_object();
    bool good = true;
    unsigned i;

    for (i = 0; i < PART_COUNT; i++) {
        good &= set(parts, step_part_name[i], real_json(r->parts.seconds[i]));
        good &= set(cpu, step_part_name[i], real_json(r->parts.cpu[i]));
    }
    good &= set(object, "rank", count_json(number));
    good &= set(object, "host", text_json(r->host));
    good &= set(object, "seconds", real_json(r->seconds));
    good &= set(object, "work", real_json(r->work));
    good &= set(object, "busy", real_json(r->busy));
    good &= set(object, "modelled", real_json(r->modelled));
    good &= set(object, "cpu", real_json(r->cpu));
    good &= set(object, "useful", real_json(r->useful));
    good &= set(object, "threads", real_json(r->threads));
    good &= set(object, "parts", parts);
    good &= set(object, "cpu_parts", cpu);
    if (!good)
        json_decref(object);
    return good ? object : NULL;
}

static json_t *
factors_json(const struct rank_times *t)
{
    json_t *object = json_object();
    double factor[FACTOR_COUNT];
    bool good = true;
    unsigned i;

    rank_times_factors(t, factor);
    for (i = 0; i < FACTOR_COUNT; i++)
        good &= set(object, factor_info[i].name, real_json(factor[i]));
    if (!good)
        json_decref(object);
    return good ? object : NULL;
}

static const char *const saver_names[SAVER_COUNT] = {
    [SAVER_NO_TTA] = "tta none", [SAVER_NO_BOOTSTRAP] = "bootstrap 0",  [SAVER_STAGE] = "stage",
    [SAVER_CACHE] = "cache",     [SAVER_CACHE_DEVICE] = "cache device",
};

static json_t *
in_use_json(const struct rank_times *t)
{
    json_t *names = json_array();
    bool good = names;
    unsigned i;

    for (i = 0; i < SAVER_COUNT; i++)
        good = good && (!t->in_use[i] || json_array_append_new(names, json_string(saver_names[i])) == 0);
    if (!good)
        json_decref(names);
    return good ? names : NULL;
}

bool
rank_times_json_add(json_t *object, const struct rank_times *t)
{
    json_t *ranks = json_array();
    char advice[RANK_ADVICE];
    bool good = true;
    unsigned r;

    for (r = 0; r < t->ranks; r++)
        good &= json_array_append_new(ranks, rank_json(&t->rank[r], r)) == 0;
    good &= set(object, "steps", count_json(t->steps));
    good &= set(object, "seconds", real_json(t->seconds));
    good &= set(object, "ideal_seconds", real_json(t->ideal));
    good &= set(object, "factors", factors_json(t));
    good &= set(object, "ranks", ranks);
    good &= set(object, "in_use", in_use_json(t));
    good &= set(object, "advice", text_json(rank_times_advice(t, advice)));
    return good;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Read a number that is not negative; null is NaN. */
static bool
get(const json_t *object, const char *key, double *out)
{
    const json_t *value = json_object_get(object, key);

    *out = json_is_null(value) ? (double)NAN : json_number_value(value);
    return json_is_null(value) || (json_is_number(value) && *out >= 0 && isfinite(*out));
}

/* As get(), for a member that files of earlier versions lack. */
static bool
get_if_there(const json_t *object, const char *key, double *out)
{
    *out = (double)NAN;
    return !json_object_get(object, key) || get(object, key, out);
}

static bool
read_rank(const json_t *object, struct rank_time *r)
{
    const char *host = json_string_value(json_object_get(object, "host"));
    const json_t *parts = json_object_get(object, "parts"), *cpu = json_object_get(object, "cpu_parts");
    bool good = host && get(object, "seconds", &r->seconds) && get(object, "work", &r->work) &&
                get(object, "busy", &r->busy) && get_if_there(object, "modelled", &r->modelled) &&
                get_if_there(object, "cpu", &r->cpu) && get_if_there(object, "useful", &r->useful) &&
                get_if_there(object, "threads", &r->threads) && isfinite(r->seconds) && isfinite(r->work);
    unsigned i;

    for (i = 0; good && i < PART_COUNT; i++)
        good = get(parts, step_part_name[i], &r->parts.seconds[i]) && isfinite(r->parts.seconds[i]) &&
               get_if_there(cpu, step_part_name[i], &r->parts.cpu[i]);
    if (good)
        memcpy(r->host, host, strnlen(host, sizeof(r->host) - 1));
    return good;
}

/* Read the names of the settings; runs of earlier versions have none, and an unknown name is one of a later version. */
static void
read_in_use(const json_t *names, bool in_use[SAVER_COUNT])
{
    const json_t *name;
    size_t at;
    unsigned i;

    json_array_foreach (names, at, name)
        for (i = 0; i < SAVER_COUNT; i++)
            if (json_is_string(name) && strcmp(json_string_value(name), saver_names[i]) == 0)
                in_use[i] = true;
}

enum chex_status
rank_times_json_read(const json_t *object, struct rank_times *out, struct chex_error *err)
{
    const json_t *ranks = json_object_get(object, "ranks"), *steps = json_object_get(object, "steps");
    size_t count = json_array_size(ranks), r;
    bool good = count > 0 && count <= RANK_TIMES_MAX && json_is_integer(steps) && json_integer_value(steps) >= 0;

    *out = (struct rank_times){.steps = (uint64_t)json_integer_value(steps)};
    read_in_use(json_object_get(object, "in_use"), out->in_use);
    good = good && get(object, "seconds", &out->seconds) && isfinite(out->seconds) &&
           get(object, "ideal_seconds", &out->ideal);
    if (good) {
        out->rank = calloc(count, sizeof(*out->rank));
        if (!out->rank)
            return error_memory(err);
        out->ranks = (unsigned)count;
    }
    for (r = 0; good && r < count; r++)
        good = read_rank(json_array_get(ranks, r), &out->rank[r]);
    return good ? CHEX_OK : error_set(err, CHEX_ERR_DAMAGED, "times of ranks that are none");
}
