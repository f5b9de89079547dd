/*
 * test_reader.c - reads records for several passes: checks, memory, copies on a local disk, available memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "backend/host.h"
#include "backend/host_memory.h"
#include "data/reader.h"
#include "data/staging.h"
#include "dataset/dataset.h"
#include "io/lock.h"
#include "lib/dataset/small_dataset.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct bench {
    struct small_dataset small;
    struct chex_dataset *ds;
    size_t stride;
    uint8_t *record;
    struct image_keeper keeper;
    char stage[600];
};

static void
bench_make(struct bench *b)
{
    static const bool all[] = {true, true};
    struct chex_error err;
    char name[32];

    snprintf(name, sizeof(name), "reader%ld", (long)getpid()); /* the tests share one folder */
    small_make(&b->small, name);
    ck_assert_int_eq(chex_dataset_open(b->small.path, &b->ds, &err), CHEX_OK);
    b->stride = chex_dataset_info(b->ds)->stride;
    b->record = malloc(b->stride);
    snprintf(b->stage, sizeof(b->stage), "%s.stage", b->small.path);
    b->keeper = (struct image_keeper){.put = host_store_put, .get = host_store_pixels};
    ck_assert_int_eq(host_store_new(NULL, reader_images(b->ds, all), SMALL_SIDE, &b->keeper.store, &err), CHEX_OK);
}

static void
bench_release(struct bench *b)
{
    free(b->record);
    host_store_free(b->keeper.store);
    chex_dataset_close(b->ds);
    small_release(&b->small);
}

static struct reader *
open_reader(const struct bench *b, struct reader_options o)
{
    struct reader *r;
    struct chex_error err;

    o.ds = b->ds;
    if (o.keep)
        o.keeper = b->keeper;
    ck_assert_int_eq(reader_new(&o, &r, &err), CHEX_OK);
    return r;
}

/* Reads image `number` of train, which has the pixels number * 20 + x + y. */
static enum chex_status
read_image(struct bench *b, struct reader *r, unsigned number, struct chex_error *err)
{
    struct chex_record view;
    enum chex_status status = reader_read(r, number / 3, number % 3, b->record, &view, err);

    if (status == CHEX_OK)
        ck_assert_uint_eq(view.pixels[2 * SMALL_SIDE + 1], number == 5 ? view.pixels[0] : number * 20 + 3);
    return status;
}

static void
flip(struct bench *b, unsigned number)
{
    b->small.bytes[number / 3][number % 3 * b->stride + b->small.manifest.layout.pixel_offset] ^= 1;
    small_put_shard(&b->small, number / 3);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

TEST_CASE("reader", "records", NULL, NULL);

TEST(checksums_are_compared_at_first_always_or_never)
{
    static const enum chex_status later[] = {
        [READER_FIRST] = CHEX_OK, [READER_ALWAYS] = CHEX_ERR_CHECKSUM, [READER_NEVER] = CHEX_OK};
    struct chex_error err;
    struct bench b;

    bench_make(&b);
    for (enum reader_check check = READER_FIRST; check <= READER_NEVER; check++) {
        struct reader *r = open_reader(&b, (struct reader_options){.check = check});

        ck_assert_int_eq(read_image(&b, r, 1, &err), CHEX_OK);
        flip(&b, 1);
        flip(&b, 2);
        ck_assert_int_eq(read_image(&b, r, 1, &err), later[check]);
        ck_assert_int_eq(read_image(&b, r, 2, &err), check == READER_NEVER ? CHEX_OK : CHEX_ERR_CHECKSUM);
        /* A record that failed was not marked as checked. */
        ck_assert_int_eq(read_image(&b, r, 2, &err), check == READER_NEVER ? CHEX_OK : CHEX_ERR_CHECKSUM);
        flip(&b, 1);
        flip(&b, 2);
        ck_assert_uint_eq(reader_counts(r).reread, 0);
        reader_free(r);
    }
    bench_release(&b);
}

TEST(a_file_that_becomes_shorter_is_an_error)
{
    struct chex_error err;
    struct bench b;
    struct reader *r;
    char path[700];

    bench_make(&b);
    r = open_reader(&b, (struct reader_options){.check = READER_FIRST});
    ck_assert_int_eq(read_image(&b, r, 0, &err), CHEX_OK);
    snprintf(path, sizeof(path), "%s/%s", b.small.path, chex_dataset_shard(b.ds, 0)->name);
    ck_assert_int_eq(truncate(path, (off_t)(b.stride + 100)), 0);
    ck_assert_int_eq(read_image(&b, r, 0, &err), CHEX_OK);
    ck_assert_int_eq(read_image(&b, r, 1, &err), CHEX_ERR_TRUNCATED);
    reader_free(r);
    bench_release(&b);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void
wait_for_kept(const struct reader *r, uint64_t count)
{
    static const struct timespec pause = {.tv_nsec = 1000000};

    while (reader_counts(r).kept < count)
        nanosleep(&pause, NULL);
}

TEST(cached_records_need_no_file)
{
    static const bool keep[] = {true, false};
    struct chex_error err;
    struct bench b;
    struct reader *r;

    bench_make(&b);
    ck_assert_uint_eq(reader_size(b.ds, keep), 2 * b.small.size);
    for (unsigned filled = 0; filled < 2; filled++) {
        r = open_reader(&b, (struct reader_options){.keep = keep});
        if (filled)
            ck_assert_int_eq(reader_fill(r, 3, &err), CHEX_OK);
        for (unsigned i = 0; !filled && i < 6; i++)
            ck_assert_int_eq(read_image(&b, r, i, &err), CHEX_OK);
        wait_for_kept(r, 6);
        ck_assert_uint_eq(reader_counts(r).read, 6);
        small_remove(&b.small, chex_dataset_shard(b.ds, 0)->name);
        small_remove(&b.small, chex_dataset_shard(b.ds, 2)->name);
        for (unsigned i = 0; i < 6; i++)
            ck_assert_int_eq(read_image(&b, r, i, &err), CHEX_OK);
        ck_assert_uint_eq(reader_counts(r).read, 6);
        ck_assert_int_eq(reader_read(r, 2, 0, b.record, &(struct chex_record){0}, &err), CHEX_ERR_MISSING);
        reader_free(r);
        small_put_shard(&b.small, 0);
        small_put_shard(&b.small, 2);
    }
    bench_release(&b);
}

TEST(damaged_records_are_not_cached)
{
    static const bool keep[] = {true, false};
    struct chex_error err;
    struct bench b;
    struct reader *r;

    bench_make(&b);
    flip(&b, 4);
    r = open_reader(&b, (struct reader_options){.keep = keep});
    ck_assert_int_eq(reader_fill(r, 1, &err), CHEX_OK);
    wait_for_kept(r, 5);
    ck_assert_int_eq(read_image(&b, r, 4, &err), CHEX_ERR_CHECKSUM);
    flip(&b, 4); /* repaired during the run */
    ck_assert_int_eq(read_image(&b, r, 4, &err), CHEX_OK);
    ck_assert_uint_eq(reader_counts(r).kept, 6);
    reader_free(r);
    bench_release(&b);
}

struct race {
    struct reader *r;
    size_t stride;
};

static void *
read_all(void *argument)
{
    const struct race *race = argument;
    uint8_t *record = malloc(race->stride);
    struct chex_record view;
    struct chex_error err;
    uintptr_t bad = 0;

    for (unsigned i = 0; i < 600; i++)
        bad += reader_read(race->r, i % 2, i / 2 % 3, record, &view, &err) != CHEX_OK ||
               (view.shard * 3 + view.index < 5 && view.pixels[0] != (view.shard * 3 + view.index) * 20);
    free(record);
    return (void *)bad;
}

TEST(threads_read_and_fill_side_by_side)
{
    static const bool keep[] = {true, true};
    struct chex_error err;
    struct bench b;

    bench_make(&b);
    for (unsigned round = 0; round < 10; round++) {
        struct race race = {open_reader(&b, (struct reader_options){.keep = keep}), b.stride};
        pthread_t thread[3];

        for (unsigned i = 0; i < 3; i++)
            ck_assert_int_eq(pthread_create(&thread[i], NULL, read_all, &race), 0);
        ck_assert_int_eq(reader_fill(race.r, 2, &err), CHEX_OK);
        for (unsigned i = 0; i < 3; i++) {
            void *bad;

            pthread_join(thread[i], &bad);
            ck_assert_ptr_null(bad);
        }
        reader_free(race.r);
    }
    bench_release(&b);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static enum chex_status
stage(struct bench *b, bool train, bool val, struct staging_progress *p, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    const bool split[] = {train, val};
    const struct staging_options o = {.ds = b->ds, .folder = b->stage, .split = split, .threads = 2};
    struct staging *s;

    ck_assert_int_eq(staging_start(&o, &s, err), CHEX_OK);
    while (!staging_progress(s, p))
        nanosleep(&pause, NULL);
    return staging_end(s, err);
}

static char *
in_copy(const struct bench *b, const char *name, char *out, size_t size)
{
    char folder[STAGING_NAME];

    snprintf(out, size, "%s/%s/%s", b->stage, staging_name(b->ds, folder), name);
    return out;
}

static void
put_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

TEST_CASE("reader", "copies", NULL, NULL);

TEST(a_copy_is_made_once_and_wrong_parts_again)
{
    struct staging_progress p;
    struct chex_error err;
    char path[800];
    struct bench b;

    bench_make(&b);
    ck_assert_int_eq(stage(&b, true, false, &p, &err), CHEX_OK);
    ck_assert(p.shards == 2 && p.there == 0 && p.left_out == 0 && p.total == 2 * b.small.size && p.done == p.total);
    ck_assert_uint_eq(p.copied, p.total);
    ck_assert_int_ne(access(in_copy(&b, chex_dataset_shard(b.ds, 2)->name, path, sizeof(path)), F_OK), 0);
    ck_assert_int_eq(stage(&b, true, true, &p, &err), CHEX_OK);
    ck_assert(p.shards == 3 && p.there == 2 && p.copied == b.small.size && p.done == p.total);
    /* A leftover of another process, a shard with other content, one that is too short, and a foreign manifest. */
    put_file(in_copy(&b, "." MANIFEST_NAME ".tmp.1", path, sizeof(path)), "x", 1);
    b.small.bytes[0][100] ^= 1;
    put_file(in_copy(&b, chex_dataset_shard(b.ds, 0)->name, path, sizeof(path)), b.small.bytes[0], b.small.size);
    put_file(in_copy(&b, chex_dataset_shard(b.ds, 1)->name, path, sizeof(path)), "short", 5);
    put_file(in_copy(&b, MANIFEST_NAME, path, sizeof(path)), "{}", 2);
    ck_assert_int_eq(stage(&b, true, true, &p, &err), CHEX_OK);
    ck_assert(p.there == 1 && p.copied == 2 * b.small.size && p.done == p.total);
    ck_assert_int_ne(access(in_copy(&b, "." MANIFEST_NAME ".tmp.1", path, sizeof(path)), F_OK), 0);
    ck_assert_int_eq(stage(&b, true, true, &p, &err), CHEX_OK);
    ck_assert(p.there == 3 && p.copied == 0);
    bench_release(&b);
}

TEST(records_come_from_the_copy_and_where_that_fails_from_the_source)
{
    struct staging_progress p;
    struct chex_dataset *copy;
    struct chex_error err;
    struct reader *r;
    char path[800];
    struct bench b;

    bench_make(&b);
    ck_assert_int_eq(stage(&b, true, false, &p, &err), CHEX_OK);
    ck_assert_int_eq(staging_open(b.stage, b.ds, &copy, &err), CHEX_OK);
    small_remove(&b.small, chex_dataset_shard(b.ds, 0)->name);
    b.small.bytes[1][b.stride + b.small.manifest.layout.pixel_offset] ^= 1;
    put_file(in_copy(&b, chex_dataset_shard(b.ds, 1)->name, path, sizeof(path)), b.small.bytes[1], b.small.size);
    r = open_reader(&b, (struct reader_options){.staged = copy});
    ck_assert_int_eq(read_image(&b, r, 0, &err), CHEX_OK); /* the source is gone */
    /* Damaged in the copy after it was made: every read must find that, although the source was good. */
    for (unsigned pass = 1; pass <= 2; pass++) {
        ck_assert_int_eq(read_image(&b, r, 4, &err), CHEX_OK);
        ck_assert_uint_eq(b.record[b.small.manifest.layout.pixel_offset], 80);
        ck_assert_uint_eq(reader_counts(r).reread, pass);
    }
    ck_assert_int_eq(truncate(path, 10), 0);
    ck_assert_int_eq(read_image(&b, r, 5, &err), CHEX_OK);
    ck_assert_int_eq(reader_read(r, 2, 0, b.record, &(struct chex_record){0}, &err), CHEX_OK); /* not copied */
    reader_free(r);
    chex_dataset_close(copy);
    bench_release(&b);
}

TEST(a_shard_damaged_at_its_source_is_not_copied)
{
    struct staging_progress p;
    struct chex_error err;
    char path[800];
    struct bench b;

    bench_make(&b);
    flip(&b, 4);
    ck_assert_int_eq(stage(&b, true, true, &p, &err), CHEX_OK);
    ck_assert(p.shards == 3 && p.left_out == 1 && p.copied == 2 * b.small.size);
    ck_assert_msg(strstr(p.why, chex_dataset_shard(b.ds, 1)->name) && strstr(p.why, "SHA-256"), "%s", p.why);
    ck_assert_int_ne(access(in_copy(&b, chex_dataset_shard(b.ds, 1)->name, path, sizeof(path)), F_OK), 0);
    small_remove(&b.small, chex_dataset_shard(b.ds, 1)->name);
    ck_assert_int_eq(stage(&b, true, true, &p, &err), CHEX_ERR_MISSING);
    bench_release(&b);
}

TEST(another_process_is_waited_for)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    static const bool split[] = {true, true};
    static atomic_bool stop;
    struct staging_progress p;
    struct chex_error err;
    struct folder folder;
    struct lock lock;
    struct staging *s;
    char path[800];
    struct bench b;

    bench_make(&b);
    ck_assert_int_eq(mkdir(b.stage, 0777), 0);
    ck_assert_int_eq(folder_open(in_copy(&b, "", path, sizeof(path)), true, &folder, &err), CHEX_OK);
    for (unsigned round = 0; round < 2; round++) {
        const struct staging_options o = {.ds = b.ds, .folder = b.stage, .split = split, .threads = 1, .stop = &stop};

        ck_assert_int_eq(lock_take(&lock, &folder, false, &err), CHEX_OK);
        ck_assert_int_eq(staging_start(&o, &s, &err), CHEX_OK);
        do
            nanosleep(&pause, NULL);
        while (!staging_progress(s, &p) && !p.waiting);
        ck_assert_msg(strstr(p.why, "is in use by host"), "%s", p.why);
        if (round == 0)
            atomic_store(&stop, true);
        else
            ck_assert_int_eq(lock_drop(&lock, &err), CHEX_OK);
        while (!staging_progress(s, &p))
            nanosleep(&pause, NULL);
        ck_assert_int_eq(staging_end(s, &err), round == 0 ? CHEX_ERR_STOPPED : CHEX_OK);
        atomic_store(&stop, false);
        if (round == 0)
            ck_assert_int_eq(lock_drop(&lock, &err), CHEX_OK);
    }
    ck_assert_uint_eq(p.copied, 3 * b.small.size);
    folder_close(&folder);
    bench_release(&b);
}

/* The lock is held meanwhile, so the folder is open and nothing is copied yet. */
TEST(a_copy_goes_into_the_opened_folder_though_a_link_takes_its_place)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    static const bool split[] = {true, true};
    struct folder folder, above;
    struct chex_dataset *copy;
    struct staging_progress p;
    char path[800], moved[800], name[800];
    struct chex_error err;
    struct staging *s;
    struct lock lock;
    struct bench b;

    bench_make(&b);
    const struct staging_options o = {.ds = b.ds, .folder = b.stage, .split = split, .threads = 1};

    ck_assert_int_eq(folder_open(b.stage, true, &above, &err), CHEX_OK);
    ck_assert_int_eq(folder_open_private(&above, staging_name(b.ds, name), true, &folder, &err), CHEX_OK);
    ck_assert_int_eq(lock_take(&lock, &folder, false, &err), CHEX_OK);
    ck_assert_int_eq(staging_start(&o, &s, &err), CHEX_OK);
    do
        nanosleep(&pause, NULL);
    while (!staging_progress(s, &p) && !p.waiting);
    snprintf(moved, sizeof(moved), "%s/moved", b.stage);
    snprintf(path, sizeof(path), "%s/victim", b.stage);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    ck_assert_int_eq(renameat(above.fd, name, above.fd, "moved"), 0);
    ck_assert_int_eq(symlinkat("victim", above.fd, name), 0);
    ck_assert_int_eq(lock_drop(&lock, &err), CHEX_OK);
    while (!staging_progress(s, &p))
        nanosleep(&pause, NULL);
    ck_assert_int_eq(staging_end(s, &err), CHEX_OK);
    ck_assert_uint_eq(unit_count_files(path), 0);
    ck_assert_uint_eq(unit_count_files(moved), 4);
    /* Another process of the node finds the link and refuses it. */
    ck_assert_int_eq(staging_open(b.stage, b.ds, &copy, &err), CHEX_ERR_USAGE);
    ck_assert_msg(strstr(err.text, "is a symbolic link"), "%s", err.text);
    folder_close(&folder);
    folder_close(&above);
    bench_release(&b);
}

/* ---- how much memory --------------------------------------------------------------------------------------------- */

TEST_CASE("reader", "memory", NULL, NULL);

TEST(the_lowest_limit_of_a_control_group_counts)
{
    const char *root = unit_folder();
    char groups[600], path[700], mount[600];
    static const char *const folders[] = {"", "/a", "/a/b", "/memory", "/memory/c"};

    snprintf(mount, sizeof(mount), "%s/cgroup", root);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", mount, folders[i]);
        ck_assert_int_eq(mkdir(path, 0777), 0);
    }
    snprintf(groups, sizeof(groups), "%s/groups", root);
    put_file(groups, "4:memory:/c\n0::/a/b\n", 20);
    ck_assert_uint_eq(host_memory_of_groups(groups, mount), UINT64_MAX);
    snprintf(path, sizeof(path), "%s/a/b/memory.max", mount);
    put_file(path, "max\n", 4);
    ck_assert_uint_eq(host_memory_of_groups(groups, mount), UINT64_MAX);
    snprintf(path, sizeof(path), "%s/a/memory.max", mount);
    put_file(path, "9000\n", 5);
    ck_assert_uint_eq(host_memory_of_groups(groups, mount), 9000);
    snprintf(path, sizeof(path), "%s/a/memory.stat", mount);
    put_file(path, "file 500\nanon 1000\n", 19);
    ck_assert_uint_eq(host_memory_of_groups(groups, mount), 8000);
    put_file(path, "file 500\nanon 1000\nshmem 300\n", 29); /* the files of a tmpfs cannot be evicted */
    ck_assert_uint_eq(host_memory_of_groups(groups, mount), 7700);
    snprintf(path, sizeof(path), "%s/memory/c/memory.limit_in_bytes", mount);
    put_file(path, "5000\n", 5);
    snprintf(path, sizeof(path), "%s/memory/c/memory.stat", mount);
    put_file(path, "cache 7\ntotal_rss 6000\n", 23);
    ck_assert_uint_eq(host_memory_of_groups(groups, mount), 0);
    put_file(groups, "1:cpu:/c\n", 9);
    ck_assert_uint_eq(host_memory_of_groups(groups, mount), UINT64_MAX);
    ck_assert_uint_eq(host_memory_of_groups("/nonexistent", mount), UINT64_MAX);
    ck_assert_uint_gt(host_memory_available(), 0);
}
