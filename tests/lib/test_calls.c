/*
 * test_calls.c - makes every allocation, read, write, fsync and so on fail, one at a time
 *
 * Every failure must give a status and a text, and nothing may leak (in a build with sanitizers, or under valgrind).
 * If no call fails, the action must succeed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"

#include "image/decode.h"
#include "input/input_scan.h"
#include "io/lock.h"
#include "labels/name_list.h"
#include "lib/dataset/small_dataset.h"
#include "lib/image/png_fixture.h"
#include "lib/store/store_fixture.h"
#include "plan/split.h"
#include "unit.h"
#include "verify/verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
each_allocation_fails(calls_act *act)
{
    calls_each(CALL_MEMORY, ENOMEM, act, NULL, CHEX_ERR_MEMORY, 0);
}

/* ---- tables --------------------------------------------------------------------------------------------------- */

static char labels_path[1024], list_path[1024], split_path[1024];

static void
write_tables(void)
{
    static const char labels[] = "Image Index,Finding Labels,Patient ID,Patient Age\n"
                                 "a.png,Mass,1,20\nb.png,,2,300\n../c.png,Mass,3,40\nd.png,No Finding,4,x\n"
                                 "e.png,Mass|Edema,5,6\nf.png,Mass,6,6\ng.png,Mass,7,6\n";
    static const char list[] = "a.png\nb.png\nx/e.png\n";
    static const char split[] = "image,split\na.png,train\nd.png,val\ne.png,test\nf.png,train\ng.png,other\n";

    snprintf(labels_path, sizeof(labels_path), "%s", unit_file("l.csv", labels, sizeof(labels) - 1));
    snprintf(list_path, sizeof(list_path), "%s", unit_file("list.txt", list, sizeof(list) - 1));
    snprintf(split_path, sizeof(split_path), "%s", unit_file("split.csv", split, sizeof(split) - 1));
}

static enum chex_status
read_tables(struct chex_error *err)
{
    struct labels_options options = {0};
    struct labels labels = {0};
    struct names names = {0};
    enum chex_status status = labels_read(labels_path, &options, &labels, err);

    if (status == CHEX_OK && (labels.count != 5 || labels.reject_count != 2))
        status = error_set(err, CHEX_ERR_BUG, "other labels");
    if (status == CHEX_OK)
        status = names_read(list_path, 1, &names, err);
    if (status == CHEX_OK && !names_have(&names, "e.png"))
        status = error_set(err, CHEX_ERR_BUG, "other names");
    names_release(&names);
    labels_release(&labels);
    return status;
}

static struct labels read_labels;

static enum chex_status
assign_splits(struct chex_error *err)
{
    static struct split_rule rules[3] = {
        {.kind = SPLIT_PATIENT, .percent = {40, 30, 30}}, {.kind = SPLIT_NONE}, {.kind = SPLIT_FILE}};
    enum chex_status status = CHEX_OK;

    snprintf(rules[2].path, sizeof(rules[2].path), "%s", split_path);
    for (unsigned i = 0; i < 3 && status == CHEX_OK; i++) {
        struct split_set set = {0};
        struct spec spec = spec_default();
        struct slot_plan plan = {0};

        status = split_assign(&rules[i], &read_labels, NULL, &set, err);
        split_set_release(&set);
        spec.split = rules[i];
        if (status == CHEX_OK)
            status = plan_make(&spec, &read_labels, NULL, &plan, err);
        plan_release(&plan);
    }
    return status;
}

TEST_CASE("store", "calls that fail", NULL, NULL);

TEST(tables_and_splits_without_memory)
{
    struct labels_options options = {0};
    struct chex_error err;

    write_tables();
    each_allocation_fails(read_tables);
    ck_assert_int_eq(labels_read(labels_path, &options, &read_labels, &err), CHEX_OK);
    each_allocation_fails(assign_splits);
    labels_release(&read_labels);
}

TEST(tables_that_cannot_be_read)
{
    write_tables();
    /* A single failure, or two in a row, are tried again. */
    calls_each(CALL_READ, ENXIO, read_tables, NULL, CHEX_ERR_READ, 0);
    calls_each(CALL_STAT, EIO, read_tables, NULL, CHEX_ERR_READ, 99);
}

/* ---- images --------------------------------------------------------------------------------------------------- */

static struct buffer images[3];

static unsigned
any_sample(uint32_t x, uint32_t y, int channel)
{
    return channel == 3 ? 255 : x * 7 + y * 13;
}

static enum chex_status
decode_all(struct chex_error *err)
{
    struct decode_limits limits = {.max_pixels = 1 << 20, .min_side = 1};
    struct decoder d = {0};
    enum chex_status status = decoder_init(&d, err);

    for (unsigned i = 0; i < 3 && status == CHEX_OK; i++) {
        struct image_traits traits;
        struct image image = {0};

        status = decode_image(&d, images[i].data, images[i].size, &limits, &image, &traits, err);
        image_release(&image);
    }
    decoder_release(&d);
    return status;
}

/* If the fast path has no memory, libpng may still have enough. */
TEST(images_without_memory)
{
    struct fixture f = {.width = 40, .height = 30, .colour = GRAY, .depth = 8, .sample = any_sample};

    fixture_png(&images[0], &f);
    f.colour = RGBA;
    fixture_png(&images[1], &f);
    f.interlaced = true;
    fixture_png(&images[2], &f);
    calls_each(CALL_MEMORY, ENOMEM, decode_all, NULL, CHEX_ERR_MEMORY, 20);
    for (unsigned i = 0; i < 3; i++)
        buffer_release(&images[i]);
}

/* ---- sources -------------------------------------------------------------------------------------------------- */

static char source_base[600];

static void
make_sources(void)
{
    static const char *const folders[] = {"", "/a", "/a/b", "/c"};
    static const char *const files[] = {"1.png", "a/2.png", "a/b/3.png", "c/1.png", "a/x.tar", "4.jpg"};
    char path[700], target[700];

    snprintf(source_base, sizeof(source_base), "%s/sources-%ld", unit_folder(), (long)getpid());
    for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", source_base, folders[i]);
        ck_assert_int_eq(mkdir(path, 0777), 0);
    }
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", source_base, files[i]);
        f = fopen(path, "w");
        ck_assert(f && fputs("content", f) > 0);
        fclose(f);
    }
    snprintf(path, sizeof(path), "%s/c/again", source_base);
    snprintf(target, sizeof(target), "%s/a", source_base);
    ck_assert_int_eq(symlink(target, path), 0);
}

static enum chex_status
scan_sources(struct chex_error *err)
{
    char file[700];
    const char *paths[] = {source_base, file};
    struct source source = {0};
    enum chex_status status;

    snprintf(file, sizeof(file), "%s/4.jpg", source_base);
    status = source_scan(paths, 2, &source, err);
    if (status == CHEX_OK && (source.count != 4 || source.unopened != 2))
        status = error_set(err, CHEX_ERR_BUG, "%zu files, %zu archives", source.count, source.unopened);
    source_release(&source);
    return status;
}

/* If a file cannot be read, it is unknown whether two files are copies. */
TEST(sources_without_memory)
{
    make_sources();
    calls_each(CALL_MEMORY, ENOMEM, scan_sources, NULL, CHEX_ERR_MEMORY, 0);
}

/* ---- data sets ------------------------------------------------------------------------------------------------ */

static struct small_dataset small;

static void
no_fault(void *context, const struct verify_fault *fault)
{
    (void)context;
    (void)fault;
}

static enum chex_status
verify_as(enum verify_depth depth, struct chex_error *err)
{
    struct chex_dataset *ds;
    struct verify v = {
        .depth = depth, .sha256 = depth == VERIFY_FULL, .sample_percent = 100, .threads = 1, .fault = no_fault};
    enum chex_status status = chex_dataset_open(small.path, &ds, err);

    if (status != CHEX_OK)
        return status;
    v.dataset = ds;
    status = verify_run(&v, err);
    chex_dataset_close(ds);
    if (status == CHEX_OK && v.faults > 0)
        status = error_set(err, CHEX_ERR_READ, "%llu faults", (unsigned long long)v.faults);
    return status;
}

static enum chex_status
verify_full(struct chex_error *err)
{
    return verify_as(VERIFY_FULL, err);
}

static enum chex_status
verify_sample(struct chex_error *err)
{
    return verify_as(VERIFY_SAMPLE, err);
}

static enum chex_status
verify_alone(struct chex_error *err)
{
    char path[700];
    struct verify v = {.depth = VERIFY_FULL, .threads = 1, .fault = no_fault};
    enum chex_status status;

    snprintf(path, sizeof(path), "%s/%s", small.path, small.shard[0].name);
    status = verify_file(&v, path, err);
    if (status == CHEX_OK && v.faults > 0)
        status = error_set(err, CHEX_ERR_READ, "%llu faults", (unsigned long long)v.faults);
    return status;
}

TEST(a_data_set_is_verified_without_memory)
{
    small_make(&small, "calls-memory");
    small_put_manifest(&small, true);
    each_allocation_fails(verify_full);
    each_allocation_fails(verify_sample);
    each_allocation_fails(verify_alone);
    small_release(&small);
}

TEST(a_data_set_that_cannot_be_read_is_not_good)
{
    small_make(&small, "calls-read");
    small_put_manifest(&small, true);
    calls_each(CALL_READ, ENXIO, verify_full, NULL, CHEX_ERR_READ, 0);
    calls_each(CALL_READ, ENXIO, verify_sample, NULL, CHEX_ERR_READ, 0);
    calls_each(CALL_READ, ENXIO, verify_alone, NULL, CHEX_ERR_READ, 0);
    calls_each(CALL_STAT, EIO, verify_full, NULL, CHEX_ERR_READ, 99); /* a single failure is tried again */
    small_release(&small);
}

/* ---- the store ------------------------------------------------------------------------------------------------ */

static struct bench bench;

/* Puts or rejects each item that is wanted. */
static enum chex_status
put_items(struct chex_error *err)
{
    static uint8_t record[1 << 16];
    const struct record_layout *l = &bench.plan.layout;
    enum chex_status status = CHEX_OK;

    for (size_t i = 0; status == CHEX_OK && i < bench.plan.image_count; i++) {
        struct chex_error why;
        struct record_values v;
        size_t shard;
        uint32_t index;

        bench_slot(&bench, i, &shard, &index);
        if (!store_wants(bench.store, shard, index))
            continue;
        error_set(&why, CHEX_ERR_TRUNCATED, "it is cut");
        plan_values(&bench.plan, &bench.labels.entry[bench.plan.image[i]], (uint32_t)shard, index, 1, &v);
        memset(record + l->pixel_offset, (int)i, l->pixel_size);
        record_encode(l, &v, record);
        record_seal(l, record);
        status = bench.rejected[i] ? store_reject(bench.store, shard, index, &why, err)
                                   : store_put(bench.store, shard, index, 1, record, err);
    }
    return status;
}

/* Runs a conversion, under a lock. */
static enum chex_status
fill_store(struct chex_error *err)
{
    struct lock lock;
    enum chex_status status = lock_take(&lock, &bench.folder, false, err);

    if (status != CHEX_OK)
        return status;
    status = bench_try_open(&bench);
    if (status != CHEX_OK) {
        *err = bench.err;
    } else {
        unsigned shards;

        do
            status = put_items(err);
        while (status == CHEX_OK && store_rewrites(bench.store, &shards) > 0);
        if (status == CHEX_OK)
            status = store_finish(bench.store, err);
        bench_close(&bench);
    }
    if (status == CHEX_OK)
        return lock_drop(&lock, err);
    lock_drop(&lock, NULL);
    return status;
}

/* The failed run is over; the next run resumes after it.  Then makes an empty folder for the next test. */
static void
go_on(void)
{
    struct chex_error err;
    struct dirent *d;
    DIR *dir;

    unlinkat(bench.folder.fd, LOCK_NAME, 0); /* its process is alive: this one */
    ck_assert_msg(fill_store(&err) == CHEX_OK, "%s", err.text);
    ck_assert(bench_has(&bench, bench.plan.shard[0].name) && bench_has(&bench, bench.plan.shard[1].name));
    ck_assert(!bench_has(&bench, LOCK_NAME));
    dir = opendir(bench.path);
    ck_assert_ptr_nonnull(dir);
    while ((d = readdir(dir)))
        unlinkat(bench.folder.fd, d->d_name, 0);
    closedir(dir);
}

static void
setup_store(void)
{
    struct spec spec = bench_spec();

    bench_make(&bench, &spec, 11);
    bench.options.verify = true;
    bench.rejected[2] = bench.rejected[4] = bench.rejected[5] = bench.rejected[6] = bench.rejected[7] = true;
}

static void
teardown_store(void)
{
    bench_release(&bench);
}

TEST_CASE("store", "calls of the store that fail", setup_store, teardown_store);

TEST(shards_are_written_without_memory)
{
    calls_each(CALL_MEMORY, ENOMEM, fill_store, go_on, CHEX_ERR_MEMORY, 0);
}

TEST(shards_are_written_to_a_disk_that_fails)
{
    calls_each(CALL_WRITE, ENOSPC, fill_store, go_on, CHEX_ERR_WRITE, 99);
    calls_each(CALL_SYNC, EIO, fill_store, go_on, CHEX_ERR_WRITE, 99);
    calls_each(CALL_RENAME, EACCES, fill_store, go_on, CHEX_ERR_WRITE, 99);
}

TEST(shards_that_cannot_be_read_back)
{
    calls_each(CALL_READ, ENXIO, fill_store, go_on, CHEX_ERR_WRITE, 99);
    calls_each(CALL_STAT, EIO, fill_store, go_on, CHEX_ERR_WRITE, 99);
}

TEST(shards_whose_files_cannot_be_closed_or_removed)
{
    calls_each(CALL_CLOSE, EIO, fill_store, go_on, CHEX_ERR_WRITE, 99);
    calls_each(CALL_UNLINK, EROFS, fill_store, go_on, CHEX_ERR_WRITE, 99);
}
