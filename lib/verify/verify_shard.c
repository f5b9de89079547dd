/*
 * verify_shard.c - compares a shard with the manifest; see verify.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify/verify_private.h"

#include "base/number_format.h"
#include "dataset/tfrecord.h"
#include "labels/label_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_AGE 120 /* as in label_file.h */

struct check {
    const struct verify *v;
    const struct record_layout *layout;
    const struct chex_shard_info *info;
    unsigned shard;
    struct digest *digest; /* VERIFY_SAMPLE: chooses the records */
    struct report *r;

    /* Records of one other shard: reported once, at the first of them. */
    char other_id[CHEX_ID_LENGTH + 1];
    uint32_t other_shard;
    uint32_t others;
    struct kept_fault *other_fault;
};

/* ---- one record ------------------------------------------------------------------------------------------------ */

/* Report a fault of this record: struct check, record, status, then the text. */
#define RECORD_FAULT(c, record, status, ...) \
    report_fault((c)->r, status, (record)->index, (record)->offset, &(record)->values.name, __VA_ARGS__)

static void
length_fault(struct check *c, const struct scanned_record *record)
{
    uint64_t right = c->layout->stride - TFRECORD_FRAME;
    char has[FORMAT_TEXT], wanted[FORMAT_TEXT];

    format_count(record->length, has);
    format_count(right, wanted);
    if (record->fault == RECORD_LENGTH)
        RECORD_FAULT(c, record, CHEX_ERR_DAMAGED, "record with %s bytes of data, manifest says %s", has, wanted);
    else if (record->length == right)
        RECORD_FAULT(c, record, CHEX_ERR_CHECKSUM, "length checksum mismatch, in the checksum");
    else
        RECORD_FAULT(c, record, CHEX_ERR_CHECKSUM, "length checksum mismatch, in the length: %s, should be %s", has,
                     wanted);
}

/* Report which field is damaged, if that can be determined. */
static void
data_fault(struct check *c, const struct scanned_record *record)
{
    const uint8_t *data = record->bytes + TFRECORD_HEADER;
    uint32_t stored = get_u32le(data + record->length);
    uint32_t computed = chex_crc32c_mask(chex_crc32c(0, data, (size_t)record->length));

    if (record->form.status != CHEX_OK)
        RECORD_FAULT(c, record, CHEX_ERR_CHECKSUM, "data checksum mismatch: %s", record->form.text);
    else if (__builtin_popcount(stored ^ computed) == 1)
        /* Damaged data would change about half of the checksum's bits. */
        RECORD_FAULT(c, record, CHEX_ERR_CHECKSUM, "data checksum mismatch, in the checksum");
    else
        RECORD_FAULT(c, record, CHEX_ERR_CHECKSUM, "data checksum mismatch, in the pixels or the checksum");
}

/* Report an invalid form.  If the checksums were compared, a person or program changed the record and its checksum. */
static void
form_fault(struct check *c, const struct scanned_record *record)
{
    const uint8_t *label = record->bytes + c->layout->label_offset;
    unsigned i;

    const struct label_form *form = &c->layout->labels;

    for (i = 0; i < form->count && (label[i] <= 1 || (form->unknown && label[i] == CHEX_LABEL_UNKNOWN)); i++)
        continue;
    if (i < form->count)
        RECORD_FAULT(c, record, CHEX_ERR_DAMAGED, "label %s is %u, not 0 or 1%s",
                     c->v->dataset->manifest.findings.name[i], label[i], form->unknown ? " or 255 (unknown)" : "");
    else
        RECORD_FAULT(c, record, CHEX_ERR_DAMAGED, "%s", record->why.text);
}

/* Check for values that the form allows but no label file can have. */
static bool
check_values(struct check *c, const struct scanned_record *record)
{
    const struct record_values *v = &record->values;
    const char *text = NULL;
    char patient[PATIENT_MAX + 1];

    if (!isnan(v->age) && !(v->age >= 0 && v->age <= MAX_AGE)) {
        RECORD_FAULT(c, record, CHEX_ERR_DAMAGED, "age is %g, not 0 to %d or NaN", (double)v->age, MAX_AGE);
        return false;
    }
    if (v->weight == 1)
        text = label_name_fault(v->name.data, v->name.size, true);
    if (v->weight == 1 && !text)
        text = patient_fold(v->patient.data, v->patient.size, patient);
    if (text)
        RECORD_FAULT(c, record, CHEX_ERR_DAMAGED, "%s", text);
    return text == NULL;
}

/* Report a valid record of another slot. */
static void
place_fault(struct check *c, const struct scanned_record *record)
{
    const struct record_values *values = &record->values;
    const char *id = manifest_record_id(&c->v->dataset->manifest);

    if (values->shard == c->shard && strcmp(values->dataset_id, id) == 0) {
        RECORD_FAULT(c, record, CHEX_ERR_INCOMPATIBLE, "holds the record of slot %u", values->index);
    } else if (c->others == 0) {
        memcpy(c->other_id, values->dataset_id, sizeof(c->other_id));
        c->other_shard = values->shard;
        RECORD_FAULT(c, record, CHEX_ERR_INCOMPATIBLE, "holds a record of another shard");
        if (c->r->kept && c->r->faults == c->r->kept_count)
            c->other_fault = &c->r->kept[c->r->kept_count - 1];
        c->others = 1;
    } else if (values->shard == c->other_shard && strcmp(values->dataset_id, c->other_id) == 0) {
        c->others++;
    } else {
        RECORD_FAULT(c, record, CHEX_ERR_INCOMPATIBLE, "holds the record %u of shard %u%s%s", values->index,
                     values->shard, strcmp(values->dataset_id, id) == 0 ? "" : " of data set ",
                     strcmp(values->dataset_id, id) == 0 ? "" : values->dataset_id);
    }
}

/* Report all records of the other shard, after the last record. */
static void
report_others(struct check *c)
{
    const struct chex_dataset *ds = c->v->dataset;
    const struct chex_shard_info *other = chex_dataset_shard(ds, c->other_shard);
    const char *id = manifest_record_id(&ds->manifest);
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
    if (strcmp(c->other_id, id) != 0)
        snprintf(text, REPORT_TEXT, "%s of data set '%.16s', this one is '%s'",
                 c->others > 1 ? "holds records" : "holds a record", c->other_id, id);
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
count_record(struct check *c, const struct scanned_record *record)
{
    unsigned i;

    if (record->values.weight != 1 || c->v->depth == VERIFY_QUICK)
        return;
    c->r->images++;
    for (i = 0; i < c->layout->labels.count; i++) {
        c->r->positives[i] += record->values.label[i] == 1;
        c->r->known[i] += record->values.label[i] != CHEX_LABEL_UNKNOWN;
    }
    if (c->v->depth == VERIFY_FULL &&
        (buffer_append(&c->r->patients, record->values.patient.data, record->values.patient.size, NULL) != CHEX_OK ||
         buffer_append(&c->r->patients, "", 1, NULL) != CHEX_OK))
        c->r->out_of_memory = true;
    c->r->notes += verify_is_constant(record->bytes + c->layout->pixel_offset, c->layout->pixel_size);
}

static enum chex_status
check_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct check *c = context;

    (void)err;
    c->r->records += c->v->depth != VERIFY_QUICK;
    switch (record->fault) {
    case RECORD_LENGTH_CHECKSUM:
    case RECORD_LENGTH:
        length_fault(c, record);
        break;
    case RECORD_DATA_CHECKSUM:
        data_fault(c, record);
        break;
    case RECORD_FORM:
        form_fault(c, record);
        break;
    case RECORD_PLACE:
        if (check_values(c, record))
            place_fault(c, record);
        break;
    case RECORD_GOOD:
        if (check_values(c, record))
            count_record(c, record);
        break;
    }
    return CHEX_OK;
}

/* Compare the sums with the manifest, if all records are valid. */
static void
check_sums(struct check *c, const struct shard_scan *scan)
{
    const char *chain = c->v->dataset->manifest.shard[c->shard].crc32c;
    char hex[CRC_HEX];

    if (c->r->images != c->info->image_count)
        report_fault(c->r, CHEX_ERR_DAMAGED, -1, 0, NULL, "%s images of weight 1, manifest says %s",
                     COUNT_TEXT(c->r->images), COUNT_TEXT(c->info->image_count));
    crc_hex(scan->crc32c, hex);
    if (chain && strcmp(hex, chain) != 0)
        report_fault(c->r, CHEX_ERR_CHECKSUM, -1, 0, NULL,
                     "every record is good, but they are not those of the manifest (crc32c)");
    else if (scan->sha256 && strcmp(scan->sha256_hex, c->info->sha256) != 0)
        report_fault(c->r, CHEX_ERR_CHECKSUM, -1, 0, NULL,
                     "every record is good, but SHA-256 is not that of the manifest");
}

/* ---- the sample ------------------------------------------------------------------------------------------------ */

/*
 * Returns whether a record is in the sample.  Every run chooses the same records.  The first record is always included
 * because it has the identity of the shard.
 */
static bool
is_chosen(void *context, uint32_t index)
{
    const struct check *c = context;
    uint8_t hash[DIGEST_SIZE];
    char text[64];
    int length = snprintf(text, sizeof(text), "chex-sample:%s:%u:%u", c->v->dataset->info.id, c->shard, index);

    if (index == 0)
        return true;
    digest_start(c->digest);
    digest_add(c->digest, text, (size_t)length);
    digest_finish(c->digest, hash);
    return (double)get_u32le(hash) < c->v->sample_percent / 100 * 4294967296.0;
}

/* ---- the shard ------------------------------------------------------------------------------------------------- */

/* Report a wrong size.  For a file that is too short, report the first incomplete record and its offset. */
static void
check_size(struct check *c, uint64_t size)
{
    size_t stride = c->layout->stride;
    uint64_t records = size / stride, partial = size % stride, end = size - partial;
    char number[FORMAT_TEXT], bytes[FORMAT_THINGS], wanted[FORMAT_TEXT];

    if (size == c->info->size)
        return;
    format_count(records, number);
    format_count(c->info->record_count, wanted);
    if (size == 0)
        report_fault(c->r, CHEX_ERR_EMPTY, 0, 0, NULL, "empty file, manifest says %s records", wanted);
    else if (size < c->info->size && partial > 0)
        report_fault(c->r, CHEX_ERR_TRUNCATED, (int64_t)records, end, NULL, "file ends %s bytes inside the record",
                     format_count(partial, bytes));
    else if (size < c->info->size)
        report_fault(c->r, CHEX_ERR_TRUNCATED, (int64_t)records, end, NULL,
                     "file ends before it: %s records, manifest says %s", number, wanted);
    else if (partial == 0)
        report_fault(c->r, CHEX_ERR_DAMAGED, -1, 0, NULL, "%s records, manifest says %s", number, wanted);
    else
        report_fault(c->r, CHEX_ERR_DAMAGED, -1, 0, NULL, "%s records and %s, manifest says %s records", number,
                     format_things(partial, "byte", bytes), wanted);
}

/* Scan the records.  Read errors of the scan become faults of the data set. */
static enum chex_status
check_records(struct check *c, struct shard_scan *scan, struct chex_error *err)
{
    struct chex_error why;
    enum chex_status status = shard_scan(scan, &why);

    c->r->bytes += c->v->depth == VERIFY_QUICK ? 0 : scan->bytes_read;
    if (status == CHEX_ERR_READ || status == CHEX_ERR_TRUNCATED)
        report_fault(c->r, status, scan->next, scan->offset, NULL, "%s", why.text);
    else if (status != CHEX_OK) {
        if (err)
            *err = why;
        return status;
    }
    report_others(c);
    if (c->r->faults == 0 && c->v->depth == VERIFY_FULL)
        check_sums(c, scan);
    return CHEX_OK;
}

enum chex_status
verify_shard(const struct verify *v, struct digest *digest, unsigned shard, _Atomic uint64_t *bytes, struct report *r,
             struct chex_error *err)
{
    const struct chex_dataset *ds = v->dataset;
    const struct chex_shard_info *info = &ds->shard[shard];
    struct check c = {.v = v, .layout = &ds->manifest.layout, .info = info, .shard = shard, .digest = digest, .r = r};
    struct shard_scan scan = {.shard = dataset_shard_identity(ds, shard),
                              .records = info->record_count,
                              .sha256 = v->sha256 && v->depth == VERIFY_FULL,
                              .texts = v->depth == VERIFY_QUICK,
                              .wants = v->depth == VERIFY_SAMPLE ? is_chosen : NULL,
                              .visit = check_record,
                              .context = &c,
                              .stop = v->stop,
                              .bytes = v->depth == VERIFY_QUICK ? NULL : bytes};
    struct chex_error why;
    uint64_t size;
    enum chex_status status = file_open(ds->folder.fd, info->name, &scan.fd, &size, &why);

    if (status != CHEX_OK) {
        if (error_is_denied(&why)) /* not a fault of the shard */
            status = CHEX_ERR_READ;
        report_fault(r, status == CHEX_ERR_NOT_IMAGE ? CHEX_ERR_DAMAGED : status, -1, 0, NULL, "%s", why.text);
        return status == CHEX_ERR_MEMORY ? error_memory(err) : CHEX_OK;
    }
    check_size(&c, size);
    if (size / c.layout->stride < scan.records)
        scan.records = (uint32_t)(size / c.layout->stride);
    if (v->depth == VERIFY_QUICK && scan.records > 1)
        scan.records = 1;
    status = check_records(&c, &scan, err);
    close(scan.fd);
    return status == CHEX_OK && r->out_of_memory ? error_memory(err) : status;
}
