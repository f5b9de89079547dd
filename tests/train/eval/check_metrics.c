/*
 * check_metrics.c - computes metrics.h for scores from a file, for comparison with other software
 *
 *     check-metrics COUNT OUTPUTS PATIENTS REPLICATES SEED THREADS < IN
 *
 * IN   float32 scores [COUNT][OUTPUTS], uint8 labels [COUNT][OUTPUTS], uint32 patients [COUNT], in the byte order of
 *      the machine
 * OUT  one line per finding, then one for their mean: NAME VALUE pairs with all digits.  The seconds are on stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
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
print_measured(const struct measured metric[METRIC_COUNT])
{
    unsigned i;

    for (i = 0; i < METRIC_COUNT; i++)
        printf(" %s %.17g %s_low %.17g %s_high %.17g", metric_info[i].name, metric[i].value, metric_info[i].name,
               metric[i].low, metric_info[i].name, metric[i].high);
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
    unsigned k, i;

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
    since = clock_now();
    if (metrics_compute(&s, (unsigned)strtoul(argv[4], NULL, 10), strtoull(argv[5], NULL, 10),
                        (unsigned)strtoul(argv[6], NULL, 10), &m, &err) != CHEX_OK) {
        fprintf(stderr, "check-metrics: %s\n", err.text);
        return 1;
    }
    fprintf(stderr, "%.3f\n", clock_now() - since);
    for (k = 0; k < s.outputs; k++) {
        const struct finding_metrics *f = &m.finding[k];

        printf("positives %llu negatives %llu", (unsigned long long)f->positives, (unsigned long long)f->negatives);
        print_measured(f->metric);
        for (i = 0; i < CRITERION_COUNT; i++)
            print_point(criterion_name[i], &f->point[i]);
        putchar('\n');
    }
    printf("defined %u", m.defined);
    print_measured(m.mean);
    putchar('\n');
    free((void *)s.score);
    free((void *)s.label);
    free((void *)s.patient);
    return 0;
}
