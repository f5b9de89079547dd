/*
 * onnx.c - the ONNX file; see onnx.h
 *
 * protobuf-c packs the fields of a message in the order of their numbers, so the bytes are always the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "export/onnx_private.h"

#include "base/sha256.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw_data is little-endian"
#endif

#define MOST INT32_MAX /* bytes of a message: the limit of protobuf */

static enum chex_status
put_file(const struct folder *folder, const char *name, const struct buffer *b, char *hex, struct chex_error *err)
{
    struct digest *digest = digest_new();
    uint8_t hash[DIGEST_SIZE];
    enum chex_status status = digest ? safe_file_put(folder, name, b->data, b->size, err) : error_memory(err);

    if (status == CHEX_OK && hex) {
        digest_start(digest);
        digest_add(digest, b->data, b->size);
        digest_finish(digest, hash);
        digest_hex(hash, DIGEST_SIZE, hex);
    }
    digest_free(digest);
    return status;
}

static enum chex_status
pack(const Chex__ModelProto *model, const struct folder *folder, const char *name, char *hex, struct chex_error *err)
{
    struct buffer b = {0};
    size_t size = chex__model_proto__get_packed_size(model);
    enum chex_status status = size > MOST ? error_set(err, CHEX_ERR_LIMIT, "an ONNX file has at most 2 GB")
                                          : buffer_reserve(&b, size, err);

    if (status == CHEX_OK) {
        b.size = chex__model_proto__pack(model, b.data);
        status = put_file(folder, name, &b, hex, err);
    }
    buffer_release(&b);
    return status;
}

/* Set the metadata of the model; its entries belong to the builder. */
static void
add_metadata(struct onnx_builder *b, const struct onnx_model *m, Chex__ModelProto *model)
{
    Chex__StringStringEntryProto *entry = onnx_take(b, m->metadata_count * sizeof(*entry));
    Chex__StringStringEntryProto **list = onnx_take(b, m->metadata_count * sizeof(*list));
    size_t i;

    if (b->failed)
        return;
    for (i = 0; i < m->metadata_count; i++) {
        chex__string_string_entry_proto__init(&entry[i]);
        entry[i].key = onnx_name(m->metadata[i].key);
        entry[i].value = onnx_name(m->metadata[i].value);
        list[i] = &entry[i];
    }
    model->metadata_props = list;
    model->n_metadata_props = m->metadata_count;
}

enum chex_status
onnx_write(const struct onnx_model *m, const struct folder *folder, const char *name, char *hex, struct chex_error *err)
{
    struct onnx_builder b = {.graph = CHEX__GRAPH_PROTO__INIT};
    Chex__ModelProto model = CHEX__MODEL_PROTO__INIT;
    Chex__OperatorSetIdProto opset = CHEX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    enum chex_status status;

    opset.domain = onnx_name("");
    opset.has_version = true;
    opset.version = ONNX_OPSET;
    model.has_ir_version = true;
    model.ir_version = ONNX_IR;
    model.producer_name = onnx_name("chex-tools");
    model.producer_version = onnx_name(chex_version());
    model.doc_string = onnx_name(m->description);
    model.opset_import = opsets;
    model.n_opset_import = 1;
    model.graph = &b.graph;
    b.graph.name = onnx_name(m->graph->model);
    status = onnx_build(&b, m, err);
    add_metadata(&b, m, &model);
    if (status == CHEX_OK)
        status = b.failed ? error_memory(err) : pack(&model, folder, name, hex, err);
    onnx_builder_release(&b);
    return status;
}
