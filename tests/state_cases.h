/*
 * state_cases.h - values for each field of the state of a run: at, below and above its bounds, and of other types
 *
 * Made from the table of fields (train/checkpoint/checkpoint_fields.c), for the unit tests and the fuzzer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_STATE_CASES_H
#define CHEX_TESTS_STATE_CASES_H

#include "checkpoint/checkpoint_private.h"

struct state_case {
    const char *what;             /* "above the largest" */
    char json[SETTINGS_TEXT + 8]; /* the value; "": the field is missing */
    bool fits;
};

/* Case `number` of a field; false after the last.  state: the other fields of the state that gets this value. */
bool state_case(const struct state_field *f, const struct checkpoint_state *state, unsigned number,
                struct state_case *out);

/* The text of a state (metadata "state") with one value replaced.  free(); NULL: the text is no JSON object. */
char *state_with(const char *text, const char *field, const char *json);

/* A state that fits, with any value of this field that does; NULL: of none. */
struct checkpoint_state state_plain(const struct state_field *f);

#endif
