/*
 * device_word.h - "cuda:bf16" on the command line of a program that runs one backend: gpu-steps, gpu-loop
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DEVICE_WORD_H
#define DEVICE_WORD_H

#include "backend/backend.h"

/*
 * The backend, and the precision: PRECISION_AUTO where none is given.  Else the program says why and ends: 2 for a
 * precision that there is not, 77 where this build has no such backend, or this machine no such device.
 */
const struct backend *device_of_word(const char *program, const char *word, enum precision *precision);

#endif
