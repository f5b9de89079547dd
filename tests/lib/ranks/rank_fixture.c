/*
 * rank_fixture.c - see rank_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "rank_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct post_office ranks_office;
struct rank rank[POST_RANKS];
atomic_bool ranks_hurry;

static void *
live(void *argument)
{
    struct rank *r = argument;

    ck_assert_int_eq(collective_new(r->comm, &r->options, &r->c, &r->err), CHEX_OK);
    r->play(r, r->c);
    r->broken = collective_broken(r->c);
    r->speaks = collective_reports_errors(r->c);
    return NULL;
}

void
ranks_play(int size, unsigned seed, void (*part)(struct rank *, struct collective *))
{
    post_office_init(&ranks_office, size, seed);
    for (int i = 0; i < size; i++) {
        rank[i].comm = &ranks_office.comm[i];
        rank[i].play = part;
        rank[i].seed = seed;
    }
    post_office_run(size, live, rank, sizeof(rank[0]));
    /* After all threads have ended: a transfer that one rank forgets may belong to another's. */
    for (int i = 0; i < size; i++)
        collective_free(rank[i].c);
    post_office_release(&ranks_office);
}

void
ranks_setup(void)
{
    memset(rank, 0, sizeof(rank));
    atomic_store(&ranks_hurry, false);
}

void
ranks_expect(int size, enum chex_status status)
{
    for (int i = 0; i < size; i++)
        ck_assert_msg(rank[i].status == status, "rank %d: %s: %s", i, chex_status_name(rank[i].status),
                      rank[i].err.text);
}

void
ranks_good(enum chex_status status, const struct chex_error *err)
{
    ck_assert_msg(status == CHEX_OK, "%s", err->text);
}

void
rank_host(char *out, size_t size, int of)
{
    char host[COLLECTIVE_HOST];

    ck_assert_int_eq(gethostname(host, sizeof(host)), 0);
    snprintf(out, size, "rank %d %s", of, host);
}

void
rank_sleep(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&pause, NULL);
}

double
rank_number(unsigned seed, int of, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + (uint32_t)of * 40503u + seed * 97u;

    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (double)((int)(x % 2001) - 1000) * (double)(1u << (x >> 27)) * 0.37;
}

double
ranks_sum(unsigned seed, int size, size_t i)
{
    double sum = rank_number(seed, 0, i);

    for (int of = 1; of < size; of++)
        sum += rank_number(seed, of, i);
    return sum;
}

#define GUARD 12345.0

void
ranks_play_sum(struct rank *r, struct collective *c)
{
    double *data = malloc((r->count + 2) * sizeof(*data));

    data[0] = data[r->count + 1] = GUARD;
    for (size_t i = 0; i < r->count; i++)
        data[i + 1] = rank_number(r->seed, collective_rank(c), i);
    ranks_good(collective_allreduce_start(c, data + 1, r->count, &r->err), &r->err);
    ranks_good(collective_allreduce_wait(c, &r->err), &r->err);
    for (size_t i = 0; i < r->count; i++) {
        double want = ranks_sum(r->seed, collective_size(c), i);

        ck_assert_msg(memcmp(&data[i + 1], &want, sizeof(want)) == 0, "number %zu of %zu on rank %d of %d: %g, not %g",
                      i, r->count, collective_rank(c), collective_size(c), data[i + 1], want);
    }
    ck_assert(data[0] == GUARD && data[r->count + 1] == GUARD);
    free(data);
}
