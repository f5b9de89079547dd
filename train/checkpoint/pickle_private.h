/*
 * pickle_private.h - the stack machine; declarations shared by pickle*.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PICKLE_PRIVATE_H
#define CHEX_TRAIN_PICKLE_PRIVATE_H

#include "checkpoint/pickle.h"

struct pickle_machine {
    struct pickle *p;
    const uint8_t *data;
    size_t size, at; /* at: the next byte of the program */
    uint32_t *stack; /* values */
    size_t depth, stack_capacity;
    uint32_t *memo; /* UINT32_MAX: unused */
    size_t memo_count, memo_capacity;
    struct chex_error *err;
};

/* Make a value and put it on the stack. */
enum chex_status pickle_push(struct pickle_machine *m, struct pickle_value value);

/* Count elements before a list or a dictionary gets them.  CHEX_ERR_LIMIT  together more than PICKLE_ELEMENTS */
static inline enum chex_status
pickle_count_elements(struct pickle *p, size_t count, struct chex_error *err)
{
    if (count > PICKLE_ELEMENTS - p->elements)
        return error_set(err, CHEX_ERR_LIMIT, "the lists and dictionaries of the pickle have more than %u elements",
                         PICKLE_ELEMENTS);
    p->elements += count;
    return CHEX_OK;
}

/* ---- pickle_tensor.c --------------------------------------------------------------------------------------------- */

/* Set *value to the name, or refuse it. */
enum chex_status pickle_name(const char *module, const char *name, struct pickle_value *value, struct chex_error *err);

/* Call a name with a tuple of arguments; *result is a value of the pickle, or a new one in *made (then UINT32_MAX). */
enum chex_status pickle_call(struct pickle *p, const struct pickle_value *name, const struct pickle_value *arguments,
                             uint32_t *result, struct pickle_value *made, struct chex_error *err);

/* Make a storage of the tuple ("storage", type, key, location, count), the persistent id of torch.save(). */
enum chex_status pickle_storage(const struct pickle *p, const struct pickle_value *id, struct pickle_value *made,
                                struct chex_error *err);

#endif
