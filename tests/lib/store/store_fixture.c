/*
 * store_fixture.c - see store_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store_fixture.h"

#include "unit.h"

#include "dataset/manifest.h"
#include "lib/dataset/record_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- plan ----------------------------------------------------------------------------------------------------- */

struct spec
bench_spec(void)
{
    struct spec spec = spec_default();

    spec.size = 8;
    spec.shard_size = 4;
    spec.split = (struct split_rule){.kind = SPLIT_NONE};
    return spec;
}

struct split_rule
bench_two_splits(void)
{
    struct split_rule rule = {.kind = SPLIT_FILE};
    char csv[2048];
    size_t used = (size_t)sprintf(csv, "patient,split\n");

    for (unsigned i = 1; i <= BENCH_MAX_IMAGES / 3 + 1; i++)
        used += (size_t)sprintf(csv + used, "%u,%s\n", i, i % 2 ? "train" : "test");
    snprintf(rule.path, sizeof(rule.path), "%s", unit_file("store-split.csv", csv, used));
    return rule;
}

static void
read_labels(struct bench *b, unsigned images)
{
    const struct labels_options options = {0};
    char csv[8192];
    size_t used = (size_t)sprintf(csv,
                                  "Image Index,Patient ID,Finding Labels,Patient Age,Patient Gender,View Position\n");

    for (unsigned i = 0; i < images; i++)
        used += (size_t)sprintf(csv + used, "%08u_%03u.png,%u,%s,%u,%c,%s\n", i / 3 + 1, i % 3, i / 3 + 1,
                                i % 2 ? "Mass" : "No Finding", 20 + i, i % 3 ? 'M' : 'F', i % 4 ? "PA" : "AP");
    ck_assert_msg(labels_read(unit_file("store.csv", csv, used), &options, &b->labels, &b->err) == CHEX_OK, "%s",
                  b->err.text);
}

void
bench_make(struct bench *b, const struct spec *spec, unsigned images)
{
    *b = (struct bench){.spec = *spec, .folder = {.fd = -1}};
    ck_assert_uint_le(images, BENCH_MAX_IMAGES);
    read_labels(b, images);
    ck_assert_msg(plan_make(spec, &b->labels, NULL, &b->plan, &b->err) == CHEX_OK, "%s", b->err.text);
    bench_move(b);
}

void
bench_move(struct bench *b)
{
    static unsigned count;

    folder_close(&b->folder);
    snprintf(b->path, sizeof(b->path), "%s/store-%ld-%u", unit_folder(), (long)getpid(), count++);
    ck_assert_msg(folder_open(b->path, true, &b->folder, &b->err) == CHEX_OK, "%s", b->err.text);
}

void
bench_release(struct bench *b)
{
    bench_close(b);
    folder_close(&b->folder);
    plan_release(&b->plan);
    labels_release(&b->labels);
}

/* ---- store ---------------------------------------------------------------------------------------------------- */

enum chex_status
bench_try_open(struct bench *b)
{
    enum chex_status status = store_prepare(&b->folder, &b->plan, &b->options, &b->state, &b->err);

    if (status != CHEX_OK || b->state.complete)
        return status;
    return store_open(&b->folder, &b->plan, &b->options, &b->store, &b->state, &b->err);
}

void
bench_open(struct bench *b)
{
    ck_assert_msg(bench_try_open(b) == CHEX_OK, "%s", b->err.text);
}

void
bench_close(struct bench *b)
{
    store_free(b->store);
    b->store = NULL;
}

void
bench_slot(const struct bench *b, size_t item, size_t *shard, uint32_t *index)
{
    *shard = 0;
    while (item >= b->plan.shard[*shard].first + b->plan.shard[*shard].images)
        ++*shard;
    *index = (uint32_t)(item - b->plan.shard[*shard].first);
}

uint8_t *
bench_record(const struct bench *b, size_t shard, uint32_t index, size_t item, uint8_t weight)
{
    const struct record_layout *l = &b->plan.layout;
    const struct entry *e = &b->labels.entry[b->plan.image[item]];
    uint8_t *record = malloc(l->stride);
    struct record_values v;

    ck_assert_ptr_nonnull(record);
    plan_values(&b->plan, e, (uint32_t)shard, index, weight, &v);
    for (size_t i = 0; i < l->pixel_size; i++)
        record[l->pixel_offset + i] = (uint8_t)(item * 37 + i);
    record_encode(l, &v, record);
    record_seal(l, record);
    return record;
}

enum chex_status
bench_try_item(struct bench *b, size_t item, struct chex_error *err)
{
    enum chex_status status;
    uint8_t *record;
    size_t shard;
    uint32_t index;

    bench_slot(b, item, &shard, &index);
    if (!store_wants(b->store, shard, index))
        return CHEX_OK;
    if (b->rejected[item]) {
        struct chex_error why = {.status = CHEX_ERR_TRUNCATED};

        snprintf(why.text, sizeof(why.text), "item %zu is \"bad\"", item);
        return store_reject(b->store, shard, index, &why, err);
    }
    record = bench_record(b, shard, index, item, 1);
    status = store_put(b->store, shard, index, 1, record, err);
    free(record);
    return status;
}

void
bench_item(struct bench *b, size_t item)
{
    ck_assert_msg(bench_try_item(b, item, &b->err) == CHEX_OK, "%s", b->err.text);
}

void
bench_fill(struct bench *b, uint64_t seed)
{
    size_t order[BENCH_MAX_IMAGES];

    for (uint32_t i = 0; i < b->plan.image_count; i++) {
        uint32_t k = pick_below(&seed, i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    for (size_t i = 0; i < b->plan.image_count; i++)
        bench_item(b, order[i]);
    ck_assert_msg(store_finish(b->store, &b->err) == CHEX_OK, "%s", b->err.text);
}

void
bench_run(struct bench *b, uint64_t seed)
{
    bench_open(b);
    bench_fill(b, seed);
    bench_close(b);
}

/* ---- expected results ----------------------------------------------------------------------------------------- */

/* Returns the usable items of a shard; if it has none, the first usable one of its split. */
static size_t
usable(const struct bench *b, size_t shard, size_t *item)
{
    const struct plan_shard *s = &b->plan.shard[shard];
    size_t count = 0;

    for (size_t i = s->first; i < s->first + s->images; i++)
        if (!b->rejected[i])
            item[count++] = i;
    for (size_t i = 0; count == 0 && i < b->plan.shard_count; i++)
        for (size_t k = 0; count == 0 && b->plan.shard[i].split == s->split && k < b->plan.shard[i].images; k++)
            if (!b->rejected[b->plan.shard[i].first + k])
                item[count++] = b->plan.shard[i].first + k;
    return count;
}

static void
expect_result(const struct bench *b, size_t shard, const struct buffer *file)
{
    const struct plan_shard *s = &b->plan.shard[shard];
    const struct shard_result *r = &store_results(b->store)[shard];
    const struct record_layout *l = &b->plan.layout;
    uint64_t sum = 0, squares = 0;
    uint8_t hash[DIGEST_SIZE];
    char hex[DIGEST_HEX];
    struct digest *d = digest_new();
    size_t rejects = 0;

    digest_start(d);
    digest_add(d, file->data, file->size);
    digest_finish(d, hash);
    digest_free(d);
    digest_hex(hash, DIGEST_SIZE, hex);
    ck_assert_str_eq(r->sha256, hex);
    for (uint32_t i = 0; i < s->images; i++) {
        const uint8_t *pixel = file->data + i * l->stride + l->pixel_offset;

        if (b->rejected[s->first + i]) {
            ck_assert_uint_lt(rejects, r->reject_count);
            ck_assert_uint_eq(r->reject[rejects].index, i);
            ck_assert_int_eq(r->reject[rejects].status, CHEX_ERR_TRUNCATED);
            rejects++;
            continue;
        }
        for (size_t k = 0; k < l->pixel_size; k++) {
            sum += pixel[k];
            squares += (uint64_t)pixel[k] * pixel[k];
        }
    }
    ck_assert(r->done && r->size == file->size && r->images == s->images - rejects && r->reject_count == rejects);
    ck_assert(r->sum == sum && r->squares == squares);
}

void
bench_expect_shards(const struct bench *b)
{
    size_t stride = b->plan.layout.stride;

    for (size_t shard = 0; shard < b->plan.shard_count; shard++) {
        const struct plan_shard *s = &b->plan.shard[shard];
        struct buffer file = bench_get(b, s->name);
        size_t item[BENCH_MAX_IMAGES], count = usable(b, shard, item);

        ck_assert_uint_eq(file.size, s->records * stride);
        for (uint32_t i = 0; i < s->records; i++) {
            bool image = i < s->images && !b->rejected[s->first + i];
            uint8_t *wanted = bench_record(b, shard, i, image ? s->first + i : item[i % count], image);

            ck_assert_msg(memcmp(file.data + i * stride, wanted, stride) == 0, "record %u of %s", i, s->name);
            free(wanted);
        }
        ck_assert(!bench_has(b, bench_part(b, shard)));
        if (b->store)
            expect_result(b, shard, &file);
        buffer_release(&file);
    }
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

void
bench_digest(const struct bench *b, char out[DIGEST_HEX])
{
    static char name[64][256];
    size_t count = 0;
    uint8_t hash[DIGEST_SIZE];
    struct digest *d = digest_new();
    DIR *dir = opendir(b->path);

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_type == DT_REG && strcmp(e->d_name, JOURNAL_NAME) != 0)
            snprintf(name[count++], sizeof(name[0]), "%s", e->d_name);
    closedir(dir);
    qsort(name, count, sizeof(name[0]), compare_names);
    digest_start(d);
    for (size_t i = 0; i < count; i++) {
        struct buffer file = bench_get(b, name[i]);

        digest_add(d, name[i], strlen(name[i]) + 1);
        digest_add(d, file.data, file.size);
        buffer_release(&file);
    }
    digest_finish(d, hash);
    digest_free(d);
    digest_hex(hash, DIGEST_SIZE, out);
}

/* ---- manifest ------------------------------------------------------------------------------------------------- */

void
bench_publish(struct bench *b)
{
    static const char hash[] = "0000000000000000000000000000000000000000000000000000000000000000";
    const struct shard_result *r = store_results(b->store);
    struct manifest_shard shard[BENCH_MAX_IMAGES];
    struct manifest_split split[SPLIT_MAX] = {{0}};
    struct manifest m = {.tool_version = "0.1.0",
                         .layout = b->plan.layout,
                         .shard_size = b->spec.shard_size,
                         .tail = tail_names[b->spec.tail],
                         .resize = resample_names[b->spec.resize],
                         .split_rule = "none",
                         .max_pixels = b->spec.limits.max_pixels,
                         .min_side = b->spec.limits.min_side,
                         .findings = findings_nih14,
                         .labels_sha256 = hash,
                         .split = split,
                         .split_count = b->plan.splits.count,
                         .shard = shard,
                         .shard_count = (unsigned)b->plan.shard_count};
    struct buffer text = {0};

    memcpy(m.dataset_id, b->plan.dataset_id, sizeof(m.dataset_id));
    for (unsigned i = 0; i < m.shard_count; i++) {
        const struct plan_shard *s = &b->plan.shard[i];
        struct manifest_split *p = &split[s->split];

        shard[i] = (struct manifest_shard){s->name,    r[i].sha256, s->split,  s->number,  s->of,
                                           s->records, r[i].images, r[i].size, r[i].crc32c};
        if (p->shard_count++ == 0)
            *p = (struct manifest_split){b->plan.splits.name[s->split], hash, i, 1, 0, 1, {0}, {0}};
        p->images += r[i].images;
        m.rejects += r[i].reject_count;
    }
    ck_assert_msg(manifest_format(&m, &text, &b->err) == CHEX_OK, "%s", b->err.text);
    ck_assert_msg(store_publish(b->store, "{}\n", m.rejects ? 3 : 0, text.data, text.size, &b->err) == CHEX_OK, "%s",
                  b->err.text);
    buffer_release(&text);
}

/* ---- files of the folder -------------------------------------------------------------------------------------- */

bool
bench_has(const struct bench *b, const char *name)
{
    struct stat st;

    return fstatat(b->folder.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void
bench_put(const struct bench *b, const char *name, const void *data, size_t size)
{
    int fd = openat(b->folder.fd, name, O_CREAT | O_WRONLY, 0666);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, data, size, 0), (ssize_t)size);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    close(fd);
}

void
bench_text(const struct bench *b, const char *name, const char *text)
{
    bench_put(b, name, text, strlen(text));
}

struct buffer
bench_get(const struct bench *b, const char *name)
{
    struct buffer content = {0};
    struct chex_error err = {0};

    ck_assert_msg(file_read(b->folder.fd, name, 1 << 24, &content, &err) == CHEX_OK, "%s: %s", name, err.text);
    return content;
}

void
bench_flip(const struct bench *b, const char *name, long offset, uint8_t mask)
{
    int fd = openat(b->folder.fd, name, O_RDWR);
    uint8_t byte;

    ck_assert_int_ge(fd, 0);
    if (offset < 0)
        offset += lseek(fd, 0, SEEK_END);
    ck_assert_int_eq(pread(fd, &byte, 1, offset), 1);
    byte ^= mask;
    ck_assert_int_eq(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

void
bench_resize(const struct bench *b, const char *name, long size)
{
    int fd = openat(b->folder.fd, name, O_RDWR);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, size), 0);
    close(fd);
}

const char *
bench_part(const struct bench *b, size_t shard)
{
    static char name[SHARD_NAME_MAX + 8];

    snprintf(name, sizeof(name), ".%s.part", b->plan.shard[shard].name);
    return name;
}
