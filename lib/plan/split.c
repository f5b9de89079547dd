/*
 * split.c - see split.h
 *
 * All rules end with the same checks: no patient is in two splits, unless allowed, and no entry is in two or in none.
 * Fractions are compared as integers, without rounding: u < p/100 if and only if floor(100 u / 2^64) < p.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plan/split.h"

#include "base/ascii.h"
#include "base/number_format.h"
#include "labels/name_list.h"
#include "plan/split_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OFFICIAL_VAL_PERCENT 10
#define LEAKS_SHOWN          10
#define LIST_PATH            4224 /* a folder, a slash and the name of a list */

/* ---- the rule ------------------------------------------------------------------------------------------------- */

/* Parse decimal digits, and move *p after them. */
static bool
parse_number(const char **p, uint64_t *out)
{
    uint64_t value = 0;
    const char *first = *p;

    for (; ascii_is_digit(**p); (*p)++)
        if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, (uint64_t)(**p - '0'), &value))
            return false;
    *out = value;
    return *p > first;
}

/* Parse "70,10,20" or "70,10,20:5". */
static enum chex_status
parse_percents(const char *p, struct split_rule *out, struct chex_error *err)
{
    uint64_t sum = 0;

    for (int i = 0; i < 3; i++) {
        uint64_t percent;

        if ((i > 0 && *p++ != ',') || !parse_number(&p, &percent) || percent > 100)
            return error_set(err, CHEX_ERR_USAGE,
                             "a split by patient is patient:TRAIN,VAL,TEST[:SEED] in whole per "
                             "cent, such as patient:70,10,20");
        out->percent[i] = (unsigned)percent;
        sum += percent;
    }
    if (*p == ':') {
        p++;
        if (!parse_number(&p, &out->seed))
            return error_set(err, CHEX_ERR_USAGE, "the seed of a split is a whole number below 2^64");
    }
    if (*p != '\0')
        return error_set(err, CHEX_ERR_USAGE,
                         "a split by patient is patient:TRAIN,VAL,TEST[:SEED], with nothing after it");
    if (sum != 100)
        return error_set(err, CHEX_ERR_USAGE, "the per cents of a split add up to %u, not 100", (unsigned)sum);
    return CHEX_OK;
}

static const char *const kind_names[] = {
    [SPLIT_OFFICIAL] = "official", [SPLIT_PATIENT] = "patient", [SPLIT_FILE] = "file", [SPLIT_NONE] = "none", NULL};

enum chex_status
split_rule_of_dataset(const char *text, struct split_rule *out, struct chex_error *err)
{
    if (strcmp(text, kind_names[SPLIT_FILE]) != 0)
        return split_rule_parse(text, out, err);
    *out = (struct split_rule){.kind = SPLIT_FILE};
    return CHEX_OK;
}

enum chex_status
split_rule_parse(const char *text, struct split_rule *out, struct chex_error *err)
{
    char shown[100], word[16];
    size_t length = strcspn(text, ":");
    const char *rest = text[length] ? text + length + 1 : NULL;
    int kind;

    snprintf(word, sizeof(word), "%.*s", (int)length, text);
    kind = name_index(kind_names, word);
    if (kind < 0 || (rest != NULL) != (kind == SPLIT_PATIENT || kind == SPLIT_FILE))
        return error_set(err, CHEX_ERR_USAGE,
                         "unknown split \"%s\": official, patient:TRAIN,VAL,TEST[:SEED], file:PATH or "
                         "none",
                         ascii_escape(text, strlen(text), shown, sizeof(shown)));
    *out = (struct split_rule){.kind = (enum split_kind)kind};
    if (kind == SPLIT_PATIENT)
        return parse_percents(rest, out, err);
    if (kind == SPLIT_FILE && rest[0] == '\0')
        return error_set(err, CHEX_ERR_USAGE, "file: needs a path, as in file:splits.csv");
    if (kind == SPLIT_FILE && strlen(rest) >= sizeof(out->path))
        return error_set(err, CHEX_ERR_USAGE, "the path of the split file is too long");
    if (kind == SPLIT_FILE)
        strcpy(out->path, rest);
    return CHEX_OK;
}

void
split_rule_format(const struct split_rule *rule, char *out, size_t size)
{
    if (rule->kind == SPLIT_PATIENT)
        snprintf(out, size, "patient:%u,%u,%u:%llu", rule->percent[0], rule->percent[1], rule->percent[2],
                 (unsigned long long)rule->seed);
    else
        snprintf(out, size, "%s", kind_names[rule->kind]);
}

/* ---- assignment by patient ------------------------------------------------------------------------------------ */

/* Compute floor(100 u) of each patient, u as in split.h.  Returns an array to be freed, or NULL when out of memory. */
static uint8_t *
hash_patients(const struct labels *labels, uint64_t seed)
{
    struct digest *d = digest_new();
    uint8_t *percent = malloc(labels->patient_count + 1);
    char prefix[64];
    size_t length = (size_t)snprintf(prefix, sizeof(prefix), "chex-split:%llu:", (unsigned long long)seed);

    for (size_t i = 0; d && percent && i < labels->patient_count; i++) {
        uint8_t sum[DIGEST_SIZE];
        uint64_t high = 0, low = 0;

        digest_start(d);
        digest_add(d, prefix, length);
        digest_add(d, labels->patient[i], strlen(labels->patient[i]));
        digest_finish(d, sum);
        for (int k = 0; k < 4; k++) {
            high = high << 8 | sum[k];
            low = low << 8 | sum[4 + k];
        }
        percent[i] = (uint8_t)((high * 100 + (low * 100 >> 32)) >> 32);
    }
    if (!d) {
        free(percent);
        percent = NULL;
    }
    digest_free(d);
    return percent;
}

static enum chex_status
assign_by_patient(struct split_work *w, struct chex_error *err)
{
    const unsigned *share = w->rule->percent;
    uint8_t *percent = hash_patients(w->labels, w->rule->seed);
    /* In separate statements: the calls number the splits, so their order matters. */
    int train = split_work_name(w, "train"), val = split_work_name(w, "val"), test = split_work_name(w, "test");
    const int split[3] = {train, val, test};

    if (!percent)
        return error_memory(err);
    for (size_t i = 0; i < w->labels->count; i++) {
        unsigned p = percent[w->labels->entry[i].patient_no];

        split_work_put(w, i, split[p < share[0] ? 0 : p < share[0] + share[1] ? 1 : 2]);
    }
    free(percent);
    return CHEX_OK;
}

/* ---- the official lists --------------------------------------------------------------------------------------- */

static bool
is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Find a list or its .gz.  Returns false if neither is a file; then path is that of the plain list. */
static bool
find_list(const char *folder, const char *name, char path[LIST_PATH])
{
    int length = snprintf(path, LIST_PATH, "%s%s%s", folder, folder[0] ? "/" : "", name);

    if (length < 0 || (size_t)length + sizeof(".gz") > LIST_PATH)
        return false;
    if (is_file(path))
        return true;
    strcpy(path + length, ".gz");
    if (is_file(path))
        return true;
    path[length] = '\0';
    return false;
}

bool
split_has_lists(const char *folder)
{
    char path[LIST_PATH];

    return find_list(folder, SPLIT_LIST_TRAIN, path) && find_list(folder, SPLIT_LIST_TEST, path);
}

static enum chex_status
read_list(const char *folder, const char *name, unsigned parts, struct names *out, struct chex_error *err)
{
    char path[LIST_PATH];

    find_list(folder, name, path);
    return names_read(path, parts, out, err);
}

/*
 * Put the entries that are in the list into split[0].  With percent, put a tenth of the patients into split[1] instead.
 * Entries and list are both sorted, so one pass over both finds the entries.
 */
static void
put_listed(struct split_work *w, const struct names *list, const uint8_t *percent, const int split[2])
{
    size_t n = 0;

    for (size_t i = 0; i < w->labels->count; i++) {
        const struct entry *e = &w->labels->entry[i];

        while (n < list->count && strcmp(list->name[n], e->name) < 0)
            n++;
        if (n < list->count && strcmp(list->name[n], e->name) == 0)
            split_work_put(w, i, split[percent && percent[e->patient_no] < OFFICIAL_VAL_PERCENT]);
    }
}

static enum chex_status
assign_official(struct split_work *w, struct chex_error *err)
{
    struct names train = {0}, test = {0};
    uint8_t *percent = hash_patients(w->labels, 0);
    /* In separate statements: the calls number the splits, so their order matters. */
    int train_split = split_work_name(w, "train"), val_split = split_work_name(w, "val");
    int split[2] = {train_split, val_split}, split_test[2] = {split_work_name(w, "test"), 0};
    enum chex_status status = percent ? CHEX_OK : error_memory(err);

    if (status == CHEX_OK)
        status = read_list(w->rule->path, SPLIT_LIST_TRAIN, labels_name_parts(w->labels), &train, err);
    if (status == CHEX_OK)
        status = read_list(w->rule->path, SPLIT_LIST_TEST, labels_name_parts(w->labels), &test, err);
    if (status == CHEX_OK) {
        put_listed(w, &train, percent, split);
        put_listed(w, &test, NULL, split_test);
    }
    notes_move(&w->out->notes, &train.notes);
    notes_move(&w->out->notes, &test.notes);
    names_release(&train);
    names_release(&test);
    free(percent);
    return status;
}

/* ---- splits of another data set -------------------------------------------------------------------------------- */

static void
assign_given(struct split_work *w)
{
    const struct split_given *given = w->rule->given;
    int split[SPLIT_MAX] = {0};

    for (unsigned i = 0; i < given->count; i++)
        split[i] = split_work_name(w, given->name[i]);
    for (size_t i = 0; i < w->labels->count; i++)
        if (given->of_entry[i] != SPLIT_OUTSIDE)
            split_work_put(w, i, split[given->of_entry[i]]);
}

/* ---- checks of all rules -------------------------------------------------------------------------------------- */

/* Add the name of the lists to an error about them. */
static enum chex_status
name_lists(const struct split_work *w, struct chex_error *err)
{
    if (w->rule->kind == SPLIT_OFFICIAL && !w->rule->given)
        return error_context(err, CHEX_ERR_USAGE, "%s and %s", SPLIT_LIST_TRAIN, SPLIT_LIST_TEST);
    return error_context(err, CHEX_ERR_USAGE, "'%s'", w->rule->path);
}

/* Check that no image is in two splits. */
static enum chex_status
check_twice(const struct split_work *w, struct chex_error *err)
{
    const char *name = w->twice ? w->labels->entry[w->twice_entry].name : "";
    char shown[300];

    if (!w->twice)
        return CHEX_OK;
    error_set(err, CHEX_ERR_USAGE, "image %s is in %s and %s", ascii_escape(name, strlen(name), shown, sizeof(shown)),
              w->out->name[w->twice_split[0]], w->out->name[w->twice_split[1]]);
    return name_lists(w, err);
}

/* Check that no patient is in two splits. */
static enum chex_status
check_leaks(const struct split_work *w, struct chex_error *err)
{
    char text[900] = "", shown[200];
    size_t used = 0, leaks = 0;

    for (size_t i = 0; i < w->labels->patient_count; i++) {
        unsigned in = w->patient_in[i];
        int first, second;

        if ((in & (in - 1)) == 0) /* none or one */
            continue;
        if (++leaks > LEAKS_SHOWN)
            continue;
        first = __builtin_ctz(in);
        second = __builtin_ctz(in & (in - 1));
        ascii_escape(w->labels->patient[i], strlen(w->labels->patient[i]), shown, sizeof(shown));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%spatient %s is in %s and %s", used > 0 ? ", " : "",
                                 shown, w->out->name[first], w->out->name[second]);
        if (used >= sizeof(text))
            used = sizeof(text) - 1;
    }
    if (leaks == 0)
        return CHEX_OK;
    if (leaks == 1)
        error_set(err, CHEX_ERR_USAGE, "%s", text);
    else
        error_set(err, CHEX_ERR_USAGE, "%s patients are in two splits: %s%s", COUNT_TEXT(leaks), text,
                  leaks > LEAKS_SHOWN ? ", ..." : "");
    return name_lists(w, err);
}

/* Check that every entry is in a split, unless it is skipped. */
static enum chex_status
check_outside(const struct split_work *w, struct chex_error *err)
{
    const char *first = NULL;
    char shown[300];

    for (size_t i = 0; i < w->labels->count; i++) {
        if (w->out->of_entry[i] == SPLIT_OUTSIDE && !(w->skip && w->skip[i])) {
            first = first ? first : w->labels->entry[i].name;
            w->out->outside++;
        }
    }
    if (!first)
        return CHEX_OK;
    ascii_escape(first, strlen(first), shown, sizeof(shown));
    if (w->rule->kind == SPLIT_FILE || w->rule->given)
        return error_set(err, CHEX_ERR_USAGE, "%s image%s in no split of '%s', the first is %s",
                         COUNT_TEXT(w->out->outside), w->out->outside == 1 ? " is" : "s are", w->rule->path, shown);
    return error_set(err, CHEX_ERR_USAGE, "%s image%s in neither %s nor %s, the first is %s%s%s",
                     COUNT_TEXT(w->out->outside), w->out->outside == 1 ? " is" : "s are", SPLIT_LIST_TRAIN,
                     SPLIT_LIST_TEST, shown, w->out->notes.count[NOTE_GLUED] > 0 ? "; two names in one line: " : "",
                     w->out->notes.count[NOTE_GLUED] > 0 ? w->out->notes.text[NOTE_GLUED][0] : "");
}

/* Order train, val, test, then the others by name. */
static int
compare_splits(const char *a, const char *b)
{
    static const char *const order[] = {"train", "val", "test"};

    for (int i = 0; i < 3; i++) {
        if (strcmp(a, order[i]) == 0 || strcmp(b, order[i]) == 0)
            return (strcmp(b, order[i]) == 0) - (strcmp(a, order[i]) == 0);
    }
    return strcmp(a, b);
}

/* Count the images, the patients, and the patients in two splits. */
static void
count(const struct split_work *w)
{
    struct split_set *set = w->out;

    for (size_t i = 0; i < w->labels->count; i++) {
        unsigned in = w->patient_in[w->labels->entry[i].patient_no];

        if (set->of_entry[i] == SPLIT_OUTSIDE)
            continue;
        set->images[set->of_entry[i]]++;
        set->leaky_images += (in & (in - 1)) != 0;
    }
    for (size_t i = 0; i < w->labels->patient_count; i++) {
        unsigned in = w->patient_in[i];

        set->leaky_patients += (in & (in - 1)) != 0;
        for (; in != 0; in &= in - 1)
            set->patients[__builtin_ctz(in)]++;
    }
}

/* Count, remove the splits without an image, and sort the others. */
static enum chex_status
finish(const struct split_work *w, struct chex_error *err)
{
    struct split_set *set = w->out;
    struct split_set sorted;
    uint8_t place[SPLIT_MAX];

    count(w);
    sorted = (struct split_set){.of_entry = set->of_entry,
                                .notes = set->notes,
                                .leaky_patients = set->leaky_patients,
                                .leaky_images = set->leaky_images};
    for (unsigned i = 0; i < set->count; i++) {
        unsigned before = 0;

        for (unsigned k = 0; k < set->count; k++)
            before += set->images[k] > 0 && compare_splits(set->name[k], set->name[i]) < 0;
        place[i] = (uint8_t)before;
        if (set->images[i] == 0)
            continue;
        memcpy(sorted.name[before], set->name[i], SPLIT_NAME_MAX);
        sorted.images[before] = set->images[i];
        sorted.patients[before] = set->patients[i];
        sorted.count++;
    }
    for (size_t i = 0; i < w->labels->count; i++)
        if (set->of_entry[i] != SPLIT_OUTSIDE)
            set->of_entry[i] = place[set->of_entry[i]];
    *set = sorted;
    return set->count > 0 ? CHEX_OK : error_set(err, CHEX_ERR_USAGE, "there is no image to put into a split");
}

enum chex_status
split_assign(const struct split_rule *rule, const struct labels *labels, const bool *skip, struct split_set *out,
             struct chex_error *err)
{
    struct split_work w = {.rule = rule, .labels = labels, .skip = skip, .out = out};
    enum chex_status status = CHEX_OK;

    out->of_entry = malloc(labels->count + 1);
    w.patient_in = calloc(labels->patient_count + 1, sizeof(*w.patient_in));
    if (!out->of_entry || !w.patient_in) {
        free(w.patient_in);
        return error_memory(err);
    }
    memset(out->of_entry, SPLIT_OUTSIDE, labels->count + 1);
    switch (rule->kind) {
    case SPLIT_OFFICIAL:
        if (rule->given)
            assign_given(&w);
        else
            status = assign_official(&w, err);
        break;
    case SPLIT_PATIENT:
        status = assign_by_patient(&w, err);
        break;
    case SPLIT_FILE:
        if (rule->given)
            assign_given(&w);
        else
            status = split_file_assign(&w, err);
        break;
    case SPLIT_NONE:
        split_work_name(&w, "all");
        for (size_t i = 0; i < labels->count; i++)
            split_work_put(&w, i, 0);
        break;
    }
    if (status == CHEX_OK)
        status = rule->allow_leak ? check_twice(&w, err) : check_leaks(&w, err);
    if (status == CHEX_OK)
        status = check_outside(&w, err);
    if (status == CHEX_OK)
        status = finish(&w, err);
    free(w.patient_in);
    return status;
}

void
split_set_release(struct split_set *set)
{
    free(set->of_entry);
    notes_release(&set->notes);
    *set = (struct split_set){0};
}
