/*
 * post_office.h - comm.h for threads of one process, so that what ranks do together is tested without MPI
 *
 * Each rank is a thread with a comm of its own.  Messages and transfers come late at random, but the same way for the
 * same seed and the same order of calls.  A rank that says nothing is a thread that does nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_POST_OFFICE_H
#define CHEX_TESTS_POST_OFFICE_H

#include "ranks/comm.h"

#include <pthread.h>

#define POST_RANKS 8

struct post_item;

struct post_office {
    pthread_mutex_t lock;
    int size;
    uint32_t delay;          /* seed of the delays; 0: none */
    struct post_item *items; /* messages and transfers, in the order in which they were handed in */
    struct comm comm[POST_RANKS];
    int aborted; /* by whom, the last; -1: nobody */
    int exit_code;
};

void post_office_init(struct post_office *office, int size, uint32_t delay);
/* What nobody took is freed. */
void post_office_release(struct post_office *office);

/* Run the ranks, each in a thread, with argument[rank] of `each` bytes, and wait for them. */
void post_office_run(int size, void *(*live)(void *), void *arguments, size_t each);

#endif
