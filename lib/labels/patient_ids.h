/*
 * patient_ids.h - normalises patient ids and numbers them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PATIENTS_H
#define CHEX_LIB_PATIENTS_H

#include "base/memory.h"

#define PATIENT_MAX 63 /* bytes of an id */

/*
 * Normalise an id: pad digits with zeros to 8, so "1" and "00000001" are the same patient.  out is terminated.  Returns
 * NULL, or why the id is invalid: empty, overlong, a control character.
 */
const char *patient_fold(const char *id, size_t length, char out[PATIENT_MAX + 1]);

/* Zero it before use; free it with patients_release(). */
struct patients {
    const char **id; /* by number; ids are numbered 0, 1, ... in the order of first appearance */
    size_t count;
    size_t capacity;
    void *tree;    /* of <search.h>, ordered by id */
    uint32_t last; /* number of the last id passed to patients_add() */
};

/* Return the number of an id in *number.  A new id is added: its copy is in `strings`. */
enum chex_status patients_add(struct patients *p, const char *id, struct arena *strings, uint32_t *number,
                              struct chex_error *err);
void patients_release(struct patients *p);

#endif
