/*
 * state_cases.h - values for each field of a run's state: at, below and above its bounds, and of other types
 *
 * They come from the table of fields (train/checkpoint/checkpoint_fields.c), for the unit tests and the fuzzer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_STATE_CASES_H
#define CHEX_TESTS_STATE_CASES_H

#include "checkpoint/checkpoint_private.h"

struct state_case {
    const char *what;             /* description, "above the largest" */
    char json[SETTINGS_TEXT + 8]; /* the value; "": the field is missing */
    bool fits;
};

/*
 * Returns case `number` of a field; false after the last.  state: the other fields of the state that gets this value.
 */
bool state_case(const struct state_field *f, const struct checkpoint_state *state, unsigned number,
                struct state_case *out);

/*
 * Returns the text of a state (metadata "state") with one value replaced.  free(); NULL: the text is not a JSON object.
 */
char *state_with(const char *text, const char *field, const char *json);

/* Returns a valid state that allows any valid value of this field; NULL: of no field. */
struct checkpoint_state state_plain(const struct state_field *f);

#endif
