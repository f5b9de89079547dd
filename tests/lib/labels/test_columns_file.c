/*
 * test_columns_file.c - descriptions of label files (columns_file.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "label_fixture.h"
#include "labels/columns_file.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define UNKNOWN CHEX_LABEL_UNKNOWN

/* Reads a label file by a description. */
static void
read_by(const char *columns, const char *csv, struct label_kind **kind, struct labels *out)
{
    struct labels_options options = {0};
    struct chex_error err = {0};

    ck_assert_msg(columns_file_read(unit_file("columns.txt", columns, strlen(columns)), kind, &err) == CHEX_OK, "%s",
                  err.text);
    options.kind = *kind;
    labels_read_text(csv, &options, out);
}

TEST_CASE("labels", "columns", NULL, NULL);

TEST(a_description_names_columns_of_findings)
{
    struct label_kind *kind;
    struct labels l = {0};

    read_by("\xef\xbb\xbf# our hospital\r\nimage = File\r\n\r\npatient=MRN\nage\t=\tYears\nsex = Sex\nview = Position\n"
            "findings = Mass, Rib fracture\nfinding Lung Opacity = Op=1\nfindings = Edema\n",
            "Edema,op=1,rib_fracture,Mass,Position,Sex,Years,MRN,File,Nodule\n1,NO,-1,,PA,female,7,9,a.png,1\n", &kind,
            &l);
    ck_assert_str_eq(kind->title, "columns of columns.txt");
    ck_assert_uint_eq(l.findings.count, 4);
    ck_assert_str_eq(l.findings.name[2], "Lung Opacity");
    ck_assert_mem_eq(l.entry[0].label, ((uint8_t[]){UNKNOWN, UNKNOWN, 0, 1}), 4);
    ck_assert_str_eq(l.entry[0].name, "a.png");
    ck_assert_str_eq(l.entry[0].patient, "00000009");
    ck_assert_float_eq(l.entry[0].age, 7);
    ck_assert_int_eq(l.entry[0].sex, 'F');
    ck_assert_str_eq(l.entry[0].view, "PA");
    labels_release(&l);
    columns_file_free(kind);
}

TEST(a_description_names_a_column_with_a_list)
{
    struct label_kind *kind;
    struct labels l = {0};

    read_by("image = f\npatient = f\nlist = What\nseparator = ;\nfindings = Mass, Fracture, Edema",
            "f,What\na.png,fracture; Mass\nb.png,No Finding\n", &kind, &l);
    ck_assert_mem_eq(l.entry[0].label, ((uint8_t[]){1, 1, 0}), 3);
    ck_assert_mem_eq(l.entry[1].label, ((uint8_t[]){0, 0, 0}), 3);
    ck_assert_uint_eq(l.patient_count, 2);
    labels_release(&l);
    columns_file_free(kind);
    read_by("image = f\npatient = f\nlist = What\nseparator = python\nfindings = Mass, Edema",
            "f,What\na.png,\"['mass', 'other']\"\n", &kind, &l);
    ck_assert_mem_eq(l.entry[0].label, ((uint8_t[]){1, 0}), 2);
    labels_release(&l);
    columns_file_free(kind);
}

TEST(a_description_may_have_folders_a_suffix_and_empty_cells_of_0)
{
    struct label_kind *kind;
    struct labels l = {0};

    read_by("image = f\nfolders = 2\nsuffix = .jpg\nempty = 0\nfindings = Mass", "f,Mass\nx/p1/s1/a,\nx/p1/s2/a,1\n",
            &kind, &l);
    ck_assert_str_eq(l.entry[0].name, "p1/s1/a.jpg");
    ck_assert_str_eq(l.entry[1].patient, "p1");
    ck_assert_uint_eq(l.entry[0].label[0], 0);
    ck_assert_uint_eq(l.patient_count, 1);
    ck_assert_uint_eq(labels_name_parts(&l), 3);
    labels_release(&l);
    columns_file_free(kind);
}

#define GOOD "image = f\npatient = p\nfindings = Mass\n"

TEST(a_mistake_in_a_description_is_an_error_with_its_line)
{
    static const char *const wrong[][2] = {
        {"", ": no line with the key \"image\""},
        {"image = f\n", ": no line with the key \"patient\""},
        {"image = f\nfolders = 0\n", ": no line with the key \"patient\""},
        {"image = f\npatient = p\n", ": no line with the key \"findings\""},
        {GOOD "image = g\n", ":4: a second line with the key \"image\""},
        {GOOD "follow-up = g\n", ":4: unknown key \"follow-up\""},
        {"\n#\nimage f\n", ":3: expected key = value, found \"image f\""},
        {"image =\n", ":1: no value for \"image\""},
        {"= f\n", ":1: unknown key \"\""},
        {"image = \x1b[2J\n", ":1: a control character in \"image = \\x1b[2J\""},
        {GOOD "finding  = x\n", ":4: unknown key \"finding\""},
        {GOOD "findings = Edema,,Hernia\n", ": the name of finding 3, \"\", is empty"},
        {GOOD "findings = M_ASS\n", ": the findings \"Mass\" and \"M_ASS\" have the same name"},
        {GOOD "separator = ;\n", ": separator is only for a list"},
        {GOOD "list = l\nseparator = a\n", ": separator must be one of"},
        {GOOD "list = l\nseparator = ;;\n", ": separator must be one of"},
        {GOOD "list = l\nempty = 0\n", ": empty is not for a list"},
        {GOOD "list = l\nfinding Edema = x\n", ": a list has findings = NAME"},
        {GOOD "empty = 1\n", ": empty must be 0 or unknown"},
        {GOOD "folders = 9\n", ": folders must be 0 to 8"},
        {GOOD "folders = -1\n", ": folders must be 0 to 8"},
        {GOOD "suffix = /../x\n", ": suffix must have no slash"},
    };
    struct label_kind *kind;
    struct chex_error err;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *path = unit_file("wrong.txt", wrong[i][0], strlen(wrong[i][0]));
        char wanted[300];

        snprintf(wanted, sizeof(wanted), "%s%s", path, wrong[i][1]);
        ck_assert_int_eq(columns_file_read(path, &kind, &err), CHEX_ERR_USAGE);
        ck_assert_msg(strncmp(err.text, wanted, strlen(wanted)) == 0, "%s, not %s", err.text, wanted);
        ck_assert_ptr_null(kind);
    }
    ck_assert_int_eq(columns_file_read("/nonexistent/columns.txt", &kind, &err), CHEX_ERR_MISSING);
    ck_assert_int_eq(columns_file_read(unit_file("nul.txt", GOOD "\0", sizeof(GOOD)), &kind, &err), CHEX_ERR_USAGE);
    ck_assert_msg(strstr(err.text, ":4: a control character in \"\\x00\""), "%s", err.text);
}

TEST(a_description_has_at_most_254_findings_and_64_kib)
{
    static char text[70000];
    size_t used = 0;
    struct label_kind *kind;
    struct chex_error err;

    for (unsigned i = 0; i < 255; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "finding %03u = column %03u\n", i, i);
    used += (size_t)snprintf(text + used, sizeof(text) - used, "image = f\npatient = p\n");
    ck_assert_int_eq(columns_file_read(unit_file("255.txt", text, used), &kind, &err), CHEX_ERR_USAGE);
    ck_assert_msg(strstr(err.text, ":255: more than 254 findings"), "%s", err.text);
    text[0] = '#';
    ck_assert_msg(columns_file_read(unit_file("254.txt", text, used), &kind, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(kind->findings->count, 254);
    ck_assert_str_eq(label_kind_column(kind, "254"), "column 254");
    columns_file_free(kind);
    memset(text + used, '\n', sizeof(text) - used);
    ck_assert_int_eq(columns_file_read(unit_file("big.txt", text, sizeof(text)), &kind, &err), CHEX_ERR_USAGE);
    ck_assert_msg(strstr(err.text, "big.txt"), "%s", err.text);
}
