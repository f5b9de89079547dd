/*
 * gunzip.c - see gunzip.h
 *
 * Unlike for PNG (doc/design/decoding.md), ISA-L's inflate is good enough here: it accepts incomplete Huffman
 * codes, but the checksum detects wrong data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/gunzip.h"

#include "base/cpu.h"
#include "io/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <isa-l/igzip_lib.h>

/* Largest sizes of the input and output pieces; a small file gets smaller ones. */
#define IN_SIZE  (1u << 20)
#define OUT_SIZE (256u << 10)
#define LEAST    (16u << 10)

/*
 * The fast loop of isal_inflate() counts a match before it checks the distance.  If the distance is invalid, up to this
 * number of bytes at the end of the output were never written.
 */
#define LONGEST_MATCH 258

struct gunzip {
    int fd;
    uint64_t at; /* offset in the file after the bytes in `in` */
    bool begun;  /* a member was begun */
    bool ended;
    const atomic_bool *stop;
    enum chex_status failed;
    struct chex_error error;
    struct inflate_state state;
    uint32_t in_size, out_size, in_used;
    uint8_t *in, *out; /* allocated after the struct */
};

bool
gunzip_magic(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0x1f && data[1] == 0x8b && data[2] == 8;
}

static uint32_t
piece_size(uint64_t wanted, uint32_t most)
{
    return wanted < LEAST ? LEAST : wanted < most ? (uint32_t)wanted : most;
}

struct gunzip *
gunzip_new(int fd, const atomic_bool *stop)
{
    struct stat st;
    uint64_t size = fstat(fd, &st) == 0 && st.st_size >= 0 ? (uint64_t)st.st_size : UINT64_MAX;
    uint32_t in_size = piece_size(size, IN_SIZE), out_size = piece_size(size < IN_SIZE ? size * 4 : size, OUT_SIZE);
    struct gunzip *g = malloc(sizeof(*g) + in_size + out_size);

    if (!g)
        return NULL;
    g->in_size = in_size;
    g->out_size = out_size;
    g->in_used = 0;
    g->in = (uint8_t *)(g + 1);
    g->out = g->in + in_size;
    g->fd = fd;
    g->at = 0;
    g->begun = g->ended = false;
    g->stop = stop;
    g->failed = CHEX_OK;
    isal_inflate_init(&g->state);
    g->state.crc_flag = ISAL_GZIP;
    g->state.avail_in = 0;
    g->state.next_in = g->in;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return g;
}

void
gunzip_free(struct gunzip *g)
{
    free(g);
}

uint64_t
gunzip_offset(const struct gunzip *g)
{
    return g->at - g->state.avail_in;
}

/* Have at least `want` bytes at the front of `in`, unless the file ends before. */
static enum chex_status
refill(struct gunzip *g, size_t want, struct chex_error *err)
{
    size_t left = g->state.avail_in, got, i;
    enum chex_status status;

    if (left >= want)
        return CHEX_OK;
    if (g->stop && atomic_load(g->stop))
        return error_stopped(err);
    for (i = 0; i < left; i++)
        g->in[i] = g->state.next_in[i];
    status = file_pread(g->fd, g->at, g->in + left, g->in_size - left, &got, err);
    if (status != CHEX_OK)
        return status;
    g->at += got;
    g->in_used = (uint32_t)(left + got);
    g->state.next_in = g->in;
    g->state.avail_in = g->in_used;
    return CHEX_OK;
}

/*
 * After a fault: returns the size of the output that is certainly valid.  isal_inflate()'s counts are wrong then,
 * because its fast loop reduces its limits by a margin and does not restore them.  Its pointers are right.
 */
static size_t
made_before_fault(struct gunzip *g, int code)
{
    size_t made = (size_t)(g->state.next_out - g->out);

    g->state.avail_in = (uint32_t)(g->in + g->in_used - g->state.next_in);
    if (code == ISAL_INCORRECT_CHECKSUM)
        return made;
    return made > LONGEST_MATCH ? made - LONGEST_MATCH : 0;
}

/* After the last member, allow only zeros or the end of the file. */
static enum chex_status
check_padding(struct gunzip *g, struct chex_error *err)
{
    struct inflate_state *s = &g->state;
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && s->avail_in > 0) {
        for (; s->avail_in > 0 && *s->next_in == 0; s->avail_in--)
            s->next_in++;
        if (s->avail_in > 0)
            return error_set(err, CHEX_ERR_DAMAGED, "what follows the gzip stream is neither gzip nor zeros");
        status = refill(g, 1, err);
    }
    return status;
}

/* Begin the next member, if there is one. */
static enum chex_status
next_member(struct gunzip *g, struct chex_error *err)
{
    enum chex_status status = refill(g, 3, err);

    if (status != CHEX_OK)
        return status;
    if (g->begun && !gunzip_magic(g->state.next_in, g->state.avail_in)) {
        g->ended = true;
        return check_padding(g, err);
    }
    if (g->begun)
        isal_inflate_reset(&g->state);
    g->begun = true;
    return CHEX_OK;
}

static enum chex_status
fail_of(int code, struct chex_error *err)
{
    switch (code) {
    case ISAL_INCORRECT_CHECKSUM:
        return error_set(err, CHEX_ERR_CHECKSUM, "checksum error in the gzip stream");
    case ISAL_INVALID_WRAPPER:
    case ISAL_UNSUPPORTED_METHOD:
        return error_set(err, CHEX_ERR_DAMAGED, "damaged gzip header");
    default:
        return error_set(err, CHEX_ERR_DAMAGED, "damaged gzip data");
    }
}

static enum chex_status
gunzip_piece(struct gunzip *g, size_t *size, struct chex_error *err)
{
    struct inflate_state *s = &g->state;
    enum chex_status status = CHEX_OK;

    *size = 0;
    while (*size == 0 && !g->ended) {
        uint32_t before;
        int code;

        if (!g->begun || s->block_state == ISAL_BLOCK_FINISH) {
            status = next_member(g, err);
            if (status != CHEX_OK || g->ended)
                break;
        }
        before = s->avail_in;
        s->next_out = g->out;
        s->avail_out = g->out_size;
        code = isal_inflate(s);
        cpu_vzeroupper();
        if (code < 0) {
            *size = made_before_fault(g, code);
            return fail_of(code, err);
        }
        *size = g->out_size - s->avail_out;
        if (*size == 0 && s->block_state != ISAL_BLOCK_FINISH && s->avail_in == 0) {
            status = refill(g, 1, err);
            if (status == CHEX_OK && s->avail_in == 0)
                status = error_set(err, CHEX_ERR_TRUNCATED, "the gzip stream ends early");
            if (status != CHEX_OK)
                break;
        } else if (*size == 0 && s->block_state != ISAL_BLOCK_FINISH && s->avail_in == before) {
            return error_set(err, CHEX_ERR_DAMAGED, "damaged gzip data");
        }
    }
    return status;
}

enum chex_status
gunzip_read(struct gunzip *g, const uint8_t **data, size_t *size, struct chex_error *err)
{
    *size = 0;
    *data = g->out;
    if (g->failed == CHEX_OK)
        g->failed = gunzip_piece(g, size, &g->error);
    /* Return the data before the fault; the next call fails. */
    if (g->failed == CHEX_OK || *size > 0)
        return CHEX_OK;
    if (err)
        *err = g->error;
    return g->failed;
}
