/*
 * tables.h - rows and cells of the tables in the report of a run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_TABLES_H
#define CHEX_TOOLS_INSPECT_RUN_TABLES_H

#include "inspect/run/run.h"

/* heading: NULL-terminated; one that begins with '<' is of a column of texts. */
void run_table_begin(struct html *h, const char *const *heading);
void run_table_end(struct html *h);
/* Begin a row with this name; the caller ends it with "</tr>\n". */
void run_table_row(struct html *h, const char *name);
void run_cell_number(struct html *h, double value);
/* Mean, SD, lowest and highest of the runs, and the ensemble. */
void run_cells_spread(struct html *h, const struct run_spread *s);
void run_cell_count(struct html *h, uint64_t n);
void run_cell_measured(struct html *h, const struct measured *m);
/* A note in place of so many columns. */
void run_cell_note(struct html *h, unsigned columns, const char *text);

#endif
