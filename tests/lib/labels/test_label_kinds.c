/*
 * test_label_kinds.c - the kinds of label files: detection by the header, and a few rows of each (label_kinds.h)
 *
 * The headers are those of the files named in label_kinds.c; the rows have the form of theirs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "label_fixture.h"
#include "labels/label_kinds.h"
#include "labels_mask.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NIH_COLUMNS                                                                               \
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position," \
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
#define GOOGLE_FINDINGS "Fracture,Pneumothorax,Airspace opacity,Nodule or mass"
#define CXR_LT_FINDINGS                                                                                         \
    "Atelectasis,Cardiomegaly,Consolidation,Edema,Effusion,Emphysema,Fibrosis,Hernia,Infiltration,Mass,Nodule," \
    "Pleural Thickening,Pneumonia,Pneumothorax,Pneumoperitoneum,Pneumomediastinum,Subcutaneous Emphysema,"      \
    "Tortuous Aorta,Calcification of the Aorta,No Finding"

#define CHEXPERT_FINDINGS                                                                                        \
    "No Finding,Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,Lung Lesion,Edema,Consolidation,Pneumonia," \
    "Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,Fracture,Support Devices"

#define UNKNOWN CHEX_LABEL_UNKNOWN

static const struct {
    const char *name, *header;
} headers[] = {
    {"nih", NIH_COLUMNS},
    {"google", "Image Index,Patient ID," GOOGLE_FINDINGS ",Set Id"},
    {"rsna", "patientId,x,y,width,height,Target"},
    {"chexpert", "Path,Sex,Age,Frontal/Lateral,AP/PA," CHEXPERT_FINDINGS},
    {"padchest", "ImageID,ImageDir,StudyDate_DICOM,StudyID,PatientID,PatientBirth,PatientSex_DICOM,Projection,Labels"},
    {"cxr-lt", "id," CXR_LT_FINDINGS ",subj_id"},
};

#define HEADERS (sizeof(headers) / sizeof(headers[0]))

/* Reads the header of a file; returns the status and the kind. */
static enum chex_status
on_header(const struct table_row *row, void *context, struct chex_error *err)
{
    return label_kind_find(row, context, err);
}

static enum chex_status
find_kind(const char *header, const struct label_kind **kind, struct chex_error *err)
{
    return table_read(unit_file("header.csv", header, strlen(header)), on_header, kind, NULL, err);
}

static void
read_as(const char *kind, const char *csv, struct labels *out)
{
    struct labels_options options = {.kind = kind ? label_kind_named(kind) : NULL};

    labels_read_text(csv, &options, out);
}

TEST_CASE("labels", "kinds", NULL, NULL);

TEST(the_header_decides_the_kind)
{
    const struct label_kind *kind;

    for (size_t i = 0; i < HEADERS; i++) {
        ck_assert_int_eq(find_kind(headers[i].header, &kind, NULL), CHEX_OK);
        ck_assert_str_eq(kind->name, headers[i].name);
        ck_assert_ptr_eq(kind, label_kind_named(headers[i].name));
    }
    ck_assert_int_eq(find_kind("a,b,c", &kind, NULL), CHEX_OK);
    ck_assert_ptr_eq(kind, &label_kind_nih);
    ck_assert_ptr_null(label_kind_named("NIH"));
    for (size_t i = 0; label_kind_names[i]; i++) {
        ck_assert_str_eq(label_kind_named(label_kind_names[i])->name, label_kind_names[i]);
        ck_assert(i == 0 || strcmp(label_kind_names[i - 1], label_kind_names[i]) < 0);
        ck_assert_uint_lt(i, HEADERS);
    }
}

TEST(a_header_of_two_kinds_is_an_error_that_names_both)
{
    for (size_t i = 0; i < HEADERS; i++) {
        for (size_t k = 0; k < HEADERS; k++) {
            const struct label_kind *kind;
            struct chex_error err = {0};
            char header[2000], option[64];

            snprintf(header, sizeof(header), "%s,%s", headers[i].header, headers[k].header);
            if (i == k)
                continue;
            ck_assert_int_eq(find_kind(header, &kind, &err), CHEX_ERR_USAGE);
            snprintf(option, sizeof(option), "--label-kind %s", headers[i].name);
            ck_assert_msg(strstr(err.text, option), "%s", err.text);
            snprintf(option, sizeof(option), "--label-kind %s", headers[k].name);
            ck_assert_msg(strstr(err.text, option), "%s", err.text);
        }
    }
    labels_expect_error("Image Index,Finding Labels,Patient ID," GOOGLE_FINDINGS "\na.png,Mass,1,NO,NO,NO,YES\n",
                        ":1: the columns are those of NIH relabelled by Google and of NIH Data_Entry: choose with "
                        "--label-kind google or --label-kind nih");
}

TEST(googles_labels_of_nih_images_are_read)
{
    static const char csv[] = NIH_COLUMNS "," GOOGLE_FINDINGS ",Set Id\n"
                                          "00000013_008.png,No Finding,8,13,60,M,AP,3056,2544,0.139,0.139,NO,NO,YES,"
                                          "NO,test\n"
                                          "00000013_026.png,Cardiomegaly|Emphysema,26,13,57,M,AP,2500,2048,0.168,"
                                          "0.168,NO,YES,NO,,test\n";
    struct labels l = {0};

    read_as("google", csv, &l);
    ck_assert_uint_eq(l.count, 2);
    ck_assert_uint_eq(l.findings.count, 4);
    ck_assert_str_eq(l.findings.name[3], "Nodule or mass");
    ck_assert_mem_eq(l.entry[0].label, ((uint8_t[]){0, 0, 1, 0}), 4);
    ck_assert_mem_eq(l.entry[1].label, ((uint8_t[]){0, 1, 0, UNKNOWN}), 4);
    ck_assert_str_eq(l.entry[0].patient, "00000013");
    ck_assert_float_eq(l.entry[1].age, 57);
    ck_assert_str_eq(l.entry[1].view, "AP");
    labels_release(&l);
    read_as("nih", csv, &l);
    ck_assert_uint_eq(l.findings.count, 14);
    ck_assert_uint_eq(labels_mask(l.entry[1].label, 14), 1 << 1 | 1 << 10);
    labels_release(&l);
}

TEST(rsna_boxes_become_one_label_per_image)
{
    struct labels l = {0};

    read_as(NULL,
            "patientId,x,y,width,height,Target\n"
            "0004cfab-14fd-4e49-80ba-63a80b6bddd6,,,,,0\n"
            "00436515-870c-4b36-a041-de91049b9ab4,264.0,152.0,213.0,379.0,1\n"
            "00436515-870c-4b36-a041-de91049b9ab4,562.0,152.0,256.0,453.0,1\n",
            &l);
    ck_assert_str_eq(l.kind->name, "rsna");
    ck_assert_uint_eq(l.count, 2);
    ck_assert_uint_eq(l.duplicate_rows, 1);
    ck_assert_str_eq(l.findings.name[0], "Lung Opacity");
    ck_assert_str_eq(l.entry[1].name, "00436515-870c-4b36-a041-de91049b9ab4.png");
    ck_assert_str_eq(l.entry[1].patient, "00436515-870c-4b36-a041-de91049b9ab4");
    ck_assert_uint_eq(l.entry[0].label[0], 0);
    ck_assert_uint_eq(l.entry[1].label[0], 1);
    ck_assert(l.no_age && l.no_sex && l.no_view);
    labels_release(&l);
}

TEST(cxr_lt_has_20_findings)
{
    struct labels l = {0};

    read_as(NULL,
            "id," CXR_LT_FINDINGS ",subj_id\n"
            "00000001_000.png,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,0,1\n"
            "00000003_000.png,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,3\n",
            &l);
    ck_assert_str_eq(l.kind->title, "NIH-CXR-LT");
    ck_assert_uint_eq(l.findings.count, 20);
    ck_assert_mem_eq(l.entry[0].label, ((uint8_t[20]){[1] = 1, [18] = 1}), 20);
    ck_assert_mem_eq(l.entry[1].label, ((uint8_t[20]){[19] = 1}), 20);
    ck_assert_str_eq(l.entry[1].patient, "00000003");
    labels_release(&l);
}

TEST(chexpert_rows_have_unknown_labels_and_a_patient_in_the_path)
{
    struct labels l = {0};

    read_as(NULL,
            "Path,Sex,Age,Frontal/Lateral,AP/PA," CHEXPERT_FINDINGS "\n"
            "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,,,,,,,,,0.0,,,,"
            "1.0\n"
            "train/patient00002/study2/view1_frontal.jpg,Female,87,Frontal,PA,,,-1.0,1.0,,-1.0,-1.0,,-1.0,,-1.0,,1.0,"
            "\n"
            "train/patient00002/study1/view2_lateral.jpg,Unknown,83,Lateral,,,,,1.0,,,-1.0,,,,,,1.0,\n",
            &l);
    ck_assert_str_eq(l.kind->name, "chexpert");
    ck_assert_uint_eq(l.patient_count, 2);
    ck_assert_str_eq(l.entry[0].name, "patient00001/study1/view1_frontal.jpg");
    ck_assert_str_eq(l.entry[0].patient, "patient00001");
    ck_assert_mem_eq(l.entry[0].label, ((uint8_t[14]){[0] = 1, [13] = 1}), 14);
    ck_assert_str_eq(l.entry[1].name, "patient00002/study1/view2_lateral.jpg");
    ck_assert_str_eq(l.entry[1].view, "LATERAL");
    ck_assert_int_eq(l.entry[1].sex, 'U');
    ck_assert_mem_eq(l.entry[2].label,
                     ((uint8_t[14]){0, 0, UNKNOWN, 1, 0, UNKNOWN, UNKNOWN, 0, UNKNOWN, 0, UNKNOWN, 0, 1, 0}), 14);
    ck_assert_str_eq(l.entry[2].view, "PA");
    ck_assert_float_eq(l.entry[2].age, 87);
    labels_release(&l);
}

#define PADCHEST ",ImageID,StudyDate_DICOM,PatientID,PatientBirth,PatientSex_DICOM,Projection,Labels\n"

TEST(padchest_lists_are_read)
{
    struct labels l = {0};

    read_as(NULL,
            PADCHEST "0,a.png,20140915,839860488694292331637988235681460987,1930.0,F,PA,\"['pulmonary fibrosis', ' "
                     "pleural effusion','nodule', \"\"pneumonia\"\"]\"\n"
                     "1,b.png,20120220,7,1954,M,AP_horizontal,['normal']\n"
                     "2,c.png,20120220,8,,,L,\"['exclude', 'scoliosis']\"\n"
                     "3,d.png,20120220,9,1800,M,PA,\n"
                     "4,e.png,20120220,9,1800,M,PA,[]\n"
                     "5,f.png,20120220,9,1800,M,PA,['']\n"
                     "6,g.png,20120220,9,1800,M,PA,nan\n",
            &l);
    ck_assert_str_eq(l.kind->name, "padchest");
    ck_assert_uint_eq(l.count, 3);
    ck_assert_uint_eq(l.findings.count, 25);
    ck_assert_mem_eq(l.entry[0].label, ((uint8_t[25]){[2] = 1, [12] = 1, [15] = 1}), 25);
    ck_assert_float_eq(l.entry[0].age, 84);
    ck_assert_int_eq(l.entry[0].sex, 'F');
    ck_assert_str_eq(l.entry[0].view, "PA");
    ck_assert_mem_eq(l.entry[1].label, ((uint8_t[25]){0}), 25);
    ck_assert_str_eq(l.entry[1].view, "U");
    ck_assert_uint_eq(l.notes.count[NOTE_VIEW], 1);
    for (int i = 0; i < 25; i++)
        ck_assert_uint_eq(l.entry[2].label[i], i == 3 ? 1 : UNKNOWN);
    ck_assert(isnan(l.entry[2].age) && !l.no_age);
    ck_assert_uint_eq(l.reject_count, 4);
    ck_assert_str_eq(l.reject[3].reason, "empty label");
    labels_release(&l);
}

TEST(a_text_that_is_no_python_list_is_an_error)
{
    static const char *const wrong[] = {"normal", "['a'", "[a]", "['a]", "[", "]", "['a''b']", "['a' 'b']", "['a'x]"};
    char csv[300], text[200];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(csv, sizeof(csv), PADCHEST "0,a.png,20140915,1,1930,F,PA,\"%s\"\n", wrong[i]);
        snprintf(text, sizeof(text), ":2: \"%s\" is not a list such as ['a', 'b']", wrong[i]);
        labels_expect_error(csv, text);
    }
}

TEST(unsafe_paths_are_rejected)
{
    static const char *const wrong[] = {"p/../v.jpg", "../s/v.jpg", "p//v.jpg",   "p/s/",         "/",
                                        "p/./v.jpg",  "p/s/..",     "p/s\\v.jpg", "p/\x01/v.jpg", "p/\xc2\x85/v.jpg",
                                        "/s/v.jpg"};
    struct labels l = {0};
    struct buffer csv = {0};
    size_t count = sizeof(wrong) / sizeof(wrong[0]);

    ck_assert_int_eq(buffer_printf(&csv, NULL, "Path," CHEXPERT_FINDINGS "\nx/p/s/v.jpg,,,,,,,,,,,,,,\n"), CHEX_OK);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(buffer_printf(&csv, NULL, "%s,,,,,,,,,,,,,,\n", wrong[i]), CHEX_OK);
    ck_assert_int_eq(buffer_append(&csv, "", 1, NULL), CHEX_OK);
    read_as("chexpert", (const char *)csv.data, &l);
    buffer_release(&csv);
    ck_assert_uint_eq(l.count, 1);
    ck_assert_str_eq(l.entry[0].name, "p/s/v.jpg");
    ck_assert_uint_eq(l.reject_count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(l.reject[i].reason, "unsafe file name");
    labels_release(&l);
}

TEST(another_list_of_findings_chooses_columns)
{
    const struct findings two = {(const char *const[]){"Set_Id", "lung opacity", NULL}, 2};
    struct labels_options options = {.findings = &two};
    struct labels l = {0};
    struct chex_error err = {0};
    const char csv[] = "patientId,Target,set id\na,1,-1\nb,0.0,\n";
    const char *path = unit_file("labels.csv", csv, strlen(csv));

    ck_assert_msg(labels_read(path, &options, &l, &err) == CHEX_OK, "%s", err.text);
    ck_assert_mem_eq(l.entry[0].label, ((uint8_t[]){UNKNOWN, 1}), 2);
    ck_assert_mem_eq(l.entry[1].label, ((uint8_t[]){UNKNOWN, 0}), 2);
    labels_release(&l);
    options.findings = &findings_nih14;
    ck_assert_int_eq(labels_read(path, &options, &l, &err), CHEX_ERR_USAGE);
    ck_assert_msg(
        strstr(err.text, ":1: no column for the finding \"Atelectasis\" (columns found: patientId, Target, set id)"),
        "%s", err.text);
    labels_release(&l);
}

TEST(a_cell_with_another_value_is_an_error)
{
    static const char *const wrong[] = {"2", "1.5", "-2", "maybe", "1x", "nan", "0x1", "1,"};
    char csv[200], text[200];

    for (size_t i = 0; i + 1 < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(csv, sizeof(csv), "patientId,x,y,width,height,Target\na,,,,,1\nb,,,,,%s\n", wrong[i]);
        snprintf(text, sizeof(text), ":3: \"%s\" in column \"Target\" is none of 1, 0, YES, NO, -1 and empty",
                 wrong[i]);
        labels_expect_error(csv, text);
    }
    labels_expect_error("patientId,Target,TARGET\na,1,0\n", ":1: column \"TARGET\" occurs twice: fields 2 and 3");
    labels_expect_error("patientId,Target\na,1\na,0\n", ":3: a.png has other values than in line 2 (1 such row)");
}

TEST(the_suffix_counts_for_the_length_of_a_name)
{
    struct labels l = {0};
    char csv[600], id[64];

    snprintf(csv, sizeof(csv), "patientId,Target\n%0255d,1\n%s,0\n", 1, "../x");
    memset(id, 'a', 63);
    id[63] = '\0';
    snprintf(csv + strlen(csv), sizeof(csv) - strlen(csv), "%s,1\n", id);
    read_as(NULL, csv, &l);
    ck_assert_uint_eq(l.count, 1);
    ck_assert_uint_eq(strlen(l.entry[0].name), 67);
    ck_assert_uint_eq(l.reject_count, 2);
    ck_assert_str_eq(l.reject[0].reason, "file name longer than 255 bytes");
    ck_assert_str_eq(l.reject[1].reason, "unsafe file name");
    labels_release(&l);
}

/* Reads a file with a list of findings; returns its error, or "" if there is none. */
static const char *
error_with(const char *findings, const char *csv)
{
    static struct chex_error err;
    struct findings list;
    struct labels_options options = {.findings = &list};
    struct labels l = {0};

    err = (struct chex_error){0};
    ck_assert_int_eq(findings_choose(findings, &list, &err), CHEX_OK);
    if (labels_read(unit_file("labels.csv", csv, strlen(csv)), &options, &l, &err) != CHEX_OK)
        ck_assert_int_eq(err.status, CHEX_ERR_USAGE);
    labels_release(&l);
    findings_release(&list);
    return err.text;
}

#define EXPECT_WITH(findings, csv, wanted)                                                 \
    do {                                                                                   \
        const char *text_ = error_with(findings, csv);                                     \
        ck_assert_msg((wanted)[0] ? strstr(text_, wanted) != NULL : !*text_, "%s", text_); \
    } while (0)

TEST(a_finding_that_no_row_names_is_an_error_unless_the_kind_is_known_to_have_it)
{
    static const char nih[] = LABELS_HEADER "a.png,Mass|Effusion,1\nb.png,No Finding,2\n";
    static const char padchest[] = PADCHEST "0,a.png,20140915,1,1930,F,PA,\"['nodule', 'chronic changes']\"\n";

    EXPECT_WITH("nih14", nih, "");
    EXPECT_WITH("nih15", nih, "");
    EXPECT_WITH("Mass,Hernia,Pleural Thickening", nih, "");
    EXPECT_WITH("chexpert", nih,
                "labels.csv: no row names the finding \"Enlarged Cardiomediastinum\" (6 more such findings)");
    EXPECT_WITH("Mass,Nodul", nih, "labels.csv: no row names the finding \"Nodul\"; did you mean Nodule?");
    EXPECT_WITH("Mass,Tuberculosis", LABELS_HEADER "a.png,Mass|tuberculosis,1\n", "");
    EXPECT_WITH("padchest-top", padchest, "");
    EXPECT_WITH("nodule,chronic changes", padchest, "");
    EXPECT_WITH("nih14", padchest, "no row names the finding \"Effusion\" (");
    EXPECT_WITH("cardiomegali,nodule", padchest,
                "no row names the finding \"cardiomegali\"; did you mean cardiomegaly?");
    EXPECT_WITH("No Finding,nodule", padchest, "no row names the finding \"No Finding\"");
}

TEST(a_finding_without_a_column_is_an_error_that_names_the_nearest)
{
    static const char rsna[] = "patientId,Target,Mass\na,1,0\n";

    EXPECT_WITH("Mass,Masss", rsna,
                ":1: no column for the finding \"Masss\"; did you mean \"Mass\"? (columns found: "
                "patientId, Target, Mass)");
    EXPECT_WITH("Edema", rsna, ":1: no column for the finding \"Edema\" (columns found: patientId, Target, Mass)");
    EXPECT_WITH("Mass,Target,lung opacity", rsna,
                ":1: the findings \"Target\" and \"lung opacity\" have the same column");
}

TEST(a_file_may_have_a_column_for_each_of_254_findings)
{
    struct buffer csv = {0};
    struct labels l = {0};
    struct labels_options options = {0};
    struct findings list;
    char names[254 * 4 + 1], columns[254 * 4 + 1];
    struct chex_error err;

    for (unsigned i = 0; i < 254; i++) {
        snprintf(names + 4 * i, 5, "%03u,", i);
        snprintf(columns + 4 * i, 5, "%03u,", 253 - i);
    }
    names[254 * 4 - 1] = '\0';
    ck_assert_int_eq(findings_choose(names, &list, &err), CHEX_OK);
    ck_assert_int_eq(buffer_printf(&csv, NULL, "%sid,subj_id\n", columns), CHEX_OK);
    for (unsigned i = 0; i < 254; i++)
        ck_assert_int_eq(buffer_printf(&csv, NULL, "%s", i == 3 ? "1," : i == 7 ? "-1," : "0,"), CHEX_OK);
    ck_assert_int_eq(buffer_printf(&csv, NULL, "a.png,1\n%c", '\0'), CHEX_OK);
    options = (struct labels_options){.findings = &list, .kind = label_kind_named("cxr-lt")};
    labels_read_text((const char *)csv.data, &options, &l);
    for (unsigned i = 0; i < 254; i++)
        ck_assert_uint_eq(l.entry[0].label[i], i == 250 ? 1 : i == 246 ? UNKNOWN : 0);
    labels_release(&l);
    findings_release(&list);
    buffer_release(&csv);
}
