/*
 * events_plugin.c - values for plugins of TensorBoard: text, precision-recall curves, hyperparameters; see events.h and
 * the messages in schemas/event.proto
 *
 * Such a value is a tensor, with metadata that contain the plugin's name and a plugin-specific message.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/json.h"
#include "dataset/tfrecord.h"
#include "log/events_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DTYPE_FLOAT  1
#define DTYPE_STRING 7

#define THRESHOLDS 501 /* findings are rare, and their scores close to 0 */
#define ROWS       6

/* Complete and keep metadata and value. */
static enum chex_status
add_tensor(struct events *e, const char *tag, const char *plugin, const char *title, ProtobufCBinaryData content,
           Chex__Tensor *tensor, struct chex_error *err)
{
    Chex__Metadata__PluginData data = CHEX__METADATA__PLUGIN_DATA__INIT;
    Chex__Metadata metadata = CHEX__METADATA__INIT;
    Chex__Summary__Value v = CHEX__SUMMARY__VALUE__INIT;

    data.plugin_name = (char *)plugin;
    data.content = content;
    metadata.plugin_data = &data;
    if (title)
        metadata.display_name = (char *)title;
    v.tag = (char *)tag;
    v.metadata = &metadata;
    v.value_case = CHEX__SUMMARY__VALUE__VALUE_TENSOR;
    v.tensor = tensor;
    return events_add(e, &v, err);
}

enum chex_status
events_text(struct events *e, const char *tag, const char *text, struct chex_error *err)
{
    json_t *utf8 = text_json(text);
    ProtobufCBinaryData string, none = {0, NULL};
    Chex__Tensor__Shape shape = CHEX__TENSOR__SHAPE__INIT; /* a scalar: no dimensions */
    Chex__Tensor tensor = CHEX__TENSOR__INIT;
    enum chex_status status;

    if (!utf8)
        return error_memory(err);
    string = (ProtobufCBinaryData){json_string_length(utf8), (uint8_t *)json_string_value(utf8)};
    tensor.dtype = DTYPE_STRING;
    tensor.tensor_shape = &shape;
    tensor.n_string_val = 1;
    tensor.string_val = &string;
    status = add_tensor(e, tag, "text", NULL, none, &tensor, err);
    json_decref(utf8);
    return status;
}

/* ---- precision and recall ---------------------------------------------------------------------------------------- */

/* Count the positive and negative images with a score of at least each threshold. */
static void
count_above(const float *score, const uint8_t *label, size_t stride, size_t count, uint64_t above[2][THRESHOLDS])
{
    size_t i;
    unsigned kind;

    memset(above, 0, 2 * sizeof(above[0]));
    for (i = 0; i < count; i++) {
        float place = score[i * stride] * (THRESHOLDS - 1);

        above[label[i * stride] != 0][place >= THRESHOLDS - 1 ? THRESHOLDS - 1 : place > 0 ? (size_t)place : 0]++;
    }
    for (kind = 0; kind < 2; kind++)
        for (i = THRESHOLDS - 1; i-- > 0;)
            above[kind][i] += above[kind][i + 1];
}

/*
 * Fill the rows of the curve.  Above the highest score precision is undefined, and the plugin leaves such points out.
 */
static void
fill_rows(uint64_t above[2][THRESHOLDS], float row[ROWS][THRESHOLDS])
{
    size_t i;

    for (i = 0; i < THRESHOLDS; i++) {
        uint64_t tp = above[1][i], fp = above[0][i];

        row[0][i] = (float)tp;
        row[1][i] = (float)fp;
        row[2][i] = (float)(above[0][0] - fp);
        row[3][i] = (float)(above[1][0] - tp);
        row[4][i] = tp + fp > 0 ? (float)((double)tp / (double)(tp + fp)) : 0;
        row[5][i] = above[1][0] > 0 ? (float)((double)tp / (double)above[1][0]) : 0;
    }
}

/* Store floats in little-endian order. */
static void
put_floats(const float *value, size_t count, uint8_t *out)
{
    size_t i;

    for (i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, value + i, sizeof(bits));
        put_u32le(out + 4 * i, bits);
    }
}

enum chex_status
events_curve(struct events *e, const char *tag, const char *title, const float *score, const uint8_t *label,
             size_t stride, size_t count, struct chex_error *err)
{
    uint64_t above[2][THRESHOLDS];
    float row[ROWS][THRESHOLDS];
    uint8_t bytes[sizeof(row)], packed[32];
    Chex__PrCurve curve = CHEX__PR_CURVE__INIT;
    Chex__Tensor__Shape__Dim rows = CHEX__TENSOR__SHAPE__DIM__INIT, columns = CHEX__TENSOR__SHAPE__DIM__INIT;
    Chex__Tensor__Shape__Dim *dim[] = {&rows, &columns};
    Chex__Tensor__Shape shape = CHEX__TENSOR__SHAPE__INIT;
    Chex__Tensor tensor = CHEX__TENSOR__INIT;
    ProtobufCBinaryData content = {.data = packed};

    count_above(score, label, stride, count, above);
    fill_rows(above, row);
    put_floats(&row[0][0], (size_t)ROWS * THRESHOLDS, bytes);
    curve.num_thresholds = THRESHOLDS;
    content.len = chex__pr_curve__pack(&curve, packed);
    rows.size = ROWS;
    columns.size = THRESHOLDS;
    shape.n_dim = 2;
    shape.dim = dim;
    tensor.dtype = DTYPE_FLOAT;
    tensor.tensor_shape = &shape;
    tensor.tensor_content = (ProtobufCBinaryData){sizeof(bytes), bytes};
    return add_tensor(e, tag, "pr_curves", title, content, &tensor, err);
}

/* ---- hyperparameters --------------------------------------------------------------------------------------------- */

struct hparam {
    json_t *utf8;
    Chex__HParams__Value value;
    Chex__HParams__Entry entry;
};

/* False: out of memory. */
static bool
fill_entry(const struct run_value *from, struct hparam *to)
{
    chex__hparams__value__init(&to->value);
    chex__hparams__entry__init(&to->entry);
    switch (from->kind) {
    case RUN_TEXT:
        to->value.kind_case = CHEX__HPARAMS__VALUE__KIND_STRING_VALUE;
        to->utf8 = text_json(from->text ? from->text : "");
        to->value.string_value = (char *)json_string_value(to->utf8);
        break;
    case RUN_NUMBER:
        to->value.kind_case = CHEX__HPARAMS__VALUE__KIND_NUMBER_VALUE;
        to->value.number_value = from->number;
        break;
    case RUN_BOOL:
        to->value.kind_case = CHEX__HPARAMS__VALUE__KIND_BOOL_VALUE;
        to->value.bool_value = from->yes;
        break;
    }
    to->entry.key = (char *)from->name;
    to->entry.value = &to->value;
    return from->kind != RUN_TEXT || to->utf8;
}

static enum chex_status
add_hparams(struct events *e, Chex__HParams *message, struct chex_error *err)
{
    Chex__Tensor__Shape__Dim zero = CHEX__TENSOR__SHAPE__DIM__INIT;
    Chex__Tensor__Shape__Dim *dim[] = {&zero};
    Chex__Tensor__Shape shape = CHEX__TENSOR__SHAPE__INIT;
    Chex__Tensor tensor = CHEX__TENSOR__INIT;
    struct buffer packed = {0};
    enum chex_status status = buffer_reserve(&packed, chex__hparams__get_packed_size(message), err);

    if (status == CHEX_OK) {
        packed.size = chex__hparams__pack(message, packed.data);
        shape.n_dim = 1;
        shape.dim = dim;
        tensor.dtype = DTYPE_FLOAT;
        tensor.tensor_shape = &shape;
        status = add_tensor(e, "_hparams_/session_start_info", "hparams", NULL,
                            (ProtobufCBinaryData){packed.size, packed.data}, &tensor, err);
    }
    buffer_release(&packed);
    return status;
}

enum chex_status
events_hparams(struct events *e, const struct run_value *value, size_t count, struct chex_error *err)
{
    struct hparam *entry = calloc(count + 1, sizeof(*entry));
    Chex__HParams__Entry **list = calloc(count + 1, sizeof(*list));
    Chex__HParams__SessionStart start = CHEX__HPARAMS__SESSION_START__INIT;
    Chex__HParams message = CHEX__HPARAMS__INIT;
    enum chex_status status;
    size_t i;

    status = entry && list ? CHEX_OK : error_memory(err);
    for (i = 0; status == CHEX_OK && i < count; i++) {
        if (!fill_entry(value + i, entry + i))
            status = error_memory(err);
        list[i] = &entry[i].entry;
    }
    start.n_hparams = count;
    start.hparams = list;
    start.start_time_secs = (double)time(NULL);
    message.session_start_info = &start;
    if (status == CHEX_OK)
        status = add_hparams(e, &message, err);
    for (i = 0; entry && i < count; i++)
        json_decref(entry[i].utf8);
    free(list);
    free(entry);
    return status;
}
