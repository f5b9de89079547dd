/*
 * profile.h - CPU time of the stages of a conversion, for convert_profile()
 *
 * Each thread that decodes has a struct profile_thread, and adds it to the profile at its end.  If its profile is NULL,
 * nothing is measured and the functions do nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PROFILE_H
#define CHEX_LIB_PROFILE_H

#include "convert/convert.h"
#include "image/decode.h"

struct profile {
    struct convert_profile *out; /* protected by lock */
    size_t limit;                /* images */
    atomic_bool enough;          /* they are done, or the user wants to stop */
    pthread_mutex_t lock;
};

struct profile_thread {
    struct profile *profile;
    struct digest *digest;
    double stage[PROFILE_STAGES]; /* CPU seconds */
    double since;                 /* clock_thread() at the end of the last stage */
};

/* Begin to measure a thread.  Release *t with profile_thread_release(), also after a failure.  CHEX_ERR_MEMORY */
enum chex_status profile_thread_begin(struct profile_thread *t, struct profile *p, struct decoder *decoder,
                                      unsigned decoders, struct chex_error *err);
/* The time until now belongs to no stage: the thread waited for images. */
void profile_skip(struct profile_thread *t);
/* The time since the end of the last stage belongs to this one. */
void profile_end_stage(struct profile_thread *t, enum profile_stage stage);
/*
 * Count an image.  record: hash it as its shard would be, the end of PROFILE_RECORD; NULL: the image cannot be used.
 * Sets profile->enough after the last image.
 */
void profile_image(struct profile_thread *t, const uint8_t *record, size_t size, uint64_t bytes);
/* Add the stages to the profile. */
void profile_thread_end(struct profile_thread *t);
void profile_thread_release(struct profile_thread *t);

#endif
