/*
 * floor.c - see floor.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/floor.h"

#include "eval/logistic.h"

#include <math.h>
#include <string.h>

#define SEXES   3 /* F, M, unknown */
#define VIEWS   3 /* AP, PA, unknown */
#define COLUMNS 10

_Static_assert(FLOOR_CELLS == FLOOR_AGES * SEXES * VIEWS, "a cell for each combination");
_Static_assert(COLUMNS == 1 + FLOOR_AGE_UNKNOWN + (SEXES - 1) + (VIEWS - 1) && COLUMNS <= LOGISTIC_COLUMNS,
               "a column for each known value");

enum floor_age
floor_age(float age)
{
    return isnan(age) ? FLOOR_AGE_UNKNOWN
           : age < 20 ? FLOOR_0
           : age < 40 ? FLOOR_20
           : age < 60 ? FLOOR_40
           : age < 80 ? FLOOR_60
                      : FLOOR_80;
}

unsigned
floor_cell(float age, char sex, const char *view)
{
    unsigned s = sex == 'F' ? 0 : sex == 'M' ? 1 : 2;
    unsigned v = strcmp(view, "AP") == 0 ? 0 : strcmp(view, "PA") == 0 ? 1 : 2;

    return ((unsigned)floor_age(age) * SEXES + s) * VIEWS + v;
}

static void
set_columns(unsigned cell, double *x)
{
    unsigned view = cell % VIEWS, sex = cell / VIEWS % SEXES, age = cell / VIEWS / SEXES, i;

    x[0] = 1;
    for (i = 0; i < FLOOR_AGE_UNKNOWN; i++)
        x[1 + i] = age == i;
    for (i = 0; i < SEXES - 1; i++)
        x[1 + FLOOR_AGE_UNKNOWN + i] = sex == i;
    for (i = 0; i < VIEWS - 1; i++)
        x[FLOOR_AGE_UNKNOWN + SEXES + i] = view == i;
}

bool
floor_fit(const struct floor_cell cell[FLOOR_CELLS], double probability[FLOOR_CELLS])
{
    double x[FLOOR_CELLS][COLUMNS], positives[FLOOR_CELLS], negatives[FLOOR_CELLS], b[COLUMNS];
    const struct logistic_rows rows = {
        .rows = FLOOR_CELLS, .columns = COLUMNS, .x = x[0], .positives = positives, .negatives = negatives, .ridge = 1};
    uint64_t all[2] = {0, 0};
    unsigned i, k;

    for (i = 0; i < FLOOR_CELLS; i++) {
        set_columns(i, x[i]);
        positives[i] = (double)cell[i].positives;
        negatives[i] = (double)cell[i].negatives;
        all[0] += cell[i].negatives;
        all[1] += cell[i].positives;
    }
    if (all[0] < FLOOR_FEWEST || all[1] < FLOOR_FEWEST || !logistic_fit(&rows, b))
        return false;
    for (i = 0; i < FLOOR_CELLS; i++) {
        double z = 0;

        for (k = 0; k < COLUMNS; k++)
            z += x[i][k] * b[k];
        probability[i] = 1 / (1 + exp(-z));
    }
    return true;
}
