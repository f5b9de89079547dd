/*
 * convert_withdraw.h - chex-convert --withdraw: runs it and reports the result
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_WITHDRAW_H
#define CHEX_TOOLS_CONVERT_WITHDRAW_H

#include "convert/convert_options.h"
#include "ranks/collective.h"

/* Withdraw patients.  `status` and `err` are those of earlier steps.  Returns the exit code. */
int convert_withdraw(struct convert_cli *cli, const struct cli_common *common, struct collective *ranks,
                     enum chex_status status, struct chex_error *err);

#endif
