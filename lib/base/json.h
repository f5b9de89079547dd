/*
 * json.h - parses untrusted JSON within limits, and detects lack of memory while writing JSON
 *
 * jansson recurses up to 2048 levels and needs about 100 bytes per value.  So the depth and the number of values are
 * counted before parsing, without allocating memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_JSON_H
#define CHEX_LIB_JSON_H

#include "base/memory.h"

#include <jansson.h>

struct parse_bounds {
    size_t size;   /* bytes of text */
    size_t depth;  /* of nested objects and arrays */
    size_t values; /* of all kinds; containers count twice */
    bool reals;    /* convert all numbers to reals; if false, an integer beyond 64 bits is an error */
};

/*
 * Parse size bytes of text.  Keys must be unique within their object.  The caller owns *out: json_decref().
 * CHEX_ERR_LIMIT a limit is exceeded;  CHEX_ERR_DAMAGED not JSON, with the line;  CHEX_ERR_MEMORY
 */
enum chex_status parse_json(const void *text, size_t size, const struct parse_bounds *bounds, json_t **out,
                            struct chex_error *err);

/*
 * Append the text of a value and a newline.  Use it for all files: jansson's json_dumps() may omit a key and succeed if
 * an allocation fails.  A NULL value counts as out of memory.
 * CHEX_ERR_MEMORY: b may contain a part of the text
 */
enum chex_status append_json(const json_t *value, size_t flags, struct buffer *b, struct chex_error *err);

/*
 * Make a JSON string of any text, such as a path.  If the text is not UTF-8, its bytes outside ASCII become \xNN.  The
 * caller owns the result; NULL when out of memory.
 */
json_t *text_json_n(const char *text, size_t size);
json_t *text_json(const char *text); /* NULL becomes null */
/* Make a JSON number.  The caller owns the result; NULL when out of memory. */
json_t *count_json(uint64_t n);
json_t *real_json(double x); /* not finite: null */

/* A value for a message: "text", escaped and cut; 1.5; true; null; a list; an object; missing (NULL).  Returns out. */
#define JSON_SHOWN 64
const char *json_show(const json_t *value, char out[JSON_SHOWN]);

#endif
