/*
 * verify_report.c - see verify_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify/verify_private.h"

#include "base/number_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
report_fault(struct report *r, enum chex_status status, int64_t record, uint64_t offset, const struct chex_bytes *image,
             const char *format, ...)
{
    struct kept_fault *kept;
    va_list args;

    r->faults++;
    r->read_failed |= status == CHEX_ERR_READ;
    if (!r->kept)
        r->kept = calloc(REPORT_SHOWN, sizeof(*r->kept));
    r->out_of_memory |= !r->kept;
    if (!r->kept || r->kept_count == REPORT_SHOWN)
        return;
    kept = &r->kept[r->kept_count++];
    *kept = (struct kept_fault){.status = status, .record = record, .offset = offset};
    va_start(args, format);
    vsnprintf(kept->text, sizeof(kept->text), format, args);
    va_end(args);
    if (image && image->data)
        snprintf(kept->image, sizeof(kept->image), "%.*s", (int)image->size, image->data);
}

static void
pass_on(struct verify *v, const char *file, const struct kept_fault *kept)
{
    const struct verify_fault fault = {
        .status = kept->status,
        .file = file,
        .record = kept->record,
        .offset = kept->offset,
        .text = kept->text,
        .image = kept->image[0] ? kept->image : NULL,
    };

    if (v->fault)
        v->fault(v->context, &fault);
}

void
report_pass_on(const struct report *r, struct verify *v, const char *file)
{
    unsigned i;

    for (i = 0; i < r->kept_count; i++)
        pass_on(v, file, &r->kept[i]);
    if (r->faults > r->kept_count) {
        struct kept_fault more = {.status = CHEX_ERR_DAMAGED, .record = -1};

        snprintf(more.text, sizeof(more.text), "and %s more", COUNT_TEXT(r->faults - r->kept_count));
        pass_on(v, file, &more);
    }
    v->faults += r->faults;
    v->records_read += r->records;
    v->bytes_read += r->bytes;
    v->notes += r->notes;
}

void
report_release(struct report *r)
{
    free(r->kept);
    buffer_release(&r->patients);
    *r = (struct report){0};
}

bool
verify_is_constant(const uint8_t *pixels, size_t size)
{
    return size > 1 && memcmp(pixels, pixels + 1, size - 1) == 0;
}
