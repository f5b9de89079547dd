/*
 * late.h - declarations shared by the files of late_backend.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_LATE_H
#define CHEX_TESTS_LATE_H

#include "backend/backend.h"
#include "ranks/collective.h"

/* ---- late_memory.c: memory of the device ------------------------------------------------------------------------- */

/* The first bytes of a region; a plan starts with it. */
struct late_region {
    size_t used;
};

/* Returns a region that is open and starts with an object of this size. */
void *late_new_memory(size_t size);
void late_free_memory(struct plan *plan);
/* From now on malloc() and calloc() of this thread allocate in the region; NULL: on the heap. */
void late_allocate_from(struct late_region *region);
/* The host may access the region between these calls.  They return their argument. */
struct plan *late_open_memory(struct plan *plan);
enum chex_status late_close_memory(struct plan *plan, enum chex_status status);

/* ---- late_store.c ------------------------------------------------------------------------------------------------ */

enum chex_status late_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
                                struct chex_error *err);
enum chex_status late_store_put(struct image_store *s, uint32_t image, const uint8_t *pixels, struct chex_error *err);
void late_store_free(struct image_store *s);
/* Returns the pixels of n images as the device sees them; image: pixels of each.  free() */
uint8_t *late_gather_pixels(const struct batch *b, size_t n, size_t image);

/* ---- late_reduce.c ----------------------------------------------------------------------------------------------- */

enum chex_status late_reduce_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err);

#endif
