/*
 * fold.c - see fold.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/fold.h"

#include "data/sample_texts.h"
#include "dataset/dataset.h"
#include "labels/patient_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "chex-fold:"

/* Returns a number without sign and leading zeros, and moves *text past it; 0 if there is none. */
static unsigned long
take_number(const char **text)
{
    size_t digits = strspn(*text, "0123456789");
    unsigned long number = **text != '0' && digits <= 3 ? strtoul(*text, NULL, 10) : 0;

    *text += digits;
    return digits > 0 ? number : 0;
}

enum chex_status
fold_parse(const char *text, struct fold_choice *out, struct chex_error *err)
{
    const char *at = text;
    unsigned long number = take_number(&at), count = *at == '/' ? (at++, take_number(&at)) : 0;

    *out = (struct fold_choice){0, 0};
    if (*at != '\0' || number < 1 || count < 2 || count > FOLD_MAX || number > count)
        return error_set(err, CHEX_ERR_USAGE, "takes K/N such as 3/5, with N from 2 to %d and K from 1 to N, not '%s'",
                         FOLD_MAX, text);
    *out = (struct fold_choice){(unsigned)number - 1, (unsigned)count};
    return CHEX_OK;
}

unsigned
fold_of_patient(struct digest *d, struct chex_bytes patient, unsigned count)
{
    uint8_t sum[DIGEST_SIZE];
    uint64_t key = 0;
    int i;

    digest_start(d);
    digest_add(d, PREFIX, strlen(PREFIX));
    digest_add(d, patient.data, patient.size);
    digest_finish(d, sum);
    for (i = 0; i < 8; i++)
        key = key << 8 | sum[i];
    return (unsigned)(key % count);
}

/* ---- dividing the images ----------------------------------------------------------------------------------------- */

/* The images of a part, while they are read. */
struct part_images {
    const char **name;
    struct patients patients;
};

struct dividing {
    struct fold *fold;
    const struct samples *all;
    struct part_images part[FOLD_PARTS];
    struct digest *digest;
    unsigned findings;
};

static enum chex_status
take_image(void *context, size_t i, const struct record_values *values, struct chex_error *err)
{
    struct dividing *d = context;
    struct fold *f = d->fold;
    enum fold_part p;
    struct samples *s;
    const char *patient, *name;
    uint32_t number;
    unsigned k;

    if (!values) { /* it has no patient, so it is in no fold */
        f->unreadable.place[f->unreadable.count++] = d->all->place[i];
        return CHEX_OK;
    }
    p = fold_of_patient(d->digest, values->patient, f->choice.count) == f->choice.index ? FOLD_VALIDATION : FOLD_TRAIN;
    s = &f->samples[p];
    patient = arena_copy(&f->strings, values->patient.data, values->patient.size);
    name = arena_copy(&f->strings, values->name.data, values->name.size);
    if (!patient || !name)
        return error_memory(err);
    d->part[p].name[s->count] = name;
    s->place[s->count++] = d->all->place[i];
    for (k = 0; k < d->findings; k++) {
        f->positives[p][k] += values->label[k] == 1;
        f->known[p][k] += values->label[k] <= 1;
    }
    return patients_add(&d->part[p].patients, patient, &f->strings, &number, err);
}

/* List the samples of both splits, in the order of the shards. */
static enum chex_status
list_both(const struct chex_dataset *ds, const unsigned split[FOLD_PARTS], struct samples *out, struct chex_error *err)
{
    bool swap = chex_dataset_split(ds, split[1])->first_shard < chex_dataset_split(ds, split[0])->first_shard;
    struct samples one[2] = {{.count = 0}, {.count = 0}};
    enum chex_status status = samples_list(ds, split[swap], &one[0], err);
    size_t count;

    *out = (struct samples){.count = 0};
    if (status == CHEX_OK)
        status = samples_list(ds, split[!swap], &one[1], err);
    count = one[0].count + one[1].count;
    if (status == CHEX_OK) {
        out->place = malloc((count ? count : 1) * sizeof(*out->place));
        status = out->place ? CHEX_OK : error_memory(err);
    }
    if (status == CHEX_OK) {
        memcpy(out->place, one[0].place, one[0].count * sizeof(*out->place));
        memcpy(out->place + one[0].count, one[1].place, one[1].count * sizeof(*out->place));
        out->count = count;
    }
    samples_release(&one[0]);
    samples_release(&one[1]);
    return status;
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Compute what describes a part: its patients and the hash of its members. */
static void
describe_part(struct dividing *d, enum fold_part p)
{
    struct fold *f = d->fold;
    const char **name = d->part[p].name;
    uint8_t sum[DIGEST_SIZE];
    size_t count = f->samples[p].count, i;

    f->patients[p] = d->part[p].patients.count;
    qsort(name, count, sizeof(*name), by_text);
    digest_start(d->digest);
    for (i = 0; i < count; i++) {
        digest_add(d->digest, name[i], strlen(name[i]));
        digest_add(d->digest, "\n", 1);
    }
    digest_finish(d->digest, sum);
    digest_hex(sum, DIGEST_SIZE, f->members[p]);
}

static enum chex_status
make_room(struct dividing *d, struct chex_error *err)
{
    size_t count = d->all->count ? d->all->count : 1, p;

    d->digest = digest_new();
    d->fold->unreadable.place = malloc(count * sizeof(*d->fold->unreadable.place));
    if (!d->fold->unreadable.place)
        return error_memory(err);
    for (p = 0; p < FOLD_PARTS; p++) {
        d->part[p].name = malloc(count * sizeof(*d->part[p].name));
        d->fold->samples[p].place = malloc(count * sizeof(*d->fold->samples[p].place));
        if (!d->part[p].name || !d->fold->samples[p].place)
            return error_memory(err);
    }
    return d->digest ? CHEX_OK : error_memory(err);
}

static enum chex_status
divide(const struct chex_dataset *ds, struct dividing *d, bool skip_bad, struct chex_error *err)
{
    struct fold *f = d->fold;
    enum chex_status status = make_room(d, err);
    int p;

    if (status == CHEX_OK)
        status = samples_read_texts(ds, d->all, skip_bad, take_image, d, err);
    for (p = 0; p < FOLD_PARTS && status == CHEX_OK; p++) {
        if (f->samples[p].count == 0)
            return error_set(err, CHEX_ERR_USAGE, "--fold %u/%u has no image to %s, in %zu images", f->choice.index + 1,
                             f->choice.count, p == FOLD_TRAIN ? "train on" : "validate with", d->all->count);
        describe_part(d, p);
    }
    return status;
}

enum chex_status
fold_new(const struct chex_dataset *ds, unsigned train, unsigned val, const struct fold_choice *choice, bool skip_bad,
         struct fold **out, struct chex_error *err)
{
    struct fold *f = calloc(1, sizeof(*f));
    struct samples all = {.count = 0};
    struct dividing d = {.fold = f, .all = &all};
    char rule[256];
    enum chex_status status;
    int p;

    *out = f;
    if (!f)
        return error_memory(err);
    f->choice = *choice;
    f->split[FOLD_TRAIN] = train;
    f->split[FOLD_VALIDATION] = val;
    d.findings = chex_dataset_info(ds)->finding_count;
    status = list_both(ds, f->split, &all, err);
    if (status == CHEX_OK)
        status = divide(ds, &d, skip_bad, err);
    snprintf(rule, sizeof(rule), "%.200s, fold %u/%u", ds->manifest.split_rule, choice->index + 1, choice->count);
    f->rule = arena_copy(&f->strings, rule, strlen(rule));
    if (status == CHEX_OK && !f->rule)
        status = error_memory(err);
    for (p = 0; p < FOLD_PARTS; p++) {
        free(d.part[p].name);
        patients_release(&d.part[p].patients);
    }
    samples_release(&all);
    digest_free(d.digest);
    return status;
}

void
fold_apply(struct fold *f, struct chex_dataset *ds)
{
    int p;

    for (p = 0; p < FOLD_PARTS; p++) {
        struct chex_split_info *s = &ds->split[f->split[p]];

        s->image_count = f->samples[p].count;
        s->patient_count = f->patients[p];
        s->positives = f->positives[p];
        s->known = f->known[p];
        s->members_sha256 = f->members[p];
    }
    ds->manifest.split_rule = f->rule;
}

void
fold_free(struct fold *f)
{
    if (!f)
        return;
    samples_release(&f->samples[FOLD_TRAIN]);
    samples_release(&f->samples[FOLD_VALIDATION]);
    samples_release(&f->unreadable);
    arena_release(&f->strings);
    free(f);
}
