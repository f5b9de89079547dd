/*
 * test_checkpoint.c - weights by name, and checkpoints
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "calls.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
    struct graph *g;
    struct folder folder;
    struct checkpoint_arrays a;
    struct checkpoint_state state;
};

static float *
new_array(size_t count, float first)
{
    float *a = malloc(count * sizeof(*a));

    for (size_t i = 0; i < count; i++)
        a[i] = first + (float)i * 0x1p-12f;
    return a;
}

static void
run_make(struct run *r)
{
    struct chex_error err;
    char path[600];

    snprintf(path, sizeof(path), "%s/run%ld", unit_folder(), (long)getpid());
    ck_assert_int_eq(graph_new("densenet-micro", 64, CHEX_FINDINGS, &r->g, &err), CHEX_OK);
    ck_assert_int_eq(folder_open(path, true, &r->folder, &err), CHEX_OK);
    r->a = (struct checkpoint_arrays){new_array(r->g->param_floats, 1), new_array(r->g->stat_floats, 2),
                                      new_array(r->g->param_floats, 3), new_array(r->g->param_floats, 4), NULL};
    r->state = (struct checkpoint_state){.model = "densenet-micro",
                                         .side = 64,
                                         .dataset_id = "0123456789abcdef",
                                         .seed = UINT64_MAX,
                                         .step = 4800,
                                         .epoch = 3,
                                         .batches = 17,
                                         .micro_batches = 19200,
                                         .global_batch = 16,
                                         .best = (double)NAN,
                                         .loss_sum = 0.1,
                                         .loss_images = 3};
    r->state.schedule.best = (double)INFINITY;
    r->state.schedule.options.base = 1e-3;
}

static void
arrays_free(struct checkpoint_arrays *a)
{
    free(a->params);
    free(a->stats);
    free(a->moment1);
    free(a->moment2);
    free(a->average);
}

static void
run_release(struct run *r)
{
    arrays_free(&r->a);
    graph_free(r->g);
    folder_close(&r->folder);
}

static void
save(struct run *r, uint64_t step, unsigned keep)
{
    struct chex_error err;

    r->state.step = step;
    ck_assert_int_eq(checkpoint_save(&r->folder, r->g, &r->state, &r->a, keep, &err), CHEX_OK);
}

static bool
is_there(const struct run *r, const char *name)
{
    return faccessat(r->folder.fd, name, F_OK, 0) == 0;
}

START_TEST(a_checkpoint_is_read_back_to_the_bit)
{
    struct run r;
    struct checkpoint_arrays b;
    struct checkpoint_state state;
    struct chex_error err;
    char name[CHECKPOINT_NAME];
    bool fallback;

    run_make(&r);
    save(&r, 4800, 2);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-004800");
    ck_assert(!fallback);
    ck_assert_int_eq(checkpoint_read_state(&r.folder, name, &state, &err), CHEX_OK);
    ck_assert_str_eq(state.model, "densenet-micro");
    ck_assert(state.seed == UINT64_MAX && state.step == 4800 && state.epoch == 3 && state.batches == 17);
    ck_assert_uint_eq(state.micro_batches, 19200);
    ck_assert(isnan(state.best) && isinf(state.schedule.best) && state.loss_sum == 0.1);
    ck_assert_double_eq(state.schedule.options.base, 1e-3);
    b = (struct checkpoint_arrays){new_array(r.g->param_floats, 0), new_array(r.g->stat_floats, 0),
                                   new_array(r.g->param_floats, 0), new_array(r.g->param_floats, 0), NULL};
    ck_assert_int_eq(checkpoint_read(&r.folder, name, r.g, &b, &err), CHEX_OK);
    ck_assert_mem_eq(b.params, r.a.params, r.g->param_floats * sizeof(float));
    ck_assert_mem_eq(b.stats, r.a.stats, r.g->stat_floats * sizeof(float));
    ck_assert_mem_eq(b.moment1, r.a.moment1, r.g->param_floats * sizeof(float));
    ck_assert_mem_eq(b.moment2, r.a.moment2, r.g->param_floats * sizeof(float));
    arrays_free(&b);
    run_release(&r);
}
END_TEST

/* The field gets a name that nobody knows: so it looks as if it were not there. */
START_TEST(a_checkpoint_without_a_count_of_micro_batches_counts_its_steps)
{
    const char wanted[] = "micro_batches";
    struct run r;
    struct checkpoint_state state;
    struct chex_error err;
    uint8_t head[16384];
    size_t at = 0;
    int fd;

    run_make(&r);
    save(&r, 4800, 2);
    fd = openat(r.folder.fd, "step-004800.safetensors", O_RDWR);
    ck_assert_int_eq(pread(fd, head, sizeof(head), 0), sizeof(head));
    while (at < sizeof(head) - sizeof(wanted) && memcmp(head + at, wanted, sizeof(wanted) - 1) != 0)
        at++;
    ck_assert_int_eq(pwrite(fd, "other", 5, (off_t)at), 5);
    close(fd);
    ck_assert_int_eq(checkpoint_read_state(&r.folder, "step-004800", &state, &err), CHEX_OK);
    ck_assert_uint_eq(state.micro_batches, 4800);
    run_release(&r);
}
END_TEST

START_TEST(old_checkpoints_go_and_the_newest_stay)
{
    struct run r;

    run_make(&r);
    save(&r, 1, 2);
    save(&r, 2, 2);
    save(&r, 1000000, 2);
    ck_assert(!is_there(&r, "step-000001.safetensors") && !is_there(&r, "step-000001.opt.safetensors"));
    ck_assert(is_there(&r, "step-000002.safetensors") && is_there(&r, "step-000002.opt.safetensors"));
    ck_assert(is_there(&r, "step-1000000.safetensors") && is_there(&r, "latest"));
    run_release(&r);
}
END_TEST

/* As a power loss leaves it: `latest` is replaced, and what was removed after that is there again. */
static void
put_back(const struct run *r, uint64_t step, unsigned seed, bool model)
{
    struct checkpoint_state state = r->state;
    struct folder elsewhere;
    struct chex_error err;
    char path[700], name[64];

    snprintf(path, sizeof(path), "%s.elsewhere", r->folder.path);
    ck_assert_int_eq(folder_open(path, true, &elsewhere, &err), CHEX_OK);
    state.step = step;
    state.seed = seed;
    ck_assert_int_eq(checkpoint_save(&elsewhere, r->g, &state, &r->a, 0, &err), CHEX_OK);
    snprintf(name, sizeof(name), "step-%06llu.opt.safetensors", (unsigned long long)step);
    ck_assert_int_eq(renameat(elsewhere.fd, name, r->folder.fd, name), 0);
    snprintf(name, sizeof(name), "step-%06llu.safetensors", (unsigned long long)step);
    if (model)
        ck_assert_int_eq(renameat(elsewhere.fd, name, r->folder.fd, name), 0);
    folder_close(&elsewhere);
}

START_TEST(what_a_power_loss_left_behind_is_swept_and_nothing_else)
{
    static const char *const stay[] = {"step-000001.safetensors",     "step-000003.safetensors",
                                       "step-000004.safetensors",     "step-000009.safetensors",
                                       "step-000002.safetensors.bad", "best.safetensors"};
    static const char *const go[] = {"step-000000.safetensors", "step-000000.opt.safetensors",
                                     "step-000002.opt.safetensors"};
    struct chex_error err;
    struct run r;

    run_make(&r);
    r.state.seed = 7;
    save(&r, 3, 2);
    save(&r, 4, 2);
    put_back(&r, 0, 7, true);
    put_back(&r, 1, 8, true); /* of another run */
    put_back(&r, 2, 7, false);
    put_back(&r, 9, 7, true); /* newer */
    ck_assert_int_eq(safe_file_put(&r.folder, stay[4], "x", 1, &err), CHEX_OK);
    ck_assert_int_eq(checkpoint_save_model(&r.folder, stay[5], r.g, &r.state, &r.a, NULL, &err), CHEX_OK);
    ck_assert_int_eq(checkpoint_sweep(&r.folder, r.g, &r.state, 0, &err), CHEX_OK);
    ck_assert(is_there(&r, go[0]) && is_there(&r, go[2]));
    ck_assert_int_eq(checkpoint_sweep(&r.folder, r.g, &r.state, 2, &err), CHEX_OK);
    for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
        ck_assert_msg(is_there(&r, stay[i]), "%s", stay[i]);
    for (size_t i = 0; i < sizeof(go) / sizeof(go[0]); i++)
        ck_assert_msg(!is_there(&r, go[i]), "%s", go[i]);
    /* What `latest` names stays, whatever is to be kept now; and without a `latest` that is whole all does. */
    ck_assert_int_eq(checkpoint_sweep(&r.folder, r.g, &r.state, 1, &err), CHEX_OK);
    ck_assert(is_there(&r, "step-000003.safetensors"));
    put_back(&r, 0, 7, true);
    ck_assert_int_eq(safe_file_put(&r.folder, "latest", "x", 1, &err), CHEX_OK);
    ck_assert_int_eq(checkpoint_sweep(&r.folder, r.g, &r.state, 1, &err), CHEX_OK);
    ck_assert(is_there(&r, go[0]));
    run_release(&r);
}
END_TEST

static int
truncateat(const struct run *r, const char *name, off_t size)
{
    int fd = openat(r->folder.fd, name, O_WRONLY), result = ftruncate(fd, size);

    close(fd);
    return result;
}

START_TEST(a_damaged_one_is_passed_over)
{
    struct run r;
    struct chex_error err = {.text = ""};
    char name[CHECKPOINT_NAME];
    bool fallback;
    int fd;

    run_make(&r);
    save(&r, 10, 0);
    save(&r, 20, 0);
    fd = openat(r.folder.fd, "step-000020.opt.safetensors", O_WRONLY);
    ck_assert_int_eq(ftruncate(fd, 5000), 0);
    close(fd);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-000010");
    ck_assert(fallback);
    ck_assert_msg(strstr(err.text, "step-000020.opt.safetensors"), "%s", err.text);
    /* A single bit of a value: only the hash in `latest` tells. */
    save(&r, 20, 0);
    fd = openat(r.folder.fd, "step-000020.safetensors", O_RDWR);
    ck_assert_int_eq(pwrite(fd, "\1", 1, lseek(fd, 0, SEEK_END) - 1000), 1);
    close(fd);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-000010");
    ck_assert(fallback);
    ck_assert_msg(strstr(err.text, "SHA-256"), "%s", err.text);
    /* Without `latest` the headers must do. */
    ck_assert_int_eq(unlinkat(r.folder.fd, "latest", 0), 0);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-000020");
    ck_assert(fallback);
    run_release(&r);
}
END_TEST

START_TEST(what_is_damaged_is_set_aside_and_named_ones_are_checked)
{
    struct run r;
    struct chex_error err = {.text = ""};
    char name[CHECKPOINT_NAME];
    bool fallback;

    run_make(&r);
    save(&r, 10, 0);
    save(&r, 20, 0);
    ck_assert_int_eq(checkpoint_check(&r.folder, "step-000020", &err), CHEX_OK);
    ck_assert_int_eq(truncateat(&r, "step-000020.safetensors", 5000), 0);
    ck_assert_int_eq(checkpoint_check(&r.folder, "step-000020", &err), CHEX_ERR_TRUNCATED);
    ck_assert_int_eq(checkpoint_check(&r.folder, "step-000030", &err), CHEX_ERR_MISSING);
    ck_assert_int_eq(checkpoint_set_aside(&r.folder, "step-000010", &err), CHEX_OK);
    ck_assert(is_there(&r, "step-000020.safetensors.bad") && is_there(&r, "step-000020.opt.safetensors.bad"));
    ck_assert(!is_there(&r, "step-000020.safetensors") && is_there(&r, "step-000010.safetensors"));
    /* None is whole: that is no new run. */
    ck_assert_int_eq(truncateat(&r, "step-000010.opt.safetensors", 5000), 0);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_ERR_DAMAGED);
    run_release(&r);
}
END_TEST

/* A run that goes on from an older one would find the later ones at its next start. */
START_TEST(a_folder_that_cannot_be_listed_is_an_error)
{
    struct run r;
    struct chex_error err;
    enum chex_status status;

    run_make(&r);
    for (uint64_t step = 100; step <= 300; step += 100)
        save(&r, step, 3);
    for (unsigned n = 1; n <= 2; n++) {
        calls_fail(CALL_LIST, n, true, EIO);
        status = checkpoint_set_aside(&r.folder, "step-000100", &err);
        ck_assert_uint_eq(calls_end(), 1);
        ck_assert_int_eq(status, CHEX_ERR_READ);
        ck_assert_msg(strstr(err.text, "cannot list the folder"), "%s", err.text);
    }
    ck_assert_int_eq(checkpoint_set_aside(&r.folder, "step-000100", &err), CHEX_OK);
    ck_assert(is_there(&r, "step-000100.safetensors") && !is_there(&r, "step-000300.safetensors"));
    run_release(&r);
}
END_TEST

START_TEST(the_same_step_may_be_saved_with_another_state)
{
    struct run r;
    struct chex_error err = {.text = ""};
    struct checkpoint_state state;
    char name[CHECKPOINT_NAME];
    bool fallback;

    run_make(&r);
    save(&r, 10, 2);
    save(&r, 20, 2);
    r.state.epoch++;
    save(&r, 20, 2);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-000020");
    ck_assert(!fallback);
    ck_assert_int_eq(checkpoint_read_state(&r.folder, name, &state, &err), CHEX_OK);
    ck_assert_uint_eq(state.epoch, r.state.epoch);
    ck_assert(is_there(&r, "step-000010.safetensors"));
    run_release(&r);
}
END_TEST

START_TEST(what_is_not_finite_is_never_saved)
{
    struct run r;
    struct chex_error err;

    run_make(&r);
    save(&r, 5, 2);
    r.a.stats[3] = NAN;
    r.state.step = 6;
    ck_assert_int_eq(checkpoint_save(&r.folder, r.g, &r.state, &r.a, 2, &err), CHEX_ERR_DAMAGED);
    ck_assert_msg(strstr(err.text, "running_mean"), "%s", err.text);
    ck_assert(!is_there(&r, "step-000006.safetensors") && !is_there(&r, "step-000006.opt.safetensors"));
    run_release(&r);
}
END_TEST

START_TEST(an_empty_folder_holds_no_checkpoint)
{
    struct run r;
    struct chex_error err;
    char name[CHECKPOINT_NAME];
    bool fallback;

    run_make(&r);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_ERR_MISSING);
    /* A kill before the first `latest`: nothing was begun. */
    save(&r, 0, 2);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_int_eq(unlinkat(r.folder.fd, "latest", 0), 0);
    ck_assert_int_eq(unlinkat(r.folder.fd, "step-000000.safetensors", 0), 0);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_ERR_MISSING);
    run_release(&r);
}
END_TEST

/* Write the tensors of the graph under names changed by `rename`, one of them perhaps of another shape. */
static void
write_renamed(struct run *r, const char *prefix, const char *from, const char *to, size_t reshaped)
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
read_renamed(struct run *r, bool other_head, struct weights_report *report, struct chex_error *err)
{
    struct safetensors s;
    enum chex_status status;

    ck_assert_int_eq(safetensors_open(r->folder.fd, "w.safetensors", &s, err), CHEX_OK);
    status = weights_read(r->g, &s, other_head, r->a.params, r->a.stats, report, err);
    safetensors_close(&s);
    return status;
}

START_TEST(weights_are_found_under_the_names_that_people_use)
{
    static const char *const forms[][3] = {
        {"", "norm1", "norm1"},
        {"module.", "norm1", "norm1"},
        {"module.densenet121.", ".norm1.", ".norm.1."},
        {"densenet121.", ".conv2.", ".conv.2."},
        {"", "classifier.", "classifier.0."},
        {"", "features.norm5.", "features.norm4."}}; /* densenet-micro before 0.1.0 */
    struct weights_report report;
    struct chex_error err = {.text = ""};
    struct run r;

    run_make(&r);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        write_renamed(&r, forms[i][0], forms[i][1], forms[i][2], SIZE_MAX);
        ck_assert_msg(read_renamed(&r, false, &report, &err) == CHEX_OK, "%s", err.text);
        ck_assert_uint_eq(report.found, r.g->param_count + r.g->stat_count);
        ck_assert_uint_eq(report.unused, 0);
    }
    run_release(&r);
}
END_TEST

START_TEST(tensors_that_do_not_fit_are_named_and_nothing_is_used)
{
    struct weights_report report;
    struct chex_error err;
    struct run r;
    float first;

    run_make(&r);
    write_renamed(&r, "", "nothing", "", 0);
    first = r.a.params[0] = 12345;
    ck_assert_int_eq(read_renamed(&r, false, &report, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_msg(strstr(err.text, "features.conv0.weight: wanted 32x3x7x7, found 1x3x7x7"), "%s", err.text);
    ck_assert(r.a.params[0] == first);
    write_renamed(&r, "", "norm1", "unknown", SIZE_MAX);
    ck_assert_int_eq(read_renamed(&r, false, &report, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_msg(strstr(err.text, "found none") && strstr(err.text, "; ..."), "%s", err.text);
    run_release(&r);
}
END_TEST

START_TEST(another_head_may_be_left)
{
    struct weights_report report;
    struct chex_error err;
    struct run r;

    run_make(&r);
    write_renamed(&r, "", "classifier.", "other.", SIZE_MAX);
    ck_assert_int_eq(read_renamed(&r, false, &report, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_int_eq(read_renamed(&r, true, &report, &err), CHEX_OK);
    ck_assert(report.head_left);
    ck_assert_uint_eq(report.found, report.wanted - 2);
    ck_assert_uint_eq(report.unused, 2);
    run_release(&r);
}
END_TEST

START_TEST(random_weights_have_the_deviations_of_he_and_follow_the_seed)
{
    struct run r;
    const struct graph_tensor *conv;
    double squares = 0;
    float first;

    run_make(&r);
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
    run_release(&r);
}
END_TEST

Suite *
checkpoint_suite(void)
{
    Suite *s = suite_create("checkpoint");
    TCase *c = tcase_create("checkpoint");

    tcase_add_test(c, a_checkpoint_is_read_back_to_the_bit);
    tcase_add_test(c, old_checkpoints_go_and_the_newest_stay);
    tcase_add_test(c, what_a_power_loss_left_behind_is_swept_and_nothing_else);
    tcase_add_test(c, a_damaged_one_is_passed_over);
    tcase_add_test(c, what_is_damaged_is_set_aside_and_named_ones_are_checked);
    tcase_add_test(c, a_folder_that_cannot_be_listed_is_an_error);
    tcase_add_test(c, a_checkpoint_without_a_count_of_micro_batches_counts_its_steps);
    tcase_add_test(c, the_same_step_may_be_saved_with_another_state);
    tcase_add_test(c, what_is_not_finite_is_never_saved);
    tcase_add_test(c, an_empty_folder_holds_no_checkpoint);
    suite_add_tcase(s, c);
    c = tcase_create("weights");
    tcase_add_test(c, weights_are_found_under_the_names_that_people_use);
    tcase_add_test(c, tensors_that_do_not_fit_are_named_and_nothing_is_used);
    tcase_add_test(c, another_head_may_be_left);
    tcase_add_test(c, random_weights_have_the_deviations_of_he_and_follow_the_seed);
    suite_add_tcase(s, c);
    return s;
}
