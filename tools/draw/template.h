/*
 * template.h - fills the values and parts of a page into its template
 *
 * template.awk converts a template, an HTML file, to C: an array of its lines.  Tags of a template:
 *     {{name}}               a value, or the output of a function for this name
 *     {{style}}              page.css, the style sheet of all pages
 *     {{?name}}TEXT{{/}}     TEXT if the value is not empty; {{^name}} if it is empty.  Not nested.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TEMPLATE_H
#define CHEX_TOOLS_TEMPLATE_H

#include "base/error.h"
#include "draw/html.h"

#define TEMPLATE_VALUES 64
#define TEMPLATE_VALUE  256 /* a title has up to 200 characters */

/* The values of {{name}}; an empty one is false in {{?name}}. */
struct template_values {
    struct {
        const char *name;
        char text[TEMPLATE_VALUE];
    } of[TEMPLATE_VALUES];
    unsigned count;
};

void template_add(struct template_values *v, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Add a number, or "" for 0: then {{?name}} leaves the text out. */
void template_add_some(struct template_values *v, const char *name, uint64_t n);

/* Write the part with this name, which is not terminated; *found = false if there is none. */
typedef enum chex_status template_part_fn(struct html *h, const void *context, const char *name, size_t length,
                                          bool *found, struct chex_error *err);

/* Fill all lines of a template, up to NULL.  CHEX_ERR_BUG: a tag without a value; CHEX_ERR_MEMORY; those of part */
enum chex_status template_fill(const char *const *line, const struct template_values *v, template_part_fn *part,
                               const void *context, struct html *h, struct chex_error *err);

#endif
