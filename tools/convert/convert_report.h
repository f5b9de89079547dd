/*
 * convert_report.h - prints the plan, progress and summary of chex-convert as text or as one JSON document
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_REPORT_H
#define CHEX_TOOLS_CONVERT_REPORT_H

#include "convert/convert_options.h"

#include <jansson.h>

/* Print the lines labels, images and plan to stderr; with dry_run also a table of missing images by archive. */
void report_plan(const struct convert *c, const struct cli_common *common, bool dry_run);

/*
 * Print the counts of labels and list lines that the reader had to interpret; with list also the first lines of each.
 */
void report_notes(const struct convert *c, bool list);

/* Print the missing images, by archive if known, after convert_prepare() failed because of them. */
void report_missing(const struct convert *c);

/* Print after a dry run which inputs it did not read, and how to read them; nothing if it read all. */
void report_unread(const struct convert *c);

/* Print the two possible next commands after a run that read all archives but lacks images. */
void report_incomplete(const struct convert *c);

/* Print the work of earlier runs; nothing if there is none. */
void report_resumed(const struct convert *c);

/* Write one progress line of this part to text. */
struct progress;
void report_progress(const struct progress *p, struct part part, uint64_t rejects, char *text, size_t size);

/* Print the lines done, rejects, notes and next. */
void report_done(const struct convert *c, const struct cli_common *common, bool within_allowance);

/* Print in one line why the exit code is not 0, if the data set was already complete or with --quiet. */
void report_left(const struct convert *c, const struct cli_common *common);

/* Print usage and advice after CHEX_ERR_MEMORY, which also means a lack of file descriptors. */
void report_shortage(const struct chex_error *err, unsigned threads);

/*
 * Print the document of schemas/convert.schema.json to stdout; err is NULL on success.
 * key, value   one more member, which this function frees; NULL: none
 */
void report_json(const struct convert *c, const struct chex_error *err, int exit_code, bool dry_run, const char *key,
                 json_t *value);

/* Returns whether --allow-rejects permits the rejects, so that they are not faults of the data. */
bool rejects_allowed(const struct convert *c);

#endif
