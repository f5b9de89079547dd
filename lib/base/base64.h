/*
 * base64.h - bytes as text: RFC 4648, section 4, with padding and without line breaks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_BASE64_H
#define CHEX_LIB_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters of `size` bytes, without the terminator. */
#define BASE64_LENGTH(size) (((size) + 2) / 3 * 4)

/* Write BASE64_LENGTH(size) characters and a terminator. */
void base64_encode(const uint8_t *bytes, size_t size, char *out);
/* Read exactly `size` bytes; returns false if the text is not their encoding. */
bool base64_decode(const char *text, uint8_t *out, size_t size);

#endif
