/*
 * style.h - the style sheet of the report, in pieces that end with NULL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_REPORT_STYLE_H
#define CHEX_TOOLS_REPORT_STYLE_H

extern const char *const report_style[];

#endif
