/*
 * image_name.h - recognises image files and image members of archives
 *
 * The name decides, not the content, because opening 112,120 files only to recognise them would be slow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_IMAGE_NAME_H
#define CHEX_LIB_IMAGE_NAME_H

#include <stdbool.h>

/* Returns whether the name ends with .png, .jpg or .jpeg, in any case. */
bool image_name_is_known(const char *name);

#endif
