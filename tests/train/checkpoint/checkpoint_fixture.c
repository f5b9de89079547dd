/*
 * checkpoint_fixture.c - see checkpoint_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint_fixture.h"

#include "unit.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/weights.h"
#include "dataset/findings.h"
#include "state_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

float *
saved_array(size_t count, float first)
{
    float *a = malloc(count * sizeof(*a));

    for (size_t i = 0; i < count; i++)
        a[i] = first + (float)i * 0x1p-12f;
    return a;
}

void
saved_run_make(struct saved_run *r)
{
    struct chex_error err;
    char path[600];

    snprintf(path, sizeof(path), "%s/run%ld", unit_folder(), (long)getpid());
    ck_assert_int_eq(graph_new("densenet-micro", 64, findings_nih14.count, &r->g, &err), CHEX_OK);
    r->g->findings = findings_nih14.name;
    ck_assert_int_eq(folder_open(path, true, &r->folder, &err), CHEX_OK);
    r->a = (struct checkpoint_arrays){saved_array(r->g->param_floats, 1), saved_array(r->g->stat_floats, 2),
                                      saved_array(r->g->param_floats, 3), saved_array(r->g->param_floats, 4), NULL};
    r->state = state_plain(NULL);
}

void
saved_arrays_free(struct checkpoint_arrays *a)
{
    free(a->params);
    free(a->stats);
    free(a->moment1);
    free(a->moment2);
    free(a->average);
}

void
saved_run_release(struct saved_run *r)
{
    saved_arrays_free(&r->a);
    graph_free(r->g);
    folder_close(&r->folder);
}

void
saved_run_save(struct saved_run *r, uint64_t step, unsigned keep)
{
    struct chex_error err;

    r->state.step = step;
    ck_assert_int_eq(checkpoint_save(&r->folder, r->g, &r->state, &r->a, keep, &err), CHEX_OK);
}
