/*
 * synth_people.c - see synth_people.h
 *
 * All proportions were counted in Data_Entry_2017_v2020.csv (112,120 images of 30,805 patients).
 *
 * The findings of a study are drawn in three stages:
 *
 * 1. Whether there is any finding.  Patients with many images are more likely to have one.  With probability 0.4 a
 *    study repeats the findings of the previous one, because diseases last.
 * 2. Each finding is drawn independently, and again until there is at least one.  This gives 60, 28 and 9 % of the ill
 *    images one, two and three findings, as in the real data.
 * 3. Companions are added: pairs that occur together more often than that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "synth/synth_people.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "synth/synth_random.h"
#include "synth/synth_scene.h"

/* The purposes of the sequences of draws. */
enum { FOR_COUNTS = 1, FOR_PERSON, FOR_STUDY, FOR_SPLIT, FOR_FORM, FOR_LABEL };

#define DRAWINGS 14 /* findings_nih14.count */

/* Share of the images with each finding, in 1/10,000, in the order of findings_nih14. */
static const unsigned prevalence[DRAWINGS] = {
    1031, /* Atelectasis */
    248,  /* Cardiomegaly */
    1188, /* Effusion */
    1774, /* Infiltration */
    516,  /* Mass */
    565,  /* Nodule */
    128,  /* Pneumonia */
    473,  /* Pneumothorax */
    416,  /* Consolidation */
    205,  /* Edema */
    224,  /* Emphysema */
    150,  /* Fibrosis */
    302,  /* Pleural_Thickening */
    100,  /* Hernia: 20 in the real data, too few to learn anything from a small set */
};

#define SHARE_OTHER    0.03f   /* a finding that no drawing shows */
#define SHARE_UNKNOWN  0.05f   /* of the labels of CheXpert, except those of No Finding */
#define SHARE_ILL      0.46f   /* 1 - No Finding */
#define SHARE_TEST     0.2283f /* images of test_list.txt */
#define SHARE_MALE     0.565f
#define REPEATS        0.4f /* probability that a study repeats the previous one */
#define SPLIT_ATTEMPTS 64

/* If `first` is present, `second` is added with this probability. */
static const struct {
    uint8_t first, second;
    float probability;
} companions[] = {
    {1, 2, 0.20f},   /* Cardiomegaly, Effusion */
    {9, 6, 0.12f},   /* Edema, Pneumonia */
    {10, 7, 0.22f},  /* Emphysema, Pneumothorax */
    {11, 12, 0.06f}, /* Fibrosis, Pleural_Thickening */
    {4, 5, 0.08f},   /* Mass, Nodule */
    {8, 0, 0.10f},   /* Consolidation, Atelectasis */
};
#define COMPANIONS (sizeof(companions) / sizeof(companions[0]))

/* `share` ten-thousandths of the patients have at most `images` images; interpolated linearly. */
static const struct {
    uint16_t images, share;
} image_counts[] = {
    {0, 0},     {1, 5682},  {2, 7017},  {3, 7699},  {4, 8130},  {6, 8690},  {9, 9174},   {12, 9445},
    {16, 9636}, {20, 9739}, {30, 9871}, {40, 9924}, {60, 9970}, {80, 9989}, {110, 9996}, {184, 10000},
};

/* Age at the first study, in deciles of the patients. */
static const uint8_t age_deciles[] = {1, 22, 30, 37, 43, 49, 54, 59, 64, 71, 92};

/* Indices into the table of detectors in synth_lists.c; a repeated index is used more often. */
static const uint8_t pa_detectors[] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3};
static const uint8_t ap_detectors[] = {1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 4, 4};
#define DETECTORS sizeof(pa_detectors)

/*
 * Percentages of the odd images.  Nearly all odd files of the real data set are RGBA (519 of 112,120); the other forms
 * occur in copies of it.
 */
static const uint8_t odd_forms[FORMS] = {
    [FORM_RGBA] = 50,  [FORM_GRAY16] = 10,     [FORM_PALETTE] = 10,
    [FORM_ADAM7] = 10, [FORM_GRAY_ALPHA] = 10, [FORM_RGB] = 10,
};

static unsigned
draw_image_count(struct draws *d, unsigned most)
{
    float share = draw(d) * 10000.0f;
    unsigned images, i = 1;

    while (share >= (float)image_counts[i].share)
        i++;
    images = image_counts[i - 1].images + 1;
    images += (unsigned)((share - (float)image_counts[i - 1].share) *
                         (float)(image_counts[i].images - image_counts[i - 1].images) /
                         (float)(image_counts[i].share - image_counts[i - 1].share));
    return images < most ? images : most;
}

/* Returns the probability that a study has a finding, for a patient with this number of images. */
static float
share_ill(unsigned images)
{
    if (images > 20)
        return 0.62f;
    if (images > 8)
        return 0.50f;
    if (images > 3)
        return 0.42f;
    return images > 1 ? 0.35f : 0.27f;
}

/*
 * Computes the probability of each finding in one attempt.  The prevalences are then correct after empty attempts were
 * repeated and companions were added.
 */
static void
attempt_rates(float rate[DRAWINGS])
{
    float none = 0.4f;
    unsigned i, round;
    size_t k;

    for (i = 0; i < DRAWINGS; i++)
        rate[i] = (float)prevalence[i] / 10000.0f / SHARE_ILL;
    for (k = 0; k < COMPANIONS; k++) {
        float brought = companions[k].probability * rate[companions[k].first];

        rate[companions[k].second] = (rate[companions[k].second] - brought) / (1.0f - brought);
    }
    /* P(empty) depends on the rates, and the rates on it: iterate to the fixed point. */
    for (round = 0; round < 40; round++) {
        float product = 1.0f;

        for (i = 0; i < DRAWINGS; i++)
            product *= 1.0f - rate[i] * (1.0f - none);
        none = product;
    }
    for (i = 0; i < DRAWINGS; i++)
        rate[i] *= 1.0f - none;
}

static uint16_t
draw_findings(struct draws *d, const float rate[DRAWINGS])
{
    unsigned set = 0;
    unsigned i;
    size_t k;

    while (set == 0)
        for (i = 0; i < DRAWINGS; i++)
            if (draw_chance(d, rate[i]))
                set |= 1u << i;
    for (k = 0; k < COMPANIONS; k++)
        if (set >> companions[k].first & 1 && draw_chance(d, companions[k].probability))
            set |= 1u << companions[k].second;
    return (uint16_t)set;
}

static enum form
draw_form(struct draws *d, unsigned odd_percent)
{
    int left = draw_whole(d, 0, 99);
    enum form form = FORM_RGBA;

    if (!draw_chance(d, (float)odd_percent / 100.0f))
        return FORM_GRAY8;
    while (left >= odd_forms[form])
        left -= odd_forms[form++];
    return form;
}

static uint8_t
draw_age(struct draws *d)
{
    float place = draw(d) * 10.0f;
    unsigned i = (unsigned)place;

    return (uint8_t)((float)age_deciles[i] + (place - (float)i) * (float)(age_deciles[i + 1] - age_deciles[i]));
}

/* Draws all studies of one patient; study[] has room for them. */
static void
make_studies(const struct population *p, uint32_t index, const float rate[DRAWINGS], unsigned odd_percent)
{
    struct person *person = &p->person[index];
    struct study *study = &p->study[person->first_study];
    struct draws d = draws_of(random_hash(p->seed, FOR_PERSON), index);
    unsigned images = person->study_count;
    float ap = images == 1 ? 0.07f : 0.92f * draw(&d);
    uint8_t age = draw_age(&d);
    unsigned i;

    person->sex = draw_chance(&d, SHARE_MALE) ? 'M' : 'F';
    for (i = 0; i < images; i++) {
        struct draws e = draws_of(random_hash(p->seed, FOR_STUDY), ((uint64_t)index << 16) + i);
        struct draws f = draws_of(random_hash(p->seed, FOR_FORM), ((uint64_t)index << 16) + i);

        if (i > 0 && age < 95 && draw_chance(&e, 0.1f))
            age++;
        study[i] = (struct study){.person = index, .number = (uint16_t)i, .age = age};
        study[i].ap = draw_chance(&e, ap);
        study[i].detector = (study[i].ap ? ap_detectors : pa_detectors)[draw_whole(&e, 0, DETECTORS - 1)];
        study[i].form = draw_form(&f, odd_percent);
        if (i > 0 && draw_chance(&e, REPEATS))
            study[i].findings = study[i - 1].findings;
        else if (draw_chance(&e, share_ill(images)))
            study[i].findings = draw_findings(&e, rate);
    }
}

/* Draws the number of images of each patient, until there are enough images. */
static enum chex_status
make_persons(struct population *p, uint32_t studies, struct chex_error *err)
{
    struct draws d = draws_of(p->seed, FOR_COUNTS);
    /* A small set must have several patients. */
    unsigned most = studies < 10 ? 1 : studies < 1840 ? studies / 10 : 184;
    size_t capacity = 0;
    uint32_t done = 0;

    while (done < studies) {
        unsigned images = draw_image_count(&d, most);
        struct person *person = array_grow(p->person, &capacity, p->person_count, sizeof(*person));

        if (!person)
            return error_memory(err);
        p->person = person;
        if (images > studies - done)
            images = studies - done;
        p->person[p->person_count++] = (struct person){.first_study = done, .study_count = (uint16_t)images};
        done += images;
    }
    return CHEX_OK;
}

/* Returns the badness of a split.  A finding that occurs on one side only counts like 2 % too many test images. */
static float
split_badness(const struct population *p, uint64_t key)
{
    uint32_t images[2] = {0, 0}, seen[2] = {0, 0};
    float off;
    size_t i;

    for (i = 0; i < p->study_count; i++) {
        struct draws d = draws_of(key, p->study[i].person);
        bool test = draw_chance(&d, SHARE_TEST);

        images[test]++;
        seen[test] |= p->study[i].findings;
    }
    off = (float)images[1] / (float)p->study_count - SHARE_TEST;
    return (off < 0.0f ? -off : off) + 0.02f * (float)__builtin_popcount(seen[0] ^ seen[1]) +
           (images[0] == 0 || images[1] == 0 ? 10.0f : 0.0f);
}

/*
 * Chooses the test patients: of several random splits by patient, the one with the smallest badness, that is, closest
 * to the official share and with the most findings on both sides.  This matters only for a small set.
 */
static void
make_split(struct population *p)
{
    uint64_t best = 0;
    float best_badness = 100.0f;
    unsigned attempt;
    size_t i;

    for (attempt = 0; attempt < SPLIT_ATTEMPTS; attempt++) {
        uint64_t key = random_hash(random_hash(p->seed, FOR_SPLIT), attempt);
        float badness = split_badness(p, key);

        if (badness < best_badness) {
            best_badness = badness;
            best = key;
        }
        /* Any split of a large set is good; do not read a million studies 64 times. */
        if (badness < 0.002f)
            break;
    }
    for (i = 0; i < p->person_count; i++) {
        struct draws d = draws_of(best, i);

        p->person[i].test = draw_chance(&d, SHARE_TEST);
    }
    /* With two patients, every split may have an empty side.  A single patient is for training. */
    if (best_badness >= 10.0f)
        for (i = 0; i < p->person_count; i++)
            p->person[i].test = p->person_count > 1 && i == p->person_count - 1;
}

/* ---- labels ---------------------------------------------------------------------------------------------------- */

const char *const synth_kind_names[] = {"nih", "cxr-lt", "chexpert", "padchest", NULL};
static const struct findings *const default_findings[] = {&findings_nih14, &findings_cxr_lt, &findings_chexpert,
                                                          &findings_padchest};

/* Returns the drawing of a finding with this name. */
static int8_t
drawing_of(const char *name)
{
    size_t length = strlen(name);
    int drawing = finding_index(&findings_nih14, name, length);

    if (finding_is_none(name, length))
        return NO_FINDING;
    if (ascii_is(name, length, "pleural effusion"))
        return EFFUSION;
    if (ascii_is(name, length, "infiltrates"))
        return INFILTRATION;
    return (int8_t)(drawing >= 0 ? drawing : NOT_DRAWN);
}

/* Returns the label of a finding before some become unknown; not for No Finding. */
static bool
is_present(const struct population *p, const struct study *study, unsigned finding, struct draws *d)
{
    int drawing = p->drawing[finding];

    *d = draws_of(random_hash(random_hash(p->seed, FOR_LABEL), finding),
                  ((uint64_t)study->person << 16) + study->number);
    return drawing >= 0 ? study->findings >> drawing & 1 : draw_chance(d, SHARE_OTHER);
}

uint8_t
population_label(const struct population *p, const struct study *study, unsigned finding)
{
    struct draws d;
    bool present;

    if (p->drawing[finding] == NO_FINDING) {
        for (unsigned i = 0; i < p->labels.findings.count; i++)
            if (p->drawing[i] != NO_FINDING && is_present(p, study, i, &d))
                return 0;
        return 1;
    }
    present = is_present(p, study, finding, &d);
    return p->labels.kind == SYNTH_CHEXPERT && draw_chance(&d, SHARE_UNKNOWN) ? CHEX_LABEL_UNKNOWN : present;
}

enum chex_status
population_make(uint32_t studies, uint64_t seed, unsigned odd_percent, const struct synth_labels *labels,
                struct population *out, struct chex_error *err)
{
    float rate[DRAWINGS];
    enum chex_status status;
    uint32_t i;

    *out = (struct population){.labels = *labels, .seed = seed, .study_count = studies};
    if (labels->findings.count == 0)
        out->labels.findings = *default_findings[labels->kind];
    for (i = 0; i < out->labels.findings.count; i++)
        out->drawing[i] = drawing_of(out->labels.findings.name[i]);
    status = make_persons(out, studies, err);
    if (status != CHEX_OK)
        return status;
    out->study = calloc(studies, sizeof(*out->study));
    if (!out->study)
        return error_memory(err);
    attempt_rates(rate);
    for (i = 0; i < out->person_count; i++)
        make_studies(out, i, rate, odd_percent);
    make_split(out);
    return CHEX_OK;
}

void
population_release(struct population *p)
{
    free(p->person);
    free(p->study);
    *p = (struct population){0};
}
