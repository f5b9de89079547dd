/*
 * test_checkpoint.c - weights by name, and checkpoints
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/weights.h"
#include "checkpoint_fixture.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
is_there(const struct saved_run *r, const char *name)
{
    return faccessat(r->folder.fd, name, F_OK, 0) == 0;
}

TEST_CASE("checkpoint", "checkpoint", NULL, NULL);

TEST(a_checkpoint_is_read_back_to_the_bit)
{
    struct saved_run r;
    struct checkpoint_arrays b;
    struct checkpoint_state state;
    struct chex_error err;
    char name[CHECKPOINT_NAME];
    bool fallback;

    saved_run_make(&r);
    saved_run_save(&r, 4800, 2);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-004800");
    ck_assert(!fallback);
    ck_assert_int_eq(checkpoint_read_state(&r.folder, name, NULL, &state, &err), CHEX_OK);
    ck_assert_str_eq(state.model, "densenet-micro");
    ck_assert(state.seed == 7 && state.step == 4800 && state.epoch == 3 && state.batches == 17);
    ck_assert_uint_eq(state.micro_batches, 19200);
    ck_assert(isnan(state.best) && isinf(state.schedule.best) && state.loss_sum == 0.1);
    ck_assert_double_eq(state.schedule.options.base, 1e-3);
    b = (struct checkpoint_arrays){saved_array(r.g->param_floats, 0), saved_array(r.g->stat_floats, 0),
                                   saved_array(r.g->param_floats, 0), saved_array(r.g->param_floats, 0), NULL};
    ck_assert_int_eq(checkpoint_read(&r.folder, name, r.g, &b, &err), CHEX_OK);
    ck_assert_mem_eq(b.params, r.a.params, r.g->param_floats * sizeof(float));
    ck_assert_mem_eq(b.stats, r.a.stats, r.g->stat_floats * sizeof(float));
    ck_assert_mem_eq(b.moment1, r.a.moment1, r.g->param_floats * sizeof(float));
    ck_assert_mem_eq(b.moment2, r.a.moment2, r.g->param_floats * sizeof(float));
    saved_arrays_free(&b);
    saved_run_release(&r);
}

/* The field is renamed, so it looks as if it were missing. */
TEST(a_checkpoint_without_a_count_of_micro_batches_counts_its_steps)
{
    const char wanted[] = "micro_batches";
    struct saved_run r;
    struct checkpoint_state state;
    struct chex_error err;
    uint8_t head[16384];
    size_t at = 0;
    int fd;

    saved_run_make(&r);
    saved_run_save(&r, 4800, 2);
    fd = openat(r.folder.fd, "step-004800.safetensors", O_RDWR);
    ck_assert_int_eq(pread(fd, head, sizeof(head), 0), sizeof(head));
    while (at < sizeof(head) - sizeof(wanted) && memcmp(head + at, wanted, sizeof(wanted) - 1) != 0)
        at++;
    ck_assert_int_eq(pwrite(fd, "other", 5, (off_t)at), 5);
    close(fd);
    ck_assert_int_eq(checkpoint_read_state(&r.folder, "step-004800", NULL, &state, &err), CHEX_OK);
    ck_assert_uint_eq(state.micro_batches, 4800);
    saved_run_release(&r);
}

TEST(old_checkpoints_go_and_the_newest_stay)
{
    struct saved_run r;

    saved_run_make(&r);
    saved_run_save(&r, 1, 2);
    saved_run_save(&r, 2, 2);
    saved_run_save(&r, 1000000, 2);
    ck_assert(!is_there(&r, "step-000001.safetensors") && !is_there(&r, "step-000001.opt.safetensors"));
    ck_assert(is_there(&r, "step-000002.safetensors") && is_there(&r, "step-000002.opt.safetensors"));
    ck_assert(is_there(&r, "step-1000000.safetensors") && is_there(&r, "latest"));
    saved_run_release(&r);
}

/* Imitates a power loss: `latest` is replaced, but files that were removed after that exist again. */
static void
put_back(const struct saved_run *r, uint64_t step, unsigned seed, bool model)
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

TEST(only_remains_of_a_power_loss_are_removed)
{
    static const char *const stay[] = {"step-000001.safetensors",     "step-000003.safetensors",
                                       "step-000004.safetensors",     "step-000009.safetensors",
                                       "step-000002.safetensors.bad", "best.safetensors"};
    static const char *const go[] = {"step-000000.safetensors", "step-000000.opt.safetensors",
                                     "step-000002.opt.safetensors"};
    struct chex_error err;
    struct saved_run r;

    saved_run_make(&r);
    r.state.seed = 7;
    saved_run_save(&r, 3, 2);
    saved_run_save(&r, 4, 2);
    put_back(&r, 0, 7, true);
    put_back(&r, 1, 8, true); /* of another run */
    put_back(&r, 2, 7, false);
    put_back(&r, 9, 7, true); /* newer */
    ck_assert_int_eq(safe_file_put(&r.folder, stay[4], "x", 1, &err), CHEX_OK);
    ck_assert_int_eq(checkpoint_save_model(&r.folder, stay[5], r.g, &r.state, &r.a, NULL, NULL, &err), CHEX_OK);
    ck_assert_int_eq(checkpoint_sweep(&r.folder, r.g, &r.state, 0, &err), CHEX_OK);
    ck_assert(is_there(&r, go[0]) && is_there(&r, go[2]));
    ck_assert_int_eq(checkpoint_sweep(&r.folder, r.g, &r.state, 2, &err), CHEX_OK);
    for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
        ck_assert_msg(is_there(&r, stay[i]), "%s", stay[i]);
    for (size_t i = 0; i < sizeof(go) / sizeof(go[0]); i++)
        ck_assert_msg(!is_there(&r, go[i]), "%s", go[i]);
    /* The files in `latest` stay, whatever the limit is now.  Without a complete `latest`, all files stay. */
    ck_assert_int_eq(checkpoint_sweep(&r.folder, r.g, &r.state, 1, &err), CHEX_OK);
    ck_assert(is_there(&r, "step-000003.safetensors"));
    put_back(&r, 0, 7, true);
    ck_assert_int_eq(safe_file_put(&r.folder, "latest", "x", 1, &err), CHEX_OK);
    ck_assert_int_eq(checkpoint_sweep(&r.folder, r.g, &r.state, 1, &err), CHEX_OK);
    ck_assert(is_there(&r, go[0]));
    saved_run_release(&r);
}

static int
truncateat(const struct saved_run *r, const char *name, off_t size)
{
    int fd = openat(r->folder.fd, name, O_WRONLY), result = ftruncate(fd, size);

    close(fd);
    return result;
}

TEST(a_damaged_checkpoint_is_skipped)
{
    struct saved_run r;
    struct chex_error err = {.text = ""};
    char name[CHECKPOINT_NAME];
    bool fallback;
    int fd;

    saved_run_make(&r);
    saved_run_save(&r, 10, 0);
    saved_run_save(&r, 20, 0);
    fd = openat(r.folder.fd, "step-000020.opt.safetensors", O_WRONLY);
    ck_assert_int_eq(ftruncate(fd, 5000), 0);
    close(fd);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-000010");
    ck_assert(fallback);
    ck_assert_msg(strstr(err.text, "step-000020.opt.safetensors"), "%s", err.text);
    /* A single flipped bit in a value: only the hash in `latest` detects it. */
    saved_run_save(&r, 20, 0);
    fd = openat(r.folder.fd, "step-000020.safetensors", O_RDWR);
    ck_assert_int_eq(pwrite(fd, "\1", 1, lseek(fd, 0, SEEK_END) - 1000), 1);
    close(fd);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-000010");
    ck_assert(fallback);
    ck_assert_msg(strstr(err.text, "SHA-256"), "%s", err.text);
    /* Without `latest`, the headers must be enough. */
    ck_assert_int_eq(unlinkat(r.folder.fd, "latest", 0), 0);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-000020");
    ck_assert(fallback);
    saved_run_release(&r);
}

TEST(damaged_checkpoints_are_renamed_and_named_ones_are_checked)
{
    struct saved_run r;
    struct chex_error err = {.text = ""};
    char name[CHECKPOINT_NAME];
    bool fallback;

    saved_run_make(&r);
    saved_run_save(&r, 10, 0);
    saved_run_save(&r, 20, 0);
    ck_assert_int_eq(checkpoint_check(&r.folder, "step-000020", &err), CHEX_OK);
    ck_assert_int_eq(truncateat(&r, "step-000020.safetensors", 5000), 0);
    ck_assert_int_eq(checkpoint_check(&r.folder, "step-000020", &err), CHEX_ERR_TRUNCATED);
    ck_assert_int_eq(checkpoint_check(&r.folder, "step-000030", &err), CHEX_ERR_MISSING);
    ck_assert_int_eq(checkpoint_set_aside(&r.folder, "step-000010", &err), CHEX_OK);
    ck_assert(is_there(&r, "step-000020.safetensors.bad") && is_there(&r, "step-000020.opt.safetensors.bad"));
    ck_assert(!is_there(&r, "step-000020.safetensors") && is_there(&r, "step-000010.safetensors"));
    /* No checkpoint is complete: that is an error, not a new run. */
    ck_assert_int_eq(truncateat(&r, "step-000010.opt.safetensors", 5000), 0);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_ERR_DAMAGED);
    saved_run_release(&r);
}

/* If a run resumed from an older checkpoint, its next start would find the newer ones. */
TEST(a_folder_that_cannot_be_listed_is_an_error)
{
    struct saved_run r;
    struct chex_error err;
    enum chex_status status;

    saved_run_make(&r);
    for (uint64_t step = 100; step <= 300; step += 100)
        saved_run_save(&r, step, 3);
    for (unsigned n = 1; n <= 2; n++) {
        calls_fail(CALL_LIST, n, true, EIO);
        status = checkpoint_set_aside(&r.folder, "step-000100", &err);
        ck_assert_uint_eq(calls_end(), 1);
        ck_assert_int_eq(status, CHEX_ERR_READ);
        ck_assert_msg(strstr(err.text, "cannot list the folder"), "%s", err.text);
    }
    ck_assert_int_eq(checkpoint_set_aside(&r.folder, "step-000100", &err), CHEX_OK);
    ck_assert(is_there(&r, "step-000100.safetensors") && !is_there(&r, "step-000300.safetensors"));
    saved_run_release(&r);
}

TEST(the_same_step_may_be_saved_with_another_state)
{
    struct saved_run r;
    struct chex_error err = {.text = ""};
    struct checkpoint_state state;
    char name[CHECKPOINT_NAME];
    bool fallback;

    saved_run_make(&r);
    saved_run_save(&r, 10, 2);
    saved_run_save(&r, 20, 2);
    r.state.epoch++;
    saved_run_save(&r, 20, 2);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_str_eq(name, "step-000020");
    ck_assert(!fallback);
    ck_assert_int_eq(checkpoint_read_state(&r.folder, name, NULL, &state, &err), CHEX_OK);
    ck_assert_uint_eq(state.epoch, r.state.epoch);
    ck_assert(is_there(&r, "step-000010.safetensors"));
    saved_run_release(&r);
}

TEST(values_that_are_not_finite_are_never_saved)
{
    struct saved_run r;
    struct chex_error err;

    saved_run_make(&r);
    saved_run_save(&r, 5, 2);
    r.a.stats[3] = NAN;
    r.state.step = 6;
    ck_assert_int_eq(checkpoint_save(&r.folder, r.g, &r.state, &r.a, 2, &err), CHEX_ERR_DAMAGED);
    ck_assert_msg(strstr(err.text, "running_mean"), "%s", err.text);
    ck_assert(!is_there(&r, "step-000006.safetensors") && !is_there(&r, "step-000006.opt.safetensors"));
    saved_run_release(&r);
}

TEST(an_empty_folder_contains_no_checkpoint)
{
    struct saved_run r;
    struct chex_error err;
    char name[CHECKPOINT_NAME];
    bool fallback;

    saved_run_make(&r);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_ERR_MISSING);
    /* A kill before the first `latest`: the run had not begun. */
    saved_run_save(&r, 0, 2);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_OK);
    ck_assert_int_eq(unlinkat(r.folder.fd, "latest", 0), 0);
    ck_assert_int_eq(unlinkat(r.folder.fd, "step-000000.safetensors", 0), 0);
    ck_assert_int_eq(checkpoint_find(&r.folder, name, &fallback, &err), CHEX_ERR_MISSING);
    saved_run_release(&r);
}
