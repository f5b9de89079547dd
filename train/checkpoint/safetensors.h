/*
 * safetensors.h - the file format of weights: huggingface/safetensors, version 0.x of its specification
 *
 * A file is a little-endian 64-bit length, a JSON object of that length that describes the tensors (dtype, shape, first
 * and last byte), and their values in sequence, row-major, little-endian.  Reading it runs no code, and all common
 * tools can read it.
 *
 * The reader accepts only files that follow the specification.  It limits the header and checks, before it reads any
 * value, that the tensors are inside the file, do not overlap, leave no gaps, have the size of their shape, and have
 * unique names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SAFETENSORS_H
#define CHEX_TRAIN_SAFETENSORS_H

#include "io/file.h"

#define SAFETENSORS_HEADER_MAX (16u << 20) /* bytes; DenseNet-121 has 70 kB */
#define SAFETENSORS_RANK       8

enum dtype {
    DTYPE_F64,
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_I64,
    DTYPE_I32,
    DTYPE_I16,
    DTYPE_I8,
    DTYPE_U8,
    DTYPE_BOOL
};

/* Returns the bytes per value. */
size_t dtype_size(enum dtype type);
const char *dtype_name(enum dtype type); /* "F32" */
/* Returns the value at p, which may be unaligned; exact except for I64 values with more than 53 bits. */
double dtype_value(enum dtype type, const uint8_t *p);

struct tensor_entry {
    const char *name;
    enum dtype type;
    unsigned rank;
    uint64_t shape[SAFETENSORS_RANK];
    uint64_t count;  /* values */
    uint64_t offset; /* bytes from the start of the file */
    bool strided;    /* only in a file of torch.save(): the values are `stride` apart along each axis */
    uint64_t stride[SAFETENSORS_RANK];
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct safetensors {
    struct tensor_entry *entry; /* sorted by name */
    size_t count;
    struct metadata {
        const char *key, *value;
    } * metadata; /* strings of "__metadata__", sorted by key */
    size_t metadata_count;
    uint64_t size; /* of the file */
    int fd;
    struct arena strings;
};

/*
 * Open a file and check its header.  Close and release *out with safetensors_close(), also after a failure.
 * CHEX_ERR_MISSING    also if it is not a regular file;  CHEX_ERR_READ
 * CHEX_ERR_NOT_IMAGE not a safetensors file ("looks like a PyTorch pickle") CHEX_ERR_TRUNCATED shorter than its header
 * requires; CHEX_ERR_DAMAGED, CHEX_ERR_LIMIT; CHEX_ERR_UNSUPPORTED a dtype
 */
enum chex_status safetensors_open(int folder_fd, const char *path, struct safetensors *out, struct chex_error *err);
void safetensors_close(struct safetensors *s);

/*
 * For torch_file.h, which fills the entries from another format: sort them by name.
 * CHEX_ERR_DAMAGED  two tensors with one name
 */
enum chex_status safetensors_index(struct safetensors *s, struct chex_error *err);

/* Return the tensor with this name, or the value of this key; NULL if there is none. */
const struct tensor_entry *safetensors_find(const struct safetensors *s, const char *name);
const char *safetensors_metadata(const struct safetensors *s, const char *key);

/*
 * The values of a tensor as float32, row by row: out[entry->count].  F64, F16 and BF16 are converted (F64 rounded to
 * nearest).
 * CHEX_ERR_UNSUPPORTED an integer type;  CHEX_ERR_READ, CHEX_ERR_TRUNCATED, CHEX_ERR_MEMORY
 */
enum chex_status safetensors_read_floats(const struct safetensors *s, const struct tensor_entry *entry, float *out,
                                         struct chex_error *err);
/* The bytes as they are in the file: entry->count * dtype_size(entry->type).  Not of a strided tensor. */
enum chex_status safetensors_read_raw(const struct safetensors *s, const struct tensor_entry *entry, void *out,
                                      struct chex_error *err);

/* `count` of its values from `first` on, unconverted: to read a tensor piece by piece. */
enum chex_status safetensors_read_part(const struct safetensors *s, const struct tensor_entry *entry, uint64_t first,
                                       size_t count, void *out, struct chex_error *err);

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* A tensor to be written; the offset is not used. */
struct tensor_source {
    struct tensor_entry entry;
    const void *data;
};

/*
 * Write a file by the safe-file helper, and its SHA-256 to hex (may be NULL).  The values begin at a multiple of 64
 * bytes of the file; the bytes depend on nothing but the arguments.  Tensors are written in the order given.
 * CHEX_ERR_WRITE: hex is that of the file that could not be written; CHEX_ERR_MEMORY
 */
enum chex_status safetensors_write(const struct folder *folder, const char *name, const struct tensor_source *tensor,
                                   size_t count, const struct metadata *metadata, size_t metadata_count, char *hex,
                                   struct chex_error *err);

#endif
