/*
 * convert_report.h - what chex-convert says: the plan, the progress, the summary, as text or as one JSON document
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_REPORT_H
#define CHEX_TOOLS_CONVERT_REPORT_H

#include "convert/convert_options.h"

/* The lines labels, images, plan; with dry_run also the table of what is missing by archive.  To stderr. */
void report_plan(const struct convert *c, const struct cli_common *common, bool dry_run);

/*
 * Labels and lists that were read in another way than they are written: counts, and with list the first lines of each.
 */
void report_notes(const struct convert *c, bool list);

/* What is missing, by archive where that can be told; after convert_prepare() failed for missing images. */
void report_missing(const struct convert *c);

/* After a dry run: what it did not look at, and how it would; nothing where it has looked at all. */
void report_unread(const struct convert *c);

/* After a run that has read all archives and misses images: the two commands that may follow. */
void report_incomplete(const struct convert *c);

/* What earlier runs left; nothing where there was nothing. */
void report_resumed(const struct convert *c);

/* One progress line into text, of this part. */
struct progress;
void report_progress(const struct progress *p, struct part part, uint64_t rejects, char *text, size_t size);

/* The lines done, rejects, what was noticed, next. */
void report_done(const struct convert *c, const struct cli_common *common, bool within_allowance);

/* Why the exit code is not 0, in one line: of a data set that is complete already, and when quiet. */
void report_left(const struct convert *c, const struct cli_common *common);

/* After CHEX_ERR_MEMORY, which is also a lack of file descriptors: how much was in use, and what to try. */
void report_shortage(const struct chex_error *err, unsigned threads);

/* The document of schemas/convert.schema.json on stdout; err is NULL on success. */
void report_json(const struct convert *c, const struct chex_error *err, int exit_code, bool dry_run);

/* Rejects that do not count as faults of the data (--allow-rejects). */
bool rejects_allowed(const struct convert *c);

#endif
