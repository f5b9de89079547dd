/*
 * device_choice.c - see device_choice.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/device_choice.h"

#include <stdio.h>
#include <string.h>

/* The words of --device: a backend, and after a colon the model of an imagined GPU. */
struct device_words {
    char backend[32];
    const char *model; /* or NULL */
};

static struct device_words
device_words(const char *text)
{
    const char *colon = strchr(text, ':');
    struct device_words w = {.model = colon ? colon + 1 : NULL};

    snprintf(w.backend, sizeof(w.backend), "%.*s", (int)strcspn(text, ":"), text);
    return w;
}

/* Open a device of this backend.  *expected: no device was found, which is normal for most machines. */
static enum chex_status
open_device(const struct device_request *request, const struct backend *backend, const struct device_words *named,
            struct device **out, bool *expected, struct chex_error *err)
{
    unsigned count = backend->device_count();
    char why[BACKEND_LIBRARY] = "";

    *expected = false;
    if (named && named->model && !request->imagine)
        return error_set(err, CHEX_ERR_USAGE, "a model of a GPU is for a dry run of chex-train (-n); use --device %s",
                         backend->name);
    if (backend->device_imagine && named && (named->model || (count == 0 && request->imagine)))
        return backend->device_imagine(named->model, out, err);
    if (count == 0) {
        *expected = backend->device_absence && !backend->device_absence(why);
        return error_set(err, CHEX_ERR_USAGE, "%s", why);
    }
    return backend->device_open(request->number % count, out, err);
}

static void
note_passed_over(const struct device_request *request, const struct backend *backend, const char *why)
{
    char text[CHEX_ERROR_TEXT];

    snprintf(text, sizeof(text), "%s is not used: %s", backend->name, why);
    if (request->note)
        request->note(request->context, text);
}

enum chex_status
device_choose(const struct device_request *request, const struct backend **backend, struct device **device,
              struct chex_error *err)
{
    const struct device_words words = device_words(request->device);
    bool automatic = strcmp(words.backend, "auto") == 0, expected;
    enum chex_status status = CHEX_ERR_UNSUPPORTED;
    size_t i;

    *backend = NULL;
    for (i = 0; backends[i] && status != CHEX_OK; i++) {
        if (!automatic && strcmp(words.backend, backends[i]->name) != 0)
            continue;
        status = open_device(request, backends[i], automatic ? NULL : &words, device, &expected, err);
        if (status == CHEX_OK)
            *backend = backends[i];
        else if (!automatic)
            return error_context(err, status == CHEX_ERR_UNSUPPORTED ? CHEX_ERR_INCOMPATIBLE : status, "--device %s",
                                 request->device);
        else if (!expected)
            note_passed_over(request, backends[i], err->text);
    }
    if (!*backend)
        return error_set(err, CHEX_ERR_USAGE, "--device %s: this build has no such backend", request->device);
    return CHEX_OK;
}

enum chex_status
device_check_precision(const struct device_request *request, const struct backend *backend, const struct device *device,
                       struct chex_error *err)
{
    const struct device_info *info = &device->info;
    const char *best = backends[0]->name;
    bool passed_over = strcmp(request->device, "auto") == 0 && backend != backends[0];
    char names[64] = "";
    size_t used = 0;
    int i;

    if (request->precision == PRECISION_AUTO || info->precisions >> request->precision & 1)
        return CHEX_OK;
    for (i = 0; precision_names[i]; i++)
        if (info->precisions >> i & 1)
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? " and " : "",
                                     precision_names[i]);
    return error_set(err, CHEX_ERR_USAGE, "--precision %s: device %s computes in %s only%s%s%s",
                     precision_names[request->precision], backend->name, names, passed_over ? "; --device " : "",
                     passed_over ? best : "", passed_over ? " says why it is not used" : "");
}
