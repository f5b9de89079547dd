/*
 * resume_fixture.c - see resume_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "resume_fixture.h"

#include "unit.h"

#include "store_fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct bench resumed;
char resume_reference[DIGEST_HEX];

void
resume_setup(void)
{
    struct spec spec = bench_spec();

    bench_make(&resumed, &spec, RESUME_IMAGES);
    resumed.rejected[2] = resumed.rejected[9] = true;
    bench_run(&resumed, 1);
    bench_digest(&resumed, resume_reference);
    bench_move(&resumed);
}

void
resume_teardown(void)
{
    bench_release(&resumed);
}

void
resume_expect_reference(void)
{
    char now[DIGEST_HEX];

    bench_expect_shards(&resumed);
    bench_digest(&resumed, now);
    ck_assert_str_eq(now, resume_reference);
}

void
resume_complete(uint64_t seed)
{
    bench_close(&resumed);
    bench_open(&resumed);
    bench_fill(&resumed, seed);
    resume_expect_reference();
    bench_close(&resumed);
}

void
resume_finished_run(void)
{
    bench_move(&resumed);
    bench_run(&resumed, 1);
}

void
resume_finished_without_rejects(void)
{
    memset(resumed.rejected, 0, sizeof(resumed.rejected));
    resume_finished_run();
    bench_digest(&resumed, resume_reference);
}

void
resume_expect_state(size_t shards_done, size_t slots_full)
{
    ck_assert_uint_eq(resumed.state.shards_done, shards_done);
    ck_assert_uint_eq(resumed.state.slots_full, slots_full);
    ck_assert(!resumed.state.complete);
}

void
resume_expect_wanted(const char *wanted)
{
    char text[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < RESUME_IMAGES; i++) {
        size_t shard;
        uint32_t index;

        bench_slot(&resumed, i, &shard, &index);
        if (store_wants(resumed.store, shard, index))
            used += (size_t)sprintf(text + used, "%s%zu", used ? " " : "", i);
    }
    ck_assert_str_eq(text, wanted);
}
