/*
 * lists.c - fuzz target: lists of names, split files, and the text of --split
 *
 * The first byte chooses one of them:
 *
 * - Names: sorted, unique, without folders; written as a CSV, they are read as the same names, unless that CSV looks
 *   like another format.
 * - A split file: every image is in an existing split, the sums agree, no patient is in two splits; written again, it
 *   splits in the same way.
 * - The rule of --split: an accepted rule is written and accepted again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "io/content.h"
#include "labels/name_list.h"
#include "plan/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
append(struct buffer *b, const char *text)
{
    FUZZ_REQUIRE(buffer_append(b, text, strlen(text), NULL) == CHEX_OK);
}

static void
append_quoted(struct buffer *b, const char *text, const char *end)
{
    append(b, "\"");
    for (; *text; text++)
        append(b, *text == '"' ? "\"\"" : (char[]){*text, '\0'});
    append(b, end);
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* Require of a CSV with these names that it is read as the same names. */
static void
require_read_back(const struct names *names)
{
    struct names again = {0};
    struct buffer b = {0};
    struct chex_error err = {0};

    append(&b, "Image Index\n");
    for (size_t i = 0; i < names->count; i++)
        append_quoted(&b, names->name[i], "\"\n");
    /* Names with control characters may put a signature at its place: "ustar" at byte 257. */
    if (!content_look_for_text(b.data, b.size)) {
        if (names_read(fuzz_file(1, b.data, b.size), 1, &again, &err) != CHEX_OK)
            fuzz_fail(__FILE__, __LINE__, err.text);
        FUZZ_REQUIRE(again.count == names->count && again.repeated == 0);
        for (size_t i = 0; i < names->count; i++)
            FUZZ_REQUIRE(strcmp(names->name[i], again.name[i]) == 0);
    }
    names_release(&again);
    buffer_release(&b);
}

static void
fuzz_names(const uint8_t *data, size_t size)
{
    struct names names = {0};
    struct chex_error err = {0};
    enum chex_status status = names_read(fuzz_file(0, data, size), 1, &names, &err);

    fuzz_require_error(status, &err);
    if (status == CHEX_OK && names.count > 0) {
        for (size_t i = 0; i < names.count; i++) {
            FUZZ_REQUIRE(i == 0 || strcmp(names.name[i - 1], names.name[i]) < 0);
            FUZZ_REQUIRE(names.name[i][0] != '\0' && strlen(names.name[i]) <= 255 && !strchr(names.name[i], '/'));
            FUZZ_REQUIRE(names_have(&names, names.name[i]));
        }
        require_read_back(&names);
    }
    names_release(&names);
}

/* ---- split files ----------------------------------------------------------------------------------------------- */

/* Three patients, two images each. */
static const char *const patients[] = {"00000001", "00000002", "x,y"};
static struct entry entries[] = {
    {.name = "00000001_000.png", .patient = "00000001", .patient_no = 0},
    {.name = "00000001_001.png", .patient = "00000001", .patient_no = 0},
    {.name = "00000002_000.png", .patient = "00000002", .patient_no = 1},
    {.name = "00000002_001.png", .patient = "00000002", .patient_no = 1},
    {.name = "a.png", .patient = "x,y", .patient_no = 2},
    {.name = "b \"c\".png", .patient = "x,y", .patient_no = 2},
};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

static void
require_set(const struct split_set *set)
{
    size_t images[SPLIT_MAX] = {0};

    FUZZ_REQUIRE(set->count > 0 && set->count <= SPLIT_MAX && set->outside == 0);
    for (size_t i = 0; i < ENTRIES; i++) {
        FUZZ_REQUIRE(set->of_entry[i] < set->count && set->of_entry[i] == set->of_entry[i ^ 1]);
        images[set->of_entry[i]]++;
    }
    for (unsigned i = 0; i < set->count; i++) {
        FUZZ_REQUIRE(set->images[i] == images[i] && images[i] > 0 && set->patients[i] == images[i] / 2);
        FUZZ_REQUIRE(set->name[i][0] != '\0' && strlen(set->name[i]) < SPLIT_NAME_MAX &&
                     set->name[i][strspn(set->name[i], "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0');
    }
}

static void
fuzz_split_file(const uint8_t *data, size_t size)
{
    struct labels labels = {
        .entry = entries, .count = ENTRIES, .patient_count = 3, .patient = (const char **)(uintptr_t)patients};
    struct split_rule rule = {.kind = SPLIT_FILE};
    struct split_set set = {0}, again = {0};
    struct buffer b = {0};
    struct chex_error err = {0};
    enum chex_status status;

    snprintf(rule.path, sizeof(rule.path), "%s", fuzz_file(0, data, size));
    status = split_assign(&rule, &labels, NULL, &set, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        require_set(&set);
        append(&b, "Image Index,split\n");
        for (size_t i = 0; i < ENTRIES; i++) {
            append_quoted(&b, entries[i].name, "\",");
            append(&b, set.name[set.of_entry[i]]);
            append(&b, "\n");
        }
        snprintf(rule.path, sizeof(rule.path), "%s", fuzz_file(1, b.data, b.size));
        if (split_assign(&rule, &labels, NULL, &again, &err) != CHEX_OK)
            fuzz_fail(__FILE__, __LINE__, err.text);
        FUZZ_REQUIRE(again.count == set.count && memcmp(again.of_entry, set.of_entry, ENTRIES) == 0);
        for (unsigned i = 0; i < set.count; i++)
            FUZZ_REQUIRE(strcmp(again.name[i], set.name[i]) == 0);
    }
    split_set_release(&set);
    split_set_release(&again);
    buffer_release(&b);
}

/* ---- the rule -------------------------------------------------------------------------------------------------- */

static void
fuzz_rule(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), formatted[64], twice[64];
    struct split_rule rule, again;
    struct chex_error err = {0};
    enum chex_status status;

    FUZZ_REQUIRE(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    status = split_rule_parse(text, &rule, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        split_rule_format(&rule, formatted, sizeof(formatted));
        FUZZ_REQUIRE(strlen(formatted) < sizeof(formatted) - 1);
        if (rule.kind == SPLIT_FILE) {
            FUZZ_REQUIRE(strcmp(rule.path, text + strlen("file:")) == 0);
        } else {
            FUZZ_REQUIRE(split_rule_parse(formatted, &again, &err) == CHEX_OK && again.kind == rule.kind &&
                         again.seed == rule.seed && memcmp(again.percent, rule.percent, sizeof(rule.percent)) == 0);
            split_rule_format(&again, twice, sizeof(twice));
            FUZZ_REQUIRE(strcmp(twice, formatted) == 0);
        }
        FUZZ_REQUIRE(rule.kind != SPLIT_PATIENT || rule.percent[0] + rule.percent[1] + rule.percent[2] == 100);
    }
    free(text);
}

/* ---------------------------------------------------------------------------------------------------------------- */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 'n')
        fuzz_names(data + 1, size - 1);
    else if (data[0] == 's')
        fuzz_split_file(data + 1, size - 1);
    else if (data[0] == 'r')
        fuzz_rule(data + 1, size - 1);
    return 0;
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const struct {
        const char *name, *text;
    } texts[] = {
        {"names", "n00000001_000.png\n00000002_000.png\r\n00000001_000.png\n"},
        {"names-of-folders", "nimages/00000001_000.png 0 1 0\n  x/y/z.png\t1\n\n"},
        {"names-in-csv", "nImage Index,Finding Label,Bbox [x,y,w,h],,,\n\"a \"\"b\"\".png\",Mass,1,2,3,4\n"},
        {"names-folder-alone", "nimages/\n"},
        {"names-empty", "n"},
        {"split-by-image", "sImage Index,split\n00000001_000.png,train\n00000001_001.png,train\n00000002_000.png,val\n"
                           "00000002_001.png,valid\nx/a.png,test\n\"b \"\"c\"\".png\",TEST\n"},
        {"split-by-patient", "sPatient ID,fold\n1,0\n2,1\n\"x,y\",fold_2\n9,9\n"},
        {"split-leak", "sname,set\n00000001_000.png,train\n00000001_001.png,test\n"},
        {"split-twice", "spatient,subset\n1,a\n00000001,b\n"},
        {"rule-official", "rofficial"},
        {"rule-none", "rnone"},
        {"rule-patient", "rpatient:70,10,20"},
        {"rule-seed", "rpatient:0,100,0:18446744073709551615"},
        {"rule-file", "rfile:splits.csv"},
        {"rule-sum", "rpatient:70,10,21"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        give(texts[i].name, texts[i].text, strlen(texts[i].text), context);
}
