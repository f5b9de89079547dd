/*
 * label_file.c - fuzz target: the label file
 *
 * Reads text, gzip or plain, as entries.  For any file, the entries are as label_file.h promises.  Entries of the kind
 * "nih", written as a CSV of one form, are read as the same entries.  A compressed file gives the entries of the plain
 * one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "dataset/findings.h"
#include "labels/label_file.h"
#include "labels/label_kinds.h"
#include "labels/label_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_UNPACKED (1u << 18)

/*
 * ---- what label_file.h promises ------------------------------------------------------------------------------------
 */

static void
require_entry(const struct labels *l, const struct entry *e)
{
    FUZZ_REQUIRE(label_name_fault(e->name, strlen(e->name), l->kind->name_parts > 1) == NULL);
    FUZZ_REQUIRE(strlen(e->patient) > 0 && strlen(e->patient) <= PATIENT_MAX);
    FUZZ_REQUIRE(e->patient_no < l->patient_count && strcmp(l->patient[e->patient_no], e->patient) == 0);
    for (unsigned k = 0; k < l->findings.count; k++)
        FUZZ_REQUIRE(e->label[k] <= 1 || (e->label[k] == CHEX_LABEL_UNKNOWN && l->kind->style != LABEL_LIST));
    FUZZ_REQUIRE(isnan(e->age) || (e->age >= 0 && e->age <= 120 && !e->impossible_age));
    FUZZ_REQUIRE(e->sex == 'M' || e->sex == 'F' || e->sex == 'U');
    FUZZ_REQUIRE(memchr(e->view, '\0', sizeof(e->view)) && e->view[0] != '\0' &&
                 e->view[strspn(e->view, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")] == '\0');
    FUZZ_REQUIRE(e->line > 0 && labels_find(l, e->name) == e);
}

static void
require_labels(const struct labels *l)
{
    for (size_t i = 0; i < l->count; i++) {
        require_entry(l, &l->entry[i]);
        FUZZ_REQUIRE(i == 0 || strcmp(l->entry[i - 1].name, l->entry[i].name) < 0);
    }
    FUZZ_REQUIRE(l->count + l->duplicate_rows + l->reject_count == l->row_count && l->row_count > 0);
    FUZZ_REQUIRE(l->impossible_ages <= l->unknown_ages && l->unknown_ages <= l->count);
    for (size_t i = 0; i < l->reject_count; i++) {
        const struct label_reject *r = &l->reject[i];

        FUZZ_REQUIRE((r->status == CHEX_ERR_DAMAGED || r->status == CHEX_ERR_EMPTY) && r->reason[0] != '\0');
        for (const char *p = r->name; *p; p++)
            FUZZ_REQUIRE(*p >= 0x20 && *p < 0x7f);
    }
}

/* ---- written again --------------------------------------------------------------------------------------------- */

static void
append(struct buffer *b, const char *text)
{
    FUZZ_REQUIRE(buffer_append(b, text, strlen(text), NULL) == CHEX_OK);
}

static void
append_quoted(struct buffer *b, const char *text)
{
    append(b, "\"");
    for (; *text; text++)
        append(b, *text == '"' ? "\"\"" : (char[]){*text, '\0'});
    append(b, "\",");
}

static void
write_again(const struct labels *l, struct buffer *b)
{
    append(b, "Image Index,Patient ID,View Position,Patient Gender,Patient Age,Finding Labels\n");
    for (size_t i = 0; i < l->count; i++) {
        const struct entry *e = &l->entry[i];
        const char *between = "";
        char text[64] = "";

        append_quoted(b, e->name);
        append_quoted(b, e->patient);
        append_quoted(b, e->view);
        if (!isnan(e->age))
            snprintf(text, sizeof(text), "%.9f", (double)e->age);
        append_quoted(b, (char[]){e->sex, '\0'});
        append_quoted(b, text);
        for (unsigned k = 0; k < findings_nih14.count; k++) {
            if (e->label[k]) {
                append(b, between);
                append(b, findings_nih14.name[k]);
                between = "|";
            }
        }
        append(b, !labels_are_none(e->label, 14) ? "\n" : "No Finding\n");
    }
}

static void
require_same(const struct labels *a, const struct labels *b)
{
    FUZZ_REQUIRE(findings_equal(&a->findings, &b->findings));
    FUZZ_REQUIRE(a->count == b->count && a->patient_count == b->patient_count);
    for (size_t i = 0; i < a->count; i++) {
        const struct entry *x = &a->entry[i], *y = &b->entry[i];

        FUZZ_REQUIRE(strcmp(x->name, y->name) == 0 && strcmp(x->patient, y->patient) == 0);
        FUZZ_REQUIRE(memcmp(x->label, y->label, a->findings.count) == 0);
        FUZZ_REQUIRE(x->sex == y->sex && strcmp(x->view, y->view) == 0);
        /* The text has nine decimals. */
        FUZZ_REQUIRE((isnan(x->age) && isnan(y->age)) || fabsf(x->age - y->age) < 1e-5f);
    }
}

static void
require_round_trip(const struct labels *l)
{
    struct labels_options options = {0};
    struct labels again = {0};
    struct buffer b = {0};
    struct chex_error err = {0};

    write_again(l, &b);
    if (labels_read(fuzz_file(1, b.data, b.size), &options, &again, &err) != CHEX_OK)
        fuzz_fail(__FILE__, __LINE__, err.text);
    require_same(l, &again);
    FUZZ_REQUIRE(again.duplicate_rows == 0 && again.reject_count == 0);
    labels_release(&again);
    buffer_release(&b);
}

/* ---- compressed ------------------------------------------------------------------------------------------------ */

static void
gzip(const uint8_t *data, size_t size, struct buffer *out)
{
    z_stream z = {0};

    FUZZ_REQUIRE(deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 5, Z_DEFAULT_STRATEGY) == Z_OK);
    FUZZ_REQUIRE(buffer_reserve(out, deflateBound(&z, (uLong)size) + 32, NULL) == CHEX_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out->data;
    z.avail_out = (uInt)out->capacity;
    FUZZ_REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    out->size = z.total_out;
    deflateEnd(&z);
}

static bool
is_gzip(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

static void
require_same_compressed(const uint8_t *data, size_t size, enum chex_status wanted, const struct labels *l)
{
    struct labels_options options = {0};
    struct labels packed = {0};
    struct buffer b = {0};

    gzip(data, size, &b);
    FUZZ_REQUIRE(labels_read(fuzz_file(1, b.data, b.size), &options, &packed, NULL) == wanted);
    if (wanted == CHEX_OK) {
        require_same(l, &packed);
        FUZZ_REQUIRE(strcmp(l->sha256, packed.sha256) == 0);
    }
    labels_release(&packed);
    buffer_release(&b);
}

/* ---------------------------------------------------------------------------------------------------------------- */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct labels_options options = {0};
    struct labels l = {0}, other = {0};
    struct chex_error err = {0};
    enum chex_status status = labels_read(fuzz_file(0, data, size), &options, &l, &err);

    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        require_labels(&l);
        if (l.count > 0 && l.kind == &label_kind_nih)
            require_round_trip(&l);
    }
    if (!is_gzip(data, size) && size > 0)
        require_same_compressed(data, size, status, &l);
    options.empty_is_no_finding = true;
    status = labels_read(fuzz_file(0, data, size), &options, &other, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        require_labels(&other);
        for (size_t i = 0; i < other.reject_count; i++)
            FUZZ_REQUIRE(other.reject[i].status == CHEX_ERR_DAMAGED);
    }
    labels_release(&l);
    labels_release(&other);
    return 0;
}

/* Mutates the text of a gzip file, not its codes. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    struct buffer text = {0}, packed = {0};
    z_stream z = {0};

    if (!is_gzip(data, size) || seed % 4 == 0 || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return LLVMFuzzerMutate(data, size, max_size);
    FUZZ_REQUIRE(buffer_reserve(&text, MAX_UNPACKED, NULL) == CHEX_OK);
    z.next_in = data;
    z.avail_in = (uInt)size;
    z.next_out = text.data;
    z.avail_out = MAX_UNPACKED;
    inflate(&z, Z_FINISH);
    text.size = LLVMFuzzerMutate(text.data, z.total_out, MAX_UNPACKED);
    inflateEnd(&z);
    gzip(text.data, text.size, &packed);
    if (packed.size <= max_size) {
        memcpy(data, packed.data, packed.size);
        size = packed.size;
    }
    buffer_release(&text);
    buffer_release(&packed);
    return size;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

/* The headers of the real files, and typical rows. */
#define HEADER_2017                                                                                             \
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,OriginalImage[" \
    "Width,Height],OriginalImagePixelSpacing[x,y],\n"
#define HEADER_2020                                                                                          \
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Sex,View Position,OriginalImage[" \
    "Width,Height],OriginalImagePixelSpacing[x,y]\n"

#define GOOGLE "Image Index,Patient ID,Patient Age,Fracture,Pneumothorax,Airspace opacity,Nodule or mass,Set Id\n"
#define CXR_LT                                                                                                     \
    "id,Atelectasis,Cardiomegaly,Consolidation,Edema,Effusion,Emphysema,Fibrosis,Hernia,Infiltration,Mass,Nodule," \
    "Pleural Thickening,Pneumonia,Pneumothorax,Pneumoperitoneum,Pneumomediastinum,Subcutaneous Emphysema,"         \
    "Tortuous Aorta,Calcification of the Aorta,No Finding,subj_id\n"

#define CHEXPERT                                                                                                  \
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,"         \
    "Lung Lesion,Edema,Consolidation,Pneumonia,Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,Fracture," \
    "Support Devices\n"

#define PADCHEST ",ImageID,StudyDate_DICOM,PatientID,PatientBirth,PatientSex_DICOM,Projection,Labels\n"

static const struct {
    const char *name, *text;
} texts[] = {
    {"form-2020", HEADER_2020 "00000001_000.png,Cardiomegaly,0,1,57,M,PA,2682,2749,0.143,0.143\n"
                              "00000001_001.png,Cardiomegaly|Emphysema,1,1,58,M,PA,2894,2729,0.143,0.143\n"
                              "00000002_000.png,No Finding,0,2,80,M,AP,2500,2048,0.171,0.171\n"},
    {"form-2017", HEADER_2017 "00000001_000.png,Cardiomegaly,0,1,058Y,M,PA,2682,2749,0.143,0.143,\n"
                              "00000003_000.png,Hernia,0,3,003M,F,PA,2582,2991,0.143,0.143,\n"},
    {"google", GOOGLE "00000013_008.png,13,60,NO,NO,YES,,test\n00000013_026.png,13,57,NO,YES,NO,-1,val\n"},
    {"google-cell", GOOGLE "00000013_008.png,13,60,NO,NO,MAYBE,,test\n"},
    {"rsna", "patientId,x,y,width,height,Target\n0004cfab-14fd,,,,,0\n00436515-870c,264.0,152.0,213.0,379.0,1\n"
             "00436515-870c,562.0,152.0,256.0,453.0,1\n../x,,,,,1.0\n"},
    {"cxr-lt", CXR_LT "00000001_000.png,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,0,1\n"
                      "00000003_000.png,0,0,-1.0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,,3\n"},
    {"chexpert", CHEXPERT "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,"
                          "1.0,,,,,,,,,0.0,,,,1.0\npatient00002/study1/view2_lateral.jpg,Male,5,Lateral,,,-1.0,,,,,,,"
                          ",,,,,\n"},
    {"chexpert-paths", CHEXPERT "a/../v.jpg,,,,,,,,,,,,,,,,,,\n/,,,,,,,,,,,,,,,,,,\nv.jpg,,,,,,,,,,,,,,,,,,\n"},
    {"padchest", PADCHEST "0,a.png,20140915,83986,1930.0,F,PA,\"['nodule', ' pleural effusion']\"\n"
                          "1,b.png,20120220,7,1954,M,L,\"[\"\"chilaiditi's sign\"\", 'exclude']\"\n2,c.png,,8,,,,\n"},
    {"padchest-list", PADCHEST "0,a.png,20140915,83986,1930.0,F,PA,\"['nodule', 'x]\"\n"},
    {"two-kinds", "Finding Labels," GOOGLE "Mass,00000013_008.png,13,60,NO,NO,YES,NO,test\n"},
    {"windows", "\xef\xbb\xbfImage Index,Finding Labels,Patient ID\r\na.png,Mass|Nodule,7\r\nb.png,,8\r\n"},
    {"quoted",
     "\"Image Index\",\"Finding Labels\",\"Patient ID\",\"Age\"\n\"a \"\"b\"\".png\",Infiltrate,\"x,y\",12D\n"},
    {"duplicates", "Image Index,Finding Labels,Patient ID\na.png,Mass,1\na.png,Mass,1\nb.png,Edema,2\n"},
    {"conflict", "Image Index,Finding Labels,Patient ID\na.png,Mass,1\na.png,Edema,1\n"},
    {"unsafe",
     "Image Index,Finding Labels,Patient ID\n../x.png,Mass,1\n\xc2\x85.png,Mass,1\nb.png,Pleural Thickening,2\n"},
    {"unknown", "Image Index,Finding Labels,Patient ID\na.png,Pnuemonia,1\nb.png,Mass|No Finding,2\n"},
    {"ages", "Image Index,Finding Labels,Patient ID,Patient Age,View\na.png,Mass,1,411,PA\nb.png,Mass,2,-3,lat\n"
             "c.png,Mass,3,4.25,\nd.png,Mass,4,02W,toolongaview\ne.png,Mass,5,abc,U\n"},
    {"columns", "Image,Finding Label,Patient\na.png,Mass,1\n"},
    {"boxes", "Image Index,Finding Label,Bbox [x,y,w,h],,,\na.png,Mass,1,2,3,4\n"},
    {"unclosed", "Image Index,Finding Labels,Patient ID\n\"a.png,Mass,1\nb.png,Mass,2\n"},
    {"carriage-returns", "Image Index,Finding Labels,Patient ID\ra.png,Mass,1\r"},
    {"header-alone", "Image Index,Finding Labels,Patient ID\n"},
    {"empty", ""},
};

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    struct buffer b = {0};
    char name[64];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        give(texts[i].name, texts[i].text, strlen(texts[i].text), context);
        gzip((const uint8_t *)texts[i].text, strlen(texts[i].text), &b);
        snprintf(name, sizeof(name), "gzip-%s", texts[i].name);
        if (i < 4)
            give(name, b.data, b.size, context);
    }
    buffer_release(&b);
}
