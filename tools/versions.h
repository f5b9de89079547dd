/*
 * versions.h - what --version prints
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_VERSIONS_H
#define CHEX_TOOLS_VERSIONS_H

#include <stdbool.h>

/* "chex-convert 0.1.0"; with details the libraries that are running and the CPU's features, a line each. */
void versions_print(const char *program, bool details);

#endif
