/*
 * run_value.h - a named value of a run (an option, a version), for run.json, TensorBoard and the comparison of ranks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_VALUE_H
#define CHEX_TRAIN_RUN_VALUE_H

#include <stdbool.h>

enum run_value_kind { RUN_TEXT, RUN_NUMBER, RUN_BOOL };

struct run_value {
    const char *name; /* "lr", like the long option without dashes */
    enum run_value_kind kind;
    const char *text; /* RUN_TEXT; NULL means null */
    double number;    /* RUN_NUMBER; integers up to 2^53 are written without a fraction */
    bool yes;         /* RUN_BOOL */
};

#endif
