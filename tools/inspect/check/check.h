/*
 * check.h - what the command `check` can do: compare a data set with its manifest, and the splits with each other
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_CHECK_H
#define CHEX_TOOLS_INSPECT_CHECK_H

#include "inspect/command.h"

/* check --quick, --sample, --full (verify.c); also the overview of a PATH without a command. */
int inspect_verify(struct inspect *in, struct target *t);
/* check --leaks (leaks.c) */
int inspect_split(struct inspect *in, struct target *t);

#endif
