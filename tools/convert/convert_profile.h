/*
 * convert_profile.h - chex-convert --profile: measures the stages of a conversion for several numbers of threads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_PROFILE_H
#define CHEX_TOOLS_CONVERT_PROFILE_H

#include "convert/convert_options.h"
#include "ranks/collective.h"

/* Measure and report; writes no file.  status and *err: an earlier error.  Releases *c and returns the exit code. */
int convert_profile_command(struct convert_cli *cli, const struct cli_common *common, struct convert *c,
                            enum chex_status status, struct chex_error *err);

#endif
