/*
 * patient_ids.c - see patient_ids.h
 *
 * The ids are in a balanced tree, because a hostile file could contain ids that all collide in a hash table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/patient_ids.h"

#include "base/ascii.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define NIH_DIGITS 8

const char *
patient_fold(const char *id, size_t length, char out[PATIENT_MAX + 1])
{
    size_t digits = 0, zeros = 0;

    out[0] = '\0';
    if (length == 0)
        return "the patient id is empty";
    if (length > PATIENT_MAX)
        return "the patient id is longer than 63 bytes";
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)id[i] < 0x20 || id[i] == 0x7f)
            return "the patient id contains a control character";
        digits += ascii_is_digit(id[i]);
    }
    if (digits == length && length < NIH_DIGITS)
        zeros = NIH_DIGITS - length;
    memset(out, '0', zeros);
    memcpy(out + zeros, id, length);
    out[zeros + length] = '\0';
    return NULL;
}

/* A node's content.  A search uses one on the stack. */
struct patient {
    const char *id;
    uint32_t number;
};

static int
compare(const void *a, const void *b)
{
    return strcmp(((const struct patient *)a)->id, ((const struct patient *)b)->id);
}

static enum chex_status
add(struct patients *p, const char *id, struct arena *strings, struct chex_error *err)
{
    const char **grown = array_grow(p->id, &p->capacity, p->count, sizeof(*p->id));
    const char *copy = arena_copy(strings, id, strlen(id));
    struct patient *patient = malloc(sizeof(*patient));

    if (grown)
        p->id = grown;
    if (patient)
        *patient = (struct patient){copy, (uint32_t)p->count};
    if (!grown || !copy || !patient || !tsearch(patient, &p->tree, compare)) {
        free(patient);
        return error_memory(err);
    }
    p->id[p->count++] = copy;
    return CHEX_OK;
}

enum chex_status
patients_add(struct patients *p, const char *id, struct arena *strings, uint32_t *number, struct chex_error *err)
{
    const struct patient wanted = {.id = id};
    enum chex_status status;
    void *node;

    /* Rows of the same patient are usually adjacent. */
    if (p->count > 0 && strcmp(p->id[p->last], id) == 0) {
        *number = p->last;
        return CHEX_OK;
    }
    node = tfind(&wanted, &p->tree, compare);
    if (node) {
        p->last = (*(struct patient *const *)node)->number;
    } else {
        status = add(p, id, strings, err);
        if (status != CHEX_OK)
            return status;
        p->last = (uint32_t)p->count - 1;
    }
    *number = p->last;
    return CHEX_OK;
}

void
patients_release(struct patients *p)
{
    free(p->id);
    tdestroy(p->tree, free);
    *p = (struct patients){0};
}
