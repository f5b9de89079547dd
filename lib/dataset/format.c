/*
 * format.c - see format.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/format.h"

#include <stddef.h>

const char *const tail_names[] = {[TAIL_PAD] = "pad", [TAIL_SHORT] = "short", [TAIL_DROP] = "drop", NULL};
