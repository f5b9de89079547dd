/*
 * torch_file.c - fuzz target: files of torch.save()
 *
 * The first byte says what the others are: a whole file; or a pickle, which the target puts into a zip with correct
 * checksums, next to two storages; or a pickle between those of the format before PyTorch 1.6.  So a fuzzer need not
 * guess checksums.  Either the reader refuses the file, or each tensor is inside of the file and is found by its name;
 * tensors that fit a graph are finite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "checkpoint/torch_file.h"
#include "checkpoint/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FILE_NAME "weights.pth"
#define STORED    64 /* bytes of each of the two storages */
#define VALUES    256

enum { WHOLE, IN_ZIP, OLD, FORMS };

static struct graph_tensor params_of_graph[] = {
    {"conv.weight", GRAPH_WEIGHT, 4, {2, 2, 1, 2}, 0, 8},
    {"classifier.bias", GRAPH_BIAS, 1, {3}, 8, 3},
};
static const struct graph graph = {
    .model = "small", .param = params_of_graph, .param_count = 2, .param_floats = 11, .stat_floats = 1};

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* A zip that is being written: members, then their list. */
struct zip {
    struct buffer file, list;
    unsigned count;
};

static void
put(struct buffer *b, uint64_t value, unsigned bytes)
{
    uint8_t little[8];
    unsigned i;

    for (i = 0; i < bytes; i++)
        little[i] = (uint8_t)(value >> (8 * i));
    FUZZ_REQUIRE(buffer_append(b, little, bytes, NULL) == CHEX_OK);
}

static void
put_bytes(struct buffer *b, const void *data, size_t size)
{
    FUZZ_REQUIRE(buffer_append(b, data, size, NULL) == CHEX_OK);
}

/* What a member's header and its entry in the list have in common. */
static void
put_common(struct buffer *b, const char *name, const void *data, size_t size)
{
    put(b, 20, 2); /* version */
    put(b, 0, 2);  /* flags */
    put(b, 0, 2);  /* stored */
    put(b, 0, 4);  /* time */
    put(b, crc32(0, data, (uInt)size), 4);
    put(b, size, 4);
    put(b, size, 4);
    put(b, strlen(name), 2);
    put(b, 0, 2);
}

/* Add the member whose header is at this offset to the list. */
static void
list_member(struct zip *z, const char *name, const void *data, size_t size, size_t at)
{
    put_bytes(&z->list, "PK\1\2", 4);
    put(&z->list, 20, 2);
    put_common(&z->list, name, data, size);
    put(&z->list, 0, 2 + 2 + 2); /* comment, disk, attributes */
    put(&z->list, 0, 4);
    put(&z->list, at, 4);
    put_bytes(&z->list, name, strlen(name));
    z->count++;
}

static void
add_member(struct zip *z, const char *name, const void *data, size_t size)
{
    list_member(z, name, data, size, z->file.size);
    put_bytes(&z->file, "PK\3\4", 4);
    put_common(&z->file, name, data, size);
    put_bytes(&z->file, name, strlen(name));
    put_bytes(&z->file, data, size);
}

static void
end_zip(struct zip *z)
{
    size_t at = z->file.size;

    put_bytes(&z->file, z->list.data, z->list.size);
    put_bytes(&z->file, "PK\5\6", 4);
    put(&z->file, 0, 4);
    put(&z->file, z->count, 2);
    put(&z->file, z->count, 2);
    put(&z->file, z->list.size, 4);
    put(&z->file, at, 4);
    put(&z->file, 0, 2);
    buffer_release(&z->list);
}

static struct buffer
file_of_zip(const uint8_t *pickle, size_t size)
{
    struct zip z = {.count = 0};
    uint8_t storage[STORED] = {0};

    add_member(&z, "a/data.pkl", pickle, size);
    add_member(&z, "a/byteorder", "little", 6);
    add_member(&z, "a/data/0", storage, sizeof(storage));
    add_member(&z, "a/data/1", storage, sizeof(storage));
    end_zip(&z);
    return z.file;
}

/* Two members of the same bytes, which together are larger than the file. */
static struct buffer
file_of_overlap(const uint8_t *pickle, size_t size)
{
    static const uint8_t storage[4096];
    struct zip z = {.count = 0};
    size_t at;

    add_member(&z, "a/data.pkl", pickle, size);
    at = z.file.size;
    add_member(&z, "a/data/0", storage, sizeof(storage));
    list_member(&z, "a/data/1", storage, sizeof(storage), at);
    end_zip(&z);
    return z.file;
}

#define MAGIC "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."

/* The pickle, the list of the storage "0", and its 16 floats. */
static struct buffer
file_before_1_6(const uint8_t *pickle, size_t size)
{
    static const char machine[] = "\x80\2}X\x0d\0\0\0little_endian\x88s.", keys[] = "\x80\2]X\1\0\0\0"
                                                                                    "0a.";
    uint8_t storage[STORED] = {0};
    struct buffer b = {0};

    put_bytes(&b, MAGIC "\x80\2M\xe9\3.", sizeof(MAGIC "\x80\2M\xe9\3.") - 1);
    put_bytes(&b, machine, sizeof(machine) - 1);
    put_bytes(&b, pickle, size);
    put_bytes(&b, keys, sizeof(keys) - 1);
    put(&b, STORED / 4, 8);
    put_bytes(&b, storage, sizeof(storage));
    return b;
}

/* ---- what must hold ---------------------------------------------------------------------------------------------- */

static void
require_tensors(const struct safetensors *s)
{
    float value[VALUES];
    struct chex_error err = {0};
    size_t i, k;

    FUZZ_REQUIRE(s->count > 0);
    for (i = 0; i < s->count; i++) {
        const struct tensor_entry *e = &s->entry[i];
        uint64_t last = 0;

        FUZZ_REQUIRE(i == 0 || strcmp(s->entry[i - 1].name, e->name) < 0);
        FUZZ_REQUIRE(safetensors_find(s, e->name) == e && e->rank <= SAFETENSORS_RANK);
        for (k = 0; e->count > 0 && k < e->rank; k++)
            last += (e->shape[k] - 1) * e->stride[k];
        FUZZ_REQUIRE(e->offset <= s->size);
        FUZZ_REQUIRE(e->count == 0 || last < (s->size - e->offset) / dtype_size(e->type));
        if (e->count <= VALUES && e->type <= DTYPE_BF16)
            FUZZ_REQUIRE(safetensors_read_floats(s, e, value, &err) == CHEX_OK);
    }
}

static void
try_file(const void *data, size_t size)
{
    float params[11], stats[1];
    struct weights_report report;
    struct safetensors s;
    struct chex_error err = {0};
    enum chex_status status;

    fuzz_put(FILE_NAME, data, size);
    status = weights_open(fuzz_folder()->fd, FILE_NAME, &s, &err);
    fuzz_require_error(status, &err);
    if (status == CHEX_OK && s.count > 0) {
        if (size > 2 && (memcmp(data, "PK", 2) == 0 || *(const uint8_t *)data == 0x80))
            require_tensors(&s);
        status = weights_read(&graph, &s, true, params, stats, &report, &err);
        fuzz_require_error(status, &err);
        FUZZ_REQUIRE(status != CHEX_OK || !weights_fault(&graph, params, stats));
    }
    safetensors_close(&s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer b = {0};
    unsigned form = size > 0 ? data[0] % FORMS : WHOLE;

    if (size == 0)
        return 0;
    if (form == WHOLE) {
        try_file(data + 1, size - 1);
        return 0;
    }
    b = form == IN_ZIP ? file_of_zip(data + 1, size - 1) : file_before_1_6(data + 1, size - 1);
    try_file(b.data, b.size);
    buffer_release(&b);
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint8_t form = size > 0 ? data[0] : IN_ZIP;

    size = LLVMFuzzerMutate(data, size, max_size);
    if (size > 0 && seed % 8 != 0)
        data[0] = form;
    return size;
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

/* ("storage", torch.FloatStorage, "0", "cpu", 16) as a persistent id, and the tensor of it. */
#define STORAGE(key) "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" key "X\3\0\0\0cpuK\x10tQ"
#define REBUILD      "ctorch._utils\n_rebuild_tensor_v2\n"
#define HOOKS \
    "\x89"    \
    "ccollections\nOrderedDict\n)RtR"
#define TENSOR(shape, step) REBUILD "(" STORAGE("0") "K\0" shape step HOOKS
#define CONV                "X\x0b\0\0\0conv.weight" TENSOR("(K\2K\2K\1K\2t", "(K\4K\1K\4K\2t")
#define BIAS                "X\x0f\0\0\0classifier.bias" TENSOR("K\3\x85", "K\1\x85")

#define GIVE(name, form, text)                         \
    do {                                               \
        static const char bytes[] = form text;         \
        give(name, bytes, sizeof(bytes) - 1, context); \
    } while (0)

/* Put the byte for a whole file before it. */
static void
make_whole(struct buffer *b)
{
    put(b, 0, 1);
    memmove(b->data + 1, b->data, b->size - 1);
    b->data[0] = WHOLE;
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const char plain[] = "\x80\2}(" CONV BIAS "u.";
    struct buffer b;

    GIVE("in-zip", "\1", "\x80\2}(" CONV BIAS "u.");
    GIVE("old", "\2", "\x80\2}(" CONV BIAS "u.");
    GIVE("ordered", "\1",
         "\x80\2"
         "ccollections\nOrderedDict\n)R(" CONV BIAS "u}X\x09\0\0\0_metadata}sb.");
    GIVE("nested", "\1", "\x80\2}(X\5\0\0\0epochK\3X\x0a\0\0\0state_dict}(" CONV BIAS "uu.");
    GIVE("memo", "\1",
         "\x80\4\x95\0\0\0\0\0\0\0\0}\x94(" CONV "q\1" BIAS "r\2\0\0\0h\1j\2\0\0\0"
         "00u.");
    GIVE("second-storage", "\1", "\x80\2}X\1\0\0\0a" REBUILD "(" STORAGE("1") "K\3K\2\x85K\6\x85" HOOKS "s.");
    GIVE("call", "\1",
         "\x80\2"
         "cposix\nsystem\nX\4\0\0\0true\x85R.");
    GIVE("stack-global", "\1",
         "\x80\4\x8c\x08"
         "builtins\x8c\4eval\x93\x8c\1"
         "1\x85R.");
    GIVE("pairs", "\1",
         "\x80\2"
         "ccollections\nOrderedDict\n](](" CONV "e](" BIAS "ee\x85R.");
    GIVE("pairs-again", "\1",
         "\x80\2"
         "ccollections\nOrderedDict\nq\0X\1\0\0\0aN\x86q\1](h\1h\1h\1h\1e\x85q\2h\0h\2Rh\0h\2Rh\0h\2R.");
    GIVE("tensor-again", "\1", "\x80\2}(X\1\0\0\0aq\0" TENSOR("K\3\x85", "K\1\x85") "q\1h\0h\1h\0h\1u.");
    GIVE("zero-in-name", "\1",
         "\x80\2"
         "ctorch\nFloat\0Storage\n.");
    GIVE("itself", "\1", "\x80\2]q\0h\0a.");
    GIVE("huge-shape", "\1", "\x80\2}X\1\0\0\0a" TENSOR("J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", "K\0K\0\x86") "s.");
    GIVE("huge-memo", "\1", "\x80\2Nr\xff\xff\xff\xff.");
    GIVE("huge-text", "\1",
         "\x80\2X\xff\xff\xff\xff"
         "a.");
    GIVE("nothing", "\1", "");
    GIVE("magic", "", "\0" MAGIC);
    GIVE("zip", "", "\0PK\3\4\x14\0\0\0\0\0");
    b = file_of_zip((const uint8_t *)plain, sizeof(plain) - 1);
    make_whole(&b);
    give("whole-zip", b.data, b.size, context);
    give("cut-zip", b.data, b.size - 10, context);
    buffer_release(&b);
    b = file_of_overlap((const uint8_t *)plain, sizeof(plain) - 1);
    make_whole(&b);
    give("overlap", b.data, b.size, context);
    buffer_release(&b);
}
