/*
 * store_shard.c - a single shard: opens its partial file, scans its records, decides whether it is rewritten
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void
store_partial_name(const struct store *store, size_t shard, char out[STORE_PARTIAL_NAME])
{
    snprintf(out, STORE_PARTIAL_NAME, ".%s.part", store->plan->shard[shard].name);
}

enum chex_status
store_open_partial(struct store *store, size_t shard, struct chex_error *err)
{
    const struct plan_shard *plan = &store->plan->shard[shard];
    struct store_shard *s = &store->shard[shard];
    uint64_t size = (uint64_t)plan->records * store->plan->layout.stride;
    bool likely = !store->options.uncertain || plan->images - s->left >= plan->images / 4;
    enum chex_status status = CHEX_OK;

    if (!s->partial) {
        status = safe_file_create(store->folder, plan->name, SAFE_FILE_PARTIAL, likely ? size : 0, &s->partial, err);
        if (status != CHEX_OK)
            return status;
        atomic_fetch_add(&store->open_partials, 1);
    } else if (likely && !s->reserved) {
        status = safe_file_reserve(s->partial, size, err);
    }
    s->reserved |= likely;
    return status;
}

enum chex_status
store_close_partial(struct store *store, size_t shard, struct chex_error *err)
{
    struct safe_file *partial = store->shard[shard].partial;

    if (!partial)
        return CHEX_OK;
    atomic_fetch_sub(&store->open_partials, 1);
    store->shard[shard].partial = NULL;
    return safe_file_close_partial(partial, err);
}

struct shard_identity
store_shard_identity(const struct store *store, size_t shard)
{
    return (struct shard_identity){&store->plan->layout, store->plan->dataset_id, (uint32_t)shard};
}

/* Pixels that are summed in 32 bits; these sums cannot overflow (4096 * 255 * 255 < 2^32). */
#define PIECE 4096

/* Sum pixels and squares.  The number of pixels is a constant: only then do compilers vectorise this loop at -O2. */
static void
add_piece(const uint8_t *pixel, struct shard_result *r)
{
    uint32_t sum = 0, squares = 0;

    for (int i = 0; i < PIECE; i++) {
        uint32_t v = pixel[i];

        sum += v;
        squares += v * v;
    }
    r->sum += sum;
    r->squares += squares;
}

void
store_add_pixels(const uint8_t *pixel, size_t count, struct shard_result *r)
{
    size_t i;

    for (; count >= PIECE; pixel += PIECE, count -= PIECE)
        add_piece(pixel, r);
    for (i = 0; i < count; i++) {
        r->sum += pixel[i];
        r->squares += (uint32_t)pixel[i] * pixel[i];
    }
}

struct visit {
    const struct record_layout *layout;
    uint32_t images; /* number of planned images */
    struct store_found *found;
};

static enum chex_status
visit_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    const struct visit *visit = context;
    struct store_found *found = visit->found;

    if (record->fault != RECORD_GOOD)
        return found->strict ? record_fail(record, err) : CHEX_OK;
    found->good++;
    found->padding += record->index < visit->images && record->values.weight == 0;
    if (record->index < visit->images && record->values.weight == 1) {
        found->result.images++;
        store_add_pixels(record->bytes + visit->layout->pixel_offset, visit->layout->pixel_size, &found->result);
        if (found->slot)
            found->slot[record->index] = SLOT_FULL;
    }
    return CHEX_OK;
}

enum chex_status
store_scan(const struct store *store, size_t shard, int fd, struct safe_file *partial, struct store_found *out,
           struct chex_error *err)
{
    const struct plan_shard *s = &store->plan->shard[shard];
    struct visit visit = {&store->plan->layout, s->images, out};
    struct shard_scan scan = {.shard = store_shard_identity(store, shard),
                              .fd = fd,
                              .partial = partial,
                              .records = s->records,
                              .sha256 = out->sha256,
                              .visit = visit_record,
                              .context = &visit};
    enum chex_status status = shard_scan(&scan, err);

    out->next = scan.next;
    crc_hex(scan.crc32c, out->result.crc32c);
    memcpy(out->result.sha256, scan.sha256_hex, sizeof(out->result.sha256));
    return status;
}

enum chex_status
store_take_failure(struct store_shard *s, enum chex_status status, const struct chex_error *why)
{
    /* Retrying at once does not help against other failures: a full disk stays full. */
    if ((status != CHEX_ERR_WRITE && status != CHEX_ERR_READ) || why->cause != EIO || s->rewritten)
        return status;
    s->rewrite = true;
    return CHEX_OK;
}
