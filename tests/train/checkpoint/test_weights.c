/*
 * test_weights.c - weights from files with any names, and random ones (weights.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/weights.h"
#include "checkpoint_fixture.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the tensors of the graph under names changed by `rename`; one of them may get another shape. */
static void
write_renamed(struct saved_run *r, const char *prefix, const char *from, const char *to, size_t reshaped)
{
    size_t count = r->g->param_count + r->g->stat_count;
    struct tensor_source *tensor = calloc(count, sizeof(*tensor));
    struct arena names = {0};
    struct chex_error err;

    for (size_t i = 0; i < count; i++) {
        bool stat = i >= r->g->param_count;
        const struct graph_tensor *t = stat ? &r->g->stat[i - r->g->param_count] : &r->g->param[i];
        const char *at = strstr(t->name, from);
        char name[200];

        if (at)
            snprintf(name, sizeof(name), "%s%.*s%s%s", prefix, (int)(at - t->name), t->name, to, at + strlen(from));
        else
            snprintf(name, sizeof(name), "%s%s", prefix, t->name);
        tensor[i] = (struct tensor_source){
            {.name = arena_copy(&names, name, strlen(name)), .type = DTYPE_F32, .rank = t->rank, .count = t->count},
            (stat ? r->a.stats : r->a.params) + t->offset};
        for (unsigned k = 0; k < t->rank; k++)
            tensor[i].entry.shape[k] = t->shape[k];
        if (i == reshaped) {
            tensor[i].entry.shape[0] = 1;
            tensor[i].entry.count = t->count / t->shape[0];
        }
    }
    ck_assert_int_eq(safetensors_write(&r->folder, "w.safetensors", tensor, count, NULL, 0, NULL, &err), CHEX_OK);
    arena_release(&names);
    free(tensor);
}

static enum chex_status
read_renamed(struct saved_run *r, bool other_head, struct weights_report *report, struct chex_error *err)
{
    struct safetensors s;
    enum chex_status status;

    ck_assert_int_eq(safetensors_open(r->folder.fd, "w.safetensors", &s, err), CHEX_OK);
    status = weights_read(r->g, &s, other_head, r->a.params, r->a.stats, report, err);
    safetensors_close(&s);
    return status;
}

TEST_CASE("checkpoint", "weights", NULL, NULL);

TEST(weights_are_found_under_the_names_that_people_use)
{
    static const char *const forms[][3] = {{"", "norm1", "norm1"},
                                           {"module.", "norm1", "norm1"},
                                           {"module.densenet121.", ".norm1.", ".norm.1."},
                                           {"densenet121.", ".conv2.", ".conv.2."},
                                           {"", "classifier.", "classifier.0."}};
    struct weights_report report;
    struct chex_error err = {.text = ""};
    struct saved_run r;

    saved_run_make(&r);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        write_renamed(&r, forms[i][0], forms[i][1], forms[i][2], SIZE_MAX);
        ck_assert_msg(read_renamed(&r, false, &report, &err) == CHEX_OK, "%s", err.text);
        ck_assert_uint_eq(report.found, r.g->param_count + r.g->stat_count);
        ck_assert_uint_eq(report.unused, 0);
    }
    saved_run_release(&r);
}

TEST(tensors_that_do_not_fit_are_named_and_nothing_is_used)
{
    struct weights_report report;
    struct chex_error err;
    struct saved_run r;
    float first;

    saved_run_make(&r);
    write_renamed(&r, "", "nothing", "", 0);
    first = r.a.params[0] = 12345;
    ck_assert_int_eq(read_renamed(&r, false, &report, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_msg(strstr(err.text, "features.conv0.weight: wanted 32x3x7x7, found 1x3x7x7"), "%s", err.text);
    ck_assert(r.a.params[0] == first);
    write_renamed(&r, "", "norm1", "unknown", SIZE_MAX);
    ck_assert_int_eq(read_renamed(&r, false, &report, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_msg(strstr(err.text, "found none") && strstr(err.text, "; ..."), "%s", err.text);
    saved_run_release(&r);
}

TEST(another_head_may_be_left)
{
    struct weights_report report;
    struct chex_error err;
    struct saved_run r;

    saved_run_make(&r);
    write_renamed(&r, "", "classifier.", "other.", SIZE_MAX);
    ck_assert_int_eq(read_renamed(&r, false, &report, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_int_eq(read_renamed(&r, true, &report, &err), CHEX_OK);
    ck_assert(report.head_left);
    ck_assert_uint_eq(report.found, report.wanted - 2);
    ck_assert_uint_eq(report.unused, 2);
    saved_run_release(&r);
}

TEST(random_weights_have_the_deviations_of_he_and_follow_the_seed)
{
    struct saved_run r;
    const struct graph_tensor *conv;
    double squares = 0;
    float first;

    saved_run_make(&r);
    weights_random(r.g, 1, r.a.params, r.a.stats);
    conv = graph_find(r.g, "features.conv0.weight");
    for (size_t i = 0; i < conv->count; i++) {
        double w = (double)r.a.params[conv->offset + i];

        squares += w * w;
    }
    /* 4,704 values of variance 2 / (3 * 49): five deviations of the mean of squares are 10 %. */
    ck_assert_double_eq_tol(squares / (double)conv->count * (3 * 49) / 2, 1, 0.104);
    ck_assert_ptr_null(weights_fault(r.g, r.a.params, r.a.stats));
    ck_assert(r.a.params[graph_find(r.g, "features.norm0.weight")->offset] == 1);
    ck_assert(r.a.stats[graph_find(r.g, "features.norm0.running_var")->offset] == 1);
    first = r.a.params[0];
    weights_random(r.g, 2, r.a.params, r.a.stats);
    ck_assert(r.a.params[0] != first);
    saved_run_release(&r);
}
