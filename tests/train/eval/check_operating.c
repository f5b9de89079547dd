/*
 * check_operating.c - computes operating.h for logits from a file, for comparison with other software
 *
 *     check-operating COUNT OUTPUTS < IN
 *
 * IN   float32 logits [COUNT][OUTPUTS], uint8 labels [COUNT][OUTPUTS], in the byte order of the machine
 * OUT  the text for the metadata of a model.  It is parsed and formatted again; the program fails if the two differ.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/operating.h"
#include "math/loss.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "check-operating: %s: %s\n", chex_status_name(status), err->text);
    exit(1);
}

static void *
take(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p || fread(p, size, count, stdin) != count) {
        fprintf(stderr, "check-operating: the input is too short\n");
        exit(1);
    }
    return p;
}

/* Fill in probabilities, patients and metrics: each image has a patient of its own. */
static void
evaluate_logits(struct evaluation *e, uint32_t *patient)
{
    struct scores s = {.count = e->count, .outputs = e->outputs, .label = e->label, .patient = patient};
    struct chex_error err;
    size_t i;

    for (i = 0; i < e->count * e->outputs; i++)
        e->probability[i] = (float)sigmoid((double)e->logit[i]);
    for (i = 0; i < e->count; i++)
        patient[i] = (uint32_t)i;
    s.score = e->probability;
    s.patients = e->patients = (uint32_t)e->count;
    check(metrics_compute(&s, 0, 1, 1, &e->metrics, &err), &err);
}

int
main(int argc, char **argv)
{
    static struct operating chosen, again;
    struct chex_split_info split = {.name = "val", .members_sha256 = "00"};
    const char *name[METRICS_OUTPUTS];
    char names[METRICS_OUTPUTS][8];
    struct buffer text = {0}, copy = {0};
    struct evaluation e = {.count = 0};
    struct chex_error err;
    unsigned k;

    if (argc != 3) {
        fprintf(stderr, "usage: see the head of check_operating.c\n");
        return 2;
    }
    e.count = strtoul(argv[1], NULL, 10);
    e.outputs = (unsigned)strtoul(argv[2], NULL, 10);
    e.logit = take(e.count * e.outputs, sizeof(*e.logit));
    e.label = take(e.count * e.outputs, 1);
    e.probability = calloc(e.count * e.outputs, sizeof(*e.probability));
    for (k = 0; k < e.outputs; k++) {
        snprintf(names[k], sizeof(names[k]), "F%u", k);
        name[k] = names[k];
    }
    {
        uint32_t *patient = calloc(e.count, sizeof(*patient));

        if (!e.probability || !patient)
            return 1;
        evaluate_logits(&e, patient);
        free(patient);
    }
    check(operating_choose(&e, &split, PRECISION_FP32, &chosen, &err), &err);
    check(operating_format(&chosen, name, &text, &err), &err);
    check(operating_parse((const char *)text.data, name, e.outputs, &again, &err), &err);
    check(operating_format(&again, name, &copy, &err), &err);
    if (strcmp((const char *)text.data, (const char *)copy.data) != 0) {
        fprintf(stderr, "check-operating: parsed and formatted it is another text\n%s\n", (const char *)copy.data);
        return 1;
    }
    puts((const char *)text.data);
    buffer_release(&text);
    buffer_release(&copy);
    free(e.logit);
    free(e.label);
    free(e.probability);
    return 0;
}
