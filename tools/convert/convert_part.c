/*
 * convert_part.c - see convert_part.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_part.h"

#include "base/number_format.h"
#include "common/wrap.h"

const char *
name_rank(const struct collective *ranks, char out[RANK_NAME])
{
    out[0] = '\0';
    if (!is_rank_0(ranks))
        snprintf(out, RANK_NAME, "rank %d %s: ", collective_rank(ranks),
                 collective_host(ranks, collective_rank(ranks)));
    return out;
}

struct part
part_of(const struct convert *c)
{
    int rank = collective_rank(c->ranks), size = collective_size(c->ranks);

    return size > 1 ? (struct part){(unsigned)rank, (unsigned)size} : c->options->part;
}

static size_t
count_shards(const struct convert *c, struct part part, uint64_t *images)
{
    size_t shards = 0, i;

    *images = 0;
    for (i = 0; i < c->plan.shard_count; i++) {
        if (!part_has(part, i))
            continue;
        shards++;
        *images += c->plan.shard[i].images;
    }
    return shards;
}

void
report_parts(const struct convert *c, const struct cli_common *common)
{
    struct part part = c->options->part;
    int size = collective_size(c->ranks);
    char a[FORMAT_TEXT], b[FORMAT_THINGS], n[FORMAT_THINGS];
    uint64_t images;
    size_t shards;

    if (common->quiet)
        return;
    if (size > 1) {
        shards = c->plan.shard_count / (size_t)size;
        fprintf(stderr, "share    %s ranks, %s to %s shards each\n", COUNT_TEXT(size), format_count(shards, a),
                format_count(shards + (c->plan.shard_count % (size_t)size > 0), b));
    } else if (part.count > 0) {
        shards = count_shards(c, part, &images);
        fprintf(stderr, "share    part %s of %s: %s of %s, %s\n", COUNT_TEXT(part.index + 1), COUNT_TEXT(part.count),
                format_count(shards, a), format_things(c->plan.shard_count, "shard", b),
                format_things(images, "image", n));
    }
}

void
report_part_done(const struct convert *c, const struct cli_common *common)
{
    struct part part = c->options->part;
    char shards[FORMAT_THINGS], images[FORMAT_THINGS], bad[FORMAT_TEXT];
    uint64_t tenths = (uint64_t)(c->seconds * 10 + 0.5);

    if (common->quiet)
        return;
    fprintf(stderr, "done     part %s of %s: %s, %s, %s rejected, in %s.%llu s\n", COUNT_TEXT(part.index + 1),
            COUNT_TEXT(part.count), format_things(c->resumed.shards, "shard", shards),
            format_things(c->counts.converted, "image", images), format_count(c->counts.rejects, bad),
            COUNT_TEXT(tenths / 10), (unsigned long long)(tenths % 10));
    wrap_line(stderr, "next", "when all %s parts are done, the same command without --part publishes the data set",
              COUNT_TEXT(part.count));
}
