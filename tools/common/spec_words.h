/*
 * spec_words.h - the options of chex-convert that a data set was made with, as far as its manifest knows them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SPEC_WORDS_H
#define CHEX_TOOLS_SPEC_WORDS_H

#include "dataset/manifest.h"

#define SPEC_WORDS 1024

/*
 * "--size 64\n--split none\n--seed 7\n", for a shell: always the split, since its default depends on files, and all
 * other options that have not their default.  A newline after each; there is no other one.  Returns out.
 *
 * all  every option, also --allow-rejects where images were rejected; those of the split and the shards last, from
 *      --split on
 *
 * A manifest names no files: --split file:PATH and --exclude LIST, or with `all` split.csv and exclude.txt.
 */
char *spec_words(const struct manifest *m, bool all, char out[SPEC_WORDS]);

#endif
