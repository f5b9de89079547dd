/*
 * events_read.h - what an event file of TensorBoard holds: its tags, their steps and last values
 *
 * For any writer's file, read record by record: nothing is believed but what both checksums cover, memory is bounded by
 * EVENTS_RECORD_MAX and EVENTS_TAGS_MAX whatever the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_EVENTS_READ_H
#define CHEX_TRAIN_EVENTS_READ_H

#include "base/memory.h"

#define EVENTS_RECORD_MAX (4u << 20) /* bytes; a larger record is checked for its place only, and counted */
#define EVENTS_TAGS_MAX   1000       /* those behind the first thousand are counted */

struct event_tag {
    const char *tag;
    const char *kind; /* "scalar", "histogram", or the name of a plugin: "pr_curves"; "other" */
    uint64_t count;
    int64_t first, last; /* steps, in the order of the file */
    double value;        /* the last one of a scalar; NaN: none */
};

/* Zero-initialise. */
struct event_contents {
    char version[32]; /* "brain.Event:2", as it stands there, cut; "" where there is none */
    uint64_t records, values;
    uint64_t sessions; /* SessionLog START */
    uint64_t opaque;   /* records that are too large, or no Event */
    uint64_t hidden;   /* values of tags that were not kept */
    double first_time, last_time;
    int64_t first_step, last_step; /* of values: smallest, largest */
    struct event_tag *tag;         /* sorted by tag */
    size_t count, capacity;
    struct arena strings;
};

/*
 * Read a file of `size` bytes.  event_contents_release() frees *out, also after a failure: then it has what is before
 * the fault.
 * CHEX_ERR_CHECKSUM, CHEX_ERR_TRUNCATED "record 12: ...";  CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status events_read(int fd, uint64_t size, struct event_contents *out, struct chex_error *err);
void event_contents_release(struct event_contents *c);

#endif
