/*
 * template.h - the lines of page.html, up to NULL; template.awk makes template.c of it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_REPORT_TEMPLATE_H
#define CHEX_TOOLS_INSPECT_REPORT_TEMPLATE_H

extern const char *const report_template[];

#endif
