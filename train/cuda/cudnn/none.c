/*
 * none.c - replaces engine.c in a build without cuDNN
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/cudnn/engine.h"

#include <stdio.h>

static const char why[] = "this build has no cuDNN";

unsigned
cudnn_version(char text[BACKEND_LIBRARY])
{
    snprintf(text, BACKEND_LIBRARY, "%s", why);
    return 0;
}

enum chex_status
cudnn_new(enum precision precision, const char *described, struct cudnn **out, struct chex_error *err)
{
    (void)precision;
    (void)described;
    *out = NULL;
    return error_set(err, CHEX_ERR_UNSUPPORTED, "%s", why);
}

void
cudnn_free(struct cudnn *c)
{
    (void)c;
}

enum chex_status
cudnn_takes(struct cudnn *c, const struct cuda_conv *conv, bool *takes, struct chex_error *err)
{
    (void)c;
    (void)conv;
    (void)err;
    *takes = false;
    return CHEX_OK;
}

struct cudnn_choice
cudnn_choice(const struct cudnn *c, const struct cuda_conv *conv)
{
    (void)c;
    (void)conv;
    return (struct cudnn_choice){.engine = -1};
}

enum chex_status
cudnn_run(struct cudnn *c, const struct cuda_op *op, cudaStream_t stream, struct chex_error *err)
{
    (void)c;
    (void)op;
    (void)stream;
    return error_set(err, CHEX_ERR_BUG, "%s", why);
}
