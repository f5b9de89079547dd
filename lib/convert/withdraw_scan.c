/*
 * withdraw_scan.c - reads a whole data set, finds the slots of patients, and makes the manifest without them
 *
 * Every record is checked, so no damaged record can hide an image of a patient.  Each shard is scanned by one thread;
 * then the results of the shards are merged in their order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"
#include "convert/withdraw_private.h"

#include "base/ascii.h"
#include "base/json.h"
#include "base/threads.h"
#include "dataset/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct found_shard {
    struct withdrawn_slots slots;
    size_t slot_capacity;
    uint32_t *patient; /* [slots.count] number of the patient in out->patient; PADDING: a padding record */
    size_t patient_capacity;
    uint64_t *positives; /* [2 * findings] of the images that stay; then those with a known label */
    const char **name;   /* [result.images] of the images that stay */
    const char **id;     /* their patients */
    const char **gone;   /* [gone_count] names of the withdrawn images */
    size_t gone_count;
    struct arena strings;
};

#define PADDING UINT32_MAX

struct withdraw_search {
    const struct chex_dataset *ds;
    const struct withdraw_options *o;
    struct withdrawal *out;
    struct found_shard *shard;   /* [shard_count] */
    struct shard_result *result; /* [shard_count] images that stay, and the sums of their pixels */
};

struct search_visit {
    const struct withdraw_search *s;
    struct found_shard *found;
    struct shard_result *result;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int
compare_patient(const void *key, const void *patient)
{
    const struct chex_bytes *id = key;
    const char *other = ((const struct withdrawn_patient *)patient)->id;
    size_t length = strlen(other);
    int order = memcmp(id->data, other, id->size < length ? id->size : length);

    return order != 0 ? order : id->size < length ? -1 : id->size > length;
}

/* Returns the patient of a record that must be withdrawn, or NULL. */
static const struct withdrawn_patient *
find_patient(const struct withdrawal *w, const struct chex_bytes *id)
{
    return bsearch(id, w->patient, w->patient_count, sizeof(*w->patient), compare_patient);
}

static enum chex_status
add_slot(struct search_visit *v, const struct scanned_record *record, uint32_t patient, struct chex_error *err)
{
    struct found_shard *f = v->found;
    uint32_t *slot = array_grow(f->slots.index, &f->slot_capacity, f->slots.count, sizeof(*slot));
    uint32_t *number;

    if (slot)
        f->slots.index = slot;
    number = array_grow(f->patient, &f->patient_capacity, f->slots.count, sizeof(*number));
    if (number)
        f->patient = number;
    if (!slot || !number)
        return error_memory(err);
    if (record->values.weight == 1) {
        char *name = arena_copy(&f->strings, record->values.name.data, record->values.name.size);

        if (!name)
            return error_memory(err);
        f->gone[f->gone_count++] = name;
    }
    f->patient[f->slots.count] = record->values.weight == 1 ? patient : PADDING;
    f->slots.index[f->slots.count++] = record->index;
    return CHEX_OK;
}

static enum chex_status
visit_record(void *context, const struct scanned_record *record, struct chex_error *err)
{
    struct search_visit *v = context;
    struct found_shard *f = v->found;
    const struct record_values *values = &record->values;
    const struct record_layout *l = &v->s->ds->manifest.layout;
    const struct withdrawn_patient *patient;
    char *name, *id;
    unsigned i;

    if (record->fault != RECORD_GOOD) {
        record_fail(record, err);
        return error_context(err, CHEX_ERR_DAMAGED, "record %u", record->index);
    }
    patient = find_patient(v->s->out, &values->patient);
    if (patient)
        return add_slot(v, record, (uint32_t)(patient - v->s->out->patient), err);
    if (values->weight == 0)
        return CHEX_OK;
    name = arena_copy(&f->strings, values->name.data, values->name.size);
    id = arena_copy(&f->strings, values->patient.data, values->patient.size);
    if (!name || !id)
        return error_memory(err);
    f->name[v->result->images] = name;
    f->id[v->result->images++] = id;
    for (i = 0; i < l->labels.count; i++) {
        f->positives[i] += values->label[i] == 1;
        f->positives[l->labels.count + i] += values->label[i] != CHEX_LABEL_UNKNOWN;
    }
    store_add_pixels(record->bytes + l->pixel_offset, l->pixel_size, v->result);
    return CHEX_OK;
}

/* Compare the records read with the manifest. */
static enum chex_status
compare_shard(const struct manifest_shard *shard, const struct search_visit *v, const struct shard_scan *scan,
              struct chex_error *err)
{
    char crc32c[CRC_HEX];

    crc_hex(scan->crc32c, crc32c);
    if (v->result->images + v->found->gone_count != shard->images)
        return error_set(err, CHEX_ERR_DAMAGED, "%zu images, the manifest says %u",
                         v->result->images + v->found->gone_count, shard->images);
    if (shard->crc32c ? strcmp(crc32c, shard->crc32c) != 0 : strcmp(scan->sha256_hex, shard->sha256) != 0)
        return error_set(err, CHEX_ERR_DAMAGED, "its records differ from the manifest");
    return CHEX_OK;
}

static enum chex_status
scan_shard(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct withdraw_search *s = context;
    const struct manifest *m = &s->ds->manifest;
    const struct manifest_shard *shard = &m->shard[item];
    struct found_shard *f = &s->shard[item];
    struct search_visit v = {s, f, &s->result[item]};
    struct shard_scan scan = {.shard = dataset_shard_identity(s->ds, (unsigned)item),
                              .records = shard->records,
                              .sha256 = !shard->crc32c,
                              .visit = visit_record,
                              .context = &v,
                              .stop = s->o->stop};
    struct chex_shard *file = NULL;
    enum chex_status status;

    (void)worker;
    f->positives = calloc(2 * m->findings.count, sizeof(*f->positives));
    f->name = calloc(shard->records, sizeof(*f->name));
    f->id = calloc(shard->records, sizeof(*f->id));
    f->gone = calloc(shard->records, sizeof(*f->gone));
    if (!f->positives || !f->name || !f->id || !f->gone)
        return error_memory(err);
    status = chex_shard_open(s->ds, (unsigned)item, &file, err);
    if (status != CHEX_OK || !file)
        return status;
    scan.fd = file->fd;
    status = shard_scan(&scan, err);
    if (status == CHEX_OK)
        status = compare_shard(shard, &v, &scan, err);
    chex_shard_close(file);
    return status == CHEX_OK || status == CHEX_ERR_MEMORY || status == CHEX_ERR_STOPPED
               ? status
               : error_context(err, status, "'%s/%s'", s->ds->folder.path, shard->name);
}

static void
tick(void *context, size_t done)
{
    const struct withdraw_search *s = context;

    if (s->o->tick)
        s->o->tick(s->o->context, "reading", done, s->ds->info.shard_count);
}

/* ---- rejects.jsonl ----------------------------------------------------------------------------------------------- */

static bool
is_letter_or_digit(char c)
{
    return ascii_is_digit(c) || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || (unsigned char)c >= 0x80;
}

/* Returns whether the text contains the word, not as a part of a longer word: 00000013 in "00000013_004.png". */
static bool
has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    const char *at;

    for (at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !is_letter_or_digit(at[-1])) && !is_letter_or_digit(at[length]))
            return true;
    return false;
}

/* Returns the patient to whom a line belongs, or NULL.  The name of an image of NIH or CheXpert contains the id. */
static struct withdrawn_patient *
patient_of_line(const struct withdrawal *w, const char *name)
{
    size_t i;

    for (i = 0; i < w->patient_count; i++)
        if (has_word(name, w->patient[i].id))
            return &w->patient[i];
    return NULL;
}

/* Returns whether the detail of a line contains the name of a withdrawn image. */
static bool
names_withdrawn(const struct withdraw_search *s, const char *detail)
{
    unsigned i;
    size_t k;

    for (i = 0; i < s->ds->info.shard_count; i++)
        for (k = 0; k < s->shard[i].gone_count; k++)
            if (strstr(detail, s->shard[i].gone[k]))
                return true;
    return false;
}

/* Copy a line to j->rejects unless it is about a withdrawn patient.  *images: rejected images that are left out. */
static enum chex_status
copy_line(const struct withdraw_search *s, const uint8_t *line, size_t size, struct withdraw_journal *j,
          uint64_t *images, struct chex_error *err)
{
    static const struct parse_bounds bounds = {.size = 1u << 20, .depth = 4, .values = 64};
    struct withdrawn_patient *patient;
    const char *name, *kind, *detail;
    json_t *object;
    enum chex_status status = parse_json(line, size, &bounds, &object, err);

    if (status != CHEX_OK)
        return status;
    name = json_string_value(json_object_get(object, "name"));
    kind = json_string_value(json_object_get(object, "kind"));
    detail = json_string_value(json_object_get(object, "detail"));
    patient = name ? patient_of_line(s->out, name) : NULL;
    if (patient || (detail && (patient_of_line(s->out, detail) || names_withdrawn(s, detail)))) {
        j->has_rejects = true;
        *images += kind && strcmp(kind, "image") == 0;
        if (patient)
            patient->rejects++;
    } else {
        status = buffer_append(&j->rejects, line, size, err);
        if (status == CHEX_OK)
            status = buffer_append(&j->rejects, "\n", 1, err);
    }
    json_decref(object);
    return status;
}

static enum chex_status
filter_rejects(const struct withdraw_search *s, struct withdraw_journal *j, uint64_t *images, struct chex_error *err)
{
    struct buffer b = {0};
    size_t at = 0;
    enum chex_status status = file_read(s->ds->folder.fd, STORE_REJECTS_NAME, MANIFEST_MAX, &b, err);

    *images = 0;
    while (status == CHEX_OK && at < b.size) {
        const uint8_t *end = memchr(b.data + at, '\n', b.size - at);
        size_t size = end ? (size_t)(end - b.data) - at : b.size - at;

        if (size > 0)
            status = copy_line(s, b.data + at, size, j, images, err);
        at += size + 1;
    }
    buffer_release(&b);
    if (status == CHEX_ERR_MISSING)
        return CHEX_OK;
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", s->ds->folder.path, STORE_REJECTS_NAME);
}

/* ---- the new manifest -------------------------------------------------------------------------------------------- */

enum chex_status
withdraw_identify(const char *from, const struct withdrawn_slots *shard, size_t shard_count,
                  char out[CHEX_ID_LENGTH + 1], struct chex_error *err)
{
    struct digest *d = digest_new();
    uint8_t hash[DIGEST_SIZE];
    char line[64];
    size_t i;
    uint32_t k;

    if (!d)
        return error_memory(err);
    digest_start(d);
    digest_add(d, line, (size_t)snprintf(line, sizeof(line), "chex-withdraw 1\n%s\n", from));
    for (i = 0; i < shard_count; i++)
        for (k = 0; k < shard[i].count; k++)
            digest_add(d, line, (size_t)snprintf(line, sizeof(line), "%zu %u\n", i, shard[i].index[k]));
    digest_finish(d, hash);
    digest_free(d);
    digest_hex(hash, CHEX_ID_LENGTH / 2, out);
    return CHEX_OK;
}

/* Returns the number of different texts; sorts them. */
static uint64_t
count_distinct(const char **text, size_t count)
{
    uint64_t distinct = 0;
    size_t i;

    qsort(text, count, sizeof(*text), compare_texts);
    for (i = 0; i < count; i++)
        distinct += i == 0 || strcmp(text[i - 1], text[i]) != 0;
    return distinct;
}

/* Count the images, patients and findings of a split that stay, and hash the names. */
static enum chex_status
count_split(const struct withdraw_search *s, struct manifest *m, struct manifest_split *split, struct chex_error *err)
{
    const struct manifest_split before = *split;
    const char **text = malloc((before.images ? before.images : 1) * sizeof(*text));
    struct digest *d = digest_new();
    uint8_t hash[DIGEST_SIZE];
    char hex[DIGEST_HEX];
    size_t count = 0, i, k;
    unsigned f;

    if (!text || !d) {
        free(text);
        digest_free(d);
        return error_memory(err);
    }
    memset(split->positives, 0, sizeof(split->positives));
    memset(split->known, 0, sizeof(split->known));
    for (i = before.first_shard; i < before.first_shard + before.shard_count; i++) {
        for (k = 0; k < s->result[i].images; k++)
            text[count++] = s->shard[i].id[k];
        for (f = 0; f < m->findings.count; f++) {
            split->positives[f] += s->shard[i].positives[f];
            split->known[f] += s->shard[i].positives[m->findings.count + f];
        }
    }
    split->images = count;
    split->patients = count_distinct(text, count);
    for (i = before.first_shard, count = 0; i < before.first_shard + before.shard_count; i++)
        for (k = 0; k < s->result[i].images; k++)
            text[count++] = s->shard[i].name[k];
    qsort(text, count, sizeof(*text), compare_texts);
    digest_start(d);
    for (i = 0; i < count; i++) {
        digest_add(d, text[i], strlen(text[i]));
        digest_add(d, "\n", 1);
    }
    digest_finish(d, hash);
    digest_free(d);
    free(text);
    digest_hex(hash, DIGEST_SIZE, hex);
    if (split->images == before.images) /* the old hash may also cover rejected and dropped images */
        return CHEX_OK;
    split->members_sha256 = arena_copy(&m->strings, hex, DIGEST_HEX - 1);
    return split->members_sha256 ? CHEX_OK : error_memory(err);
}

struct patient_split {
    const char *id;
    unsigned split;
};

static int
compare_splits(const void *a, const void *b)
{
    const struct patient_split *x = a, *y = b;
    int order = strcmp(x->id, y->id);

    return order != 0 ? order : x->split < y->split ? -1 : x->split > y->split;
}

/* Count the patients in two splits or more again, if there were any. */
static enum chex_status
count_leaks(const struct withdraw_search *s, struct manifest *m, struct chex_error *err)
{
    struct patient_split *image;
    size_t count = 0, i, k, next;

    if (m->leaks.patients == 0)
        return CHEX_OK;
    image = malloc((s->out->images_left + 1) * sizeof(*image));
    if (!image)
        return error_memory(err);
    for (i = 0; i < m->shard_count; i++)
        for (k = 0; k < s->result[i].images; k++)
            image[count++] = (struct patient_split){s->shard[i].id[k], m->shard[i].split};
    qsort(image, count, sizeof(*image), compare_splits);
    m->leaks = (struct manifest_leaks){0, 0};
    for (i = 0; i < count; i = next) {
        for (next = i + 1; next < count && strcmp(image[next].id, image[i].id) == 0;)
            next++;
        if (image[next - 1].split != image[i].split) {
            m->leaks.patients++;
            m->leaks.images += next - i;
        }
    }
    free(image);
    return CHEX_OK;
}

static enum chex_status
add_withdrawal(const struct withdraw_search *s, struct manifest *m, struct chex_error *err)
{
    const struct manifest *before = &s->ds->manifest;
    struct manifest_withdrawal *new;

    if (before->withdrawal_count == WITHDRAWALS_MAX)
        return error_set(err, CHEX_ERR_USAGE, "'%s' has had %d withdrawals: convert it again with --exclude",
                         s->ds->folder.path, WITHDRAWALS_MAX);
    m->withdrawal = calloc(before->withdrawal_count + 1, sizeof(*m->withdrawal));
    if (!m->withdrawal)
        return error_memory(err);
    if (before->withdrawal_count > 0)
        memcpy(m->withdrawal, before->withdrawal, before->withdrawal_count * sizeof(*m->withdrawal));
    new = &m->withdrawal[m->withdrawal_count++];
    new->slots = s->out->slots;
    memcpy(new->dataset_id, before->dataset_id, sizeof(new->dataset_id));
    memcpy(new->time, s->out->time, sizeof(new->time));
    memcpy(m->dataset_id, s->out->to, sizeof(m->dataset_id));
    return CHEX_OK;
}

/* Make the manifest of the data set without the patients, and append its text. */
static enum chex_status
make_manifest(const struct withdraw_search *s, uint64_t rejects, struct buffer *text, struct chex_error *err)
{
    const struct manifest *before = &s->ds->manifest;
    struct manifest m = *before;
    enum chex_status status;
    unsigned i;

    m.strings = (struct arena){0};
    m.withdrawal = NULL;
    m.rejects -= rejects < m.rejects ? rejects : m.rejects;
    m.split = malloc(m.split_count * sizeof(*m.split));
    m.shard = malloc(m.shard_count * sizeof(*m.shard));
    status = m.split && m.shard ? add_withdrawal(s, &m, err) : error_memory(err);
    if (status == CHEX_OK) {
        memcpy(m.split, before->split, m.split_count * sizeof(*m.split));
        memcpy(m.shard, before->shard, m.shard_count * sizeof(*m.shard));
        for (i = 0; i < m.shard_count; i++)
            m.shard[i].images = s->result[i].images;
    }
    for (i = 0; i < m.split_count && status == CHEX_OK; i++) {
        status = count_split(s, &m, &m.split[i], err);
        if (status == CHEX_OK && m.split[i].images == 0 && before->split[i].images > 0)
            status = error_set(err, CHEX_ERR_USAGE,
                               "all images of split '%s' are of these patients: convert again with --exclude",
                               m.split[i].name);
    }
    if (status == CHEX_OK)
        status = count_leaks(s, &m, err);
    if (status == CHEX_OK) {
        convert_pixel_statistics(s->result, &m);
        status = manifest_format(&m, text, err);
    }
    free(m.split);
    free(m.shard);
    free(m.withdrawal);
    arena_release(&m.strings);
    return status;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* Move the slots to the journal, and count them. */
static void
take_slots(struct withdraw_search *s, struct withdraw_journal *j)
{
    struct withdrawal *w = s->out;
    unsigned i;
    uint32_t k;

    for (i = 0; i < s->ds->info.shard_count; i++) {
        struct found_shard *f = &s->shard[i];

        j->shard[i] = f->slots;
        f->slots = (struct withdrawn_slots){NULL, 0};
        w->shards += j->shard[i].count > 0;
        w->images_left += s->result[i].images;
        for (k = 0; k < j->shard[i].count; k++) {
            w->slots += f->patient[k] != PADDING;
            if (f->patient[k] != PADDING)
                w->patient[f->patient[k]].images++;
        }
    }
}

static enum chex_status
evaluate(struct withdraw_search *s, struct withdraw_journal *j, struct buffer *text, struct chex_error *err)
{
    struct withdrawal *w = s->out;
    uint64_t rejects;
    size_t i;
    enum chex_status status;

    take_slots(s, j);
    status = filter_rejects(s, j, &rejects, err);
    for (i = 0; i < w->patient_count; i++)
        w->unknown += w->patient[i].images == 0;
    if (status != CHEX_OK || w->unknown == w->patient_count || (w->unknown > 0 && !s->o->allow_missing))
        return status;
    memcpy(w->from, s->ds->info.id, sizeof(w->from));
    status = withdraw_identify(w->from, j->shard, s->ds->info.shard_count, w->to, err);
    return status == CHEX_OK ? make_manifest(s, rejects, text, err) : status;
}

enum chex_status
withdraw_scan(const struct chex_dataset *ds, const struct withdraw_options *o, struct withdrawal *out,
              struct withdraw_journal *j, struct buffer *text, struct chex_error *err)
{
    const unsigned count = ds->info.shard_count;
    struct withdraw_search s = {.ds = ds, .o = o, .out = out};
    struct parallel parallel = {.count = count,
                                .threads = o->threads ? o->threads : 1,
                                .work = scan_shard,
                                .tick = tick,
                                .context = &s,
                                .stop = o->stop};
    enum chex_status status;
    unsigned i;

    s.shard = calloc(count, sizeof(*s.shard));
    s.result = calloc(count, sizeof(*s.result));
    j->shard = calloc(count, sizeof(*j->shard));
    j->manifest.shard_count = count; /* for withdraw_journal_release() */
    status = s.shard && s.result && j->shard ? parallel_for(&parallel, err) : error_memory(err);
    if (status == CHEX_OK)
        status = evaluate(&s, j, text, err);
    for (i = 0; s.shard && i < count; i++) {
        free(s.shard[i].slots.index);
        free(s.shard[i].patient);
        free(s.shard[i].positives);
        free(s.shard[i].name);
        free(s.shard[i].id);
        free(s.shard[i].gone);
        arena_release(&s.shard[i].strings);
    }
    free(s.shard);
    free(s.result);
    return status;
}
