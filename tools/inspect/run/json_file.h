/*
 * json_file.h - reads JSON documents that chex-train and chex-predict have written
 *
 * The files may come from elsewhere: a member that is missing or has another type is empty, 0 or NaN.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_JSON_FILE_H
#define CHEX_TOOLS_INSPECT_RUN_JSON_FILE_H

#include "base/error.h"

#include <jansson.h>

/*
 * Read a document; *out is freed with json_decref().  program: who writes such files, for the message.
 * CHEX_ERR_INCOMPATIBLE (no JSON), CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status json_file_read(const char *path, const char *program, json_t **out, struct chex_error *err);
/* Put the path of a file that could not be read before the message, and return the status, which *err has too. */
enum chex_status json_file_unread(struct chex_error *err, enum chex_status status, const char *path);

/* Copy a text, cut to the size. */
void json_take_text(const json_t *object, const char *key, char *out, size_t size);
#define JSON_TAKE(object, key, member) json_take_text(object, key, member, sizeof(member))
/* Returns a number from 0 to 2^53, 0 for anything else. */
uint64_t json_take_count(const json_t *object, const char *key);
/* Returns a number from low to high, NaN for anything else. */
double json_take_real(const json_t *object, const char *key, double low, double high);

#endif
