/*
 * gate_json.c - a gate as JSON, a part of the operating points of a model; see gate.h
 *
 *     {"side": 32, "components": 24, "images": 4096, "scales": [...], "values": "base64"}
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/gate.h"

#include "base/base64.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (GATE_ROWS * GATE_PIXELS * 2)

#define MOST_NORM 1.01 /* of a row: at most 1, and the rounding to 16 bits */

static json_t *
scales_json(const struct gate *g)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; i < GATE_ROWS; i++)
        json_array_append_new(list, json_real(g->scale[i]));
    return list;
}

json_t *
gate_json(const struct gate *g)
{
    uint8_t *bytes = malloc(BYTES);
    char *text = malloc(BASE64_LENGTH(BYTES) + 1);
    json_t *object = NULL;
    size_t i;

    if (g->there && bytes && text) {
        for (i = 0; i < BYTES / 2; i++) {
            uint16_t v = (uint16_t)g->value[i / GATE_PIXELS][i % GATE_PIXELS];

            bytes[2 * i] = (uint8_t)v;
            bytes[2 * i + 1] = (uint8_t)(v >> 8);
        }
        base64_encode(bytes, BYTES, text);
        object = json_pack("{s:i,s:i,s:o,s:o,s:s}", "side", GATE_SIDE, "components", GATE_COMPONENTS, "images",
                           count_json(g->images), "scales", scales_json(g), "values", text);
    }
    free(bytes);
    free(text);
    return g->there ? object : json_null();
}

static bool
parse_scales(const json_t *list, struct gate *out)
{
    size_t i;

    for (i = 0; i < GATE_ROWS; i++) {
        const json_t *value = json_array_get(list, i);

        out->scale[i] = json_number_value(value);
        if (!json_is_number(value) || !(out->scale[i] >= 0 && out->scale[i] <= 1))
            return false;
    }
    return json_array_size(list) == GATE_ROWS;
}

static bool
parse_values(const char *text, struct gate *out)
{
    uint8_t *bytes = malloc(BYTES);
    bool good = bytes && text && base64_decode(text, bytes, BYTES);
    size_t i;

    for (i = 0; good && i < BYTES / 2; i++)
        out->value[i / GATE_PIXELS][i % GATE_PIXELS] = (int16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
    free(bytes);
    return good;
}

static bool
is_short(const struct gate *g, size_t row)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < GATE_PIXELS; i++) {
        double value = g->scale[row] * g->value[row][i];

        sum += value * value;
    }
    return sum <= MOST_NORM * MOST_NORM;
}

/* A hostile file could have numbers of which the fit overflows. */
static bool
rows_are_short(const struct gate *g)
{
    for (size_t i = 0; i < GATE_ROWS; i++)
        if (!is_short(g, i))
            return false;
    return true;
}

bool
gate_parse(const json_t *object, struct gate *out)
{
    double images = json_number_value(json_object_get(object, "images"));

    out->there = false;
    if (!object || json_is_null(object))
        return true;
    out->there = json_number_value(json_object_get(object, "side")) == GATE_SIDE &&
                 json_number_value(json_object_get(object, "components")) == GATE_COMPONENTS && images >= GATE_FEWEST &&
                 images <= UINT32_MAX && images == floor(images) &&
                 parse_scales(json_object_get(object, "scales"), out) &&
                 parse_values(json_string_value(json_object_get(object, "values")), out) && rows_are_short(out);
    out->images = out->there ? (uint64_t)images : 0;
    return out->there;
}
