/*
 * manifest.c - fuzz target: manifest.json
 *
 * A parsed manifest passes the writer's checks.  Written, parsed and written again, it has the same bytes.  The
 * properties that the rest of the library relies on hold: names without slashes, sums, ranges.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "dataset/manifest.h"
#include "dataset/manifest_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
is_file_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' &&
           name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

static void
require_sums(const struct manifest *m)
{
    uint64_t images[64] = {0};
    unsigned first = 0;

    FUZZ_REQUIRE(m->split_count > 0 && m->split_count <= 64 && m->shard_count > 0);
    for (unsigned i = 0; i < m->shard_count; i++) {
        const struct manifest_shard *s = &m->shard[i];

        FUZZ_REQUIRE(s->split < m->split_count && is_file_name(s->name));
        FUZZ_REQUIRE(s->number < s->of && s->records > 0 && s->records <= m->shard_size && s->images <= s->records);
        FUZZ_REQUIRE(s->size == (uint64_t)s->records * m->layout.stride);
        FUZZ_REQUIRE(strlen(s->sha256) == 64);
        images[s->split] += s->images;
    }
    for (unsigned i = 0; i < m->split_count; i++) {
        const struct manifest_split *s = &m->split[i];

        FUZZ_REQUIRE(is_file_name(s->name) && s->first_shard == first && s->shard_count > 0 &&
                     s->shard_count <= m->shard_count - first);
        FUZZ_REQUIRE(s->images == images[i] && s->patients <= s->images);
        for (unsigned k = 0; k < m->findings.count; k++)
            FUZZ_REQUIRE(s->positives[k] <= s->images);
        first += s->shard_count;
    }
    FUZZ_REQUIRE(first == m->shard_count);
    FUZZ_REQUIRE(m->layout.height >= 1 && m->layout.height <= RECORD_MAX_SIDE && m->layout.width >= 1 &&
                 m->layout.width <= RECORD_MAX_SIDE && m->layout.stride % m->layout.align == 0 &&
                 m->layout.pixel_offset + m->layout.pixel_size < m->layout.stride);
    FUZZ_REQUIRE(m->pixel_mean >= 0 && m->pixel_mean <= 255 && m->pixel_deviation >= 0 && m->pixel_deviation <= 128);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest m = {0}, again = {0};
    struct buffer text = {0}, second = {0};
    struct chex_error err = {0};
    enum chex_status status = manifest_parse(data, size, &m, &err);

    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        require_sums(&m);
        FUZZ_REQUIRE(manifest_format(&m, &text, &err) == CHEX_OK);
        FUZZ_REQUIRE(manifest_parse(text.data, text.size, &again, &err) == CHEX_OK);
        FUZZ_REQUIRE(manifest_format(&again, &second, &err) == CHEX_OK);
        FUZZ_REQUIRE(second.size == text.size && memcmp(second.data, text.data, text.size) == 0);
    }
    manifest_release(&m);
    manifest_release(&again);
    buffer_release(&text);
    buffer_release(&second);
    return 0;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/* Makes a data set of two splits: `shards` shards in the first one and one in the second, with three records each. */
static void
make(const char *name, unsigned shards, uint32_t side, const char *tail, const char *resize, bool texts,
     fuzz_seed_fn *give, void *context)
{
    static const size_t text_sizes[] = {60};
    struct manifest_split split[2] = {
        {.name = "train", .members_sha256 = hash, .shard_count = shards, .images = 3u * shards, .patients = shards},
        {.name = "val", .members_sha256 = hash, .first_shard = shards, .shard_count = 1, .images = 2, .patients = 1},
    };
    struct manifest_shard shard[9];
    char names[9][64];
    struct manifest m = {
        .dataset_id = "0123456789abcdef",
        .tool_version = "0.1.0",
        .findings = findings_nih14,
        .shard_size = 3,
        .tail = tail,
        .resize = resize,
        .split_rule = "patient:70,30,0:0",
        .max_pixels = 64000000,
        .min_side = 8,
        .labels_sha256 = hash,
        .view_size = texts ? 2 : 0,
        .patient_size = texts ? 8 : 0,
        .name_size = texts ? 16 : 0,
        .pixel_mean = 77.1,
        .pixel_deviation = 12.25,
        .rejects = 1,
        .split = split,
        .split_count = 2,
        .shard = shard,
        .shard_count = shards + 1,
    };
    struct buffer b = {0};
    struct chex_error err = {0};
    size_t sizes = texts ? record_text_size(2, 8, 16) : text_sizes[0];

    FUZZ_REQUIRE(record_choose(side, side, 64, (struct label_form){14, false}, &sizes, 1, &m.layout, NULL) == CHEX_OK);
    for (unsigned i = 0; i <= shards; i++) {
        bool second = i == shards;

        snprintf(names[i], sizeof(names[i]), "chestxray14-%s.tfrecord-%05u-of-%05u", second ? "val" : "train",
                 second ? 0 : i, second ? 1 : shards);
        shard[i] = (struct manifest_shard){.name = names[i],
                                           .sha256 = hash,
                                           .split = second,
                                           .number = second ? 0 : i,
                                           .of = second ? 1 : shards,
                                           .records = 3,
                                           .images = second ? 2 : 3,
                                           .size = 3 * (uint64_t)m.layout.stride};
    }
    split[0].positives[3] = 2;
    if (manifest_format(&m, &b, &err) != CHEX_OK)
        fuzz_fail(__FILE__, __LINE__, err.text);
    give(name, b.data, b.size, context);
    buffer_release(&b);
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const char deep[] = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";

    make("two-shards", 2, 8, "pad", "bilinear", true, give, context);
    make("one-shard", 1, 224, "short", "area", false, give, context);
    make("eight-shards", 8, 17, "drop", "lanczos", true, give, context);
    make("side-1", 1, 1, "pad", "none", true, give, context);
    give("empty-object", "{}", 2, context);
    give("deep", deep, sizeof(deep) - 1, context);
}
