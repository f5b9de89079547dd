/*
 * patient_ids.h - patient ids, each with a number
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PATIENTS_H
#define CHEX_LIB_PATIENTS_H

#include "base/memory.h"

#define PATIENT_MAX 63 /* bytes of an id */

/*
 * The one form of an id: digits alone are filled with zeros to 8, so "1" and "00000001" are one patient.
 * Returns NULL, or what is wrong with it: empty, overlong, a control character.  out is terminated.
 */
const char *patient_fold(const char *id, size_t length, char out[PATIENT_MAX + 1]);

/* Zero-initialise; release with patients_release(). */
struct patients {
    const char **id; /* by number; the numbers are 0, 1, ... in order of first appearance */
    size_t count;
    size_t capacity;
    void *tree;    /* of <search.h>, by id */
    uint32_t last; /* the number that was asked for last */
};

/* The number of an id, which is added where it is new (its copy into strings). */
enum chex_status patients_add(struct patients *p, const char *id, struct arena *strings, uint32_t *number,
                              struct chex_error *err);
void patients_release(struct patients *p);

#endif
