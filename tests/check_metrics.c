/*
 * check_metrics.c - metrics.h on scores from elsewhere, for comparison with other software
 *
 *     check-metrics COUNT OUTPUTS PATIENTS REPLICATES SEED THREADS < IN
 *
 * IN   float32 scores [COUNT][OUTPUTS], uint8 labels [COUNT][OUTPUTS], uint32 patients [COUNT], in the byte order of
 *      the machine
 * OUT  a line for each finding, then one for their mean: NAME VALUE pairs, reals with all their digits.  On stderr the
 *      seconds that it took.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/progress.h"
#include "eval/metrics.h"

#include <stdio.h>
#include <stdlib.h>

static void *
take(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p || fread(p, size, count, stdin) != count) {
        fprintf(stderr, "check-metrics: the input is too short\n");
        exit(1);
    }
    return p;
}

static void
print_intervals(const struct interval *auroc, const struct interval *auprc)
{
    printf(" auroc_low %.17g auroc_high %.17g auprc_low %.17g auprc_high %.17g", auroc->low, auroc->high, auprc->low,
           auprc->high);
}

static void
print_point(const char *name, const struct operating_point *p)
{
    printf(" %s %.17g %s_threshold %.17g %s_tp %llu %s_fp %llu", name, p->value, name, p->threshold, name,
           (unsigned long long)p->true_positives, name, (unsigned long long)p->false_positives);
}

int
main(int argc, char **argv)
{
    struct scores s = {.count = 0};
    struct chex_error err = {.status = CHEX_OK};
    struct metrics m;
    double since;
    unsigned k;

    if (argc != 7) {
        fprintf(stderr, "usage: see the head of check_metrics.c\n");
        return 2;
    }
    s.count = strtoul(argv[1], NULL, 10);
    s.outputs = (unsigned)strtoul(argv[2], NULL, 10);
    s.patients = (uint32_t)strtoul(argv[3], NULL, 10);
    s.score = take(s.count * s.outputs, sizeof(float));
    s.label = take(s.count * s.outputs, 1);
    s.patient = take(s.count, sizeof(uint32_t));
    since = progress_clock();
    if (metrics_compute(&s, (unsigned)strtoul(argv[4], NULL, 10), strtoull(argv[5], NULL, 10),
                        (unsigned)strtoul(argv[6], NULL, 10), &m, &err) != CHEX_OK) {
        fprintf(stderr, "check-metrics: %s\n", err.text);
        return 1;
    }
    fprintf(stderr, "%.3f\n", progress_clock() - since);
    for (k = 0; k < s.outputs; k++) {
        const struct finding_metrics *f = &m.finding[k];

        printf("positives %llu auroc %.17g auprc %.17g", (unsigned long long)f->positives, f->auroc, f->auprc);
        print_intervals(&f->auroc_95, &f->auprc_95);
        print_point("youden", &f->youden);
        print_point("f1", &f->f1);
        putchar('\n');
    }
    printf("defined %u auroc %.17g auprc %.17g", m.defined, m.mean_auroc, m.mean_auprc);
    print_intervals(&m.mean_auroc_95, &m.mean_auprc_95);
    putchar('\n');
    free((void *)s.score);
    free((void *)s.label);
    free((void *)s.patient);
    return 0;
}
