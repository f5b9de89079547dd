/*
 * inspect_other.c - files of the trainer, told by content and described in a line; see inspect.h
 *
 *   checkpoint   safetensors: u64le size of a JSON object, the object, then the tensors that it places
 *                (https://github.com/huggingface/safetensors, "Format")
 *   events       TensorBoard: TFRecord framing; the first record is an Event whose file_version (field 3) begins with
 *                "brain.Event:" (tensorflow/core/util/event.proto)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect.h"

#include "ascii.h"
#include "progress.h"
#include "tfrecord.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_MAX (16u << 20) /* of safetensors; that of a network with a thousand tensors has 100 kB */
#define EVENT_HEAD 64
#define BRAIN      "brain.Event:"

/* ---- safetensors ----------------------------------------------------------------------------------------------- */

static uint64_t
little_endian(const uint8_t *p)
{
    uint64_t value = 0;
    int i;

    for (i = 7; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

/* The product of the shape, and where the tensor ends; false where its entry is not of the form. */
static bool
read_tensor(const json_t *tensor, uint64_t *elements, uint64_t *end)
{
    const json_t *shape = json_object_get(tensor, "shape"), *offsets = json_object_get(tensor, "data_offsets");
    size_t i;

    *elements = 1;
    if (!json_is_array(shape) || !json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !json_is_string(json_object_get(tensor, "dtype")))
        return false;
    for (i = 0; i < json_array_size(shape); i++) {
        json_int_t side = json_integer_value(json_array_get(shape, i));

        if (side < 0 || __builtin_mul_overflow(*elements, (uint64_t)side, elements))
            return false;
    }
    if (json_integer_value(json_array_get(offsets, 1)) < 0)
        return false;
    *end = (uint64_t)json_integer_value(json_array_get(offsets, 1));
    return true;
}

static void
describe_tensors(struct target *t, const json_t *header, uint64_t room)
{
    uint64_t tensors = 0, parameters = 0, end = 0, elements, its_end;
    char a[INSPECT_COUNT], b[INSPECT_COUNT], c[PROGRESS_TEXT];
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)header, key, value) {
        if (strcmp(key, "__metadata__") == 0)
            continue;
        if (!read_tensor(value, &elements, &its_end) || __builtin_add_overflow(parameters, elements, &parameters)) {
            snprintf(t->other, sizeof(t->other), "a checkpoint (safetensors) with a damaged header");
            t->other_bad = true;
            return;
        }
        tensors++;
        end = its_end > end ? its_end : end;
    }
    t->other_bad = end != room;
    snprintf(t->other, sizeof(t->other), "a checkpoint (safetensors): %s, %s, %s%s",
             inspect_count(tensors, "tensor", a), inspect_count(parameters, "number", b), format_bytes(room, c),
             end > room   ? "; it ends too early"
             : end < room ? "; longer than its header says"
                          : "");
}

static bool
is_checkpoint(int fd, uint64_t size, const uint8_t head[9], struct target *t)
{
    uint64_t length = little_endian(head);
    struct buffer b = {0};
    json_t *header = NULL;
    size_t got = 0;

    if (head[8] != '{' || length < 2 || length > size - 8)
        return false;
    t->kind = TARGET_CHECKPOINT;
    t->other_bad = true;
    snprintf(t->other, sizeof(t->other), "a checkpoint (safetensors) with a damaged header");
    if (length <= HEADER_MAX && buffer_reserve(&b, (size_t)length, NULL) == CHEX_OK &&
        file_pread(fd, 8, b.data, (size_t)length, &got, NULL) == CHEX_OK && got == length)
        header = json_loadb((const char *)b.data, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(header))
        describe_tensors(t, header, size - 8 - length);
    json_decref(header);
    buffer_release(&b);
    return true;
}

/* ---- event files ----------------------------------------------------------------------------------------------- */

/* Event: wall_time is a fixed64 (tag 0x09), step a varint (0x10), file_version a string (0x1a). */
static bool
is_events(const uint8_t *head, size_t got, uint64_t size, struct target *t)
{
    char version[32], bytes[PROGRESS_TEXT];
    uint64_t length;
    size_t at = TFRECORD_HEADER;

    if (got < TFRECORD_HEADER + 11 || tfrecord_length(head, size, &length, NULL) != CHEX_OK || head[at] != 0x09)
        return false;
    for (at += 9; at + 1 < got && head[at] == 0x10; at++)
        for (at++; at < got && head[at] & 0x80;)
            at++;
    if (at + 2 + strlen(BRAIN) > got || head[at] != 0x1a || head[at + 1] >= 24 || at + 2 + head[at + 1] > got ||
        memcmp(head + at + 2, BRAIN, strlen(BRAIN)) != 0)
        return false;
    t->kind = TARGET_EVENTS;
    ascii_escape((const char *)head + at + 2, head[at + 1], version, sizeof(version));
    snprintf(t->other, sizeof(t->other), "an event file of TensorBoard (%s), %s", version, format_bytes(size, bytes));
    return true;
}

bool
target_is_other(int fd, uint64_t size, struct target *out)
{
    uint8_t head[EVENT_HEAD] = {0};
    size_t got = 0;

    if (size < 9 || file_pread(fd, 0, head, size < EVENT_HEAD ? (size_t)size : EVENT_HEAD, &got, NULL) != CHEX_OK ||
        got < 9)
        return false;
    return is_events(head, got, size, out) || is_checkpoint(fd, size, head, out);
}
