/*
 * image_name.h - which files and members of archives are taken for images: by name, since there are 112,120 of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_IMAGE_NAME_H
#define CHEX_LIB_IMAGE_NAME_H

#include <stdbool.h>

/* Is this the name of an image file: .png, .jpg or .jpeg, in any case? */
bool image_name_is_known(const char *name);

#endif
