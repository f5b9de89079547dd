/*
 * post_office.h - comm.h between threads of one process, so that ranks are tested without MPI
 *
 * Each rank is a thread with its own comm.  Messages and transfers are delayed at random, but in the same way for the
 * same seed and the same order of calls.  A silent rank is a thread that does nothing.
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
    uint32_t delay;          /* seed of the delays; 0: no delays */
    struct post_item *items; /* messages and transfers in the order of their calls */
    struct comm comm[POST_RANKS];
    int aborted; /* the last rank that aborted; -1: none */
    int exit_code;
};

void post_office_init(struct post_office *office, int size, uint32_t delay);
/* Frees also the messages that no rank took. */
void post_office_release(struct post_office *office);

/* Runs the ranks, each in a thread, with argument[rank] of `each` bytes, and waits for them. */
void post_office_run(int size, void *(*live)(void *), void *arguments, size_t each);

#endif
