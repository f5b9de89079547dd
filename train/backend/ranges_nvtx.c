/*
 * ranges_nvtx.c - implements ranges.h with NVTX 3, a header that loads the library named by NVTX_INJECTION64_PATH
 *
 * The domain is global to the process, like all state of NVTX.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <stddef.h>
#include <stdio.h>

static nvtxDomainHandle_t domain;

void
ranges_open(int rank)
{
    char name[64];

    if (domain)
        nvtxDomainDestroy(domain);
    snprintf(name, sizeof(name), "chex-train rank %d", rank);
    domain = nvtxDomainCreateA(name);
}

static void
push(const char *name, const uint64_t *number)
{
    nvtxEventAttributes_t what = {.version = NVTX_VERSION,
                                  .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                  .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                  .message = {.ascii = name}};

    if (number) {
        what.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        what.payload.ullValue = *number;
    }
    (void)nvtxDomainRangePushEx(domain, &what);
}

void
ranges_push(enum step_part part)
{
    if (domain)
        push(step_part_name[part], NULL);
}

void
ranges_push_step(uint64_t step)
{
    if (domain)
        push("step", &step);
}

void
ranges_pop(void)
{
    if (domain)
        (void)nvtxDomainRangePop(domain);
}
