/*
 * step_parts.c - see step_parts.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/step_parts.h"

const char *const step_part_name[PART_COUNT] = {"data_wait", "copy", "forward",    "backward", "reduce",
                                                "optimizer", "meet", "evaluation", "save",     "peers"};
