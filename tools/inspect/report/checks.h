/*
 * checks.h - shared helpers of the files that write the checks of the report; report.h declares the checks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_REPORT_CHECKS_H
#define CHEX_TOOLS_REPORT_CHECKS_H

#include "base/number_format.h"
#include "inspect/report/report.h"

#define EXAMPLES     3 /* maximum of names in a sentence */
#define TEXT(number) format_count(number, (char[FORMAT_TEXT]){0})

/* Add a check with an empty sentence. */
struct report_check *report_check_begin(struct html_report *r, const char *id, const char *title,
                                        enum report_level level, uint64_t count);
/* Append to the sentence; truncates it if it gets too long. */
void report_check_say(struct report_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append the name of an image or patient; escapes it, because it may hold any bytes. */
void report_check_name(struct report_check *c, const char *name);

const char *report_split_name(const struct html_report *r, unsigned split);
const char *report_plural(uint64_t n); /* returns "" or "s" */

/* The checks of drift.c. */
void report_check_drift(struct html_report *r);
/* The checks of leaks.c. */
void report_check_patients(struct html_report *r);
void report_check_equal(struct html_report *r);
void report_check_near(struct html_report *r);

#endif
