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
 * " --size 64 --split none --seed 7", for a shell: the split in any case, since its default depends on which files
 * there are, and of the others what is not the default.  Returns out.
 *
 * all  every option, in two lines with a newline between them, also --exclude exclude.txt and --allow-rejects where
 *      some were left out
 *
 * Of --split file:PATH the path is not known: PATH, or with `all` split.csv.  No manifest knows --empty-is-no-finding.
 */
char *spec_words(const struct manifest *m, bool all, char out[SPEC_WORDS]);

#endif
