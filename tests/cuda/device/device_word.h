/*
 * device_word.h - parses "cuda:bf16" on the command line of programs that run one backend: gpu-steps, gpu-loop
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DEVICE_WORD_H
#define DEVICE_WORD_H

#include "backend/backend.h"

/*
 * Returns the backend and sets the precision (PRECISION_AUTO if none is given).  On failure the program reports the
 * reason and ends: 2 for an unknown precision, 77 if this build has no such backend or this machine no such device.
 */
const struct backend *device_of_word(const char *program, const char *word, enum precision *precision);

#endif
