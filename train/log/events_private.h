/*
 * events_private.h - shared by events.c and events_plugin.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_EVENTS_PRIVATE_H
#define CHEX_TRAIN_EVENTS_PRIVATE_H

#include "log/events.h"

#include "schemas/event.pb-c.h"

/* Keep a copy of this value for the next Event; the original may be on the stack. */
enum chex_status events_add(struct events *e, const Chex__Summary__Value *value, struct chex_error *err);

#endif
