/*
 * models.c - the table of networks: names and builders
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "graph/models.h"

#include <stdlib.h>
#include <string.h>

static const struct model {
    const char *name;
    model_builder *build;
} models[] = {
#define MODEL_ROW(name, build) {name, build},
    MODELS(MODEL_ROW, MODEL_ROW)
#undef MODEL_ROW
};

#define MODEL_LISTED(name, build) name,
const char *const graph_models[] = {MODELS(MODEL_LISTED, MODEL_LISTED) NULL};
#undef MODEL_LISTED

#define SIDE_MAX 4096

enum chex_status
graph_new(const char *model, unsigned side, unsigned outputs, struct graph **out, struct chex_error *err)
{
    struct graph_builder b = {.failed = false};
    const struct model *m = NULL;
    enum chex_status status;
    size_t i;

    *out = NULL;
    for (i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (strcmp(models[i].name, model) == 0)
            m = &models[i];
    if (!m)
        return error_set(err, CHEX_ERR_USAGE, "no model '%s': " MODEL_NAMES, model);
    b.graph = calloc(1, sizeof(*b.graph));
    if (!b.graph)
        return error_memory(err);
    b.graph->model = m->name;
    if (side > SIDE_MAX || outputs == 0 || outputs > SIDE_MAX || !m->build(&b, side, outputs)) {
        graph_free(b.graph);
        return error_set(err, CHEX_ERR_USAGE, "%s does not take images of %ux%u", model, side, side);
    }
    status = b.failed ? error_memory(err) : graph_check(b.graph, err);
    if (status == CHEX_OK)
        *out = b.graph;
    else
        graph_free(b.graph);
    return status;
}
