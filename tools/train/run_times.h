/*
 * run_times.h - reads and prints the times of a run, from the last line about times in metrics.jsonl
 *
 * Part of chex-inspect.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_RUN_TIMES_H
#define CHEX_TOOLS_RUN_TIMES_H

#include "base/json.h"
#include "common/color.h"
#include "log/rank_times.h"

struct run_times {
    struct rank_times times; /* has no ranks if the run recorded no times */
    uint64_t epoch;          /* number of complete epochs */
    bool all;                /* true: times of all epochs since the last start; false: of the last epoch */
};

/* Call rank_times_release(&out->times) afterwards, also after a failure.  CHEX_ERR_READ, CHEX_ERR_MEMORY */
enum chex_status run_times_read(const char *folder, struct run_times *out, struct chex_error *err);
/* Prints the times to standard output; all: include every rank.  CHEX_ERR_MEMORY */
enum chex_status run_times_print(const struct run_times *found, const struct color *color, bool all,
                                 struct chex_error *err);
json_t *run_times_json(const struct run_times *found); /* JSON null if there are no times; NULL: out of memory */

#endif
