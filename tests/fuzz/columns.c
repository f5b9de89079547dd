/*
 * columns.c - fuzz target: label files of every kind, with descriptions, lists of findings and unknown labels
 *
 * The first byte is the policy for unknown labels, the second one the kind: one of the table, the one that the header
 * decides, or the one that a description makes.  The rest is up to three texts, each but the last ended by a NUL: the
 * description (--columns), the list of findings as a file ("": the default list), and the label file.
 *
 * A description, written again, makes the same kind.  Unknown labels are as the policy says.  A finding of a list of
 * names that is 0 in every entry is one that the kind is known to have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "labels/columns_file.h"
#include "labels/label_file.h"

#include <stdlib.h>
#include <string.h>

#define KINDS 6 /* of label_kind_names */

/* ---- the description --------------------------------------------------------------------------------------------- */

static void
put_column(struct buffer *b, const char *key, label_names names)
{
    if (names)
        FUZZ_REQUIRE(buffer_printf(b, NULL, "%s = %s\n", key, names[0]) == CHEX_OK);
}

static void
write_again(const struct label_kind *kind, struct buffer *b)
{
    char separator[2] = {kind->separator, '\0'};

    put_column(b, "image", kind->image);
    put_column(b, "patient", kind->patient);
    put_column(b, "age", kind->age);
    put_column(b, "sex", kind->sex);
    put_column(b, "view", kind->view);
    put_column(b, "list", kind->list);
    if (kind->style == LABEL_PYTHON_LIST)
        put_column(b, "separator", (const char *[]){"python"});
    if (kind->style == LABEL_LIST)
        put_column(b, "separator", (const char *[]){separator});
    if (kind->style == LABEL_COLUMNS)
        put_column(b, "empty", (const char *[]){kind->empty == 0 ? "0" : "unknown"});
    if (kind->suffix[0])
        put_column(b, "suffix", &kind->suffix);
    FUZZ_REQUIRE(buffer_printf(b, NULL, "folders = %u\n", kind->name_parts - 1) == CHEX_OK);
    for (unsigned i = 0; i < kind->findings->count; i++) {
        const char *name = kind->findings->name[i], *column = kind->finding_column[i];
        bool same = strcmp(name, column) == 0; /* a name with = has no column of another name */

        FUZZ_REQUIRE(buffer_printf(b, NULL, same ? "findings = %s\n" : "finding %s = %s\n", name, column) == CHEX_OK);
    }
}

static bool
same_column(label_names a, label_names b)
{
    return a == b || (a && b && strcmp(a[0], b[0]) == 0);
}

static void
require_same(const struct label_kind *a, const struct label_kind *b)
{
    FUZZ_REQUIRE(a->style == b->style && a->empty == b->empty && a->name_parts == b->name_parts);
    FUZZ_REQUIRE(a->patient_is_folder == b->patient_is_folder && strcmp(a->suffix, b->suffix) == 0);
    FUZZ_REQUIRE(same_column(a->image, b->image) && same_column(a->patient, b->patient));
    FUZZ_REQUIRE(same_column(a->age, b->age) && same_column(a->sex, b->sex) && same_column(a->view, b->view));
    FUZZ_REQUIRE(same_column(a->list, b->list) && (a->style != LABEL_LIST || a->separator == b->separator));
    FUZZ_REQUIRE(findings_equal(a->findings, b->findings));
    for (unsigned i = 0; i < a->findings->count; i++)
        FUZZ_REQUIRE(strcmp(a->finding_column[i], b->finding_column[i]) == 0);
}

/* Returns the kind of a description, or NULL. */
static struct label_kind *
read_description(const char *text, size_t size)
{
    struct label_kind *kind, *again;
    struct buffer b = {0};
    struct chex_error err;
    enum chex_status status = columns_file_read(fuzz_file(0, text, size), &kind, &err);

    fuzz_require_error(status, &err);
    FUZZ_REQUIRE((status == CHEX_OK) == (kind != NULL));
    if (!kind)
        return NULL;
    write_again(kind, &b);
    if (b.size <= 65536) {
        if (columns_file_read(fuzz_file(0, b.data, b.size), &again, &err) != CHEX_OK)
            fuzz_fail(__FILE__, __LINE__, err.text);
        require_same(kind, again);
        columns_file_free(again);
    }
    buffer_release(&b);
    return kind;
}

/* ---- the label file ---------------------------------------------------------------------------------------------- */

static void
require_labels(const struct labels *l, const struct labels_options *options)
{
    bool named[FINDINGS_MAX] = {false};

    for (size_t i = 0; i < l->count; i++)
        for (unsigned k = 0; k < l->findings.count; k++) {
            uint8_t label = l->entry[i].label[k];

            FUZZ_REQUIRE(label <= 1 || (label == CHEX_LABEL_UNKNOWN && options->unknown == UNKNOWN_MASK));
            named[k] |= label != 0;
        }
    for (unsigned k = 0; l->count > 0 && l->kind->style != LABEL_COLUMNS && k < l->findings.count; k++) {
        const char *name = l->findings.name[k];

        FUZZ_REQUIRE(named[k] || finding_index(l->kind->findings, name, strlen(name)) >= 0 ||
                     (l->kind->style == LABEL_LIST && finding_is_none(name, strlen(name))));
    }
    for (size_t i = 0; i < l->reject_count; i++)
        FUZZ_REQUIRE(l->reject[i].status != CHEX_ERR_UNSUPPORTED || options->unknown == UNKNOWN_REJECT);
}

/* Returns the next text of the input, without its NUL. */
static struct chex_bytes
next_text(const uint8_t **data, size_t *size)
{
    const uint8_t *end = memchr(*data, '\0', *size);
    struct chex_bytes text = {(const char *)*data, end ? (size_t)(end - *data) : *size};
    size_t used = text.size + (end ? 1 : 0);

    *data += used;
    *size -= used;
    return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct labels_options options = {0};
    struct label_kind *described = NULL;
    struct findings list = {0};
    struct labels l = {0};
    struct chex_bytes columns, names;
    struct chex_error err;
    enum chex_status status;
    unsigned kind;

    if (size < 3)
        return 0;
    options.unknown = data[0] % 4;
    kind = data[1] % (KINDS + 2);
    data += 2;
    size -= 2;
    columns = next_text(&data, &size);
    names = next_text(&data, &size);
    if (kind == KINDS)
        described = read_description(columns.data, columns.size);
    options.kind = kind < KINDS ? label_kind_named(label_kind_names[kind]) : described;
    if (names.size > 0) {
        status = findings_choose(fuzz_file(0, names.data, names.size), &list, &err);
        fuzz_require_error(status, &err);
        options.findings = status == CHEX_OK ? &list : NULL;
    }
    status = labels_read(fuzz_file(1, data, size), &options, &l, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK)
        require_labels(&l, &options);
    labels_release(&l);
    findings_release(&list);
    columns_file_free(described);
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    (void)seed;
    return LLVMFuzzerMutate(data, size, max_size);
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

#define CHEXPERT                                                                                                  \
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,"         \
    "Lung Lesion,Edema,Consolidation,Pneumonia,Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,Fracture," \
    "Support Devices\n"
#define PADCHEST ",ImageID,StudyDate_DICOM,PatientID,PatientBirth,PatientSex_DICOM,Projection,Labels\n"

#define SEED(name, text)             \
    {                                \
        name, text, sizeof(text) - 1 \
    }

/* The second byte: the index in label_kind_names, 6 for a description, 7 for the header. */
static const struct {
    const char *name, *text;
    size_t size;
} seeds[] = {
    SEED("chexpert", "\0\0\0\0" CHEXPERT "a/p1/s1/v.jpg,Male,5,Lateral,,,-1.0,,,,,,,,,1.0,,,\n"),
    SEED("chexpert-one", "\2\0\0Edema\nFracture\0" CHEXPERT "p1/s1/v.jpg,Male,5,Frontal,AP,,,,,,-1,,,,,,,1.0,\n"),
    SEED("cxr-lt", "\1\1\0Mass\nNodule\0id,subj_id,Mass,Nodule\na.png,1,1,-1\n"),
    SEED("google", "\3\2\0\0Image Index,Patient ID,Fracture,Pneumothorax,Airspace opacity,Nodule or mass\n"
                   "a.png,13,NO,YES,,NO\nb.png,14,NO,YES,NO,NO\n"),
    SEED("nih", "\0\3\0Mass\nHernia\nTuberculosis\0Image Index,Finding Labels,Patient ID\na.png,Mass|Tuberculosis,1\n"),
    SEED("nih-absent", "\0\3\0Mass\nTuberculosis\0Image Index,Finding Labels,Patient ID\na.png,Mass,1\n"),
    SEED("padchest", "\2\4\0nodule\nscoliosis\nnormal\0" PADCHEST "0,a.png,2014,8,1930,F,PA,\"['nodule', 'exclude']\"\n"
                     "0,b.png,2014,8,1930,F,L,['normal']\n"),
    SEED("rsna", "\0\5\0\0patientId,x,y,width,height,Target\na,,,,,0\nb,1,1,1,1,1\nb,2,2,2,2,1\n"),
    SEED("header", "\0\7\0\0patientId,x,y,width,height,Target\na,,,,,0\n"),
    SEED("description",
         "\1\6# ours\nimage = f\npatient = p\nage = y\nsex = s\nview = v\nfindings = Mass, Rib fracture\n"
         "finding Lung Opacity = Op\nempty = 0\nsuffix = .png\n\0\0f,p,y,s,v,Mass,Rib fracture,Op\n"
         "a,1,5,M,PA,1,0,-1\nb,2,,,,,0,YES\n"),
    SEED("description-list", "\0\6image = f\nfolders = 2\nlist = l\nseparator = ;\nfindings = Mass, Edema\n\0"
                             "Edema\nX\0f,l\nx/p1/s1/a.png,Mass; Edema\np1/s1/b.png,X\n"),
    SEED("description-python", "\0\6image = f\npatient = f\nlist = l\nseparator = python\nfindings = Mass\n\0\0"
                               "f,l\na.png,\"['Mass', 'b']\"\n"),
    SEED("description-escape", "\0\6image = \x7f\x9b\npatient = p\nfindings = Mass\n\0\0f,p,Mass\na,1,1\n"),
    SEED("description-wrong", "\0\6image = f\nimage = g\n\0\0f\na\n"),
    SEED("description-missing", "\0\6findings = Mass, M_ASS\nimage = f\npatient = f\n\0\0f,Mass\na,1\n"),
};

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
        give(seeds[i].name, seeds[i].text, seeds[i].size, context);
}
