/*
 * store_shard.c - one shard in the making: its partial file, what a record must be, may it be rewritten?
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include "dataset/tfrecord.h"

#include <errno.h>
#include <string.h>

enum chex_status
store_open_part(struct store *store, size_t shard, struct chex_error *err)
{
    const struct plan_shard *plan = &store->plan->shard[shard];
    struct store_shard *s = &store->shard[shard];
    uint64_t size = (uint64_t)plan->records * store->plan->layout.stride;
    bool likely = !store->options.uncertain || plan->images - s->left >= plan->images / 4;
    enum chex_status status = CHEX_OK;

    if (!s->part) {
        status = safe_file_create(store->folder, plan->name, SAFE_FILE_PART, likely ? size : 0, &s->part, err);
        if (status != CHEX_OK)
            return status;
        atomic_fetch_add(&store->open_parts, 1);
    } else if (likely && !s->reserved) {
        status = safe_file_reserve(s->part, size, err);
    }
    s->reserved |= likely;
    return status;
}

enum chex_status
store_close_part(struct store *store, size_t shard, struct chex_error *err)
{
    struct safe_file *part = store->shard[shard].part;

    if (!part)
        return CHEX_OK;
    atomic_fetch_sub(&store->open_parts, 1);
    store->shard[shard].part = NULL;
    return safe_file_leave(part, err);
}

enum chex_status
store_check_record(const struct store *store, size_t shard, uint32_t index, const uint8_t *record,
                   struct record_values *values, struct chex_error *err)
{
    const struct layout *layout = &store->plan->layout;
    uint64_t data_size;
    enum chex_status status = tfrecord_length(record, layout->stride, &data_size, err);

    if (status == CHEX_OK)
        status = layout_decode(layout, record, values, err);
    if (status == CHEX_OK)
        status = tfrecord_check_data(record, layout->stride - TFRECORD_FRAME, err);
    if (status != CHEX_OK)
        return status;
    if (strcmp(values->dataset_id, store->plan->dataset_id) != 0 || values->shard != shard || values->index != index)
        return chex_fail(err, CHEX_ERR_INCOMPATIBLE, "the record belongs to another slot");
    return CHEX_OK;
}

/* Sums in 32 bits, for pieces that cannot overflow (4096 * 255 * 255 < 2^32), so that the loop is vectorised. */
void
store_add_pixels(const uint8_t *pixel, size_t count, struct shard_result *r)
{
    while (count > 0) {
        size_t piece = count < 4096 ? count : 4096, i;
        uint32_t sum = 0, squares = 0;

        for (i = 0; i < piece; i++) {
            uint32_t v = pixel[i];

            sum += v;
            squares += v * v;
        }
        r->sum += sum;
        r->squares += squares;
        pixel += piece;
        count -= piece;
    }
}

enum chex_status
store_take_failure(struct store_shard *s, enum chex_status status, const struct chex_error *why)
{
    /* No other failure is over when one tries again at once: a full disk stays full. */
    if ((status != CHEX_ERR_WRITE && status != CHEX_ERR_READ) || why->cause != EIO || s->rewritten)
        return status;
    s->rewrite = true;
    return CHEX_OK;
}
