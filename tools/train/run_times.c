/*
 * run_times.c - see run_times.h
 *
 * Reads the file backwards from its end, also while the run is writing it.  Skips lines of another kind.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/run_times.h"

#include "base/number_format.h"
#include "common/printable.h"
#include "common/table_writer.h"
#include "io/file.h"
#include "log/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAIL  (64u << 20) /* read at most this many bytes from the end of the file */
#define SHOWN 16          /* number of ranks shown without -v */
#define CELL  5           /* width of a share in columns */
#define TEXT  32          /* bytes for its text */

static const struct parse_bounds bounds = {.size = 32u << 20, .depth = 8, .values = 3000000};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static enum chex_status
read_tail(const char *folder, struct buffer *b, struct chex_error *err)
{
    char path[PATH_MAX];
    uint64_t size = 0, from;
    int fd = -1;
    enum chex_status status;

    if (snprintf(path, sizeof(path), "%s/%s", folder, RUN_LOG_METRICS) >= (int)sizeof(path))
        return error_set(err, CHEX_ERR_MISSING, "a path that is too long");
    status = file_open(AT_FDCWD, path, &fd, &size, err);
    if (status != CHEX_OK)
        return error_context(err, status, "'%s'", path);
    from = size > TAIL ? size - TAIL : 0;
    status = buffer_reserve(b, (size_t)(size - from) + 1, err);
    if (status == CHEX_OK)
        status = file_pread(fd, from, b->data, (size_t)(size - from), &b->size, err);
    close(fd);
    return status == CHEX_OK || status == CHEX_ERR_MEMORY ? status : error_context(err, status, "'%s'", path);
}

/* CHEX_ERR_DAMAGED: the line is of another kind */
static enum chex_status
read_times(const json_t *line, struct run_times *out, struct chex_error *err)
{
    const json_t *epoch = json_object_get(line, "epoch");
    const char *over = json_string_value(json_object_get(line, "over"));

    if (!over || !json_is_integer(epoch) || json_integer_value(epoch) < 0)
        return error_set(err, CHEX_ERR_DAMAGED, "no times of a run");
    out->epoch = (uint64_t)json_integer_value(epoch);
    out->all = strcmp(over, "run") == 0;
    return rank_times_json_read(line, &out->times, err);
}

/* If the line is of another kind, out->times has no ranks. */
static enum chex_status
read_line(const uint8_t *line, size_t size, struct run_times *out, struct chex_error *err)
{
    static const char kind[] = "{\"kind\":\"times\"";
    json_t *value = NULL;
    enum chex_status status;

    if (size < strlen(kind) || memcmp(line, kind, strlen(kind)) != 0)
        return CHEX_OK;
    status = parse_json(line, size, &bounds, &value, err);
    if (status == CHEX_OK)
        status = read_times(value, out, err);
    if (status != CHEX_OK)
        rank_times_release(&out->times);
    json_decref(value);
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

enum chex_status
run_times_read(const char *folder, struct run_times *out, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status;
    size_t end;

    *out = (struct run_times){.epoch = 0};
    status = read_tail(folder, &b, err);
    end = status == CHEX_OK ? b.size : 0;
    while (status == CHEX_OK && out->times.ranks == 0 && end > 0) {
        size_t begin = end - 1;

        while (begin > 0 && b.data[begin - 1] != '\n')
            begin--;
        if (b.data[end - 1] == '\n')
            status = read_line(b.data + begin, end - 1 - begin, out, err);
        end = begin;
    }
    buffer_release(&b);
    return status != CHEX_OK && err->cause == ENOENT ? CHEX_OK : status;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* In the order of interest.  PART_MEET is left out: it is host time, which overlaps with the device times. */
static const struct {
    unsigned part;
    const char *heading;
} shown_parts[] = {{PART_WAIT, "data wait"}, {PART_COPY, "copy"},   {PART_FORWARD, "forward"},
                   {PART_BACKWARD, "back"},  {PART_REDUCE, "sums"}, {PART_UPDATE, "update"},
                   {PART_EVALUATE, "eval"},  {PART_SAVE, "save"},   {PART_PEERS, "peers"},
                   {PART_COUNT, "rest"}};
#define PARTS   (sizeof(shown_parts) / sizeof(shown_parts[0]))
#define COLUMNS (PARTS + 4) /* before them rank, host and cores, after them the end of the list */

static int
by_work(const void *a, const void *b)
{
    const struct rank_time *x = *(const struct rank_time *const *)a, *y = *(const struct rank_time *const *)b;

    if (x->work < y->work)
        return 1;
    return x->work > y->work ? -1 : x < y ? -1 : 1;
}

/* A device without a clock of its own has no copies. */
static bool
is_shown(const struct rank_times *t, unsigned part)
{
    return part != PART_COPY || !isnan(t->rank[0].busy);
}

static void
put_columns(const struct rank_times *t, struct table_column *out)
{
    size_t i;

    *out++ = (struct table_column){.heading = "rank", .width = 4};
    *out++ = (struct table_column){.heading = "host", .width = TABLE_FIT, .gap = "  "};
    *out++ = (struct table_column){.heading = "cores", .width = CELL};
    for (i = 0; i < PARTS; i++) {
        int width = (int)strlen(shown_parts[i].heading);

        if (is_shown(t, shown_parts[i].part))
            *out++ = (struct table_column){.heading = shown_parts[i].heading, .width = width > CELL ? width : CELL};
    }
    *out = (struct table_column){.name = NULL};
}

static void
put_rank(struct table_writer *w, const struct rank_times *t, const struct rank_time *r)
{
    struct cell cell[COLUMNS], *next = cell;
    char host[PRINTABLE_TEXT], share[PARTS][TEXT], cores[TEXT] = "n/a";
    double had = rank_time_cores(r).share;
    size_t i;

    if (!isnan(had))
        snprintf(cores, TEXT, "%.0f", 100 * had);

    *next++ = cell_count((uint64_t)(r - t->rank));
    *next++ = cell_text(printable_text(r->host, host));
    *next++ = cell_text(cores);
    for (i = 0; i < PARTS; i++) {
        unsigned part = shown_parts[i].part;
        double seconds = part == PART_COUNT ? rank_time_rest(r) : r->parts.seconds[part];

        if (!is_shown(t, part))
            continue;
        snprintf(share[i], TEXT, "%.1f", t->seconds > 0 ? 100 * seconds / t->seconds : 0);
        *next++ = cell_text(share[i]);
    }
    table_row(w, cell);
}

/* Prints all ranks, or the SHOWN ranks with the most work. */
static enum chex_status
print_ranks(const struct rank_times *t, const struct color *color, bool all, struct chex_error *err)
{
    struct table_column column[COLUMNS];
    struct table_writer w = {.column = column, .color = color, .title = "percent", .fit = 4};
    const struct rank_time **order = calloc(t->ranks, sizeof(*order));
    char host[PRINTABLE_TEXT];
    unsigned i;

    if (!order)
        return error_memory(err);
    for (i = 0; i < t->ranks; i++) {
        order[i] = &t->rank[i];
        table_fit(&w, printable_text(t->rank[i].host, host));
    }
    if (!all)
        qsort(order, t->ranks, sizeof(*order), by_work);
    put_columns(t, column);
    table_begin(&w);
    for (i = 0; i < (all ? t->ranks : SHOWN); i++)
        put_rank(&w, t, order[i]);
    if (!all)
        printf("         and %s more that work less: -v\n", COUNT_TEXT(t->ranks - SHOWN));
    free(order);
    return CHEX_OK;
}

static void
print_factors(const struct rank_times *t)
{
    static const char *const before[FACTOR_COUNT] = {"", " = ", " x ", " (", " x ", "; ", ", ", "; "};
    double factor[FACTOR_COUNT];
    unsigned i;

    rank_times_factors(t, factor);
    printf("         ");
    for (i = 0; i < FACTOR_COUNT; i++) {
        if (i >= FACTOR_BUSY && isnan(factor[i]))
            continue;
        printf("%s%s ", before[i], factor_info[i].title);
        if (isnan(factor[i]))
            printf("n/a");
        else
            printf("%.2f", factor[i]);
        printf("%s", i == FACTOR_TRANSFER ? ")" : "");
    }
    printf("\n");
}

enum chex_status
run_times_print(const struct run_times *found, const struct color *color, bool all, struct chex_error *err)
{
    const struct rank_times *t = &found->times;
    char ranks[FORMAT_THINGS], steps[FORMAT_THINGS], seconds[FORMAT_TEXT], advice[RANK_ADVICE];
    enum chex_status status;

    if (t->ranks == 0)
        return CHEX_OK;
    printf("%stime%s     ", color->bold, color->off);
    if (found->all)
        printf("the last start: ");
    else
        printf("epoch %s: ", COUNT_TEXT(found->epoch));
    printf("%s of %s in %s\n", format_things(t->steps, "step", steps), format_things(t->ranks, "rank", ranks),
           format_seconds(t->seconds, seconds));
    print_factors(t);
    status = print_ranks(t, color, all || t->ranks <= SHOWN, err);
    if (status == CHEX_OK)
        printable_line(stdout, "         %s", rank_times_advice(t, advice));
    return status;
}

json_t *
run_times_json(const struct run_times *found)
{
    json_t *object;

    if (found->times.ranks == 0)
        return json_null();
    object = json_object();
    if (json_object_set_new(object, "over", json_string(found->all ? "run" : "epoch")) == 0 &&
        json_object_set_new(object, "epoch", count_json(found->epoch)) == 0 &&
        rank_times_json_add(object, &found->times))
        return object;
    json_decref(object);
    return NULL;
}
