/*
 * team.h - a thread pool that lives as long as a plan
 *
 * team_run() distributes tasks 0 .. count - 1 over the caller and the other threads, in any order, and returns when
 * all are done.  The result of a task must not depend on its thread number, which only selects scratch memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CPU_TEAM_H
#define CHEX_TRAIN_CPU_TEAM_H

#include "base/error.h"

#include <stddef.h>

typedef void team_task(void *context, size_t task, unsigned thread);

struct team;

/* `threads` includes the caller.  CHEX_ERR_MEMORY: a thread cannot be started. */
enum chex_status team_new(unsigned threads, struct team **out, struct chex_error *err);
void team_free(struct team *team); /* NULL is allowed */
void team_run(struct team *team, size_t count, team_task *task, void *context);

#endif
