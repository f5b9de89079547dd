/*
 * patients.c - see patients.h
 *
 * A hash table with open addressing.  Only numbers come out of it, in the order of the calls, so nothing that is
 * written depends on the hash.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "patients.h"

#include "ascii.h"

#include <stdlib.h>
#include <string.h>

#define NIH_DIGITS  8
#define SLOTS_FIRST 1024

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
            return "the patient id holds a control character";
        digits += ascii_is_digit(id[i]);
    }
    if (digits == length && length < NIH_DIGITS)
        zeros = NIH_DIGITS - length;
    memset(out, '0', zeros);
    memcpy(out + zeros, id, length);
    out[zeros + length] = '\0';
    return NULL;
}

/* FNV-1a (Fowler, Noll, Vo), 64 bits. */
static uint64_t
hash(const char *id)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 0x100000001b3u;
    return h ^ h >> 32;
}

/* Where the id is, or the free slot where it belongs. */
static size_t
find_slot(const struct patients *p, const char *id)
{
    size_t i = (size_t)hash(id) & (p->slots - 1);

    while (p->slot[i] && strcmp(p->id[p->slot[i] - 1], id) != 0)
        i = (i + 1) & (p->slots - 1);
    return i;
}

static enum chex_status
grow(struct patients *p, struct chex_error *err)
{
    size_t slots = p->slots ? p->slots * 2 : SLOTS_FIRST;
    uint32_t *slot = calloc(slots, sizeof(*slot));

    if (!slot)
        return chex_fail_memory(err);
    free(p->slot);
    p->slot = slot;
    p->slots = slots;
    for (size_t i = 0; i < p->count; i++)
        p->slot[find_slot(p, p->id[i])] = (uint32_t)(i + 1);
    return CHEX_OK;
}

enum chex_status
patients_add(struct patients *p, const char *id, struct arena *strings, uint32_t *number, struct chex_error *err)
{
    enum chex_status status;
    const char **grown;
    const char *copy;
    size_t slot;

    if ((p->count + 1) * 2 > p->slots) {
        status = grow(p, err);
        if (status != CHEX_OK)
            return status;
    }
    slot = find_slot(p, id);
    if (!p->slot[slot]) {
        grown = array_grow(p->id, &p->capacity, p->count, sizeof(*p->id));
        if (!grown)
            return chex_fail_memory(err);
        p->id = grown;
        copy = arena_copy(strings, id, strlen(id));
        if (!copy)
            return chex_fail_memory(err);
        p->id[p->count++] = copy;
        p->slot[slot] = (uint32_t)p->count;
    }
    *number = p->slot[slot] - 1;
    return CHEX_OK;
}

void
patients_release(struct patients *p)
{
    free(p->id);
    free(p->slot);
    *p = (struct patients){0};
}
