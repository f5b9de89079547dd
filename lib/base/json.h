/*
 * json.h - JSON from anywhere, bounded before it is parsed; and JSON that is written whole or not at all
 *
 * jansson recurses 2048 deep and takes about a hundred bytes for a value; so the depth and the number of values are
 * counted first, without memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_JSON_H
#define CHEX_LIB_JSON_H

#include "base/memory.h"

#include <jansson.h>

struct parse_bounds {
    size_t size;   /* bytes of text */
    size_t depth;  /* of objects and arrays within each other */
    size_t values; /* of all kinds, containers counted double */
    bool reals;    /* make every number a real; else an integer beyond 64 bits is an error of the whole text */
};

/*
 * Parse size bytes of text; keys must be unique within their object.  *out is the caller's: json_decref().
 * CHEX_ERR_LIMIT a bound is exceeded;  CHEX_ERR_DAMAGED not JSON, with the line;  CHEX_ERR_MEMORY
 */
enum chex_status parse_json(const void *text, size_t size, const struct parse_bounds *bounds, json_t **out,
                            struct chex_error *err);

/*
 * Append the text of a value, and a newline.  jansson's own json_dumps() is not used for files: where an allocation
 * fails in the middle, it may leave out a key and succeed.  value NULL is out of memory too.
 * CHEX_ERR_MEMORY: then b has a part of it
 */
enum chex_status append_json(const json_t *value, size_t flags, struct buffer *b, struct chex_error *err);

/*
 * A JSON string of any text, such as a path: where it is not UTF-8, its bytes outside ASCII become \xNN.  The caller's;
 * NULL when out of memory.
 */
json_t *text_json_n(const char *text, size_t size);
json_t *text_json(const char *text); /* NULL: null */
/* The caller's; NULL when out of memory. */
json_t *count_json(uint64_t n);
json_t *real_json(double x); /* not finite: null */

#endif
