/*
 * check.c - the command `check`: compares a data set with its manifest, or the splits with each other; see
 * inspect/command.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/check/check.h"

static int
check_path(struct inspect *in, struct target *t)
{
    return in->options->action == INSPECT_SPLIT ? inspect_split(in, t) : inspect_verify(in, t);
}

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    if (o->sha256 && o->depth != VERIFY_FULL)
        return error_set(err, CHEX_ERR_USAGE, "--sha256 goes with --full");
    if (inspect_wants_rows(o) && o->action != INSPECT_SPLIT)
        return error_set(err, CHEX_ERR_USAGE, "--format csv and jsonl go with --leaks and --near");
    if (o->certificate && !o->near)
        return error_set(err, CHEX_ERR_USAGE, "--certificate goes with --near");
    return inspect_check_format(o, common, err);
}

static const struct cli_option options[] = {
    {ID_QUICK, 0, "quick", NULL, NULL, NULL,
     "check that every shard is there, has its size and is one of this data set; the default"},
    {ID_SAMPLE, 0, "sample", "P%", NULL, NULL, "check as --quick, and P per cent of the records; always the same ones"},
    {ID_FULL, 0, "full", NULL, NULL, NULL,
     "check every record: framing, checksums, form and place; counts; the checksum of every shard"},
    {AT_FLAG(sha256), 0, "sha256", NULL, NULL, NULL,
     "compare the SHA-256 of every shard, against tampering (with --full)"},
    {ID_LEAKS, 0, "leaks", NULL, NULL, NULL, "find patients and images in two splits, and drift of prevalence"},
    {ID_NEAR, 0, "near", NULL, NULL, NULL, "as --leaks, and find nearly equal images in two splits"},
    {AT_TEXT(certificate), 0, "certificate", "FILE", NULL, NULL,
     "write the result of --near as the certificate of the split; chex-train reads PATH/split-certificate.json"},
    ROW_FORMAT,
    ROW_END,
};

const struct inspect_command inspect_check_command = {
    .cli = {.name = "check",
            .summary = "check a data set, a shard, a checkpoint or a run",
            .usage = "[--quick | --sample P% | --full [--sha256]] PATH...\n"
                     "--leaks [--format HOW] PATH...\n"
                     "--near [--certificate FILE] [--format HOW] PATH...",
            .examples = "chex-inspect check --full shards     # every byte\n"
                        "chex-inspect check -q --sample 1% shards || exit\n"
                        "chex-inspect check --leaks shards    # is a patient in train and test?",
            .options = options},
    .action = INSPECT_VERIFY,
    .min = 1,
    .max = UINT_MAX,
    .check = check_options,
    .each = check_path,
};
