/*
 * checkpoint.c - fuzz target: the files from which chex-train resumes: a safetensors file, and the lines of `latest`
 *
 * Any bytes as a file of weights: either the reader refuses them, or the tensors fill the file without gaps and are
 * found by their names, and a round trip through writer and reader reproduces them.  The same holds for the state of a
 * run in the metadata, and the trainer can compute with each state that the reader accepts.  Weights that fit a graph
 * are finite.  Bytes that begin like a line of `latest` are used as that file: each checkpoint that it names is found
 * completely or not at all.
 *
 * The mutator also replaces a field of a state, with a value from the table of fields (state_cases.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "base/json.h"
#include "checkpoint/checkpoint_private.h"
#include "checkpoint/weights.h"
#include "train/checkpoint/state_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "step-000001.safetensors"
#define AGAIN     "again.safetensors"
#define VALUES    64 /* number of values of a tensor that are checked */

/* ---- a graph that a fuzzer can meet ---------------------------------------------------------------------------- */

static struct graph_tensor params_of_graph[] = {
    {"features.denselayer1.conv1.weight", GRAPH_WEIGHT, 4, {2, 1, 1, 1}, 0, 2},
    {"features.denselayer1.norm1.weight", GRAPH_GAMMA, 1, {2}, 2, 2},
    {"features.denselayer1.norm1.bias", GRAPH_BETA, 1, {2}, 4, 2},
    {"classifier.weight", GRAPH_WEIGHT, 2, {1, 2}, 6, 2},
    {"classifier.bias", GRAPH_BIAS, 1, {1}, 8, 1},
};
static struct graph_tensor stats_of_graph[] = {
    {"features.denselayer1.norm1.running_mean", GRAPH_MEAN, 1, {2}, 0, 2},
    {"features.denselayer1.norm1.running_var", GRAPH_VARIANCE, 1, {2}, 2, 2},
};
static const struct graph graph = {
    .model = "small",
    .param = params_of_graph,
    .stat = stats_of_graph,
    .param_count = 5,
    .stat_count = 2,
    .param_floats = 9,
    .stat_floats = 4,
};

/* ---- a file of weights ----------------------------------------------------------------------------------------- */

static void
require_values(const struct safetensors *s, const struct tensor_entry *e)
{
    uint8_t raw[VALUES * 8];
    float value[VALUES];
    struct chex_error err = {0};
    enum chex_status status;
    size_t i;

    if (e->count > VALUES)
        return;
    FUZZ_REQUIRE(safetensors_read_raw(s, e, raw, &err) == CHEX_OK);
    status = safetensors_read_floats(s, e, value, &err);
    fuzz_require_error(status, &err);
    FUZZ_REQUIRE((status == CHEX_OK) == (e->type <= DTYPE_BF16));
    for (i = 0; status == CHEX_OK && i < e->count; i++) {
        float v = (float)dtype_value(e->type, raw + i * dtype_size(e->type));

        FUZZ_REQUIRE(memcmp(&v, &value[i], sizeof(v)) == 0 || (v != v && value[i] != value[i]));
    }
}

/* The tensors are sorted and unique, and together they have as many bytes as follow the header. */
static void
require_entries(const struct safetensors *s)
{
    uint64_t bytes = 0, first = s->size;
    size_t i, k;

    for (i = 0; i < s->count; i++) {
        const struct tensor_entry *e = &s->entry[i];
        uint64_t count = 1;

        FUZZ_REQUIRE(i == 0 || strcmp(s->entry[i - 1].name, e->name) < 0);
        FUZZ_REQUIRE(safetensors_find(s, e->name) == e && e->rank <= SAFETENSORS_RANK);
        for (k = 0; k < e->rank; k++)
            count *= e->shape[k];
        FUZZ_REQUIRE(count == e->count && e->offset <= s->size);
        bytes += e->count * dtype_size(e->type);
        first = e->offset < first ? e->offset : first;
        require_values(s, e);
    }
    FUZZ_REQUIRE(bytes == s->size - first);
    for (i = 0; i < s->metadata_count; i++) {
        FUZZ_REQUIRE(i == 0 || strcmp(s->metadata[i - 1].key, s->metadata[i].key) < 0);
        FUZZ_REQUIRE(safetensors_metadata(s, s->metadata[i].key) == s->metadata[i].value);
    }
}

static bool
same_entry(const struct safetensors *s, const struct tensor_entry *a, const struct safetensors *t,
           const struct tensor_entry *b)
{
    uint8_t x[VALUES * 8], y[VALUES * 8];

    if (strcmp(a->name, b->name) != 0 || a->type != b->type || a->rank != b->rank || a->count != b->count ||
        memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) != 0)
        return false;
    if (a->count > VALUES)
        return true;
    return safetensors_read_raw(s, a, x, NULL) == CHEX_OK && safetensors_read_raw(t, b, y, NULL) == CHEX_OK &&
           memcmp(x, y, a->count * dtype_size(a->type)) == 0;
}

/* Writes the file with our writer and reads it again. */
static void
require_rewritten(const struct safetensors *s)
{
    struct tensor_source *tensor = calloc(s->count + 1, sizeof(*tensor));
    uint8_t *bytes = calloc(1, s->size + 1);
    struct safetensors again;
    struct chex_error err = {0};
    uint64_t used = 0;
    size_t i;

    FUZZ_REQUIRE(tensor && bytes);
    for (i = 0; i < s->count; i++) {
        const struct tensor_entry *e = &s->entry[i];

        tensor[i] = (struct tensor_source){*e, bytes + used};
        FUZZ_REQUIRE(safetensors_read_raw(s, e, bytes + used, &err) == CHEX_OK);
        used += e->count * dtype_size(e->type);
    }
    FUZZ_REQUIRE(safetensors_write(fuzz_folder(), AGAIN, tensor, s->count, s->metadata, s->metadata_count, NULL,
                                   &err) == CHEX_OK);
    FUZZ_REQUIRE(safetensors_open(fuzz_folder()->fd, AGAIN, &again, &err) == CHEX_OK);
    FUZZ_REQUIRE(again.count == s->count && again.metadata_count == s->metadata_count);
    for (i = 0; i < s->count; i++)
        FUZZ_REQUIRE(same_entry(s, &s->entry[i], &again, &again.entry[i]));
    for (i = 0; i < s->metadata_count; i++)
        FUZZ_REQUIRE(strcmp(s->metadata[i].key, again.metadata[i].key) == 0 &&
                     strcmp(s->metadata[i].value, again.metadata[i].value) == 0);
    safetensors_close(&again);
    free(tensor);
    free(bytes);
}

static void
require_weights(const struct safetensors *s)
{
    float params[9] = {0}, stats[4] = {0};
    struct weights_report report;
    struct chex_error err = {0};
    int other_head;

    for (other_head = 0; other_head < 2; other_head++) {
        enum chex_status status = weights_read(&graph, s, other_head, params, stats, &report, &err);

        fuzz_require_error(status, &err);
        FUZZ_REQUIRE(report.wanted == 7 && report.found <= 7 && report.unused <= s->count);
        if (status != CHEX_OK)
            continue;
        FUZZ_REQUIRE(report.found == 7 || (other_head && report.head_left && report.found >= 5));
        FUZZ_REQUIRE(!weights_fault(&graph, params, stats));
    }
}

/* Computes what the trainer, its logs and the writer of weights compute from a state. */
static void
require_calculable(const struct checkpoint_state *s)
{
    uint64_t position = s->batches * s->global_batch;
    double rate = schedule_rate(&s->schedule, s->step);

    FUZZ_REQUIRE((int64_t)s->step + 1 > 0 && (int64_t)s->micro_batches >= 0 &&
                 (double)s->step + 1 > (double)s->step - 1);
    FUZZ_REQUIRE(s->global_batch > 0 && position / s->global_batch == s->batches);
    FUZZ_REQUIRE(s->schedule.options.kind <= SCHEDULE_CONSTANT && s->optimizer < OPTIMIZER_COUNT);
    FUZZ_REQUIRE(isfinite(rate) && rate >= 0 && isfinite(s->loss_sum) && s->side > 0);
    FUZZ_REQUIRE(s->plan.good <= s->plan.applied && s->plan.applied <= s->step && s->best_step <= s->step);
}

/* Writes the state that was read, and reads it again. */
static void
require_state(void)
{
    float params[9] = {0}, stats[4] = {0};
    struct checkpoint_arrays arrays = {.params = params, .stats = stats};
    struct checkpoint_state *first = calloc(2, sizeof(*first)), *again = first + 1;
    struct chex_error err = {0};
    enum chex_status status;

    FUZZ_REQUIRE(first);
    status = checkpoint_read_state(fuzz_folder(), "step-000001", NULL, first, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        FUZZ_REQUIRE(memchr(first->model, '\0', sizeof(first->model)) &&
                     memchr(first->dataset_id, '\0', sizeof(first->dataset_id)) &&
                     memchr(first->settings, '\0', sizeof(first->settings)));
        require_calculable(first);
        FUZZ_REQUIRE(checkpoint_write_model(fuzz_folder(), AGAIN, &graph, first, &arrays, NULL, NULL, &err) == CHEX_OK);
        FUZZ_REQUIRE(checkpoint_read_state(fuzz_folder(), "again", NULL, again, &err) == CHEX_OK);
        FUZZ_REQUIRE(strcmp(first->model, again->model) == 0 && strcmp(first->settings, again->settings) == 0);
        FUZZ_REQUIRE(first->step == again->step && first->seed == again->seed && first->epoch == again->epoch &&
                     first->side == again->side && first->optimizer == again->optimizer);
        FUZZ_REQUIRE(first->loss_sum == again->loss_sum || first->loss_sum != first->loss_sum);
    }
    free(first);
}

static void
try_file(const uint8_t *data, size_t size)
{
    struct safetensors s;
    struct chex_error err = {0};
    enum chex_status status;

    fuzz_put(FILE_NAME, data, size);
    status = safetensors_open(fuzz_folder()->fd, FILE_NAME, &s, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        require_entries(&s);
        require_rewritten(&s);
        require_weights(&s);
    }
    safetensors_close(&s);
    require_state();
}

/* ---- latest ---------------------------------------------------------------------------------------------------- */

static void
try_lines(const uint8_t *data, size_t size)
{
    struct checkpoint_line line[CHECKPOINT_LINES];
    char name[CHECKPOINT_NAME];
    struct chex_error err = {0};
    size_t count, i;
    bool fallback, is;
    enum chex_status status;

    fuzz_put(CHECKPOINT_LATEST, data, size);
    status = checkpoint_read_lines(fuzz_folder(), line, CHECKPOINT_LINES, &count, &err);
    fuzz_require_error(status, &err);
    FUZZ_REQUIRE(count <= CHECKPOINT_LINES && (status != CHEX_OK || count > 0));
    for (i = 0; i < count; i++) {
        checkpoint_step_of(line[i].name, &is);
        FUZZ_REQUIRE(is && !strchr(line[i].name, '/') && strlen(line[i].model) <= 64 &&
                     strlen(line[i].optimizer) <= 64);
    }
    status = checkpoint_find(fuzz_folder(), name, &fallback, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK) {
        checkpoint_step_of(name, &is);
        FUZZ_REQUIRE(is && checkpoint_check(fuzz_folder(), name, &err) == CHEX_OK);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 5 && memcmp(data, "step-", 5) == 0)
        try_lines(data, size);
    else
        try_file(data, size);
    return 0;
}

/* Chooses any case of any field. */
static void
choose_case(uint64_t random, const struct state_field **field, struct state_case *out)
{
    struct checkpoint_state plain;
    uint32_t fields = 0, cases = 0;

    while (state_fields[fields].name)
        fields++;
    *field = &state_fields[fuzz_below(&random, fields)];
    plain = state_plain(*field);
    while (state_case(*field, &plain, cases, out))
        cases++;
    state_case(*field, &plain, fuzz_below(&random, cases), out);
}

/* Replaces a field of the state; returns 0 if there is no room or no state. */
static size_t
change_state(uint8_t *data, size_t size, size_t max_size, uint64_t random)
{
    const struct state_field *field;
    struct state_case chosen;
    uint64_t length = 0;
    json_t *top, *metadata;
    char *state = NULL, *head = NULL;
    size_t rest, out = 0;

    for (unsigned i = 0; size >= 8 && i < 8; i++)
        length |= (uint64_t)data[i] << (8 * i);
    if (size < 8 || length > size - 8)
        return 0;
    top = json_loadb((const char *)data + 8, length, 0, NULL);
    metadata = json_object_get(top, "__metadata__");
    choose_case(random, &field, &chosen);
    if (json_is_string(json_object_get(metadata, "state")))
        state = state_with(json_string_value(json_object_get(metadata, "state")), field->name, chosen.json);
    if (state && json_object_set_new(metadata, "state", json_string(state)) == 0)
        head = json_dumps(top, JSON_COMPACT | JSON_ENSURE_ASCII);
    rest = size - 8 - (size_t)length;
    if (head && strlen(head) + 8 + rest <= max_size) {
        memmove(data + 8 + strlen(head), data + 8 + length, rest);
        memcpy(data + 8, head, strlen(head));
        for (unsigned i = 0; i < 8; i++)
            data[i] = (uint8_t)((uint64_t)strlen(head) >> (8 * i));
        out = 8 + strlen(head) + rest;
    }
    free(head);
    free(state);
    json_decref(top);
    return out;
}

/* Corrects the length of the header; sometimes also makes the file end where the tensors end. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint64_t length, end = 0;
    size_t changed = seed % 3 == 0 ? change_state(data, size, max_size, seed) : 0;
    const char *name;
    json_t *top, *value;

    if (changed > 0)
        return changed;
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < 9 || memcmp(data, "step-", 5) == 0 || seed % 16 == 0)
        return size;
    for (length = size - 8; length > 0 && data[7 + length] != '}';)
        length--;
    for (unsigned i = 0; i < 8; i++)
        data[i] = (uint8_t)(length >> (8 * i));
    if (seed % 4 == 0)
        return size;
    top = json_loadb((const char *)data + 8, length, 0, NULL);
    json_object_foreach (top, name, value) {
        json_int_t last = json_integer_value(json_array_get(json_object_get(value, "data_offsets"), 1));

        if (last > 0 && (uint64_t)last > end)
            end = (uint64_t)last;
    }
    json_decref(top);
    if (!top || end > max_size || 8 + length + end > max_size)
        return size;
    if (8 + length + end > size)
        memset(data + size, 0x3f, (size_t)(8 + length + end - size));
    return (size_t)(8 + length + end);
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

static void
give_file(const char *name, const char *header, size_t bytes, fuzz_seed_fn *give, void *context)
{
    uint8_t file[1024] = {0};
    size_t length = strlen(header);

    file[0] = (uint8_t)length;
    file[1] = (uint8_t)(length >> 8);
    memcpy(file + 8, header, length);
    memset(file + 8 + length, 0x3e, bytes);
    give(name, file, 8 + length + bytes, context);
}

/* The files that our own writer makes of a run. */
static void
give_written(fuzz_seed_fn *give, void *context)
{
    const struct checkpoint_state state = state_plain(NULL);
    float params[9], stats[4] = {0, 0, 1, 1};
    struct checkpoint_arrays arrays = {.params = params, .stats = stats};
    char hex[DIGEST_HEX], text[400];
    struct buffer b = {0};

    for (int i = 0; i < 9; i++)
        params[i] = 0.125f * (float)i;
    FUZZ_REQUIRE(checkpoint_write_model(fuzz_folder(), AGAIN, &graph, &state, &arrays, NULL, hex, NULL) == CHEX_OK);
    FUZZ_REQUIRE(file_read(fuzz_folder()->fd, AGAIN, 1 << 20, &b, NULL) == CHEX_OK);
    give("written", b.data, b.size, context);
    give("cut", b.data, b.size - 3, context);
    fuzz_put("step-000002.safetensors", b.data, b.size);
    fuzz_put("step-000002.opt.safetensors", b.data, b.size);
    snprintf(text, sizeof(text), "step-000003 %s %s\nstep-000002 %s %s\n", hex, hex, hex, hex);
    give("latest", text, strlen(text), context);
    give("latest-one", text, strlen(text) / 2, context);
    buffer_release(&b);
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    give("nothing", "", 0, context);
    give_written(give, context);
    give_file("no-tensor", "{}", 0, give, context);
    give_file("spaces", "{\"a\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}    ", 8, give, context);
    give_file("types",
              "{\"a\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
              "\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[8,10]},"
              "\"c\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[10,18]},"
              "\"d\":{\"dtype\":\"BOOL\",\"shape\":[0],\"data_offsets\":[18,18]}}",
              18, give, context);
    give_file("hole",
              "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
              "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}",
              3, give, context);
    give_file("overflow", "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
              give, context);
    give_file("metadata", "{\"__metadata__\":{\"\\u001b\":\"x\",\"y\":\"\"}}", 0, give, context);
    give_file("name-of-control", "{\"\\u001b\":\"x\",\"y\":\"\"}", 0, give, context);
    give("pickle", "\x80\x02}q\x00.", 6, context);
    give("zip", "PK\3\4\x14\0\0\0\0\0", 10, context);
    give("long-line", "step-000001 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0 x\n", 80, context);
}
