/*
 * torch_file.c - see torch_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/torch_file.h"

#include "base/ascii.h"
#include "checkpoint/pickle.h"
#include "checkpoint/zip_members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICKLE_NAME_IN_ZIP "/data.pkl"
#define NAME               512 /* of a member of the zip */
#define PROTOCOL           1001
#define TAR_MAGIC          257
#define HEAD               262

/* The first pickle of the format before 1.6: the integer 0x1950a86a20f9469cfc6c. */
static const uint8_t magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

struct torch_file {
    struct safetensors *out;
    struct pickle pickle;
    struct zip_members zip; /* of the new format */
    char prefix[NAME / 2];
    struct storage_place {
        const char *key;
        uint64_t offset, size; /* of the bytes in the file */
    } * place;                 /* [places] storages of the file, sorted by key */
    size_t places;
    struct chex_error *err;
};

static const char *
show(const char *text, char out[100])
{
    return ascii_escape(text, strlen(text), out, 100);
}

/* ---- storages ---------------------------------------------------------------------------------------------------- */

static int
by_key(const void *a, const void *b)
{
    return strcmp(((const struct storage_place *)a)->key, ((const struct storage_place *)b)->key);
}

static struct storage_place *
find_place(struct torch_file *f, const char *key)
{
    struct storage_place wanted = {.key = key};

    return f->places > 0 ? bsearch(&wanted, f->place, f->places, sizeof(*f->place), by_key) : NULL;
}

/* Set *offset to that of the storage in the file; its size and, in a zip, its checksum are compared. */
static enum chex_status
locate(struct torch_file *f, const struct pickle_value *storage, uint64_t *offset)
{
    struct storage_place *place = find_place(f, storage->storage.key);
    enum chex_status status = CHEX_OK;
    uint64_t bytes;
    char shown[100];

    if (!place)
        return error_set(f->err, CHEX_ERR_DAMAGED, "the storage '%s' is missing", show(storage->storage.key, shown));
    if (__builtin_mul_overflow(storage->storage.count, (uint64_t)dtype_size(storage->storage.type), &bytes) ||
        bytes != place->size)
        return error_set(f->err, CHEX_ERR_DAMAGED, "the storage '%s' has another size than its pickle says",
                         show(storage->storage.key, shown));
    if (place->offset == UINT64_MAX) {
        char name[NAME];

        snprintf(name, sizeof(name), "%s/data/%s", f->prefix, place->key);
        status = zip_member_check(&f->zip, zip_members_find(&f->zip, name), &place->offset, f->err);
    }
    *offset = place->offset;
    return status;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* Returns whether the values follow each other row by row. */
static bool
is_contiguous(const struct pickle_tensor *t)
{
    uint64_t step = 1;
    unsigned i;

    for (i = t->rank; t->count > 0 && i-- > 0;) {
        if (t->shape[i] == 1)
            continue;
        if (t->stride[i] != step)
            return false;
        step *= t->shape[i];
    }
    return true;
}

static enum chex_status
add_tensor(struct torch_file *f, const char *name, const struct pickle_tensor *t)
{
    const struct pickle_value *storage = &f->pickle.value[t->storage];
    struct safetensors *s = f->out;
    struct tensor_entry *e = &s->entry[s->count];
    uint64_t offset;
    enum chex_status status = locate(f, storage, &offset);

    if (status != CHEX_OK)
        return status;
    *e = (struct tensor_entry){.type = storage->storage.type, .rank = t->rank, .count = t->count};
    memcpy(e->shape, t->shape, sizeof(e->shape));
    e->offset = offset + t->offset * dtype_size(e->type);
    e->strided = !is_contiguous(t);
    memcpy(e->stride, t->stride, sizeof(e->stride));
    e->name = arena_copy(&s->strings, name, strlen(name));
    if (!e->name)
        return error_memory(f->err);
    s->count++;
    return CHEX_OK;
}

/* Returns the key of the pair at element i if its value is a tensor, else NULL. */
static const struct pickle_value *
tensor_key(const struct pickle *p, const struct pickle_value *dict, size_t i)
{
    const struct pickle_value *key = &p->value[dict->items.value[i]], *value = &p->value[dict->items.value[i + 1]];

    return key->kind == PICKLE_TEXT && value->kind == PICKLE_TENSOR ? key : NULL;
}

/* Returns the dictionary with the tensors: this one, or one of its values under a usual name. */
static const struct pickle_value *
find_tensors(const struct pickle *p, const struct pickle_value *top)
{
    static const char *const names[] = {"state_dict", "model_state_dict", "model"};
    const struct pickle_value *inner = NULL;
    unsigned depth;
    size_t i;

    for (depth = 0; depth < 3; depth++) {
        for (i = 0, inner = NULL; !inner && i < sizeof(names) / sizeof(names[0]); i++)
            inner = pickle_find(p, top, names[i]);
        if (!inner || inner->kind != PICKLE_DICT)
            break;
        top = inner;
    }
    return top;
}

/* Count the tensors before memory is allocated for them: a pickle may use one key and one tensor many times. */
static enum chex_status
count_tensors(struct torch_file *f, const struct pickle_value *dict, size_t *count)
{
    size_t i;

    *count = 0;
    for (i = 0; i + 1 < dict->items.count; i += 2) {
        const struct pickle_value *key = tensor_key(&f->pickle, dict, i);

        if (key && key->text.size > TORCH_NAME_BYTES)
            return error_set(f->err, CHEX_ERR_LIMIT, "the name of a tensor has more than %u bytes", TORCH_NAME_BYTES);
        *count += key ? 1 : 0;
    }
    if (*count > TORCH_TENSORS)
        return error_set(f->err, CHEX_ERR_LIMIT, "it has more than %u tensors", TORCH_TENSORS);
    return CHEX_OK;
}

static enum chex_status
add_tensors(struct torch_file *f, uint32_t number)
{
    const struct pickle *p = &f->pickle;
    const struct pickle_value *dict = find_tensors(p, &p->value[number]);
    enum chex_status status;
    size_t count, i;

    if (dict->kind != PICKLE_DICT)
        return error_set(f->err, CHEX_ERR_UNSUPPORTED, "it holds no dictionary of tensors: save model.state_dict()");
    status = count_tensors(f, dict, &count);
    if (status != CHEX_OK)
        return status;
    f->out->entry = calloc(count + 1, sizeof(*f->out->entry));
    if (!f->out->entry)
        return error_memory(f->err);
    for (i = 0; status == CHEX_OK && i + 1 < dict->items.count; i += 2) {
        const struct pickle_value *key = tensor_key(p, dict, i);

        if (key)
            status = add_tensor(f, key->text.data, p->value[dict->items.value[i + 1]].tensor);
    }
    if (status == CHEX_OK && f->out->count == 0)
        status = error_set(f->err, CHEX_ERR_UNSUPPORTED, "it holds no tensors: save model.state_dict()");
    return status == CHEX_OK ? safetensors_index(f->out, f->err) : status;
}

/* ---- the zip ----------------------------------------------------------------------------------------------------- */

/* Read a small member whole. */
static enum chex_status
read_member(struct torch_file *f, const struct zip_member *member, uint64_t most, struct buffer *b)
{
    uint64_t offset;
    size_t got;
    enum chex_status status;
    char shown[100];

    if (member->size > most)
        return error_set(f->err, CHEX_ERR_LIMIT, "member '%s' of the zip has more than %" PRIu64 " bytes",
                         show(member->name, shown), most);
    status = zip_member_check(&f->zip, member, &offset, f->err);
    if (status == CHEX_OK)
        status = buffer_reserve(b, (size_t)member->size + 1, f->err);
    if (status == CHEX_OK)
        status = file_pread(f->out->fd, offset, b->data, (size_t)member->size, &got, f->err);
    if (status == CHEX_OK && got < member->size)
        status = error_set(f->err, CHEX_ERR_TRUNCATED, "the file became shorter");
    b->size = (size_t)member->size;
    return status;
}

/* Find the pickle; what precedes its name is the prefix of all members. */
static const struct zip_member *
find_pickle(struct torch_file *f)
{
    size_t i;

    for (i = 0; i < f->zip.count; i++) {
        const char *name = f->zip.member[i].name, *slash = strchr(name, '/');

        if (slash && strcmp(slash, PICKLE_NAME_IN_ZIP) == 0 && (size_t)(slash - name) < sizeof(f->prefix)) {
            memcpy(f->prefix, name, (size_t)(slash - name));
            f->prefix[slash - name] = '\0';
            return &f->zip.member[i];
        }
    }
    return NULL;
}

/* List the members PREFIX/data/KEY; they are sorted already.  Their offsets follow when they are needed. */
static enum chex_status
list_storages(struct torch_file *f)
{
    char start[NAME];
    size_t length = (size_t)snprintf(start, sizeof(start), "%s/data/", f->prefix), i;

    f->place = calloc(f->zip.count, sizeof(*f->place));
    if (!f->place)
        return error_memory(f->err);
    for (i = 0; i < f->zip.count; i++) {
        const struct zip_member *m = &f->zip.member[i];

        if (strncmp(m->name, start, length) == 0 && strlen(m->name) < sizeof(start))
            f->place[f->places++] = (struct storage_place){m->name + length, UINT64_MAX, m->size};
    }
    return CHEX_OK;
}

static enum chex_status
check_order(struct torch_file *f)
{
    char name[NAME];
    const struct zip_member *member;
    struct buffer text = {0};
    enum chex_status status = CHEX_OK;

    snprintf(name, sizeof(name), "%s/byteorder", f->prefix);
    member = zip_members_find(&f->zip, name);
    if (member)
        status = read_member(f, member, 64, &text);
    if (status == CHEX_OK && member && (text.size != 6 || memcmp(text.data, "little", 6) != 0))
        status = error_set(f->err, CHEX_ERR_UNSUPPORTED, "its values are not little-endian");
    buffer_release(&text);
    return status;
}

static enum chex_status
read_zip(struct torch_file *f)
{
    const struct zip_member *pickle;
    struct buffer text = {0};
    uint32_t top = 0;
    size_t used;
    enum chex_status status = zip_members_read(f->out->fd, f->out->size, &f->zip, f->err);

    if (status != CHEX_OK)
        return status;
    pickle = find_pickle(f);
    if (!pickle)
        return error_set(f->err, CHEX_ERR_NOT_IMAGE, "a zip archive, but none of torch.save(): it has no data.pkl");
    status = check_order(f);
    if (status == CHEX_OK)
        status = list_storages(f);
    if (status == CHEX_OK)
        status = read_member(f, pickle, PICKLE_SIZE, &text);
    if (status == CHEX_OK)
        status = pickle_run(&f->pickle, text.data, text.size, &used, &top, f->err);
    buffer_release(&text);
    return status == CHEX_OK ? add_tensors(f, top) : status;
}

/* ---- before 1.6 -------------------------------------------------------------------------------------------------- */

/* List the storages of the pickle, sorted by key; their offsets follow. */
static enum chex_status
list_known(struct torch_file *f)
{
    const struct pickle *p = &f->pickle;
    size_t kept = 0, i;

    f->place = calloc(p->count + 1, sizeof(*f->place));
    if (!f->place)
        return error_memory(f->err);
    for (i = 0; i < p->count; i++)
        if (p->value[i].kind == PICKLE_STORAGE)
            f->place[f->places++] = (struct storage_place){.key = p->value[i].storage.key,
                                                           .size = dtype_size(p->value[i].storage.type)};
    if (f->places > 0)
        qsort(f->place, f->places, sizeof(*f->place), by_key);
    for (i = 0; i < f->places; i++) /* tensors may share a storage */
        if (kept == 0 || by_key(&f->place[kept - 1], &f->place[i]) != 0)
            f->place[kept++] = f->place[i];
    f->places = kept;
    return CHEX_OK;
}

/* Read the number of values of a storage, which are after it. */
static enum chex_status
place_storage(struct torch_file *f, const struct pickle_value *key, uint64_t *at)
{
    struct storage_place *place = key->kind == PICKLE_TEXT ? find_place(f, key->text.data) : NULL;
    uint64_t count, bytes;
    size_t got;
    enum chex_status status;

    if (!place || place->offset != 0)
        return error_set(f->err, CHEX_ERR_DAMAGED, "its list of storages does not fit its tensors");
    status = file_pread(f->out->fd, *at, &count, sizeof(count), &got, f->err);
    if (status != CHEX_OK)
        return status;
    *at += sizeof(count);
    if (got < sizeof(count) || __builtin_mul_overflow(count, place->size, &bytes) || bytes > f->out->size - *at)
        return error_set(f->err, CHEX_ERR_TRUNCATED, "the file ends within its storages");
    place->offset = *at;
    place->size = bytes;
    *at += bytes;
    return CHEX_OK;
}

/* The keys are in the order of their storages, which begin at this offset. */
static enum chex_status
list_old_storages(struct torch_file *f, const struct pickle_value *keys, uint64_t at)
{
    enum chex_status status = list_known(f);
    size_t i;

    if (status == CHEX_OK && (keys->kind != PICKLE_LIST || keys->items.count != f->places))
        return error_set(f->err, CHEX_ERR_DAMAGED, "its list of storages does not fit its tensors");
    for (i = 0; status == CHEX_OK && i < keys->items.count; i++)
        status = place_storage(f, &f->pickle.value[keys->items.value[i]], &at);
    return status;
}

/* Check the three pickles before the object. */
static enum chex_status
check_old_head(struct torch_file *f, const uint32_t top[3])
{
    const struct pickle_value *first = &f->pickle.value[top[0]], *protocol = &f->pickle.value[top[1]],
                              *order = pickle_find(&f->pickle, &f->pickle.value[top[2]], "little_endian");

    if (first->kind != PICKLE_TEXT || first->text.size != sizeof(magic) ||
        memcmp(first->text.data, magic, sizeof(magic)) != 0 || protocol->kind != PICKLE_NUMBER ||
        protocol->number != PROTOCOL)
        return error_set(f->err, CHEX_ERR_NOT_IMAGE, "a Python pickle, but none of torch.save()");
    if (!order || order->kind != PICKLE_NUMBER || order->number != 1)
        return error_set(f->err, CHEX_ERR_UNSUPPORTED, "its values are not little-endian");
    return CHEX_OK;
}

static enum chex_status
read_old(struct torch_file *f)
{
    size_t size = f->out->size < PICKLE_SIZE ? (size_t)f->out->size : PICKLE_SIZE, at = 0, used;
    struct buffer text = {0};
    uint32_t top[5];
    unsigned i;
    enum chex_status status = buffer_reserve(&text, size + 1, f->err);

    if (status == CHEX_OK)
        status = file_pread(f->out->fd, 0, text.data, size, &size, f->err);
    for (i = 0; status == CHEX_OK && i < 5; i++, at += used) {
        status = pickle_run(&f->pickle, text.data + at, size - at, &used, &top[i], f->err);
        if (status == CHEX_OK && i == 2)
            status = check_old_head(f, top);
    }
    buffer_release(&text);
    if (status == CHEX_OK)
        status = list_old_storages(f, &f->pickle.value[top[4]], at);
    return status == CHEX_OK ? add_tensors(f, top[3]) : status;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static enum chex_status
read_file(struct safetensors *out, enum chex_status (*read)(struct torch_file *), struct chex_error *err)
{
    struct torch_file f = {.out = out, .err = err};
    enum chex_status status = read(&f);

    pickle_release(&f.pickle);
    zip_members_release(&f.zip);
    free(f.place);
    return status;
}

enum chex_status
weights_open(int folder_fd, const char *path, struct safetensors *out, struct chex_error *err)
{
    uint8_t head[HEAD];
    size_t got = 0;
    enum chex_status status;

    *out = (struct safetensors){.fd = -1};
    status = file_open_input(folder_fd, path, &out->fd, &out->size, err);
    if (status != CHEX_OK) {
        out->fd = -1;
        return status;
    }
    status = file_pread(out->fd, 0, head, sizeof(head), &got, err);
    if (status != CHEX_OK)
        return status;
    if (got >= 4 && memcmp(head, "PK\3\4", 4) == 0)
        return read_file(out, read_zip, err);
    /* The length of a safetensors header may begin with these bytes, too, but a brace follows it. */
    if (got >= 9 && head[0] == 0x80 && head[1] <= 5 && head[8] != '{')
        return read_file(out, read_old, err);
    if (got == HEAD && memcmp(head + TAR_MAGIC, "ustar", 5) == 0)
        return error_set(err, CHEX_ERR_NOT_IMAGE,
                         "the tar format of PyTorch before 0.1.10; this converts it: python3 -c \"import torch; "
                         "torch.save(torch.load('OLD.pth', map_location='cpu', weights_only=False), 'NEW.pth')\"");
    safetensors_close(out);
    return safetensors_open(folder_fd, path, out, err);
}
