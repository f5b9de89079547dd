/*
 * pickle.h - reads a Python pickle of tensors without running code
 *
 * A pickle is a program for a small stack machine.  Python's machine can call any function that is installed.  This one
 * knows plain values (numbers, texts, lists, dictionaries), and the few names that torch.save() writes for tensors:
 *     collections.OrderedDict                                  a dictionary
 *     torch._utils._rebuild_tensor_v2, _rebuild_tensor         (storage, offset, shape, strides, ...): a tensor
 *     torch._utils._rebuild_parameter                          (tensor, ...): that tensor
 *     torch.FloatStorage, torch.HalfStorage, ...               the type of a storage, also in torch.cuda
 * Every other name is refused, and the error says which.  It is not looked up and not called.
 *
 * Values are numbered in the order in which they were made; lists and dictionaries hold numbers of values.  A list may
 * contain itself, so do not follow values recursively.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PICKLE_H
#define CHEX_TRAIN_PICKLE_H

#include "checkpoint/safetensors.h"

#define PICKLE_SIZE     (16u << 20) /* bytes; DenseNet-121 has 60 kB */
#define PICKLE_VALUES   1000000u
#define PICKLE_ELEMENTS (4 * PICKLE_VALUES) /* of all lists and dictionaries; one value may be in many of them */

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_NUMBER, /* also True and False */
    PICKLE_REAL,
    PICKLE_TEXT, /* also bytes, and integers of more than 64 bits: their bytes */
    PICKLE_LIST, /* also a tuple */
    PICKLE_DICT,
    PICKLE_NAME, /* one of the names above */
    PICKLE_STORAGE,
    PICKLE_TENSOR,
    PICKLE_MARK /* only on the stack */
};

struct pickle_tensor {
    uint32_t storage; /* a value of PICKLE_STORAGE */
    uint64_t offset;  /* of the first value in the storage */
    unsigned rank;
    uint64_t shape[SAFETENSORS_RANK], stride[SAFETENSORS_RANK]; /* in values */
    uint64_t count;                                             /* product of the shape */
};

struct pickle_value {
    enum pickle_kind kind;
    union {
        int64_t number; /* PICKLE_NAME: the row of the table of names */
        struct {
            const char *data; /* terminated */
            size_t size;
        } text;
        struct {
            uint32_t *value; /* PICKLE_DICT: key, value, key, value, ... */
            size_t count, capacity;
        } items;
        struct {
            const char *key;
            uint64_t count; /* values */
            enum dtype type;
        } storage;
        struct pickle_tensor *tensor; /* inside of its storage */
    };
};

/* Zero it before use. */
struct pickle {
    struct pickle_value *value;
    size_t count, capacity;
    size_t elements; /* of all lists and dictionaries */
    struct arena strings;
};

/*
 * Run one pickle at the beginning of the data.  *top is the value that it leaves, *used the bytes of the program.  May
 * be called again for the next pickle of a file; the values stay.
 * CHEX_ERR_DAMAGED, CHEX_ERR_TRUNCATED
 * CHEX_ERR_UNSUPPORTED  a name or an operation that tensors do not need: the text names it
 * CHEX_ERR_LIMIT        more than PICKLE_VALUES values or PICKLE_ELEMENTS elements;  CHEX_ERR_MEMORY
 */
enum chex_status pickle_run(struct pickle *p, const uint8_t *data, size_t size, size_t *used, uint32_t *top,
                            struct chex_error *err);
void pickle_release(struct pickle *p);

/* Returns the value of this key of a dictionary, the last one if there are several; NULL if there is none. */
const struct pickle_value *pickle_find(const struct pickle *p, const struct pickle_value *dict, const char *key);

#endif
