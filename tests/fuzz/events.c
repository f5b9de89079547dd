/*
 * events.c - fuzz target: an event file of TensorBoard, anybody's
 *
 * Read to its end, or to the first record that is not whole.  What was counted fits together, a file that is cut there
 * reads the same without a fault, and the tags are sorted and come once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "dataset/tfrecord.h"
#include "log/events.h"
#include "log/events_read.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static enum chex_status
read_bytes(const uint8_t *data, size_t size, struct event_contents *out, struct chex_error *err)
{
    int fd = open(fuzz_file(0, data, size), O_RDONLY);
    enum chex_status status;

    FUZZ_REQUIRE(fd >= 0);
    status = events_read(fd, size, out, err);
    close(fd);
    return status;
}

static void
require_contents(const struct event_contents *c)
{
    uint64_t values = c->hidden;
    size_t i;

    for (i = 0; i < c->count; i++) {
        values += c->tag[i].count;
        FUZZ_REQUIRE(c->tag[i].count > 0 && c->tag[i].kind[0]);
        FUZZ_REQUIRE(i == 0 || strcmp(c->tag[i - 1].tag, c->tag[i].tag) < 0);
        FUZZ_REQUIRE(c->tag[i].last >= c->first_step && c->tag[i].last <= c->last_step);
    }
    FUZZ_REQUIRE(values == c->values && c->count <= EVENTS_TAGS_MAX && c->opaque <= c->records);
    FUZZ_REQUIRE(memchr(c->version, '\0', sizeof(c->version)));
}

/* Bytes of this many records, which are whole. */
static size_t
size_of(const uint8_t *data, uint64_t records)
{
    size_t at = 0;

    while (records-- > 0)
        at += (size_t)get_u64le(data + at) + TFRECORD_FRAME;
    return at;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_contents first, again;
    struct chex_error err = {0};
    enum chex_status status = read_bytes(data, size, &first, &err);

    fuzz_require_error(status, &err);
    FUZZ_REQUIRE(status == CHEX_OK || status == CHEX_ERR_CHECKSUM || status == CHEX_ERR_TRUNCATED);
    require_contents(&first);
    FUZZ_REQUIRE((status == CHEX_OK) == (size_of(data, first.records) == size));
    FUZZ_REQUIRE(read_bytes(data, size_of(data, first.records), &again, &err) == CHEX_OK);
    FUZZ_REQUIRE(again.records == first.records && again.values == first.values && again.count == first.count &&
                 again.sessions == first.sessions && strcmp(again.version, first.version) == 0);
    event_contents_release(&first);
    event_contents_release(&again);
    return 0;
}

/* Checksums are made good again, of the records whose lengths fit. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size_t at = 0;

    size = LLVMFuzzerMutate(data, size, max_size);
    while (seed % 16 != 0 && size - at >= TFRECORD_FRAME) {
        uint64_t length = get_u64le(data + at);

        /* The last one takes what is there. */
        if (length > size - at - TFRECORD_FRAME) {
            length = size - at - TFRECORD_FRAME;
            put_u64le(data + at, length);
        }
        tfrecord_frame(data + at, (size_t)length);
        at += (size_t)length + TFRECORD_FRAME;
    }
    return size;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

/* What our own writer makes. */
static void
give_written(fuzz_seed_fn *give, void *context)
{
    static const float score[4] = {0, 0.25f, 0.5f, 1};
    static const uint8_t label[4] = {0, 0, 1, 1};
    static const struct run_value value[] = {{"lr", RUN_NUMBER, NULL, 0.001, false}, {"x", RUN_TEXT, "y", 0, false}};
    const struct folder *folder = fuzz_folder();
    struct events *e;
    struct buffer b = {0};
    uint64_t step;

    FUZZ_REQUIRE(events_open(folder, 7, &e, NULL) == CHEX_OK);
    FUZZ_REQUIRE(events_hparams(e, value, 2, NULL) == CHEX_OK && events_text(e, "a", "b", NULL) == CHEX_OK);
    FUZZ_REQUIRE(events_write(e, 7, 1e9, NULL) == CHEX_OK);
    for (step = 8; step < 10; step++) {
        FUZZ_REQUIRE(events_scalar(e, "loss", 0.5, NULL) == CHEX_OK);
        FUZZ_REQUIRE(events_histogram(e, "h", score, 1, 4, NULL) == CHEX_OK);
        FUZZ_REQUIRE(events_write(e, step, 1e9, NULL) == CHEX_OK);
    }
    FUZZ_REQUIRE(events_flush(e, NULL) == CHEX_OK);
    FUZZ_REQUIRE(file_read(folder->fd, events_name(e), 1 << 20, &b, NULL) == CHEX_OK);
    give("written", b.data, b.size, context);
    give("cut", b.data, b.size - 5, context);
    FUZZ_REQUIRE(events_curve(e, "c", "title", score, label, 1, 4, NULL) == CHEX_OK);
    FUZZ_REQUIRE(events_write(e, 11, 1e9, NULL) == CHEX_OK && events_flush(e, NULL) == CHEX_OK);
    FUZZ_REQUIRE(file_read(folder->fd, events_name(e), 1 << 20, &b, NULL) == CHEX_OK);
    give("curve", b.data, b.size, context);
    FUZZ_REQUIRE(folder_remove(folder, events_name(e), NULL) == CHEX_OK);
    buffer_release(&b);
    events_free(e);
}

/* A record of these bytes. */
static void
give_record(const char *name, const void *data, size_t size, fuzz_seed_fn *give, void *context)
{
    uint8_t record[256];

    memcpy(record + TFRECORD_HEADER, data, size);
    tfrecord_frame(record, size);
    give(name, record, size + TFRECORD_FRAME, context);
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const char scalar_tensor[] = "\x10\x05\x2a\x19\x0a\x17\x0a\x01x\x4a\x0b\x0a\x09\x0a\x07scalars"
                                        "\x42\x05\x08\x01\x2a\x01\x00";
    static const char negative_step[] =
        "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x2a\x0a\x0a\x08\x0a\x01x\x15\0\0\x80\x3f";

    give("nothing", "", 0, context);
    give_written(give, context);
    give_record("empty-event", "", 0, give, context);
    give_record("no-event", "\xff\xff\xff", 3, give, context);
    give_record("summary-of-nothing", "\x2a\0", 2, give, context);
    give_record("values-of-nothing", "\x2a\x04\x0a\0\x0a\0", 6, give, context);
    give_record("version",
                "\x1a\x0d"
                "brain.Event:2",
                15, give, context);
    give_record("scalar-tensor", scalar_tensor, sizeof(scalar_tensor) - 1, give, context);
    give_record("negative-step", negative_step, sizeof(negative_step) - 1, give, context);
}
