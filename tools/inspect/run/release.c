/*
 * release.c - frees the report of a run, and those that it contains; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/each.h"

#include <stdlib.h>

static void
free_each(struct run_each *each)
{
    unsigned i;

    if (!each)
        return;
    for (i = 1; i < each->shown; i++)
        run_report_free(each->of[i]);
    run_report_free(each->ensemble);
    free(each->gap);
    free(each);
}

void
run_report_free(struct run_report *r)
{
    if (!r)
        return;
    predictions_release(&r->p);
    free(r->patient);
    free(r->metrics);
    if (r->floor)
        free(r->floor->cell);
    free(r->floor);
    run_groups_free(r->groups);
    if (r->labels)
        run_report_free(r->labels->report);
    free(r->labels);
    if (r->many)
        free_each(r->many->each);
    run_many_free(r->many);
    free(r->references);
    run_maps_free(r->maps);
    run_suspects_free(r->suspects);
    arena_release(&r->strings);
    free(r);
}
