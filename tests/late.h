/*
 * late.h - the parts of late_backend.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_LATE_H
#define CHEX_TESTS_LATE_H

#include "backend/backend.h"
#include "ranks/collective.h"

/* ---- late_memory.c: memory of the device ------------------------------------------------------------------------- */

/* The first bytes of a region, which a plan begins with. */
struct late_region {
    size_t used;
};

/* A region with an object of this size at its beginning; it is open. */
void *late_new_memory(size_t size);
void late_free_memory(struct plan *plan);
/* What malloc() and calloc() of this thread give lies in the region, from now on; NULL: in the heap. */
void late_allocate_from(struct late_region *region);
/* Between the two the host may touch it.  They return what they were given. */
struct plan *late_open_memory(struct plan *plan);
enum chex_status late_close_memory(struct plan *plan, enum chex_status status);

/* ---- late_store.c ------------------------------------------------------------------------------------------------ */

enum chex_status late_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
                                struct chex_error *err);
enum chex_status late_store_put(struct image_store *s, uint32_t image, const uint8_t *pixels, struct chex_error *err);
void late_store_free(struct image_store *s);
/* What the device sees: a micro-batch of n images; image: pixels of each.  free() */
uint8_t *late_gather_pixels(const struct batch *b, size_t n, size_t image);

/* ---- late_reduce.c ----------------------------------------------------------------------------------------------- */

enum chex_status late_reduce_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err);

#endif
