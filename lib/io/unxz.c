/*
 * unxz.c - see unxz.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/unxz.h"

#include "io/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <lzma.h>

/* Sizes of the input and output pieces.  The stop flag is checked once per input piece. */
#define IN_SIZE  (256u << 10)
#define OUT_SIZE (256u << 10)

struct unxz {
    int fd;
    uint64_t at; /* offset in the file after the bytes in `in` */
    uint64_t max_memory;
    const atomic_bool *stop;
    bool file_ended, ended;
    enum chex_status failed;
    struct chex_error error;
    lzma_stream stream;
    uint8_t in[IN_SIZE], out[OUT_SIZE];
};

bool
unxz_magic(const uint8_t *data, size_t size)
{
    static const uint8_t magic[] = {0xfd, '7', 'z', 'X', 'Z', 0};

    return size >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
}

struct unxz *
unxz_new(int fd, uint64_t max_memory, const atomic_bool *stop)
{
    struct unxz *x = malloc(sizeof(*x));

    if (!x)
        return NULL;
    x->fd = fd;
    x->at = 0;
    x->max_memory = max_memory;
    x->stop = stop;
    x->file_ended = x->ended = false;
    x->failed = CHEX_OK;
    x->stream = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&x->stream, max_memory, LZMA_CONCATENATED) != LZMA_OK) {
        free(x);
        return NULL;
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return x;
}

void
unxz_free(struct unxz *x)
{
    if (x)
        lzma_end(&x->stream);
    free(x);
}

uint64_t
unxz_offset(const struct unxz *x)
{
    return x->at - x->stream.avail_in;
}

static enum chex_status
refill(struct unxz *x, struct chex_error *err)
{
    size_t got;
    enum chex_status status;

    if (x->stop && atomic_load(x->stop))
        return error_stopped(err);
    status = file_pread(x->fd, x->at, x->in, IN_SIZE, &got, err);
    if (status != CHEX_OK)
        return status;
    x->at += got;
    x->file_ended = got == 0;
    x->stream.next_in = x->in;
    x->stream.avail_in = got;
    return CHEX_OK;
}

static enum chex_status
fail_limit(struct unxz *x, struct chex_error *err)
{
    uint64_t mib = UINT64_C(1) << 20, needed = lzma_memusage(&x->stream);

    return error_set(err, CHEX_ERR_LIMIT, "to unpack it takes %llu MiB of memory, --max-memory allows %llu MiB",
                     (unsigned long long)((needed + mib - 1) / mib), (unsigned long long)(x->max_memory / mib));
}

static enum chex_status
fail_of(struct unxz *x, lzma_ret code, struct chex_error *err)
{
    switch (code) {
    case LZMA_MEM_ERROR:
        return error_memory(err);
    case LZMA_MEMLIMIT_ERROR:
        return fail_limit(x, err);
    case LZMA_OPTIONS_ERROR:
        return error_set(err, CHEX_ERR_UNSUPPORTED, "an xz stream of a kind that liblzma %s does not know",
                         lzma_version_string());
    case LZMA_FORMAT_ERROR:
        return error_set(err, CHEX_ERR_DAMAGED, "what follows the xz stream is neither xz nor zeros");
    case LZMA_BUF_ERROR:
        return error_set(err, CHEX_ERR_TRUNCATED, "the xz stream ends early");
    default:
        return error_set(err, CHEX_ERR_DAMAGED, "damaged xz data");
    }
}

/* Decode until there is output, or the end.  Output before a fault is returned first. */
static enum chex_status
decode_piece(struct unxz *x, size_t *size, struct chex_error *err)
{
    lzma_ret code = LZMA_OK;

    x->stream.next_out = x->out;
    x->stream.avail_out = OUT_SIZE;
    while (code == LZMA_OK && x->stream.avail_out == OUT_SIZE) {
        if (x->stream.avail_in == 0 && !x->file_ended) {
            enum chex_status status = refill(x, err);

            if (status != CHEX_OK)
                return status;
        }
        code = lzma_code(&x->stream, x->file_ended ? LZMA_FINISH : LZMA_RUN);
    }
    *size = OUT_SIZE - x->stream.avail_out;
    x->ended = code == LZMA_STREAM_END;
    return code == LZMA_OK || code == LZMA_STREAM_END ? CHEX_OK : fail_of(x, code, err);
}

enum chex_status
unxz_read(struct unxz *x, const uint8_t **data, size_t *size, struct chex_error *err)
{
    *size = 0;
    *data = x->out;
    if (x->failed == CHEX_OK && !x->ended)
        x->failed = decode_piece(x, size, &x->error);
    /* Return the data before the fault; the next call fails. */
    if (x->failed == CHEX_OK || *size > 0)
        return CHEX_OK;
    if (err)
        *err = x->error;
    return x->failed;
}

const char *
unxz_version(void)
{
    return lzma_version_string();
}
