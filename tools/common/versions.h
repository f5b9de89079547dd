/*
 * versions.h - prints the output of --version
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_VERSIONS_H
#define CHEX_TOOLS_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

/* A library and the version that the process loaded. */
struct version {
    const char *name, *text;
};

#define VERSIONS_MAX 9
size_t versions_list(struct version out[VERSIONS_MAX]);

/* Write the CPU's features, such as "x86-64 avx2 avx512bw".  Returns out. */
const char *versions_cpu(char *out, size_t size);

/* Print "chex-convert 0.1.0", copyright and licence; with details also library versions and CPU features. */
void versions_print(const char *program, bool details);

#endif
