/*
 * options.h - the command line of chex-inspect
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_OPTIONS_H
#define CHEX_TOOLS_INSPECT_OPTIONS_H

#include "common/cli.h"
#include "common/table_writer.h"
#include "inspect/where.h"
#include "verify/verify.h"

enum inspect_action {
    INSPECT_DESCRIBE,
    INSPECT_VERIFY,
    INSPECT_LIST,
    INSPECT_EXTRACT,
    INSPECT_LABELS,
    INSPECT_SPLIT,
    INSPECT_SHEET,
    INSPECT_SHOW,
    INSPECT_REPORT,
    INSPECT_DIFF,
    INSPECT_SOURCE
};

struct inspect_options {
    enum inspect_action action;
    bool action_given;
    const char *argument; /* of the action: the image of --extract and --show, the file of --sheet and --report */
    enum verify_depth depth;
    bool sha256; /* of --full */
    double sample_percent;
    const char *fields; /* of --list */
    const char *split;  /* only this one, or NULL */
    bool padding;       /* --list records of weight 0 too */
    const char *title;  /* of --sheet and --report: printable ASCII, or NULL */
    const char *output;
    struct where where;     /* of --list, --labels and --sheet */
    unsigned first, random; /* how many images; 0: not given */
    unsigned columns;       /* 0: not given */
    uint64_t seed;
    bool seed_given;
    const char *protocol; /* of --show, or NULL */
    enum table_format format;
    const char *labels;  /* of --source, with input */
    uint64_t max_memory; /* of --source; 0: the default */
    const char **input;  /* this list and the next are owned, their texts are not */
    size_t input_count, input_capacity;
    const char **path;
    size_t path_count, path_capacity;
};

extern const struct cli_program inspect_program;

/* Free with inspect_options_release(). */
struct inspect_options inspect_options_default(void);
void inspect_options_release(struct inspect_options *o);

/* After parsing: what must be there, and what goes together.  CHEX_ERR_USAGE. */
enum chex_status inspect_options_check(const struct inspect_options *o, const struct cli_common *common,
                                       struct chex_error *err);

#endif
