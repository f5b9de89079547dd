/*
 * reduce.c - chooses NCCL or messages between hosts, the same on all ranks; see reduce.h
 *
 * NCCL does not work if two ranks share a GPU.  It treats parts of a GPU (MIG) as the whole GPU.  So the ranks compare
 * both the UUID of their devices and their PCI addresses.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/comm/reduce.h"

#include "cuda/run/plan.h"
#include "ranks/collective.h"

#include <stdio.h>
#include <string.h>

/* What each rank sends to the others. */
struct seat {
    char id[sizeof(((struct device_info *)0)->id)], bus[CUDA_BUS];
    int version; /* of NCCL; 0: not available */
    char why[BACKEND_LIBRARY];
};

static struct seat
own_seat(const struct cuda_device *device)
{
    struct seat s = {.version = 0};

    memcpy(s.id, device->device.info.id, sizeof(s.id));
    memcpy(s.bus, device->bus, sizeof(s.bus));
    s.version = reduce_nccl_version(s.why);
    if (device->device.info.imagined) {
        s.version = 0;
        snprintf(s.why, sizeof(s.why), "there is no GPU");
    }
    return s;
}

static bool
share(const struct collective *c, const struct seat *all, int a, int b)
{
    return strcmp(all[a].id, all[b].id) == 0 ||
           (strcmp(all[a].bus, all[b].bus) == 0 && strcmp(collective_host(c, a), collective_host(c, b)) == 0);
}

/* Returns true if NCCL cannot be used, with the first reason in the order of the ranks. */
static bool
finds_reason(const struct collective *c, const struct seat *all, char *why, size_t size)
{
    int a, b;

    for (a = 0; a < collective_size(c); a++) {
        if (all[a].version == 0) {
            snprintf(why, size, "rank %d %.40s: %.80s", a, collective_host(c, a), all[a].why);
            return true;
        }
        for (b = 0; b < a; b++)
            if (share(c, all, a, b)) {
                snprintf(why, size, "rank %d and rank %d of %.60s share a GPU", b, a, collective_host(c, a));
                return true;
            }
        if (all[a].version != all[0].version) {
            snprintf(why, size, "NCCL is %.20s on rank 0 and %.20s on rank %d %.60s", all[0].why, all[a].why, a,
                     collective_host(c, a));
            return true;
        }
    }
    return false;
}

static enum chex_status
staged_for(struct device *device, struct collective *c, const char *why, struct reduce **out, struct chex_error *err)
{
    enum chex_status status = reduce_staged_new(device, c, out, err);

    if (status != CHEX_OK || !why)
        return status;
    (*out)->fallback = true;
    snprintf((*out)->text, sizeof((*out)->text), "by messages between the hosts, not by NCCL: %.130s", why);
    return CHEX_OK;
}

enum chex_status
cuda_reduce_new(struct device *device, struct collective *c, struct reduce **out, struct chex_error *err)
{
    struct seat own = own_seat((const struct cuda_device *)(const void *)device);
    struct buffer all = {0};
    char why[160] = "";
    bool reason;
    enum chex_status status;

    *out = NULL;
    if (collective_size(c) == 1)
        return staged_for(device, c, NULL, out, err);
    status = collective_allgather(c, &own, sizeof(own), &all, NULL, err);
    reason = status == CHEX_OK && finds_reason(c, (const struct seat *)(const void *)all.data, why, sizeof(why));
    buffer_release(&all);
    if (status != CHEX_OK)
        return status;
    return reason ? staged_for(device, c, why, out, err) : reduce_nccl_new(device, c, out, err);
}
