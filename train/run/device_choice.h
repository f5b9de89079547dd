/*
 * device_choice.h - opens the device that --device and --precision ask for; for chex-train and chex-predict
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_DEVICE_CHOICE_H
#define CHEX_TRAIN_DEVICE_CHOICE_H

#include "backend/backend.h"

struct device_request {
    const char *device;       /* "auto", the name of a backend, or "cuda:V100": an imagined GPU */
    enum precision precision; /* of device_check_precision() */
    unsigned number;          /* the devices of a machine are used in turn: of this rank */
    bool imagine;             /* a dry run: imagine a missing device, or the given model of a GPU */
    /* Called for each backend that `auto` passes over although its driver is there: "cuda is not used: ..." */
    void (*note)(void *context, const char *text);
    void *context;
};

/*
 * Open the device; the caller closes it with the backend.  The errors of both functions use the words of the command
 * line.
 * CHEX_ERR_USAGE         no such backend or device; a model of a GPU without imagine
 * CHEX_ERR_INCOMPATIBLE  the named device cannot be used;  CHEX_ERR_MEMORY
 */
enum chex_status device_choose(const struct device_request *request, const struct backend **backend,
                               struct device **device, struct chex_error *err);

/* Check the precision against the chosen device.  CHEX_ERR_USAGE: the device lacks it. */
enum chex_status device_check_precision(const struct device_request *request, const struct backend *backend,
                                        const struct device *device, struct chex_error *err);

#endif
