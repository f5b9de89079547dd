/*
 * spec_words.h - writes the chex-convert options of a data set, as far as its manifest records them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SPEC_WORDS_H
#define CHEX_TOOLS_SPEC_WORDS_H

#include "dataset/manifest.h"

#define SPEC_WORDS 8192

/*
 * Write the options for a shell: "--size 64\n--split none\n--seed 7\n".  Always includes the split, because its default
 * depends on files, and all other options that differ from their default.  One newline follows each option, and the
 * text has no other newline.  Returns out.
 *
 * all  write every option, and --allow-rejects if images were rejected; the options of the split and the shards come
 *      last, starting with --split
 *
 * A manifest records no file names.  So the text has the placeholders --split file:PATH and --exclude LIST, or with
 * `all` the names split.csv and exclude.txt.
 */
char *spec_words(const struct manifest *m, bool all, char out[SPEC_WORDS]);

#endif
