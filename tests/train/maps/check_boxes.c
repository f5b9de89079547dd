/*
 * check_boxes.c - measures maps and boxes from a file, for comparison with other software
 *
 *     check-boxes HEIGHT WIDTH COUNT FINDINGS PATIENTS CELLS REPLICATES SEED THREADS < IN
 *
 * IN   float64 boxes [COUNT][4] (left, top, right, bottom), uint32 findings [COUNT], uint32 patients [COUNT], float32
 *      maps [COUNT][HEIGHT][WIDTH], in the byte order of the machine.  The maps have CELLS x CELLS cells
 * OUT  "found I: LEFT TOP RIGHT BOTTOM, ..." for each map; "FINDING METHOD: VALUE LOW HIGH, ..." for all measures, with
 *      all digits; FINDING is -1 for the mean
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/localization.h"
#include "maps/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct maps {
    unsigned height, width;
    const float *value;
    struct map_grid grid;
};

static void *
take(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p || fread(p, size, count, stdin) != count) {
        fprintf(stderr, "check-boxes: the input is too short\n");
        exit(1);
    }
    return p;
}

static enum chex_status
copy_map(void *context, size_t i, float *out, struct chex_error *err)
{
    const struct maps *m = context;
    size_t size = (size_t)m->height * m->width;

    (void)err;
    memcpy(out, m->value + i * size, size * sizeof(*out));
    return CHEX_OK;
}

static void
spread_cells(void *context, size_t i, const float *cells, float *out)
{
    const struct maps *m = context;
    struct map_place place = {1, 1, 0, 0};

    (void)i;
    map_spread(&m->grid, cells, &place, m->height, m->width, out);
}

static void
print_found(const struct maps *m, size_t i)
{
    struct map_regions r = {.count = 0};
    struct chex_error err;

    if (map_regions_find(&r, m->value + i * m->height * m->width, m->height, m->width, &err) != CHEX_OK)
        exit(1);
    printf("found %zu:", i);
    for (size_t k = 0; k < r.count; k++)
        printf("%s %.17g %.17g %.17g %.17g", k > 0 ? "," : "", r.box[k].left, r.box[k].top, r.box[k].right,
               r.box[k].bottom);
    putchar('\n');
    map_regions_release(&r);
}

static void
print_localized(int finding, const struct localized *l)
{
    for (unsigned m = 0; m < BOX_METHODS; m++) {
        printf("%d %s:", finding, box_method_names[m]);
        for (unsigned v = 0; v < BOX_MEASURES; v++)
            printf("%s %.17g %.17g %.17g", v > 0 ? "," : "", l->value[m][v].value, l->value[m][v].low,
                   l->value[m][v].high);
        putchar('\n');
    }
}

int
main(int argc, char **argv)
{
    unsigned long n[9];
    struct maps m = {0};
    struct localization_input in = {.map = copy_map, .spread = spread_cells, .context = &m};
    struct localization l;
    struct located_box *box;
    struct chex_error err = {.status = CHEX_OK};
    double(*sides)[4];
    uint32_t *finding, *patient;

    if (argc != 10) {
        fprintf(stderr, "usage: see the head of check_boxes.c\n");
        return 2;
    }
    for (int i = 0; i < 9; i++)
        n[i] = strtoul(argv[i + 1], NULL, 10);
    m.height = (unsigned)n[0];
    m.width = (unsigned)n[1];
    in.count = n[2];
    in.findings = (unsigned)n[3];
    in.patients = (uint32_t)n[4];
    in.cells_high = in.cells_wide = (unsigned)n[5];
    in.replicates = (unsigned)n[6];
    in.seed = n[7];
    in.threads = (unsigned)n[8];
    box = calloc(in.count, sizeof(*box));
    if (!box)
        return 1;
    in.box = box;
    m.grid = (struct map_grid){in.cells_high, in.cells_wide, (double)m.width / in.cells_wide, 2};
    sides = take(in.count, sizeof(*sides));
    finding = take(in.count, sizeof(*finding));
    patient = take(in.count, sizeof(*patient));
    m.value = take(in.count * m.height * m.width, sizeof(float));
    for (size_t i = 0; i < in.count; i++) {
        box[i] = (struct located_box){
            {sides[i][0], sides[i][1], sides[i][2], sides[i][3]}, m.height, m.width, finding[i], patient[i]};
        print_found(&m, i);
    }
    if (localization_measure(&in, &l, &err) != CHEX_OK) {
        fprintf(stderr, "check-boxes: %s\n", err.text);
        return 1;
    }
    for (unsigned k = 0; k < l.findings; k++)
        print_localized((int)k, &l.finding[k]);
    print_localized(-1, &l.mean);
    localization_release(&l);
    free(box);
    free(sides);
    free(finding);
    free(patient);
    free((void *)m.value);
    return 0;
}
