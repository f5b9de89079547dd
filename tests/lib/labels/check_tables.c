/*
 * check_tables.c - prints what libchex reads from label files, lists and splits, for check_tables.py
 *
 *     check-tables labels FILE                  name, patient, findings (bit mask), age, sex, view of each entry
 *     check-tables names FILE                   one name per line
 *     check-tables boxes FILE                   name, finding, x, y, width, height of each box
 *     check-tables split RULE LABELS [FOLDER]   name, patient, split; FOLDER has the lists of `official`
 *
 * Tab-separated, sorted by name.  A line that starts with '#' is a fact about the whole file: "# key value".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/box_list.h"
#include "labels/name_list.h"
#include "labels_mask.h"
#include "plan/split.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
fail(const struct chex_error *err)
{
    fprintf(stderr, "check-tables: %s: %s\n", chex_status_name(err->status), err->text);
    return 2;
}

static void
print_entry(const struct entry *e)
{
    printf("%s\t%s\t%u\t", e->name, e->patient, labels_mask(e->label, 14));
    if (isnan(e->age))
        printf("nan"); /* printf might print a sign */
    else
        printf("%.9g", (double)e->age);
    printf("\t%c\t%s\n", e->sex, e->view);
}

static int
print_labels(const char *path)
{
    struct labels_options options = {0};
    struct labels labels = {0};
    struct chex_error err;
    int code = 0;

    if (labels_read(path, &options, &labels, &err) == CHEX_OK) {
        printf("# sha256 %s\n# patients %zu\n# rows %zu\n# duplicates %zu\n# unknown_ages %zu\n# impossible_ages %zu\n",
               labels.sha256, labels.patient_count, labels.row_count, labels.duplicate_rows, labels.unknown_ages,
               labels.impossible_ages);
        for (size_t i = 0; i < labels.reject_count; i++)
            printf("# reject %lu %s\n", (unsigned long)labels.reject[i].line, labels.reject[i].reason);
        for (size_t i = 0; i < labels.count; i++)
            print_entry(&labels.entry[i]);
    } else {
        code = fail(&err);
    }
    labels_release(&labels);
    return code;
}

static int
print_boxes(const char *path)
{
    struct box_list list = {.count = 0};
    struct chex_error err;
    int code = 0;

    if (box_list_read(path, &findings_nih14, 1, &list, &err) == CHEX_OK) {
        printf("# sha256 %s\n", list.sha256);
        for (size_t i = 0; i < list.count; i++) {
            const struct listed_box *b = &list.box[i];

            printf("%s\t%s\t%.17g\t%.17g\t%.17g\t%.17g\n", b->image, findings_nih14.name[b->finding], b->x, b->y,
                   b->width, b->height);
        }
    } else {
        code = fail(&err);
    }
    box_list_release(&list);
    return code;
}

static int
print_names(const char *path)
{
    struct names names = {0};
    struct chex_error err;
    int code = 0;

    if (names_read(path, 1, &names, &err) == CHEX_OK) {
        printf("# repeated %zu\n", names.repeated);
        for (size_t i = 0; i < names.count; i++)
            puts(names.name[i]);
    } else {
        code = fail(&err);
    }
    names_release(&names);
    return code;
}

static int
print_split(const char *text, const char *path, const char *folder)
{
    struct labels_options options = {0};
    struct labels labels = {0};
    struct split_rule rule;
    struct split_set set = {0};
    struct chex_error err;
    int code = 0;

    if (split_rule_parse(text, &rule, &err) != CHEX_OK)
        return fail(&err);
    if (folder)
        snprintf(rule.path, sizeof(rule.path), "%s", folder);
    if (labels_read(path, &options, &labels, &err) == CHEX_OK &&
        split_assign(&rule, &labels, NULL, &set, &err) == CHEX_OK) {
        for (unsigned i = 0; i < set.count; i++)
            printf("# split_%s %zu %zu\n", set.name[i], set.images[i], set.patients[i]);
        for (size_t i = 0; i < labels.count; i++)
            printf("%s\t%s\t%s\n", labels.entry[i].name, labels.entry[i].patient, set.name[set.of_entry[i]]);
    } else {
        code = fail(&err);
    }
    split_set_release(&set);
    labels_release(&labels);
    return code;
}

int
main(int argc, char **argv)
{
    int code = 2;

    if (argc == 3 && strcmp(argv[1], "labels") == 0)
        code = print_labels(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "names") == 0)
        code = print_names(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "boxes") == 0)
        code = print_boxes(argv[2]);
    else if ((argc == 4 || argc == 5) && strcmp(argv[1], "split") == 0)
        code = print_split(argv[2], argv[3], argc == 5 ? argv[4] : NULL);
    else
        fprintf(stderr, "usage: check-tables labels FILE | names FILE | boxes FILE | split RULE LABELS [FOLDER]\n");
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "check-tables: cannot write\n");
        return 4;
    }
    return code;
}
