/*
 * test_convert.c - a whole conversion (convert.h), from files and from an archive; each call fails once
 *
 * check_convert.py and check_archive.py test its output if nothing fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert.h"

#include "calls.h"
#include "io/lock.h"
#include "lib/image/png_fixture.h"
#include "lib/input/archive_fixture.h"
#include "lib/store/store_fixture.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * SPARE: how many failures may go unnoticed.  Without memory, the fast path passes an image to libpng; without a reader
 * thread, the calling thread reads.  How many buffers are allocated depends on which thread takes which image, so this
 * is a bound and not a count.
 */
enum { IMAGES = 7, SPARE = 99 };

static char base[600], labels[700], exclude[700], out[700], loose[700], archive[700];
static const char *inputs[2];
static struct convert_options options;
static enum chex_status expected; /* the status if nothing fails */
static uint64_t members;          /* images in the archive, as counted by the run */

static unsigned
any_sample(uint32_t x, uint32_t y, int channel)
{
    (void)channel;
    return x * 5 + y * 3;
}

static void
put(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

/*
 * Image 0 is a file and in the archive, 1 and 2 are files, 3 to 5 are in the archive, 6 is missing; 2 and 4 are
 * damaged.
 */
static void
setup(void)
{
    static const char names[] = "1.png\nnot there.png\n";
    struct fixture f = {.width = 12, .height = 12, .colour = GRAY, .depth = 8, .sample = any_sample};
    struct buffer image = {0}, tar = {0};
    static unsigned count;
    char csv[1024];
    size_t used = (size_t)sprintf(csv, "Image Index,Patient ID,Finding Labels,View Position\n");

    snprintf(base, sizeof(base), "%s/convert-%ld-%u", unit_folder(), (long)getpid(), count++);
    snprintf(labels, sizeof(labels), "%s/labels.csv", base);
    snprintf(exclude, sizeof(exclude), "%s/exclude.txt", base);
    snprintf(loose, sizeof(loose), "%s/images", base);
    snprintf(archive, sizeof(archive), "%s/images.tar", base);
    snprintf(out, sizeof(out), "%s/out", base);
    ck_assert(mkdir(base, 0777) == 0 && mkdir(loose, 0777) == 0);
    fixture_png(&image, &f);
    for (unsigned i = 0; i < IMAGES; i++) {
        char name[32], path[800];
        size_t size = i == 2 || i == 4 ? image.size - 30 : image.size;

        snprintf(name, sizeof(name), "%u.png", i);
        snprintf(path, sizeof(path), "%s/%s", loose, name);
        used += (size_t)sprintf(csv + used, "%s,%u,Mass,PA\n", name, i);
        if (i < 3)
            put(path, image.data, size);
        if (i == 0 || (i >= 3 && i < 6))
            archive_add_bytes(&tar, name, '0', image.data, size);
    }
    archive_add_bytes(&tar, "stray.png", '0', image.data, image.size);
    ck_assert_int_eq(buffer_append(&tar, (char[1024]){0}, 1024, NULL), CHEX_OK);
    put(labels, csv, used);
    put(exclude, names, sizeof(names) - 1);
    put(archive, tar.data, tar.size);
    buffer_release(&image);
    buffer_release(&tar);

    inputs[0] = loose;
    inputs[1] = archive;
    options = (struct convert_options){.inputs = inputs,
                                       .input_count = image_archive_version() ? 2 : 1,
                                       .labels = labels,
                                       .out = out,
                                       .exclude = exclude,
                                       .views = "PA",
                                       .spec = bench_spec(),
                                       .split_given = true,
                                       .allow_missing = true,
                                       .allow_rejects = 9,
                                       .force = true,
                                       .index_dali = true,
                                       .threads = 1};
    options.spec.limits.min_side = 1;
    expected = CHEX_OK;
}

static struct convert_watch watch; /* no callbacks, unless a test sets some */

static enum chex_status
convert(struct chex_error *err)
{
    struct convert c = {.options = NULL};
    enum chex_status status = convert_prepare(&options, &c, err);

    if (status == CHEX_OK)
        status = convert_check_output(&c, err);
    if (status == CHEX_OK)
        status = convert_run(&c, &watch, err);
    members = c.archive ? c.archive[0].images : 0;
    convert_release(&c);
    return status == expected ? CHEX_OK : status;
}

/* Whatever failed before: a second run succeeds, and the folder is complete. */
static void
convert_again(void)
{
    struct chex_dataset *ds;
    struct chex_error err;
    char lock[800];

    snprintf(lock, sizeof(lock), "%s/" LOCK_NAME, out);
    unlink(lock); /* if it could not be removed, its process is alive: this one */
    ck_assert_msg(convert(&err) == CHEX_OK, "%s", err.text);
    ck_assert_msg(chex_dataset_open(out, &ds, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(chex_dataset_info(ds)->shard_count, 2);
    chex_dataset_close(ds);
}

TEST_CASE("store", "convert", setup, NULL);

TEST(a_conversion_without_memory)
{
    calls_each(CALL_MEMORY, ENOMEM, convert, NULL, CHEX_ERR_MEMORY, SPARE);
    convert_again();
}

TEST(the_list_of_missing_images_without_memory_or_a_disk)
{
    struct stat st;

    if (!image_archive_version())
        return;
    options.allow_missing = false;
    expected = CHEX_ERR_MISSING;
    calls_each(CALL_MEMORY, ENOMEM, convert, NULL, CHEX_ERR_MEMORY, SPARE);
    calls_each(CALL_WRITE, ENOSPC, convert, NULL, CHEX_ERR_WRITE, SPARE);
    ck_assert_int_eq(stat(archive, &st), 0);
    ck_assert_int_eq(truncate(archive, st.st_size / 2 + 600), 0); /* in image 5 */
    options.allow_rejects = 0;
    expected = CHEX_ERR_DAMAGED;
    calls_each(CALL_MEMORY, ENOMEM, convert, NULL, CHEX_ERR_MEMORY, SPARE);
    calls_each(CALL_WRITE, ENOSPC, convert, NULL, CHEX_ERR_WRITE, SPARE);
}

TEST(a_conversion_to_a_disk_that_fails)
{
    calls_each(CALL_WRITE, ENOSPC, convert, convert_again, CHEX_ERR_WRITE, SPARE);
    calls_each(CALL_RENAME, EACCES, convert, convert_again, CHEX_ERR_WRITE, SPARE);
}

TEST(a_stop_ends_the_planning_and_nothing_is_written)
{
    atomic_bool stop = true;
    struct chex_error err;
    struct stat st;

    options.stop = &stop;
    ck_assert_int_eq(convert(&err), CHEX_ERR_STOPPED);
    ck_assert(stat(out, &st) != 0);
    options.stop = NULL;
    convert_again();
}

static atomic_bool stop_now;

static void
stop_at_reject(void *context, const char *name, const struct chex_error *why)
{
    (void)context;
    (void)name;
    (void)why;
    atomic_store(&stop_now, true);
}

/* Images 2 and 4 are rejects, so after the first of them one image is not converted. */
TEST(a_stop_between_two_images_leaves_the_rest_to_the_next_run)
{
    struct chex_error err;

    if (!image_archive_version())
        return;
    atomic_store(&stop_now, false);
    watch = (struct convert_watch){.reject = stop_at_reject, .stop = &stop_now};
    ck_assert_int_eq(convert(&err), CHEX_ERR_STOPPED);
    watch = (struct convert_watch){.stop = NULL};
    options.force = false;
    convert_again();
}

/* The archive may be read any number of times. */
static void
count_members_and_convert_again(void)
{
    ck_assert_uint_le(members, 5);
    convert_again();
}

/* The content of a damaged archive is rejected after all other images are in their slots, which may finish a shard. */
TEST(a_disk_that_fails_once_with_a_damaged_archive)
{
    struct stat st;

    if (!image_archive_version())
        return;
    ck_assert_int_eq(stat(archive, &st), 0);
    ck_assert_int_eq(truncate(archive, st.st_size / 2 + 600), 0); /* in image 5 */
    options.allow_missing = false;
    for (options.spec.seed = 0; options.spec.seed < 4; options.spec.seed++)
        calls_each(CALL_SYNC, EIO, convert, count_members_and_convert_again, CHEX_ERR_WRITE, SPARE);
}
