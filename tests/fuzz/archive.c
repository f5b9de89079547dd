/*
 * archive.c - fuzz target: images read directly from tar and zip archives
 *
 * Requires what archive.h promises for any bytes: names that are not paths and belong to images; no member larger than
 * the limit; the same members in a second read.  A damaged archive is reported, and so is a plain tar without zeros at
 * its end.  Except for zips, skipping a member instead of reading it does not change the members after it, if there is
 * no fault.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "input/archive.h"
#include "input/image_name.h"
#include "input/input_scan.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_MEMBER   65536
#define MAX_UNPACKED (1u << 18)
#define TAR_BLOCK    512

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct walk {
    enum chex_status opened;
    unsigned long members, good;
    uint32_t names, bytes; /* CRC-32 of all names and of all bytes */
    bool fault;
};

static uint32_t
add(uint32_t crc, const void *data, size_t size)
{
    return size > 0 ? (uint32_t)crc32_z(crc, data, size) : crc;
}

static void
require_member(const struct image_member *m)
{
    FUZZ_REQUIRE(m->name[0] != '\0' && m->name[0] != '.' && strlen(m->name) <= 255 && !strchr(m->name, '/'));
    FUZZ_REQUIRE(image_name_is_known(m->name));
}

/* Walks through the archive and reads every `stride`-th member; 0 reads none. */
static struct walk
walk(const char *path, unsigned stride)
{
    struct image_archive *a = NULL;
    struct image_member m;
    struct buffer b = {0};
    struct chex_error err = {0};
    struct walk w = {.opened = image_archive_open(path, NULL, &a, &err)};
    const struct archive_fault *fault;

    fuzz_require_error(w.opened, &err);
    if (w.opened != CHEX_OK) {
        FUZZ_REQUIRE(a == NULL &&
                     (w.opened == CHEX_ERR_EMPTY || w.opened == CHEX_ERR_NOT_IMAGE || w.opened == CHEX_ERR_USAGE));
        return w;
    }
    for (;;) {
        enum chex_status status;
        bool found;

        FUZZ_REQUIRE(image_archive_next(a, &m, &found, &err) == CHEX_OK);
        if (!found)
            break;
        require_member(&m);
        w.names = add(w.names, m.name, strlen(m.name) + 1);
        if (w.members++ % (stride ? stride : 1) != 0 || stride == 0)
            continue;
        status = image_archive_read(a, MAX_MEMBER, &b, &err);
        fuzz_require_error(status, &err);
        if (status == CHEX_OK) {
            FUZZ_REQUIRE(b.size <= MAX_MEMBER && (!m.size_known || m.size == b.size));
            w.bytes = add(w.bytes, b.data, b.size);
            w.good++;
        } else {
            FUZZ_REQUIRE(status == CHEX_ERR_LIMIT || (status == CHEX_ERR_DAMAGED && image_archive_fault(a)));
        }
    }
    fault = image_archive_fault(a);
    w.fault = fault != NULL;
    if (fault)
        fuzz_require_error(fault->error.status, &fault->error);
    buffer_release(&b);
    image_archive_close(a);
    return w;
}

/* Returns true for a plain tar: neither a zip nor compressed. */
static bool
is_plain(const uint8_t *data, size_t size)
{
    static const char *const magic[] = {"PK", "\x1f\x8b", "\3757z", "\x28\xb5", "BZ"};

    for (size_t i = 0; i < sizeof(magic) / sizeof(magic[0]); i++)
        if (size >= strlen(magic[i]) && memcmp(data, magic[i], strlen(magic[i])) == 0)
            return false;
    return true;
}

static bool
ends_with_zeros(const uint8_t *data, size_t size)
{
    static const uint8_t zeros[TAR_BLOCK];

    return size >= TAR_BLOCK && memcmp(data + size - TAR_BLOCK, zeros, TAR_BLOCK) == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(0, data, size);
    struct walk all = walk(path, 1), again = walk(path, 1), some = walk(path, 2), none = walk(path, 0);

    FUZZ_REQUIRE(size > 0 || all.opened == CHEX_ERR_EMPTY);
    FUZZ_REQUIRE(again.opened == all.opened && again.members == all.members && again.names == all.names &&
                 again.bytes == all.bytes && again.fault == all.fault);
    FUZZ_REQUIRE(some.opened == all.opened && none.opened == all.opened);
    /*
     * In a zip that contradicts itself, libarchive may continue at another offset after skipping a member than after
     * reading it.
     */
    if (!all.fault && !(size >= 2 && memcmp(data, "PK", 2) == 0)) {
        FUZZ_REQUIRE(some.names == all.names && none.names == all.names);
        FUZZ_REQUIRE(!some.fault && !none.fault);
    }
    if (all.opened == CHEX_OK && !all.fault && is_plain(data, size))
        FUZZ_REQUIRE(ends_with_zeros(data, size));
    return 0;
}

/* ---- mutation -------------------------------------------------------------------------------------------------- */

/*
 * Corrects the checksum of every block that looks like the header of a member: the sum of its bytes, with blanks in the
 * checksum field.
 */
static void
repair_tar(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
        unsigned sum = 0;
        char text[9];

        if (memcmp(data + at + 257, "ustar", 5) != 0)
            continue;
        memset(data + at + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += data[at + i];
        snprintf(text, sizeof(text), "%06o", sum);
        memcpy(data + at + 148, text, 7); /* six digits and the NUL; the blank after them is already there */
    }
}

static size_t
gzip(const uint8_t *data, size_t size, uint8_t *out, size_t max)
{
    z_stream z = {0};
    size_t done;

    FUZZ_REQUIRE(deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 5, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)max;
    done = deflate(&z, Z_FINISH) == Z_STREAM_END ? z.total_out : 0;
    deflateEnd(&z);
    return done;
}

/* Mutates the text of a gzip file and compresses it again; usually corrects the checksums of a tar. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    bool packed = size >= 2 && data[0] == 0x1f && data[1] == 0x8b && seed % 4 != 0;
    uint8_t *text = data, *out;
    z_stream z = {0};

    if (packed && inflateInit2(&z, 16 + MAX_WBITS) == Z_OK) {
        text = malloc(MAX_UNPACKED);
        out = malloc(max_size);
        FUZZ_REQUIRE(text && out);
        z.next_in = data;
        z.avail_in = (uInt)size;
        z.next_out = text;
        z.avail_out = MAX_UNPACKED;
        inflate(&z, Z_FINISH);
        max_size = gzip(text, LLVMFuzzerMutate(text, z.total_out, MAX_UNPACKED), out, max_size);
        inflateEnd(&z);
        if (max_size > 0) {
            memcpy(data, out, max_size);
            size = max_size;
        }
        free(text);
        free(out);
        return size;
    }
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 != 1)
        repair_tar(data, size);
    return size;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned type;
    size_t size;
} members[] = {
    {"images/", AE_IFDIR, 0},
    {"images/00000001_000.png", AE_IFREG, 700},
    {"images/README", AE_IFREG, 20},
    {"./images/00000002_000.JPG", AE_IFREG, 512},
    {"images/._00000001_000.png", AE_IFREG, 10},
    {"link.png", AE_IFLNK, 0},
    {"../../etc/a.png", AE_IFREG, 1},
    {"images/\xc3\xa9-a-name-that-is-so-long-that-it-does-not-go-into-the-hundred-bytes-that-the-first-of-all-tar-"
     "formats-has-for-it.jpeg",
     AE_IFREG, 3},
    {"empty.png", AE_IFREG, 0},
};

static void
add_member(struct archive *a, size_t number, uint64_t *random)
{
    struct archive_entry *entry = archive_entry_new();
    uint8_t data[1024];

    FUZZ_REQUIRE(entry != NULL);
    for (size_t i = 0; i < members[number].size; i++)
        data[i] = (uint8_t)(fuzz_random(random) & 0x0f);
    archive_entry_set_pathname(entry, members[number].name);
    archive_entry_set_filetype(entry, members[number].type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)members[number].size);
    if (members[number].type == AE_IFLNK)
        archive_entry_set_symlink(entry, "x.png");
    /* Not every format can store every name. */
    if (archive_write_header(a, entry) >= ARCHIVE_WARN && members[number].size > 0)
        FUZZ_REQUIRE(archive_write_data(a, data, members[number].size) == (la_ssize_t)members[number].size);
    archive_entry_free(entry);
}

static void
make(const char *name, int (*format)(struct archive *), int (*filter)(struct archive *), const char *options,
     fuzz_seed_fn *give, void *context)
{
    static uint8_t out[1u << 17];
    struct archive *a = archive_write_new();
    uint64_t random = 3;
    size_t used = 0;
    char cut[64];

    FUZZ_REQUIRE(a && format(a) == ARCHIVE_OK);
    if (filter(a) == ARCHIVE_OK && (!options || archive_write_set_options(a, options) == ARCHIVE_OK)) {
        archive_write_set_bytes_in_last_block(a, 1);
        FUZZ_REQUIRE(archive_write_open_memory(a, out, sizeof(out), &used) == ARCHIVE_OK);
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
            add_member(a, i, &random);
        FUZZ_REQUIRE(archive_write_close(a) == ARCHIVE_OK);
        give(name, out, used, context);
        snprintf(cut, sizeof(cut), "%s-cut", name);
        give(cut, out, used / 2, context);
    }
    archive_write_free(a);
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    make("tar-ustar", archive_write_set_format_ustar, archive_write_add_filter_none, NULL, give, context);
    make("tar-pax", archive_write_set_format_pax, archive_write_add_filter_none, NULL, give, context);
    make("tar-gnu", archive_write_set_format_gnutar, archive_write_add_filter_none, NULL, give, context);
    make("gzip", archive_write_set_format_gnutar, archive_write_add_filter_gzip, "gzip:!timestamp", give, context);
    make("xz", archive_write_set_format_ustar, archive_write_add_filter_xz, NULL, give, context);
    make("zstd", archive_write_set_format_ustar, archive_write_add_filter_zstd, NULL, give, context);
    make("bzip2", archive_write_set_format_ustar, archive_write_add_filter_bzip2, NULL, give, context);
    make("zip-deflate", archive_write_set_format_zip, archive_write_add_filter_none, "zip:compression=deflate", give,
         context);
    make("zip-store", archive_write_set_format_zip, archive_write_add_filter_none, "zip:compression=store", give,
         context);
    give("empty", "", 0, context);
    give("text", "no archive\n", 11, context);
}
