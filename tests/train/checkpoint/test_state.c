/*
 * test_state.c - the fields of a run's state, and their bounds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/events.h"
#include "state_cases.h"
#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "step-000001"

static void
open_run(struct folder *folder)
{
    struct chex_error err;
    char path[600];

    snprintf(path, sizeof(path), "%s/state%ld", unit_folder(), (long)getpid());
    ck_assert_int_eq(folder_open(path, true, folder, &err), CHEX_OK);
}

/* Writes a model file without tensors, with this state. */
static void
put_state(const struct folder *folder, const char *text)
{
    const struct metadata metadata[] = {{"chex_format", "1"}, {"state", text}};
    struct chex_error err;

    ck_assert_int_eq(safetensors_write(folder, NAME ".safetensors", NULL, 0, metadata, 2, NULL, &err), CHEX_OK);
}

/* Returns all fields as the writer writes them. */
static char *
text_of(const struct checkpoint_state *state)
{
    json_t *top = json_object();
    char *text;

    for (const struct state_field *f = state_fields; f->name; f++)
        ck_assert_int_eq(json_object_set_new(top, f->name, state_format(f, state)), 0);
    text = json_dumps(top, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(top);
    return text;
}

/* The error must name the field, what it must be, and the value, shortened. */
static void
require_named(const struct state_field *f, const struct state_case *c, const struct chex_error *err)
{
    char wanted[100];

    snprintf(wanted, sizeof(wanted), "'%s' of the run's state is ", f->name);
    ck_assert_msg(strstr(err->text, wanted), "%s %s: %s", f->name, c->what, err->text);
    ck_assert_msg(strstr(err->text, c->json[0] ? " from " : "missing") || f->kind == STATE_TEXT, "%s", err->text);
    ck_assert_msg(strstr(err->text, "; it has to be a "), "%s", err->text);
}

TEST_CASE("checkpoint", "state", NULL, NULL);

static int
field_count(void)
{
    int fields = 0;

    while (state_fields[fields].name)
        fields++;
    return fields;
}

LOOP_TEST(each_field_of_the_state_has_bounds, 0, field_count())
{
    const struct state_field *f = &state_fields[_i];
    struct checkpoint_state plain = state_plain(f), state;
    char *text = text_of(&plain);
    struct state_case c;
    struct folder folder;
    struct chex_error err;
    unsigned fit = 0, refused = 0;

    open_run(&folder);
    for (unsigned n = 0; state_case(f, &plain, n, &c); n++) {
        char *changed = state_with(text, f->name, c.json);
        enum chex_status status;

        put_state(&folder, changed);
        status = checkpoint_read_state(&folder, NAME, NULL, &state, &err);
        ck_assert_msg(status == (c.fits ? CHEX_OK : CHEX_ERR_DAMAGED), "%s %s (%.80s): %d %s", f->name, c.what, c.json,
                      status, status == CHEX_OK ? "" : err.text);
        if (!c.fits)
            require_named(f, &c, &err);
        fit += c.fits;
        refused += !c.fits;
        free(changed);
    }
    ck_assert(fit >= 2 && refused >= 5);
    free(text);
    folder_close(&folder);
}

TEST(an_error_of_a_state_has_field_value_and_bounds)
{
    static const struct {
        const char *field, *json, *text;
    } cases[] = {
        {"step", "\"9223372036854775807\"",
         "'step' of the run's state is \"9223372036854775807\"; it has to be a text with a number from 0 to "
         "9007199254740992"},
        {"epoch", "100000000000000000000",
         "'epoch' of the run's state is 1e+20; it has to be a number from 0 to 1000000"},
        {"bad_epochs", "4", "'bad_epochs' of the run's state is 4; it has to be a number from 0 to 3, its 'epoch'"},
        {"schedule_factor", "\"-0x1p+0\"",
         "'schedule_factor' of the run's state is \"-1\"; it has to be a text with a number from 0 to 1"},
        {"loss_scale", "\"0x1.8p+1\"",
         "'loss_scale' of the run's state is \"3\"; it has to be a text with a power of two from 1.17549e-38 to "
         "1.70141e+38, or 0"},
        {"best", "\"inf\"",
         "'best' of the run's state is \"inf\"; it has to be a text with a number from 0 to 1.79769e+308, or nan"},
        {"dataset_id", "\"\\u001b\"",
         "'dataset_id' of the run's state is \"\\x1b\"; it has to be a text of 16 to 16 bytes of '0123456789abcdef'"},
        {"side", "", "'side' of the run's state is missing; it has to be a number from 1 to 16384"},
    };
    struct checkpoint_state plain = state_plain(NULL), state;
    char *text = text_of(&plain);
    struct folder folder;
    struct chex_error err;

    open_run(&folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *changed = state_with(text, cases[i].field, cases[i].json);

        put_state(&folder, changed);
        ck_assert_int_eq(checkpoint_read_state(&folder, NAME, NULL, &state, &err), CHEX_ERR_DAMAGED);
        ck_assert_msg(strstr(err.text, cases[i].text), "%s", err.text);
        free(changed);
    }
    free(text);
    folder_close(&folder);
}

/* Every byte of a member must be covered by the table, but the mark of a short run; the rest is padding. */
TEST(the_table_has_every_member_of_the_state)
{
    bool covered[sizeof(struct checkpoint_state)] = {false};
    size_t gap = 0;

    for (const struct state_field *f = state_fields; f->name; f++)
        memset(covered + f->offset, true, f->size);
    memset(covered + offsetof(struct checkpoint_state, short_run), true, WEIGHTS_SHORT);
    for (size_t i = 0; i < sizeof(covered); i++) {
        gap = covered[i] ? 0 : gap + 1;
        ck_assert_msg(gap < _Alignof(struct checkpoint_state), "byte %zu of the state is in no field", i);
        ck_assert_msg(gap == 0 || (i / 8) == (i - gap + 1) / 8, "byte %zu of the state is in no field", i);
    }
}

TEST(a_state_outside_its_bounds_is_not_written)
{
    struct checkpoint_state state = state_plain(NULL);
    struct chex_error err;

    ck_assert_int_eq(state_check(&state, &err), CHEX_OK);
    state.step = CHECKPOINT_MAX_COUNT + 1;
    ck_assert_int_eq(state_check(&state, &err), CHEX_ERR_DAMAGED);
    ck_assert_msg(strstr(err.text, "'step' of the run's state is \"9007199254740993\""), "%s", err.text);
    state = state_plain(NULL);
    state.loss_sum = (double)NAN;
    ck_assert_int_eq(state_check(&state, &err), CHEX_ERR_DAMAGED);
    ck_assert_msg(strstr(err.text, "'loss_sum' of the run's state is \"nan\""), "%s", err.text);
}

/* TensorBoard stores steps in 63 bits, and the first event of a start has the next step. */
TEST(an_event_file_begins_after_the_last_step_that_a_state_can_have)
{
    struct chex_error err;
    struct folder folder;
    struct events *events;

    open_run(&folder);
    ck_assert_int_eq(events_open(&folder, state_field("step")->max, &events, &err), CHEX_OK);
    events_free(events);
    ck_assert(state_field("step")->max < INT64_MAX);
    folder_close(&folder);
}
