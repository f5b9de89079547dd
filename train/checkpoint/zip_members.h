/*
 * zip_members.h - where the members of an uncompressed zip file are
 *
 * torch.save() writes a zip whose members are stored as they are, so a tensor can be read at its offset in the file.
 * lib/input/archive.h reads any zip, but from the beginning to the end, and only in a build with libarchive.
 *
 * The list at the end of the file (PKWARE's APPNOTE 6.3, "central directory", also in its zip64 form) is the only
 * source of names and sizes; the header of a member is read only for the offset of its bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_ZIP_MEMBERS_H
#define CHEX_TRAIN_ZIP_MEMBERS_H

#include "io/file.h"

#define ZIP_LIST_MOST (16u << 20) /* bytes of the list; a checkpoint of DenseNet-121 has 60 kB */

struct zip_member {
    const char *name;
    uint64_t size, header; /* header: offset in the file */
    uint32_t crc;
    bool stored; /* neither compressed nor encrypted */
};

/* Zero it before use; fd stays the caller's. */
struct zip_members {
    struct zip_member *member; /* sorted by name; names are unique */
    size_t count;
    int fd;
    uint64_t size; /* of the file */
    struct arena strings;
};

/*
 * Read the list of an open file.
 * CHEX_ERR_TRUNCATED  it has no list at its end;  CHEX_ERR_LIMIT;  CHEX_ERR_READ, CHEX_ERR_MEMORY
 * CHEX_ERR_DAMAGED    also if its stored members together are larger than the file, so some of them overlap
 */
enum chex_status zip_members_read(int fd, uint64_t size, struct zip_members *out, struct chex_error *err);
void zip_members_release(struct zip_members *z);

/* Returns the member with this name, or NULL. */
const struct zip_member *zip_members_find(const struct zip_members *z, const char *name);

/*
 * Find the offset of the member's bytes in the file, and compare their CRC-32.
 * CHEX_ERR_DAMAGED;  CHEX_ERR_UNSUPPORTED  it is compressed or encrypted;  CHEX_ERR_READ
 */
enum chex_status zip_member_check(const struct zip_members *z, const struct zip_member *member, uint64_t *offset,
                                  struct chex_error *err);

#endif
