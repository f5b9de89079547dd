/*
 * tables.c - the comparison as text, rows and JSON; see scaling.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/scaling/scaling.h"

#include <math.h>
#include <string.h>

/* ---- rows -------------------------------------------------------------------------------------------------------- */

const struct table_column scaling_columns[] = {
    {.name = "kind"},
    {.name = "source"},
    {.name = "ranks"},
    {.name = "nodes"},
    {.name = "gpus"},
    {.name = "global_batch"},
    {.name = "images_per_second"},
    {.name = "epoch_seconds"},
    {.name = "speedup"},
    {.name = "efficiency"},
    {.name = "parallel_efficiency"},
    {.name = "load_balance"},
    {.name = "communication_efficiency"},
    {.name = "computation_scaling"},
    {.name = "global_efficiency"},
    {.name = "differs"},
    {.name = "epoch_low"},
    {.name = "epoch_high"},
    {.name = "short_run"},
    {.name = "unfinished"},
    {.name = NULL},
};
#define COLUMNS (sizeof(scaling_columns) / sizeof(scaling_columns[0]) - 1)

static void
put_run(struct table_writer *t, const struct scaling_run *r)
{
    char path[SCALING_PATH], differs[4 * sizeof(r->differs)], given[4 * sizeof(r->short_run)];

    table_row(t, (struct cell[COLUMNS]){cell_text("measured"),
                                        inspect_name(t, r->path, path, sizeof(path)),
                                        cell_count(r->ranks),
                                        cell_count(r->nodes),
                                        cell_count(r->cuda ? r->ranks : 0),
                                        cell_count(r->global_batch),
                                        cell_number(r->rate),
                                        cell_number(r->epoch_seconds),
                                        cell_number(r->speedup),
                                        cell_number(r->efficiency),
                                        cell_number(r->factor[FACTOR_PARALLEL]),
                                        cell_number(r->factor[FACTOR_BALANCE]),
                                        cell_number(r->factor[FACTOR_COMMUNICATION]),
                                        cell_number(r->computation),
                                        cell_number(r->global),
                                        inspect_name(t, r->differs, differs, sizeof(differs)),
                                        cell_none(),
                                        cell_none(),
                                        inspect_name(t, r->short_run, given, sizeof(given)),
                                        cell_text(r->unfinished)});
}

static void
put_point(struct table_writer *t, const struct reference_point *p)
{
    table_row(t, (struct cell[COLUMNS]){cell_text("published"), cell_text(p->source), cell_none(), cell_none(),
                                        cell_count(p->gpus), cell_none(), cell_number(p->rate), cell_none(),
                                        cell_number(p->speedup), cell_number(p->efficiency),
                                        cell_number(p->parallel_efficiency), cell_none(), cell_none(), cell_none(),
                                        cell_none(), cell_none()});
}

static void
put_prediction(struct table_writer *t, const struct scaling *s)
{
    const struct scaling_epoch *e = scaling_predicted(s);
    double speedup = scaling_speedup(s, e), factor = s->prediction.factor;
    char path[SCALING_PATH];

    table_row(t, (struct cell[COLUMNS]){
                     cell_text("modelled"), inspect_name(t, s->prediction.base->path, path, sizeof(path)),
                     cell_count(e->ranks), cell_count(e->nodes), cell_count(s->prediction.base->cuda ? e->ranks : 0),
                     cell_count(e->global_batch), cell_number((double)s->prediction.base->images / e->seconds),
                     cell_number(e->seconds), cell_number(speedup), cell_number(speedup / e->ranks), cell_none(),
                     cell_none(), cell_none(), cell_none(), cell_none(), cell_none(), cell_number(e->seconds / factor),
                     cell_number(e->seconds * factor)});
}

void
scaling_rows(struct table_writer *t, void *scaling)
{
    const struct scaling *s = scaling;
    size_t i;

    for (i = 0; i < s->count; i++)
        put_run(t, &s->run[i]);
    for (i = 0; i < s->points; i++)
        put_point(t, &s->point[i]);
    if (s->prediction.base)
        put_prediction(t, s);
}

static json_t *
checks_json(const struct scaling *s)
{
    json_t *list = json_array();
    const struct scaling_run *r;

    for (r = s->run; r < s->run + s->count; r++)
        if (!isnan(r->modelled))
            inspect_json_push(&list,
                              json_pack("{s:o, s:o, s:o}", "source", text_json(r->path), "modelled_seconds",
                                        real_json(r->modelled), "measured_seconds", real_json(r->epoch_seconds)));
    return list;
}

static json_t *
prediction_json(const struct scaling *s)
{
    const struct scaling_prediction *p = &s->prediction;
    const struct scaling_epoch *e = p->points > 0 ? scaling_predicted(s) : NULL;

    if (!p->base)
        return json_null();
    return json_pack("{s:s, s:o, s:o, s:s, s:s, s:o, s:{s:o, s:o, s:o, s:o, s:o, s:o}, s:{s:o, s:o, s:o, s:o, s:o},"
                     " s:o, s:o}",
                     "kind", "modelled", "base", text_json(p->base->path), "node_ranks",
                     count_json(p->machine.node_ranks), "inside", scale_link_name[p->machine.inside], "network",
                     scale_link_name[p->machine.outside], "step_images", count_json(e->step_images), "step_seconds",
                     "forward", real_json(e->step.forward), "backward", real_json(e->step.backward), "exposed",
                     real_json(e->step.exposed), "update", real_json(e->step.update), "straggler",
                     real_json(e->step.straggler), "data", real_json(e->data), "epoch_seconds", "steps",
                     real_json(e->steps), "evaluation", real_json(e->evaluation), "save", real_json(e->save), "rest",
                     real_json(e->rest), "meetings", real_json(e->meetings), "error_factor", real_json(p->factor),
                     "checks", checks_json(s));
}

json_t *
scaling_document(void *scaling)
{
    const struct scaling *s = scaling;
    json_t *rows = inspect_rows_json(scaling_columns, scaling_rows, scaling);
    json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o}", "scaling", scaling_kind_name[s->kind], "reference",
                               text_json(s->reference->path), "comparable", json_boolean(scaling_comparable(s)), "rows",
                               rows, "prediction", prediction_json(s));

    if (!object)
        json_decref(rows);
    return object;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

#define NUMBER 24

static const char *
number_text(int digits, double value, char out[NUMBER])
{
    if (isnan(value))
        return "n/a";
    snprintf(out, NUMBER, "%.*f", digits, value);
    return out;
}

/* Four significant digits up to 9999, all digits above. */
static const char *
rate_text(double value, char out[NUMBER])
{
    if (isnan(value))
        return "n/a";
    snprintf(out, NUMBER, value < 9999.5 ? "%#.4g" : "%.0f", value);
    if (out[strlen(out) - 1] == '.')
        out[strlen(out) - 1] = '\0';
    return out;
}

static const char *
path_text(const struct scaling_run *r, char out[PRINTABLE_TEXT + 2])
{
    out[0] = r->differs[0] ? '*' : ' ';
    printable_text(r->path, out + 1);
    return out[0] == ' ' ? out + 1 : out;
}

static void
print_predicted(const struct scaling *s, struct table_writer *t)
{
    const struct scaling_epoch *e = scaling_predicted(s);
    double images = (double)s->prediction.base->images, speedup_value = scaling_speedup(s, e);
    char rate[NUMBER], epoch[NUMBER], speedup[NUMBER], efficiency[NUMBER];

    table_row(
        t, (struct cell[]){cell_count(e->ranks), cell_count(e->nodes),
                           s->prediction.base->cuda ? cell_count(e->ranks) : cell_text("-"),
                           cell_count(e->global_batch), cell_text(rate_text(images / e->seconds, rate)),
                           cell_text(rate_text(e->seconds, epoch)), cell_text(number_text(2, speedup_value, speedup)),
                           cell_text(number_text(2, speedup_value / e->ranks, efficiency)), cell_text("modelled")});
}

static void
print_rates(const struct scaling *s)
{
    static const struct table_column columns[] = {
        {.heading = "ranks", .width = 5},       {.heading = "nodes", .width = 5},
        {.heading = "GPUs", .width = 4},        {.heading = "batch", .width = 6},
        {.heading = "img/s", .width = 8},       {.heading = "epoch, s", .width = 8},
        {.heading = "speed-up", .width = 8},    {.heading = "efficiency", .width = 10},
        {.heading = "run", .width = TABLE_FIT}, {.name = NULL},
    };
    struct table_writer t = {.column = columns, .color = &s->in->color, .fit = 3};
    char rate[NUMBER], epoch[NUMBER], speedup[NUMBER], efficiency[NUMBER], path[PRINTABLE_TEXT + 2];
    const struct scaling_run *r;
    const struct reference_point *p;

    table_begin(&t);
    for (r = s->run; r < s->run + s->count; r++)
        table_row(&t, (struct cell[]){
                          cell_count(r->ranks), cell_count(r->nodes), r->cuda ? cell_count(r->ranks) : cell_text("-"),
                          cell_count(r->global_batch), cell_text(rate_text(r->rate, rate)),
                          cell_text(rate_text(r->epoch_seconds, epoch)), cell_text(number_text(2, r->speedup, speedup)),
                          cell_text(number_text(2, r->efficiency, efficiency)), cell_text(path_text(r, path))});
    for (p = s->point; p < s->point + s->points; p++)
        if (!isnan(p->rate))
            table_row(&t, (struct cell[]){cell_text("-"), cell_text("-"), cell_count(p->gpus), cell_text("-"),
                                          cell_text(rate_text(p->rate, rate)), cell_text("-"),
                                          cell_text(number_text(2, p->speedup, speedup)),
                                          cell_text(number_text(2, p->efficiency, efficiency)), cell_text(p->source)});
    if (s->prediction.base)
        print_predicted(s, &t);
}

static void
print_prediction(const struct scaling *s)
{
    const struct scaling_prediction *p = &s->prediction;
    const struct scaling_epoch *e = scaling_predicted(s);
    char path[PRINTABLE_TEXT], nodes[FORMAT_THINGS], ranks[FORMAT_THINGS];
    const struct scaling_run *r;
    size_t others = 0;

    printf("\nmodelled: %s on %s with %s, %s inside a node; from the parts of %s\n",
           format_things(e->ranks, "rank", ranks), format_things(e->nodes, "node", nodes),
           scale_link_name[p->machine.outside], scale_link_name[p->machine.inside],
           printable_text(p->base->path, path));
    printf("  step of %s img a rank, ms: forward %.4g, backward %.4g, exposed sums %.4g,\n"
           "    update %.4g, straggler %.4g, data wait %.4g\n",
           COUNT_TEXT(e->step_images), 1e3 * e->step.forward, 1e3 * e->step.backward, 1e3 * e->step.exposed,
           1e3 * e->step.update, 1e3 * e->step.straggler, 1e3 * e->data);
    printf("  epoch, s: steps %.4g, evaluation %.4g, save %.4g, rest %.4g, meetings %.4g\n", e->steps, e->evaluation,
           e->save, e->rest, e->meetings);
    for (r = s->run; r < s->run + s->count; r++) {
        if (isnan(r->modelled))
            continue;
        others++;
        printf("  the same of %s: modelled %.4g s, measured %.4g s (%+.0f %%)\n", printable_text(r->path, path),
               r->modelled, r->epoch_seconds, 100 * (r->modelled / r->epoch_seconds - 1));
    }
    if (others == 0)
        printf("  no error bar: no other run was given\n");
    else
        printf("  error bar: %.4g to %.4g s (x %.2f), from the largest error of these\n", e->seconds / p->factor,
               e->seconds * p->factor, p->factor);
}

static void
print_factors(const struct scaling *s)
{
    static const struct table_column columns[] = {
        {.heading = "ranks", .width = 5},        {.heading = "parallel", .width = 9, .gap = "  "},
        {.heading = "= balance", .width = 9},    {.heading = "x communication", .width = 15},
        {.heading = "computation", .width = 11}, {.heading = "global", .width = 8, .gap = "  "},
        {.heading = "run", .width = TABLE_FIT},  {.name = NULL},
    };
    struct table_writer t = {.column = columns, .color = &s->in->color, .fit = 3};
    char text[5][NUMBER], path[PRINTABLE_TEXT + 2];
    const struct scaling_run *r;
    const struct reference_point *p;

    table_begin(&t);
    for (r = s->run; r < s->run + s->count; r++)
        table_row(&t,
                  (struct cell[]){cell_count(r->ranks), cell_text(number_text(2, r->factor[FACTOR_PARALLEL], text[0])),
                                  cell_text(number_text(2, r->factor[FACTOR_BALANCE], text[1])),
                                  cell_text(number_text(2, r->factor[FACTOR_COMMUNICATION], text[2])),
                                  cell_text(number_text(2, r->computation, text[3])),
                                  cell_text(number_text(2, r->global, text[4])), cell_text(path_text(r, path))});
    for (p = s->point; p < s->point + s->points; p++)
        if (!isnan(p->parallel_efficiency))
            table_row(&t, (struct cell[]){cell_count(p->gpus),
                                          cell_text(number_text(2, p->parallel_efficiency, text[0])), cell_text("-"),
                                          cell_text("-"), cell_text("-"), cell_text("-"), cell_text(p->source)});
}

#define REFERENCE_GLOBAL 0.95 /* below this, the text says how global efficiency and efficiency are related */

static void
print_kind(const struct scaling *s)
{
    char path[PRINTABLE_TEXT], each[FORMAT_TEXT];
    const struct scaling_run *r = s->reference;

    if (s->kind == SCALING_ONE)
        printf("one number of ranks: nothing scales\n");
    else if (s->kind == SCALING_STRONG)
        printf("strong scaling: the global batch is %s in all runs\n", COUNT_TEXT(r->global_batch));
    else if (s->kind == SCALING_WEAK)
        printf("weak scaling: the batch of a rank is %s in all runs\n", format_count(r->global_batch / r->ranks, each));
    else
        printf("neither strong nor weak scaling: the global batch and the batch of a rank change\n");
    printf("reference: %s; img/s and speed-up include evaluations and checkpoints\n", printable_text(r->path, path));
    if (s->kind != SCALING_ONE && r->global < REFERENCE_GLOBAL)
        printf("the reference has a global efficiency of %.2f: the efficiency of a run is about its own / %.2f\n",
               r->global, r->global);
}

void
scaling_print(void *scaling)
{
    const struct scaling *s = scaling;
    const struct scaling_run *r;

    if (s->in->common->quiet)
        return;
    print_rates(s);
    printf("\n");
    print_factors(s);
    printf("\n");
    print_kind(s);
    if (s->points > 0)
        printf("rows of GPUs without ranks: published\n");
    for (r = s->run; r < s->run + s->count; r++)
        if (r->differs[0])
            printable_line(stdout, "*%s is not comparable with the reference: %s", r->path, r->differs);
    for (r = s->run; r < s->run + s->count; r++)
        if (r->short_run[0])
            printable_line(stdout, "short run: %s: %s", r->short_run, r->path);
    for (r = s->run; r < s->run + s->count; r++)
        if (r->unfinished[0])
            printable_line(stdout, "did not end: the figures are those of %s: %s", r->unfinished, r->path);
    if (s->prediction.base)
        print_prediction(s);
}
