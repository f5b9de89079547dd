/*
 * findings_lists.c - the built-in lists of findings, and the argument of --findings; see findings.h
 *
 * Sources of the names and their order:
 *
 * nih14         Rajpurkar et al., CheXNet (2017), table 2; spelled as in NIH's Data_Entry files
 * nih15         nih14 and "No Finding", the label of NIH's rows without a finding
 * cxr-lt        NIH-CXR-LT (Holste et al. 2022), labels of NIH's images: the 14 findings, five more, and "No Finding"
 * cxr-lt-2024   the 40 classes of CXR-LT 2024 (Lin et al., arXiv:2506.07984), in the order of its label files
 * chexpert      the 14 observations of CheXpert (Irvin et al. 2019, table 1), in the order of its label files
 * padchest-top  frequent radiographic findings of PadChest (Bustos et al. 2020), spelled as in its Labels column
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/ascii.h"
#include "base/memory.h"
#include "dataset/findings.h"
#include "dataset/tfrecord.h"
#include "io/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX 65536 /* bytes; 254 lines of 64 letters have 16,510 */

#define LIST(...)                                                                                             \
    {                                                                                                         \
        (const char *const[]){__VA_ARGS__, NULL}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) \
    }

const struct findings findings_cxr_lt = LIST(
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Effusion", "Emphysema", "Fibrosis", "Hernia",
    "Infiltration", "Mass", "Nodule", "Pleural Thickening", "Pneumonia", "Pneumothorax", "Pneumoperitoneum",
    "Pneumomediastinum", "Subcutaneous Emphysema", "Tortuous Aorta", "Calcification of the Aorta", "No Finding");
const struct findings findings_chexpert = LIST(
    "No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema", "Consolidation",
    "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture", "Support Devices");
const struct findings findings_padchest = LIST(
    "cardiomegaly", "aortic elongation", "pleural effusion", "scoliosis", "interstitial pattern", "infiltrates",
    "air trapping", "vertebral degenerative changes", "costophrenic angle blunting", "kyphosis", "aortic atheromatosis",
    "alveolar pattern", "pneumonia", "apical pleural thickening", "fibrotic band", "nodule", "volume loss",
    "laminar atelectasis", "consolidation", "pleural thickening", "atelectasis", "hilar congestion",
    "hemidiaphragm elevation", "bronchiectasis", "granuloma");
static const struct findings nih15 = LIST(FINDINGS_NIH14, "No Finding");
static const struct findings cxr_lt_2024 = LIST(
    "Adenopathy", "Atelectasis", "Azygos Lobe", "Calcification of the Aorta", "Cardiomegaly", "Clavicle Fracture",
    "Consolidation", "Edema", "Emphysema", "Enlarged Cardiomediastinum", "Fibrosis", "Fissure", "Fracture", "Granuloma",
    "Hernia", "Hydropneumothorax", "Infarction", "Infiltration", "Kyphosis", "Lobar Atelectasis", "Lung Lesion",
    "Lung Opacity", "Mass", "Nodule", "Normal", "Pleural Effusion", "Pleural Other", "Pleural Thickening",
    "Pneumomediastinum", "Pneumonia", "Pneumoperitoneum", "Pneumothorax", "Pulmonary Embolism",
    "Pulmonary Hypertension", "Rib Fracture", "Round(ed) Atelectasis", "Subcutaneous Emphysema", "Support Devices",
    "Tortuous Aorta", "Tuberculosis");

static const struct {
    const char *name;
    const struct findings *list;
} built_in[] = {
    {"nih14", &findings_nih14},       {"nih15", &nih15},
    {"cxr-lt", &findings_cxr_lt},     {"cxr-lt-2024", &cxr_lt_2024},
    {"chexpert", &findings_chexpert}, {"padchest-top", &findings_padchest},
};

#define BUILT_IN (sizeof(built_in) / sizeof(built_in[0]))

/* Make a list of the parts of a text, trimmed.  Empty lines do not count; an empty part between commas does. */
static enum chex_status
make_from(const char *text, size_t size, char separator, struct findings *out, struct chex_error *err)
{
    struct chex_bytes name[FINDINGS_MAX + 1];
    const char *end = text + size;
    size_t count = 0;

    for (const char *part = text, *next; part; part = next) {
        const char *stop = memchr(part, separator, (size_t)(end - part));
        size_t length = (size_t)((stop ? stop : end) - part);

        next = stop ? stop + 1 : NULL;
        if (separator == '\n' && length > 0 && part[length - 1] == '\r')
            length--;
        ascii_trim(&part, &length);
        if (length == 0 && separator == '\n')
            continue;
        if (count == FINDINGS_MAX + 1)
            break; /* too many: findings_make() reports it */
        name[count++] = (struct chex_bytes){part, length};
    }
    return findings_make(name, count, out, err);
}

static enum chex_status
read_list(const char *path, struct findings *out, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = file_read(AT_FDCWD, path, FILE_MAX, &text, err);

    if (status == CHEX_OK) {
        size_t mark = text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* of UTF-8 */

        status = make_from((const char *)text.data + mark, text.size - mark, '\n', out, err);
    }
    buffer_release(&text);
    if (chex_status_is_data(status)) /* of the command line, not of an image */
        status = CHEX_ERR_USAGE;
    return status == CHEX_OK ? status : error_context(err, status, "%s", path);
}

enum chex_status
findings_choose(const char *text, struct findings *out, struct chex_error *err)
{
    enum chex_status status;

    for (size_t i = 0; i < BUILT_IN; i++)
        if (strcmp(text, built_in[i].name) == 0) {
            struct chex_bytes name[FINDINGS_MAX];

            for (unsigned k = 0; k < built_in[i].list->count; k++)
                name[k] = (struct chex_bytes){built_in[i].list->name[k], strlen(built_in[i].list->name[k])};
            return findings_make(name, built_in[i].list->count, out, err);
        }
    if (strchr(text, ','))
        return make_from(text, strlen(text), ',', out, err);
    status = read_list(text, out, err);
    if (status != CHEX_ERR_MISSING)
        return status;
    if (strpbrk(text, "/."))
        return error_set(err, CHEX_ERR_USAGE,
                         "'%.100s' is neither " FINDINGS_BUILT_IN ", nor a file, nor names such as Mass,Nodule", text);
    return make_from(text, strlen(text), ',', out, err);
}

/* Write "Mass|Nodule".  Returns false if there is no room for all names. */
static bool
join(const struct findings *list, char out[FINDINGS_TEXT])
{
    size_t used = 0;

    for (unsigned i = 0; i < list->count && used < FINDINGS_TEXT; i++)
        used += (size_t)snprintf(out + used, FINDINGS_TEXT - used, "%s%s", i ? "|" : "", list->name[i]);
    return used < FINDINGS_TEXT;
}

char *
findings_describe(const struct findings *list, char out[FINDINGS_TEXT])
{
    uint32_t crc = 0;

    for (size_t i = 0; i < BUILT_IN; i++)
        if (findings_equal(list, built_in[i].list)) {
            snprintf(out, FINDINGS_TEXT, "%s", built_in[i].name);
            return out;
        }
    if (join(list, out))
        return out;
    for (unsigned i = 0; i < list->count; i++)
        crc = chex_crc32c(crc, list->name[i], strlen(list->name[i]) + 1);
    snprintf(out, FINDINGS_TEXT, "%.24s%s (%u, %08x)", list->name[0], list->count > 1 ? "..." : "", list->count, crc);
    return out;
}
