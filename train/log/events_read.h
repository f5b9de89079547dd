/*
 * events_read.h - reads the content of an event file of TensorBoard: its tags, their steps and last values
 *
 * It reads files of any writer, record by record.  It trusts only bytes that both checksums cover.  EVENTS_RECORD_MAX
 * and EVENTS_TAGS_MAX limit its memory for any file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_EVENTS_READ_H
#define CHEX_TRAIN_EVENTS_READ_H

#include "base/memory.h"

#define EVENTS_RECORD_MAX (4u << 20) /* bytes; a larger record is only skipped and counted */
#define EVENTS_TAGS_MAX   1000       /* further tags are only counted */

struct event_tag {
    const char *tag;
    const char *kind; /* "scalar", "histogram", or the name of a plugin: "pr_curves"; "other" */
    uint64_t count;
    int64_t first, last; /* steps, in the order of the file */
    double value;        /* last value of a scalar, otherwise NaN */
};

/* Zero-initialise. */
struct event_contents {
    char version[32]; /* "brain.Event:2", as in the file, truncated; "" if missing */
    uint64_t records, values;
    uint64_t sessions; /* SessionLog START */
    uint64_t opaque;   /* records that are too large or not an Event */
    uint64_t hidden;   /* values of tags beyond the limit */
    double first_time, last_time;
    int64_t first_step, last_step; /* smallest and largest step of a value */
    struct event_tag *tag;         /* sorted by tag */
    size_t count, capacity;
    struct arena strings;
};

/*
 * Read a file of `size` bytes.  Release *out with event_contents_release(), also after a failure: then it has the
 * content before the fault.  CHEX_ERR_CHECKSUM, CHEX_ERR_TRUNCATED "record 12: ..."; CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status events_read(int fd, uint64_t size, struct event_contents *out, struct chex_error *err);
void event_contents_release(struct event_contents *c);

#endif
