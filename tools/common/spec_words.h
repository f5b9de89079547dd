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
 * " --size 64 --split none --seed 7": the split in any case, since its default depends on which files there are, and of
 * the others what is not the default; for a shell.  Of --split file:PATH the path is not known and stands as PATH.  Not
 * in a manifest, and so not here: the file of --exclude, and --empty-is-no-finding.  Returns out.
 */
char *spec_words(const struct manifest *m, char out[SPEC_WORDS]);

#endif
