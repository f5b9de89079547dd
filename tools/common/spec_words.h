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
 * " --size 64 --split none --seed 7", for a shell: always the split, since its default depends on files, and all other
 * options that have not their default.  Returns out.
 *
 * all  every option, in two lines with a newline between them, also --exclude exclude.txt and --allow-rejects where
 *      some were left out
 *
 * The path of --split file:PATH is unknown and stands as PATH, or with `all` as split.csv.  No manifest knows
 * --empty-is-no-finding.
 */
char *spec_words(const struct manifest *m, bool all, char out[SPEC_WORDS]);

#endif
