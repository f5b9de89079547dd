/*
 * team.h - threads that wait for work, for the life of a plan
 *
 * team_run() hands out tasks 0 .. count - 1 to the caller and the other threads, each task once, in any order, and
 * returns when all are done.  What a task computes must not depend on which thread runs it: that number only picks
 * scratch memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CPU_TEAM_H
#define CHEX_TRAIN_CPU_TEAM_H

#include "base/error.h"

#include <stddef.h>

typedef void team_task(void *context, size_t task, unsigned thread);

struct team;

/* threads counts the caller; CHEX_ERR_MEMORY where one cannot be started. */
enum chex_status team_new(unsigned threads, struct team **out, struct chex_error *err);
void team_free(struct team *team); /* NULL is allowed */
void team_run(struct team *team, size_t count, team_task *task, void *context);

#endif
