/*
 * other.c - detects the trainer's files by their first bytes; see inspect.h
 *
 * checkpoint.c and events.c describe these files.
 *
 *   checkpoint   safetensors: u64le size of a JSON object, the object, then the tensors that it places
 *                (https://github.com/huggingface/safetensors, "Format")
 *   events       TensorBoard: TFRecord framing; the first record is an Event whose file_version (field 3) begins with
 *                "brain.Event:" (tensorflow/core/util/event.proto)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect.h"

#include "dataset/tfrecord.h"

#include <string.h>

#define EVENT_HEAD 64
#define BRAIN      "brain.Event:"

/* ---- safetensors ------------------------------------------------------------------------------------------------- */

/* A size that fits the file, then '{'.  One TFRecord in 256 has '{' there too, but its checksum is valid. */
static bool
is_checkpoint(uint64_t size, const uint8_t head[TFRECORD_HEADER])
{
    uint64_t length = get_u64le(head), unused;

    return head[8] == '{' && length >= 2 && length <= size - 8 &&
           tfrecord_length(head, UINT64_MAX, &unused, NULL) == CHEX_ERR_CHECKSUM;
}

/* ---- event files ------------------------------------------------------------------------------------------------- */

/* Event: wall_time is a fixed64 (tag 0x09), step a varint (0x10), file_version a string (0x1a). */
static bool
is_events(const uint8_t *head, size_t got, uint64_t size)
{
    uint64_t length;
    size_t at = TFRECORD_HEADER;

    if (got < TFRECORD_HEADER + 11 || tfrecord_length(head, size, &length, NULL) != CHEX_OK || head[at] != 0x09)
        return false;
    for (at += 9; at + 1 < got && head[at] == 0x10; at++)
        for (at++; at < got && head[at] & 0x80;)
            at++;
    return at + 2 + strlen(BRAIN) <= got && head[at] == 0x1a && head[at + 1] >= strlen(BRAIN) &&
           memcmp(head + at + 2, BRAIN, strlen(BRAIN)) == 0;
}

bool
target_is_other(int fd, uint64_t size, struct target *out)
{
    uint8_t head[EVENT_HEAD] = {0};
    size_t got = 0;

    if (size < 9 || file_pread(fd, 0, head, size < EVENT_HEAD ? (size_t)size : EVENT_HEAD, &got, NULL) != CHEX_OK ||
        got < 9)
        return false;
    if (is_events(head, got, size))
        out->kind = TARGET_EVENTS;
    else if (is_checkpoint(size, head))
        out->kind = TARGET_CHECKPOINT;
    else
        return false;
    return true;
}
