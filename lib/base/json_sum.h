/*
 * json_sum.h - a JSON document whose last key is the SHA-256 of the text before its line
 *
 * The sum detects damage and edits by hand.  The document is an object, indented by 2, that ends with a newline.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_JSON_SUM_H
#define CHEX_LIB_JSON_SUM_H

#include "base/json.h"

/* Add the sum to a document without it.  CHEX_ERR_MEMORY */
enum chex_status json_sum_add(struct buffer *text, const char *key, struct chex_error *err);

/* Compare the sum of a document, if it has one: `top` is the parsed text.  CHEX_ERR_DAMAGED, CHEX_ERR_MEMORY */
enum chex_status json_sum_check(const json_t *top, const char *key, const void *text, size_t size,
                                struct chex_error *err);

#endif
