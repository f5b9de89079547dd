/*
 * test_csv_included.c - the included parser of CSV (csv_included.h) does what libcsv does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/csv_included.h"
#include "unit.h"

#include <csv.h>
#include <stdint.h>
#include <string.h>

TEST_CASE("tables", "included csv", NULL, NULL);

/* What a parser called: each field in brackets, `|` after each row. */
struct calls {
    char text[200];
    size_t size;
};

static void
on_field(void *field, size_t size, void *context)
{
    struct calls *c = context;

    ck_assert_uint_lt(c->size + size + 2, sizeof(c->text));
    c->text[c->size++] = '[';
    if (size > 0)
        memcpy(c->text + c->size, field, size);
    c->size += size;
    c->text[c->size++] = ']';
}

static void
on_row(int terminator, void *context)
{
    struct calls *c = context;

    ck_assert_uint_lt(c->size + 2, sizeof(c->text));
    c->text[c->size++] = '|';
    c->text[c->size++] = (char)terminator;
}

/* Both parse `text` up to `cut`, then the rest. */
static void
both_parse(const char *text, size_t size, size_t cut)
{
    struct included_csv included;
    struct csv_parser system;
    struct calls want = {.size = 0}, got = {.size = 0};
    size_t want_read, got_read;

    csv_init(&system, CSV_STRICT);
    included_init(&included);
    want_read = csv_parse(&system, text, cut, on_field, on_row, &want);
    got_read = included_parse(&included, text, cut, on_field, on_row, &got);
    if (want_read == cut && got_read == cut) {
        want_read += csv_parse(&system, text + cut, size - cut, on_field, on_row, &want);
        got_read += included_parse(&included, text + cut, size - cut, on_field, on_row, &got);
    }
    ck_assert_uint_eq(want_read, got_read);
    ck_assert_int_eq(csv_error(&system) == CSV_EPARSE, included.bad);
    ck_assert_uint_eq(want.size, got.size);
    ck_assert_mem_eq(want.text, got.text, want.size);
    included_free(&included);
    csv_free(&system);
}

/* All texts of at most seven of these characters: every state of the parser, and every change of state. */
TEST(it_parses_every_short_text_as_libcsv)
{
    static const char alphabet[] = "a\", \t\r\n";
    enum { CHARS = sizeof(alphabet) - 1, LONGEST = 7 };
    char text[LONGEST];
    size_t count = 1;

    for (size_t size = 0; size <= LONGEST; size++, count *= CHARS)
        for (size_t i = 0; i < count; i++) {
            size_t rest = i;

            for (size_t k = 0; k < size; k++, rest /= CHARS)
                text[k] = alphabet[rest % CHARS];
            both_parse(text, size, i % (size + 1));
        }
}

TEST(it_parses_long_fields_as_libcsv)
{
    static char text[1200];
    struct included_csv p;
    struct csv_parser system;
    struct calls calls = {.size = 0};

    memset(text, 'x', sizeof(text));
    included_init(&p);
    csv_init(&system, CSV_STRICT);
    ck_assert_uint_eq(included_parse(&p, text, sizeof(text), on_field, on_row, &calls), sizeof(text));
    ck_assert_uint_eq(csv_parse(&system, text, sizeof(text), on_field, on_row, &calls), sizeof(text));
    ck_assert_uint_eq(p.size, system.entry_pos);
    ck_assert_uint_eq(calls.size, 0);
    included_free(&p);
    csv_free(&system);
}
