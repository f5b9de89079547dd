/*
 * report_checks.h - what the files with the sentences of --report share; report.h has the checks themselves
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_REPORT_CHECKS_H
#define CHEX_TOOLS_REPORT_CHECKS_H

#include "base/progress.h"
#include "report/report.h"

#define EXAMPLES     3 /* names that a sentence gives */
#define TEXT(number) format_count(number, (char[PROGRESS_TEXT]){0})

/* One more check, without a sentence as yet. */
struct report_check *report_check_begin(struct html_report *r, const char *id, const char *title,
                                        enum report_level level, uint64_t count);
/* Append to the sentence; what does not fit is cut. */
void report_check_say(struct report_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The name of an image or patient, which may be anything. */
void report_check_name(struct report_check *c, const char *name);

const char *report_split_name(const struct html_report *r, unsigned split);
const char *report_plural(uint64_t n); /* "" or "s" */

/* The checks of report_drift.c. */
void report_check_drift(struct html_report *r);
/* The checks of report_leaks.c. */
void report_judge_patients(struct html_report *r);
void report_judge_equal(struct html_report *r);

#endif
