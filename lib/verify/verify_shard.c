/*
 * verify_shard.c - one shard against the manifest; see verify.h
 *
 * The file is read in pieces that end with a record and stay in the second-level cache until they are checked: what
 * takes time is the copy out of the page cache and the CRC-32C.  A damaged length does not hide what follows:
 * record i begins at i * stride, whatever the record before it says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify/verify_private.h"

#include "base/progress.h"
#include "dataset/tfrecord.h"
#include "labels/label_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PIECE   (1u << 18)
#define MAX_AGE 120 /* as label_file.h has it */

struct check {
    const struct verify *v;
    const struct layout *layout;
    const struct chex_shard_info *info;
    unsigned shard;
    int fd;
    uint64_t size; /* of the file */
    struct verify_worker *worker;
    _Atomic uint64_t *bytes;
    struct report *r;
    uint32_t chain; /* checksum over the checksums of the records so far */

    /* Records that were written for one other shard: told once, where the first of them is. */
    char other_id[CHEX_ID_LENGTH + 1];
    uint32_t other_shard;
    uint32_t others;
    struct kept_fault *other_fault;
};

/* ---- one record ------------------------------------------------------------------------------------------------ */

static void
length_fault(struct check *c, uint32_t index, uint64_t offset, bool checksum, uint64_t length,
             const struct chex_bytes *image)
{
    uint64_t right = c->layout->stride - TFRECORD_FRAME;
    char has[PROGRESS_TEXT], wanted[PROGRESS_TEXT];

    if (checksum && length == right)
        report_fault(c->r, CHEX_ERR_CHECKSUM, index, offset, image, "length checksum mismatch, in the checksum");
    else if (checksum)
        report_fault(c->r, CHEX_ERR_CHECKSUM, index, offset, image,
                     "length checksum mismatch, in the length: %s, should be %s", format_count(length, has),
                     format_count(right, wanted));
    else
        report_fault(c->r, CHEX_ERR_DAMAGED, index, offset, image, "record with %s bytes of data, manifest says %s",
                     format_count(length, has), format_count(right, wanted));
}

/* Which field the damage is in, as far as it can be told; form says what layout_decode() found. */
static void
data_fault(struct check *c, const uint8_t *record, uint32_t index, uint64_t offset, enum chex_status form_status,
           const char *form, const struct chex_bytes *image)
{
    size_t data_size = c->layout->stride - TFRECORD_FRAME;
    uint32_t stored = get_u32le(record + TFRECORD_HEADER + data_size);
    uint32_t computed = chex_crc32c_mask(chex_crc32c(0, record + TFRECORD_HEADER, data_size));

    if (form_status != CHEX_OK)
        report_fault(c->r, CHEX_ERR_CHECKSUM, index, offset, image, "data checksum mismatch: %s", form);
    else if (__builtin_popcount(stored ^ computed) == 1)
        /* Damaged data would make a checksum that differs in about half of its bits. */
        report_fault(c->r, CHEX_ERR_CHECKSUM, index, offset, image, "data checksum mismatch, in the checksum");
    else
        report_fault(c->r, CHEX_ERR_CHECKSUM, index, offset, image,
                     "data checksum mismatch, in the pixels or the checksum");
}

/* The checksum is right and the form is not: somebody meant it. */
static void
form_fault(struct check *c, const uint8_t *record, uint32_t index, uint64_t offset, const char *form,
           const struct chex_bytes *image)
{
    unsigned i;

    for (i = 0; i < CHEX_FINDINGS; i++) {
        unsigned label = record[c->layout->label_offset + i];

        if (label > 1) {
            report_fault(c->r, CHEX_ERR_DAMAGED, index, offset, image, "label %s is %u, not 0 or 1",
                         chex_finding_name(i), label);
            return;
        }
    }
    report_fault(c->r, CHEX_ERR_DAMAGED, index, offset, image, "%s", form);
}

/* The record is good, but is it the one of this slot? */
static bool
check_place(struct check *c, uint32_t index, uint64_t offset, const struct record_values *values)
{
    const char *id = c->v->dataset->info.id;

    if (values->shard == c->shard && strcmp(values->dataset_id, id) == 0) {
        if (values->index == index)
            return true;
        report_fault(c->r, CHEX_ERR_INCOMPATIBLE, index, offset, &values->name, "holds the record of slot %u",
                     values->index);
        return false;
    }
    if (c->others == 0) {
        memcpy(c->other_id, values->dataset_id, sizeof(c->other_id));
        c->other_shard = values->shard;
        report_fault(c->r, CHEX_ERR_INCOMPATIBLE, index, offset, &values->name, "holds a record of another shard");
        if (c->r->kept && c->r->faults == c->r->kept_count)
            c->other_fault = &c->r->kept[c->r->kept_count - 1];
        c->others = 1;
    } else if (values->shard == c->other_shard && strcmp(values->dataset_id, c->other_id) == 0) {
        c->others++;
    } else {
        report_fault(c->r, CHEX_ERR_INCOMPATIBLE, index, offset, &values->name, "holds the record %u of shard %u%s%s",
                     values->index, values->shard, strcmp(values->dataset_id, id) == 0 ? "" : " of data set ",
                     strcmp(values->dataset_id, id) == 0 ? "" : values->dataset_id);
    }
    return false;
}

/* Now that all of them are known. */
static void
tell_others(struct check *c)
{
    const struct chex_dataset *ds = c->v->dataset;
    const struct chex_shard_info *other = chex_dataset_shard(ds, c->other_shard);
    char *text = c->other_fault ? c->other_fault->text : NULL;
    bool all = c->others == c->info->record_count;

    if (!text)
        return;
    if (all || c->others > 1)
        c->other_fault->image[0] = '\0';
    if (all) {
        c->other_fault->record = -1;
        c->other_fault->offset = 0;
    }
    if (strcmp(c->other_id, ds->info.id) != 0)
        snprintf(text, REPORT_TEXT, "%s of data set '%.16s', this one is '%s'",
                 c->others > 1 ? "holds records" : "holds a record", c->other_id, ds->info.id);
    else if (!other)
        snprintf(text, REPORT_TEXT, "holds %s of shard %u, which this data set does not have",
                 c->others > 1 ? "records" : "a record", c->other_shard);
    else if (all)
        snprintf(text, REPORT_TEXT, "holds the records of '%s'", other->name);
    else if (c->others > 1)
        snprintf(text, REPORT_TEXT, "and %u more hold records of '%s'", c->others - 1, other->name);
    else
        snprintf(text, REPORT_TEXT, "holds a record of '%s'", other->name);
}

static void
count_record(struct check *c, const uint8_t *record, const struct record_values *values)
{
    unsigned i;

    if (values->weight != 1)
        return;
    c->r->images++;
    for (i = 0; i < CHEX_FINDINGS; i++)
        c->r->positives[i] += values->findings >> i & 1;
    c->r->notes += verify_is_constant(record + c->layout->pixel_offset, c->layout->pixel_size);
}

/* The record's bytes may be changed: nobody looks at them afterwards. */
static void
check_record(struct check *c, uint8_t *record, uint32_t index)
{
    size_t right = c->layout->stride - TFRECORD_FRAME;
    uint64_t offset = (uint64_t)index * c->layout->stride;
    struct record_values values = {0};
    struct chex_error form = {.text = ""};
    uint64_t length = get_u64le(record), unused;
    enum chex_status framing = tfrecord_length(record, c->size - offset, &unused, NULL);
    enum chex_status data, decoded;
    char patient[PATIENT_MAX + 1];

    /* With the right length the rest can be looked at, if only for the image's name. */
    put_u64le(record, right);
    decoded = layout_decode(c->layout, record, &values, &form);
    c->r->records++;
    c->chain = tfrecord_chain(c->chain, record, right);
    if (framing != CHEX_OK || length != right) {
        length_fault(c, index, offset, framing == CHEX_ERR_CHECKSUM, length, &values.name);
        return;
    }
    data = tfrecord_check_data(record, right, NULL);
    if (data != CHEX_OK)
        data_fault(c, record, index, offset, decoded, form.text, &values.name);
    else if (decoded != CHEX_OK)
        form_fault(c, record, index, offset, form.text, &values.name);
    else if (!isnan(values.age) && !(values.age >= 0 && values.age <= MAX_AGE))
        report_fault(c->r, CHEX_ERR_DAMAGED, index, offset, &values.name, "age is %g, not 0 to %d or NaN",
                     (double)values.age, MAX_AGE);
    else if (values.weight == 1 && label_name_fault(values.name.data, values.name.size))
        report_fault(c->r, CHEX_ERR_DAMAGED, index, offset, &values.name, "%s",
                     label_name_fault(values.name.data, values.name.size));
    else if (values.weight == 1 && patient_fold(values.patient.data, values.patient.size, patient))
        report_fault(c->r, CHEX_ERR_DAMAGED, index, offset, &values.name, "%s",
                     patient_fold(values.patient.data, values.patient.size, patient));
    else if (check_place(c, index, offset, &values))
        count_record(c, record, &values);
}

/* Every record is good: but are they those of the manifest? */
static void
check_sums(struct check *c)
{
    const char *chain = c->v->dataset->manifest.shard[c->shard].crc32c;
    uint8_t hash[DIGEST_SIZE];
    char hex[DIGEST_HEX];

    if (c->r->images != c->info->image_count)
        report_fault(c->r, CHEX_ERR_DAMAGED, -1, 0, NULL, "%s images of weight 1, manifest says %s",
                     COUNT_TEXT(c->r->images), COUNT_TEXT(c->info->image_count));
    crc_hex(c->chain, hex);
    if (chain && strcmp(hex, chain) != 0) {
        report_fault(c->r, CHEX_ERR_CHECKSUM, -1, 0, NULL,
                     "every record is good, but they are not those of the manifest (crc32c)");
        return;
    }
    if (!c->v->sha256)
        return;
    digest_finish(c->worker->digest, hash);
    digest_hex(hash, sizeof(hash), hex);
    if (strcmp(hex, c->info->sha256) != 0)
        report_fault(c->r, CHEX_ERR_CHECKSUM, -1, 0, NULL,
                     "every record is good, but SHA-256 is not that of the manifest");
}

/* ---- a piece of the file --------------------------------------------------------------------------------------- */

/* Read records first .. first + count - 1; false where that failed, which is then in the report. */
static bool
read_piece(struct check *c, uint32_t first, uint32_t count)
{
    size_t size = count * c->layout->stride, got;
    uint64_t offset = (uint64_t)first * c->layout->stride;
    struct chex_error why;

    if (file_pread(c->fd, offset, c->worker->buffer.data, size, &got, &why) != CHEX_OK) {
        report_fault(c->r, CHEX_ERR_READ, first, offset, NULL, "%s", why.text);
        return false;
    }
    c->r->bytes += got;
    atomic_fetch_add(c->bytes, got);
    if (got < size) {
        report_fault(c->r, CHEX_ERR_TRUNCATED, first + (int64_t)(got / c->layout->stride),
                     offset + got - got % c->layout->stride, NULL, "file became shorter while it was read");
        return false;
    }
    return true;
}

static enum chex_status
check_all(struct check *c, struct chex_error *err)
{
    size_t stride = c->layout->stride;
    uint32_t piece = stride >= PIECE ? 1 : (uint32_t)(PIECE / stride);
    uint64_t present = c->size / stride;
    uint32_t records = present < c->info->record_count ? (uint32_t)present : c->info->record_count;
    uint32_t first, count, i;
    enum chex_status status = buffer_reserve(&c->worker->buffer, piece * stride, err);

    if (status != CHEX_OK)
        return status;
    digest_start(c->worker->digest);
    for (first = 0; first < records; first += count) {
        count = records - first < piece ? records - first : piece;
        if (c->v->stop && atomic_load(c->v->stop))
            return chex_fail_stopped(err);
        if (!read_piece(c, first, count))
            break;
        if (c->v->sha256)
            digest_add(c->worker->digest, c->worker->buffer.data, count * stride);
        for (i = 0; i < count; i++)
            check_record(c, c->worker->buffer.data + i * stride, first + i);
    }
    tell_others(c);
    if (c->r->faults == 0)
        check_sums(c);
    return CHEX_OK;
}

/* Whether a record is in the sample: the same ones each time. */
static bool
chosen(struct check *c, uint32_t index)
{
    uint8_t hash[DIGEST_SIZE];
    char text[64];
    int length = snprintf(text, sizeof(text), "chex-sample:%s:%u:%u", c->v->dataset->info.id, c->shard, index);

    digest_start(c->worker->digest);
    digest_add(c->worker->digest, text, (size_t)length);
    digest_finish(c->worker->digest, hash);
    return (double)get_u32le(hash) < c->v->sample_percent / 100 * 4294967296.0;
}

static enum chex_status
check_sample(struct check *c, struct chex_error *err)
{
    uint64_t present = c->size / c->layout->stride;
    uint32_t index;
    enum chex_status status = buffer_reserve(&c->worker->buffer, c->layout->stride, err);

    for (index = 0; index < c->info->record_count && index < present && status == CHEX_OK; index++) {
        if (!chosen(c, index))
            continue;
        if (c->v->stop && atomic_load(c->v->stop))
            return chex_fail_stopped(err);
        if (!read_piece(c, index, 1))
            break;
        check_record(c, c->worker->buffer.data, index);
    }
    tell_others(c);
    return status;
}

/* ---- the shard ------------------------------------------------------------------------------------------------- */

/* Of a file that is too short: the record that is not whole, and where it begins. */
static void
check_size(struct check *c)
{
    size_t stride = c->layout->stride;
    uint64_t records = c->size / stride, behind = c->size % stride, end = c->size - behind;
    char number[PROGRESS_TEXT], bytes[PROGRESS_THINGS], wanted[PROGRESS_TEXT];

    if (c->size == c->info->size)
        return;
    format_count(records, number);
    format_count(c->info->record_count, wanted);
    if (c->size == 0)
        report_fault(c->r, CHEX_ERR_EMPTY, 0, 0, NULL, "empty file, manifest says %s records", wanted);
    else if (c->size < c->info->size && behind > 0)
        report_fault(c->r, CHEX_ERR_TRUNCATED, (int64_t)records, end, NULL, "file ends %s bytes inside the record",
                     format_count(behind, bytes));
    else if (c->size < c->info->size)
        report_fault(c->r, CHEX_ERR_TRUNCATED, (int64_t)records, end, NULL,
                     "file ends before it: %s records, manifest says %s", number, wanted);
    else if (behind == 0)
        report_fault(c->r, CHEX_ERR_DAMAGED, -1, 0, NULL, "%s records, manifest says %s", number, wanted);
    else
        report_fault(c->r, CHEX_ERR_DAMAGED, -1, 0, NULL, "%s records and %s, manifest says %s records", number,
                     format_things(behind, "byte", bytes), wanted);
}

enum chex_status
verify_shard(const struct verify *v, struct verify_worker *worker, unsigned shard, _Atomic uint64_t *bytes,
             struct report *r, struct chex_error *err)
{
    const struct chex_dataset *ds = v->dataset;
    struct check c = {.v = v,
                      .layout = &ds->manifest.layout,
                      .info = &ds->shard[shard],
                      .shard = shard,
                      .worker = worker,
                      .bytes = bytes,
                      .r = r};
    struct chex_error why;
    enum chex_status status = file_open(ds->folder.fd, c.info->name, &c.fd, &c.size, &why);

    if (status != CHEX_OK) {
        report_fault(r, status == CHEX_ERR_NOT_IMAGE ? CHEX_ERR_DAMAGED : status, -1, 0, NULL, "%s", why.text);
        return status == CHEX_ERR_MEMORY ? chex_fail_memory(err) : CHEX_OK;
    }
    check_size(&c);
    if (v->depth == VERIFY_FULL)
        status = check_all(&c, err);
    else if (v->depth == VERIFY_SAMPLE)
        status = check_sample(&c, err);
    close(c.fd);
    return status == CHEX_OK && r->out_of_memory ? chex_fail_memory(err) : status;
}
