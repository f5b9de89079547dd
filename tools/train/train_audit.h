/*
 * train_audit.h - chex-train --audit: its options, what it prints, and its part of the JSON document
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TRAIN_AUDIT_H
#define CHEX_TOOLS_TRAIN_AUDIT_H

#include "train/train_report.h"

#include <jansson.h>

/* Note an option that does not go with --audit; called for each option of the command line. */
void train_audit_note_option(struct train_cli *cli, const char *name);
/* Check the options that go with --audit.  CHEX_ERR_USAGE */
enum chex_status train_audit_check_options(const struct train_cli *cli, struct chex_error *err);

/* Audit, and print a line for each comparison. */
enum chex_status train_audit_run(struct train_report *r, struct trainer *t, struct chex_error *err);
/* A callback of struct trainer_watch: the progress line. */
void train_audit_stepped(void *context, const struct trainer *t, const struct trainer_step *step);

/* Print the last line.  With -q only differences, because they explain the exit status. */
void train_audit_end(const struct train_report *r, const struct trainer *t);
/* The member "audit" of schemas/train.schema.json. */
json_t *train_audit_json(const struct train_report *r);
void train_audit_release(struct train_audit *a);

#endif
