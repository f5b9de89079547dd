/*
 * rank_fixture.h - ranks as threads, for the tests of collective.h
 *
 * The ranks communicate through post_office.h, so every message is delayed at random.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_RANK_FIXTURE_H
#define CHEX_TESTS_RANK_FIXTURE_H

#include "unit.h"

#include "fakes/comm/post_office.h"
#include "ranks/collective_private.h"

struct rank {
    struct comm *comm;
    struct collective_options options;
    void (*play)(struct rank *, struct collective *);
    struct collective *c;
    unsigned seed;
    size_t count;
    enum chex_status status; /* of its last call */
    struct chex_error err;
    bool broken, speaks;
    char told[128];
};

extern struct post_office ranks_office;
extern struct rank rank[POST_RANKS];
extern atomic_bool ranks_hurry;

/* Call it before each test. */
void ranks_setup(void);
/* Runs this number of ranks; their results are in rank[].  seed: of the delays, and of the data. */
void ranks_play(int size, unsigned seed, void (*part)(struct rank *, struct collective *));
/* Requires that each of them ended with this status. */
void ranks_expect(int size, enum chex_status status);
void ranks_good(enum chex_status status, const struct chex_error *err);
/* "rank 2 n07" */
void rank_host(char *out, size_t size, int of);
void rank_sleep(double seconds);

/* Returns number i of a rank.  The numbers differ so much in size that another order of adding gives other bits. */
double rank_number(unsigned seed, int of, size_t i);
/* Returns the sum over the ranks, in their order. */
double ranks_sum(unsigned seed, int size, size_t i);
/* A part for ranks_play(): sums r->count numbers between two guards. */
void ranks_play_sum(struct rank *r, struct collective *c);

#endif
