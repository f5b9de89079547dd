/*
 * zip_members.c - see zip_members.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/zip_members.h"

#include "base/ascii.h"
#include "base/cpu.h"

#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

#define END          22 /* bytes of the record that ends a zip, without its comment */
#define COMMENT_MOST 65535
#define LOCATOR      20 /* of zip64: says where END64 is; just before the end record */
#define END64        56
#define ENTRY        46         /* a member in the list, without name, extra fields and comment */
#define HEADER       30         /* of a member, without name and extra fields */
#define IN_ZIP64     UINT32_MAX /* the size or offset is in an extra field */
#define ZIP64_FIELD  1

static uint64_t
get(const uint8_t *p, size_t bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0)
        value = value << 8 | p[bytes];
    return value;
}

static enum chex_status
bad_list(const char *why, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_DAMAGED, "the list of the zip is damaged: %s", why);
}

static enum chex_status
read_exactly(int fd, uint64_t offset, void *data, size_t size, struct chex_error *err)
{
    size_t got;
    enum chex_status status = file_pread(fd, offset, data, size, &got, err);

    return status == CHEX_OK && got < size ? error_set(err, CHEX_ERR_TRUNCATED, "the file became shorter") : status;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* Where the list is. */
struct zip_list {
    uint64_t offset, size, count;
    uint64_t end; /* offset of the records after it */
};

/* Read the records of zip64, if there are any: `end` is the offset of the end record. */
static enum chex_status
read_end64(int fd, uint64_t end, struct zip_list *list, struct chex_error *err)
{
    uint8_t locator[LOCATOR], record[END64];
    uint64_t at;
    enum chex_status status;

    if (end < LOCATOR)
        return CHEX_OK;
    status = read_exactly(fd, end - LOCATOR, locator, LOCATOR, err);
    if (status != CHEX_OK || memcmp(locator, "PK\6\7", 4) != 0)
        return status;
    at = get(locator + 8, 8);
    if (at > end - LOCATOR || end - LOCATOR - at < END64)
        return bad_list("its zip64 record is outside of the file", err);
    status = read_exactly(fd, at, record, END64, err);
    if (status != CHEX_OK)
        return status;
    if (memcmp(record, "PK\6\6", 4) != 0)
        return bad_list("it has no zip64 record", err);
    *list = (struct zip_list){
        .count = get(record + 32, 8), .size = get(record + 40, 8), .offset = get(record + 48, 8), .end = at};
    return CHEX_OK;
}

static enum chex_status
find_list(int fd, uint64_t size, struct zip_list *list, struct chex_error *err)
{
    size_t look = size < END + COMMENT_MOST ? (size_t)size : END + COMMENT_MOST, at;
    uint8_t *tail = malloc(look + 1);
    enum chex_status status = tail ? read_exactly(fd, size - look, tail, look, err) : error_memory(err);
    bool found = false;

    for (at = look < END ? 0 : look - END + 1; status == CHEX_OK && !found && at > 0;) {
        at--;
        found = memcmp(tail + at, "PK\5\6", 4) == 0 && at + END + get(tail + at + 20, 2) == look;
    }
    if (status == CHEX_OK && !found)
        status = error_set(err, CHEX_ERR_TRUNCATED, "the zip has no list at its end: an incomplete download?");
    if (status == CHEX_OK) {
        *list = (struct zip_list){.count = get(tail + at + 10, 2),
                                  .size = get(tail + at + 12, 4),
                                  .offset = get(tail + at + 16, 4),
                                  .end = size - look + at};
        status = read_end64(fd, list->end, list, err);
    }
    free(tail);
    return status;
}

/* Read sizes and offset from the extra field of zip64, in this order; only those that the entry lacks are there. */
static bool
read_zip64(const uint8_t *extra, size_t size, uint64_t *whole, uint64_t *packed, uint64_t *header)
{
    uint64_t *const value[] = {whole, packed, header};
    size_t at = 0, i;

    while (size >= 4 && get(extra, 2) != ZIP64_FIELD) {
        size_t skip = 4 + get(extra + 2, 2);

        if (skip > size)
            return false;
        extra += skip;
        size -= skip;
    }
    if (size < 4 || get(extra + 2, 2) > size - 4)
        return false;
    size = get(extra + 2, 2);
    for (i = 0; i < 3; i++) {
        if (*value[i] != IN_ZIP64)
            continue;
        if (at + 8 > size)
            return false;
        *value[i] = get(extra + 4 + at, 8);
        at += 8;
    }
    return true;
}

/* Read the entry at *at of the list. */
static enum chex_status
read_entry(struct zip_members *z, const uint8_t *text, size_t size, size_t *at, struct chex_error *err)
{
    const uint8_t *e = text + *at;
    struct zip_member *m = &z->member[z->count];
    size_t name, extra, bytes;
    uint64_t packed;

    if (size - *at < ENTRY || memcmp(e, "PK\1\2", 4) != 0)
        return bad_list("an entry without its signature", err);
    name = get(e + 28, 2);
    extra = get(e + 30, 2);
    bytes = ENTRY + name + extra + get(e + 32, 2);
    if (bytes > size - *at)
        return bad_list("an entry is longer than the list", err);
    packed = get(e + 20, 4);
    *m = (struct zip_member){.size = get(e + 24, 4), .header = get(e + 42, 4), .crc = (uint32_t)get(e + 16, 4)};
    if ((m->size == IN_ZIP64 || packed == IN_ZIP64 || m->header == IN_ZIP64) &&
        !read_zip64(e + ENTRY + name, extra, &m->size, &packed, &m->header))
        return bad_list("an entry lacks its zip64 field", err);
    m->stored = get(e + 10, 2) == 0 && (get(e + 8, 2) & 1) == 0 && packed == m->size;
    if (memchr(e + ENTRY, '\0', name))
        return bad_list("a name with a zero byte", err);
    m->name = arena_copy(&z->strings, (const char *)e + ENTRY, name);
    if (!m->name)
        return error_memory(err);
    z->count++;
    *at += bytes;
    return CHEX_OK;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct zip_member *)a)->name, ((const struct zip_member *)b)->name);
}

static enum chex_status
read_entries(struct zip_members *z, const struct zip_list *list, const uint8_t *text, struct chex_error *err)
{
    uint64_t left = z->size; /* bytes of the file: members that overlap would be read more than once */
    enum chex_status status = CHEX_OK;
    size_t at = 0, i;

    if (list->count > list->size / ENTRY)
        return bad_list("it has more entries than bytes", err);
    z->member = calloc(list->count + 1, sizeof(*z->member));
    if (!z->member)
        return error_memory(err);
    while (status == CHEX_OK && z->count < list->count)
        status = read_entry(z, text, list->size, &at, err);
    if (status != CHEX_OK)
        return status;
    for (i = 0; i < z->count; i++) {
        if (z->member[i].stored && z->member[i].size > left)
            return bad_list("its members together are larger than the file", err);
        left -= z->member[i].stored ? z->member[i].size : 0;
    }
    qsort(z->member, z->count, sizeof(*z->member), by_name);
    for (i = 1; i < z->count; i++)
        if (by_name(&z->member[i - 1], &z->member[i]) == 0)
            return bad_list("a name occurs twice", err);
    return CHEX_OK;
}

enum chex_status
zip_members_read(int fd, uint64_t size, struct zip_members *out, struct chex_error *err)
{
    struct buffer text = {0};
    struct zip_list list;
    enum chex_status status;

    *out = (struct zip_members){.fd = fd, .size = size};
    status = find_list(fd, size, &list, err);
    if (status != CHEX_OK)
        return status;
    if (list.size > ZIP_LIST_MOST)
        return error_set(err, CHEX_ERR_LIMIT, "the list of the zip has more than 16 MiB");
    if (list.offset > list.end || list.size > list.end - list.offset)
        return bad_list("it is outside of the file", err);
    status = buffer_reserve(&text, list.size + 1, err);
    if (status == CHEX_OK)
        status = read_exactly(fd, list.offset, text.data, list.size, err);
    if (status == CHEX_OK)
        status = read_entries(out, &list, text.data, err);
    buffer_release(&text);
    return status;
}

void
zip_members_release(struct zip_members *z)
{
    free(z->member);
    arena_release(&z->strings);
    *z = (struct zip_members){.fd = -1};
}

const struct zip_member *
zip_members_find(const struct zip_members *z, const char *name)
{
    struct zip_member key = {.name = name};

    return z->count > 0 ? bsearch(&key, z->member, z->count, sizeof(*z->member), by_name) : NULL;
}

/* ---- a member ---------------------------------------------------------------------------------------------------- */

static enum chex_status
bad_member(const struct zip_member *member, enum chex_status status, const char *why, struct chex_error *err)
{
    char shown[100];

    return error_set(err, status, "member '%s' of the zip: %s",
                     ascii_escape(member->name, strlen(member->name), shown, sizeof(shown)), why);
}

static enum chex_status
compute_crc(int fd, uint64_t offset, uint64_t size, uint32_t *crc, struct chex_error *err)
{
    uint8_t piece[65536];
    enum chex_status status = CHEX_OK;

    *crc = 0;
    while (status == CHEX_OK && size > 0) {
        size_t part = size < sizeof(piece) ? (size_t)size : sizeof(piece);

        status = read_exactly(fd, offset, piece, part, err);
        if (status == CHEX_OK)
            *crc = crc32_gzip_refl(*crc, piece, part);
        offset += part;
        size -= part;
    }
    cpu_vzeroupper();
    return status;
}

enum chex_status
zip_member_check(const struct zip_members *z, const struct zip_member *member, uint64_t *offset, struct chex_error *err)
{
    uint8_t header[HEADER];
    uint32_t crc;
    enum chex_status status;

    if (!member->stored)
        return bad_member(member, CHEX_ERR_UNSUPPORTED,
                          "it is compressed or encrypted, which torch.save() does not write", err);
    if (member->header > z->size || z->size - member->header < HEADER)
        return bad_member(member, CHEX_ERR_DAMAGED, "it is outside of the file", err);
    status = read_exactly(z->fd, member->header, header, HEADER, err);
    if (status != CHEX_OK)
        return status;
    *offset = member->header + HEADER + get(header + 26, 2) + get(header + 28, 2);
    if (memcmp(header, "PK\3\4", 4) != 0 || *offset > z->size || member->size > z->size - *offset)
        return bad_member(member, CHEX_ERR_DAMAGED, "it is outside of the file", err);
    status = compute_crc(z->fd, *offset, member->size, &crc, err);
    return status == CHEX_OK && crc != member->crc
               ? bad_member(member, CHEX_ERR_DAMAGED, "its CRC-32 does not match", err)
               : status;
}
