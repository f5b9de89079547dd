/*
 * rank_fixture.h - ranks that are threads, for the tests of collective.h
 *
 * The ranks talk through post_office.h: everything that comes, comes late at random.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_RANK_FIXTURE_H
#define CHEX_TESTS_RANK_FIXTURE_H

#include "unit.h"

#include "post_office.h"
#include "ranks/collective_private.h"

struct rank {
    struct comm *comm;
    struct collective_options options;
    void (*play)(struct rank *, struct collective *);
    struct collective *c;
    unsigned seed;
    size_t count;
    enum chex_status status; /* of what it did last */
    struct chex_error err;
    bool broken, speaks;
    char told[128];
};

extern struct post_office ranks_office;
extern struct rank rank[POST_RANKS];
extern atomic_bool ranks_hurry;

/* Before each test. */
void ranks_setup(void);
/* So many ranks play; what they left in rank[] can be looked at.  seed: of the delays, and of the data. */
void ranks_play(int size, unsigned seed, void (*part)(struct rank *, struct collective *));
/* Each of them ended with this status. */
void ranks_expect(int size, enum chex_status status);
void ranks_good(enum chex_status status, const struct chex_error *err);
/* "rank 2 n07" */
void rank_host(char *out, size_t size, int of);
void rank_sleep(double seconds);

/* Number i of a rank: of very different size, so that another order of adding them gives other bits. */
double rank_number(unsigned seed, int of, size_t i);
/* The sum over the ranks, in their order. */
double ranks_sum(unsigned seed, int size, size_t i);
/* A part to play: a sum of r->count numbers between two guards. */
void ranks_play_sum(struct rank *r, struct collective *c);

#endif
