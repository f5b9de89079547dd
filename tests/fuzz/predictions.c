/*
 * predictions.c - fuzz target: predictions-SPLIT.csv, and the operating points in the metadata of a model
 *
 * The last bit of the first byte chooses one of them:
 *
 * - 0, predictions: values are as predictions_read.h promises; written as CSV again, they read the same.
 * - 1, operating points of two findings: values are as operating.h promises; formatted and parsed again, they give the
 *   same text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "chex.h"
#include "eval/operating.h"
#include "eval/predictions_read.h"
#include "io/content.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- predictions ------------------------------------------------------------------------------------------------- */

static void
append(struct buffer *b, const char *text)
{
    FUZZ_REQUIRE(buffer_append(b, text, strlen(text), NULL) == CHEX_OK);
}

static void
append_quoted(struct buffer *b, const char *prefix, const char *text, const char *end)
{
    append(b, "\"");
    append(b, prefix);
    for (; *text; text++)
        append(b, *text == '"' ? "\"\"" : (char[]){*text, '\0'});
    append(b, "\"");
    append(b, end);
}

static void
require_predictions(const struct predictions *p)
{
    FUZZ_REQUIRE(p->count > 0 && p->outputs > 0 && p->outputs <= METRICS_OUTPUTS);
    FUZZ_REQUIRE(memchr(p->short_run, '\0', sizeof(p->short_run)));
    for (size_t i = 0; i < p->count; i++)
        FUZZ_REQUIRE(p->image[i][0] != '\0' && p->patient[i][0] != '\0');
    for (size_t i = 0; i < p->count * p->outputs; i++) {
        FUZZ_REQUIRE(p->probability[i] >= 0 && p->probability[i] <= 1);
        FUZZ_REQUIRE(p->label[i] <= 1 || p->label[i] == CHEX_LABEL_UNKNOWN);
    }
}

static void
write_again(const struct predictions *p, struct buffer *b)
{
    char number[32];

    append(b, "image,patient");
    for (unsigned k = 0; k < p->outputs; k++) {
        append(b, ",");
        append_quoted(b, "prob_", p->finding[k], ",");
        append_quoted(b, "label_", p->finding[k], "");
    }
    append(b, p->leaky ? ",leaky\n" : "\n");
    for (size_t i = 0; i < p->count; i++) {
        append_quoted(b, "", p->image[i], ",");
        append_quoted(b, "", p->patient[i], "");
        for (size_t k = i * p->outputs; k < (i + 1) * p->outputs; k++) {
            snprintf(number, sizeof(number), ",%.9g,", (double)p->probability[k]);
            append(b, number);
            append(b, p->label[k] == 1 ? "1" : p->label[k] == 0 ? "0" : "");
        }
        append(b, p->leaky ? ",1\n" : "\n");
    }
}

static void
require_read_back(const struct predictions *p)
{
    struct predictions again = {0};
    struct buffer b = {0};
    struct chex_error err = {0};

    write_again(p, &b);
    /* Names with control characters may put a signature at its place: "ustar" at byte 257. */
    if (!content_look_for_text(b.data, b.size)) {
        if (predictions_read(fuzz_file(1, b.data, b.size), &again, &err) != CHEX_OK)
            fuzz_fail(__FILE__, __LINE__, err.text);
        FUZZ_REQUIRE(again.count == p->count && again.outputs == p->outputs && again.leaky == p->leaky);
        for (unsigned k = 0; k < p->outputs; k++)
            FUZZ_REQUIRE(strcmp(again.finding[k], p->finding[k]) == 0);
        for (size_t i = 0; i < p->count; i++)
            FUZZ_REQUIRE(strcmp(again.image[i], p->image[i]) == 0 && strcmp(again.patient[i], p->patient[i]) == 0);
        FUZZ_REQUIRE(memcmp(again.label, p->label, p->count * p->outputs) == 0);
        for (size_t i = 0; i < p->count * p->outputs; i++)
            FUZZ_REQUIRE(again.probability[i] == p->probability[i]);
        predictions_release(&again);
    }
    buffer_release(&b);
}

static void
fuzz_predictions(const uint8_t *data, size_t size)
{
    struct predictions p = {0};
    struct chex_error err = {0};
    enum chex_status status = predictions_read(fuzz_file(0, data, size), &p, &err);

    fuzz_require_error(status, &err);
    FUZZ_REQUIRE(status != CHEX_ERR_USAGE);
    if (status == CHEX_OK) {
        require_predictions(&p);
        require_read_back(&p);
    }
    predictions_release(&p);
}

/* ---- operating points -------------------------------------------------------------------------------------------- */

static const char *const findings[] = {"Mass", "Hernia", NULL};

static void
require_finding(const struct operating *o, const struct finding_operating *f)
{
    bool refused = f->refusal != OPERATING_COMPLETE && f->refusal != OPERATING_NO_OPTIMUM;

    FUZZ_REQUIRE(f->positives + f->negatives <= o->images);
    FUZZ_REQUIRE(refused || (f->positives >= OPERATING_FEWEST && f->negatives >= OPERATING_FEWEST));
    FUZZ_REQUIRE(isnan(f->a) == (f->refusal != OPERATING_COMPLETE) && isnan(f->a) == isnan(f->b));
    for (unsigned i = 0; i < OPERATING_RULES; i++) {
        const struct operating_point *p = &f->point[i];

        FUZZ_REQUIRE(isnan(p->threshold) == refused && isnan(p->value) == refused);
        FUZZ_REQUIRE(refused || (p->threshold >= 0 && p->threshold <= 1));
        FUZZ_REQUIRE(p->true_positives <= f->positives && p->false_positives <= f->negatives);
    }
}

static void
fuzz_operating(const uint8_t *data, size_t size)
{
    struct operating o, again;
    struct buffer text = {0}, first = {0}, second = {0};
    struct chex_error err = {0};
    enum chex_status status;

    FUZZ_REQUIRE(buffer_append(&text, data, size, NULL) == CHEX_OK && buffer_append(&text, "", 1, NULL) == CHEX_OK);
    status = operating_parse((const char *)text.data, findings, 2, &o, &err);
    fuzz_require_error(status, &err);
    FUZZ_REQUIRE(o.there == (status == CHEX_OK));
    if (status == CHEX_OK) {
        FUZZ_REQUIRE(o.outputs == 2 && o.patients <= o.images && o.precision != PRECISION_AUTO);
        for (unsigned k = 0; k < o.outputs; k++)
            require_finding(&o, &o.finding[k]);
        FUZZ_REQUIRE(operating_format(&o, findings, &first, NULL) == CHEX_OK);
        FUZZ_REQUIRE(operating_parse((const char *)first.data, findings, 2, &again, NULL) == CHEX_OK);
        FUZZ_REQUIRE(operating_format(&again, findings, &second, NULL) == CHEX_OK);
        FUZZ_REQUIRE(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    }
    buffer_release(&text);
    buffer_release(&first);
    buffer_release(&second);
}

/* ------------------------------------------------------------------------------------------------------------------ */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] & 1)
        fuzz_operating(data + 1, size - 1);
    else
        fuzz_predictions(data + 1, size - 1);
    return 0;
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

#define HEADER "image,patient,split,age,sex,view,prob_Mass,prob_Hernia,label_Mass,label_Hernia"
#define ROW    "00000001_000.png,00000001,val,58,M,PA,0.25,0.000123456789,1,0"

#define ORIGIN                                                                                             \
    "{\"format\":1,\"split\":\"val\",\"members_sha256\":\"00ff\",\"precision\":\"fp32\",\"tta\":\"none\"," \
    "\"images\":100,\"patients\":40,\"findings\":["
#define POINT(t) "{\"threshold\":" t ",\"true_positives\":9,\"false_positives\":12}"
#define MASS                                                                                                   \
    "{\"name\":\"Mass\",\"positives\":10,\"negatives\":80,\"refused\":null,\"platt\":{\"a\":1.25,\"b\":-0.5}," \
    "\"youden\":" POINT("0.125") ",\"sensitivity_90\":" POINT("0.1") "}"
#define HERNIA(n, why)                                                                                              \
    ",{\"name\":\"Hernia\",\"positives\":" n ",\"negatives\":88,\"refused\":\"" why "\",\"platt\":null,\"youden\":" \
    "null,\"sensitivity_90\":null}]}"

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const struct {
        const char *name, *text;
    } texts[] = {
        {"predictions", "0" HEADER "\n" ROW "\n00000002_000.png,00000002,val,,U,AP,1,0,,1\n"},
        {"predictions-marks", "0" HEADER ",leaky,short_run\n" ROW ",1,--max-steps 10\n"},
        {"predictions-quoted", "0\"image\",\"patient\",\"prob_A, \"\"B\"\"\",\"label_A, \"\"B\"\"\"\r\n"
                               "\" x.png\",\"1,2\",1e-3,\r\n"},
        {"predictions-order", "0label_X,prob_X,patient,image\n0,0.5,7,a\n,5e-1,7,b\n"},
        {"predictions-nan", "0" HEADER "\na,1,val,,,,nan,0,1,0\n"},
        {"predictions-high", "0" HEADER "\na,1,val,,,,1.0000001,0,1,0\n"},
        {"predictions-label", "0" HEADER "\na,1,val,,,,1,0,2,0\n"},
        {"predictions-short", "0" HEADER "\na,1,val\n"},
        {"predictions-escape", "0image,patient,prob_\x1b[31m\na,1,0\n"},
        {"predictions-escape-value", "0image,patient,prob_\x07,label_\x07\na,1,\x1b[2J,0\n"},
        {"predictions-twice", "0image,patient,prob_X,prob_X,label_X\na,1,0,0,0\n"},
        {"predictions-none", "0" HEADER "\n"},
        {"operating", "1" ORIGIN MASS HERNIA("3", "fewer than 10 positives")},
        {"operating-constant", "1" ORIGIN MASS HERNIA("12", "all outputs are equal")},
        {"operating-reason", "1" ORIGIN MASS HERNIA("3", "no reason")},
        {"operating-many", "1" ORIGIN MASS HERNIA("13", "fewer than 10 positives")},
        {"operating-one", "1" ORIGIN MASS "]}"},
        {"operating-other", "1" ORIGIN MASS "," MASS "]}"},
        {"operating-format", "1{\"format\":2}"},
        {"operating-text", "1[]"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        give(texts[i].name, texts[i].text, strlen(texts[i].text), context);
}
