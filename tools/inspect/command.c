/*
 * command.c - what the commands check about their options; see command.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/command.h"

bool
inspect_wants_rows(const struct inspect_options *o)
{
    return o->format == TABLE_CSV || o->format == TABLE_JSONL;
}

enum chex_status
inspect_check_format(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    if (inspect_wants_rows(o) && common->json)
        return error_set(err, CHEX_ERR_USAGE, "--json goes with --format json");
    if (inspect_wants_rows(o) && o->path_count > 1)
        return error_set(err, CHEX_ERR_USAGE, "--format csv and jsonl take one PATH");
    return CHEX_OK;
}
