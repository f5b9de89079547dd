/*
 * test_store_folder.c - other content of the folder: data sets with another id, leftovers, foreign files; and the DALI
 * indexes, which are written next to the shards
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "dataset/dali_index.h"
#include "dataset/manifest.h"
#include "io/lock.h"
#include "store_fixture.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REJECTS_NAME "rejects.jsonl"

/* Files that a user, another program or a file manager may put there; some resemble ours. */
static const char *const foreign[] = {
    "notes.txt",
    "manifest.json.bak",
    "my-manifest.json",
    "rejects.jsonl.old",
    ".hidden",
    ".something.tmp.123",
    ".chestxray14.part",
    "chestxray14.csv",
    "chestxray14-all.tfrecord",
    "other-all.tfrecord-00000-of-00002",
    "chestxray14-all.tfrecord-00000-of-00002.md5",
    "chestxray14-notes.tfrecord-what-is-this.txt",
    "chestxray14-all.tfrecord-00000-of-2",
    ".manifest.json.swp.tmp.orig",
    ".chestxray14-all.tfrecord-00000-of-00002.part.part",
    LOCK_NAME,
};
enum { FOREIGN = sizeof(foreign) / sizeof(foreign[0]) };

static struct bench bench, other;

/* Two data sets that differ in the seed of their order. */
static void
setup(void)
{
    struct spec spec = bench_spec();

    bench_make(&bench, &spec, 7);
    spec.seed = 1;
    bench_make(&other, &spec, 7);
}

static void
teardown(void)
{
    bench_release(&bench);
    bench_release(&other);
}

/* From now on the other data set is converted to the same folder. */
static void
same_folder(void)
{
    bench_close(&bench);
    folder_close(&other.folder);
    ck_assert_int_eq(folder_open(bench.path, false, &other.folder, &other.err), CHEX_OK);
    snprintf(other.path, sizeof(other.path), "%s", bench.path);
}

static void
complete(struct bench *b)
{
    bench_open(b);
    bench_fill(b, 1);
    bench_publish(b);
    bench_close(b);
}

static void
put_foreign(void)
{
    for (size_t i = 0; i < FOREIGN; i++)
        bench_text(&bench, foreign[i], foreign[i]);
    ck_assert_int_eq(mkdirat(bench.folder.fd, "chestxray14-all.tfrecord-folder", 0777), 0);
}

static void
expect_foreign(void)
{
    for (size_t i = 0; i < FOREIGN; i++) {
        struct buffer content;

        ck_assert_msg(bench_has(&bench, foreign[i]), "%s is gone", foreign[i]);
        content = bench_get(&bench, foreign[i]);
        ck_assert(content.size == strlen(foreign[i]) && memcmp(content.data, foreign[i], content.size) == 0);
        buffer_release(&content);
    }
    ck_assert(bench_has(&bench, "chestxray14-all.tfrecord-folder"));
}

static unsigned
files(void)
{
    return unit_count_files(bench.path);
}

/* Requires a refusal with this text, and an unchanged folder. */
static void
expect_refused(struct bench *b, const char *text)
{
    unsigned before = files();
    char a[DIGEST_HEX], z[DIGEST_HEX];

    bench_digest(b, a);
    ck_assert_int_eq(bench_try_open(b), CHEX_ERR_INCOMPATIBLE);
    ck_assert_ptr_null(b->store);
    ck_assert_msg(strstr(b->err.text, text), "\"%s\" is not in \"%s\"", text, b->err.text);
    ck_assert_msg(strstr(b->err.text, "--force"), "%s", b->err.text);
    bench_digest(b, z);
    ck_assert_str_eq(a, z);
    ck_assert_uint_eq(files(), before);
}

/* ---- complete data sets --------------------------------------------------------------------------------------- */

TEST_CASE("store", "folder", setup, teardown);

TEST(a_complete_data_set_is_left_as_it_is)
{
    char a[DIGEST_HEX], z[DIGEST_HEX];

    bench.rejected[1] = true;
    bench_text(&bench, "notes.txt", "mine");
    complete(&bench);
    ck_assert(bench_has(&bench, MANIFEST_NAME) && bench_has(&bench, REJECTS_NAME));
    ck_assert(!bench_has(&bench, JOURNAL_NAME));
    ck_assert_uint_eq(files(), 2 + 1 + 1 + 1); /* shards, manifest, rejects, notes */
    bench_digest(&bench, a);
    /* A kill between the manifest and the journal's removal. */
    bench_text(&bench, JOURNAL_NAME, "whatever");
    bench_text(&bench, "." MANIFEST_NAME ".tmp.17", "{");
    bench_open(&bench);
    ck_assert(bench.state.complete);
    ck_assert(!bench_has(&bench, JOURNAL_NAME));
    bench_digest(&bench, z);
    ck_assert_str_eq(a, z);
    bench_close(&bench);
    bench.options.force = true; /* start again with any content */
    bench_open(&bench);
    ck_assert(!bench.state.complete && !bench_has(&bench, MANIFEST_NAME));
}

/* The run that wrote the manifest may have been killed before the folder was synced. */
TEST(the_journal_of_a_complete_data_set_goes_when_the_manifest_is_on_the_disk)
{
    enum chex_status status;

    complete(&bench);
    bench_text(&bench, JOURNAL_NAME, "whatever");
    calls_fail(CALL_SYNC, 1, true, EIO);
    status = bench_try_open(&bench);
    ck_assert_uint_gt(calls_end(), 0);
    ck_assert_int_eq(status, CHEX_ERR_WRITE);
    ck_assert(bench_has(&bench, JOURNAL_NAME));
    bench_open(&bench);
    ck_assert(!bench_has(&bench, JOURNAL_NAME));
}

static void
count_tick(void *context)
{
    ++*(unsigned *)context;
}

/* Reading a large data set takes long: heartbeats must go on, and a signal must stop it. */
TEST(a_repair_keeps_in_touch_and_can_be_stopped)
{
    atomic_bool stop = true;
    unsigned ticks = 0;

    complete(&bench);
    bench_flip(&bench, bench.plan.shard[0].name, 100, 1);
    bench.options.repair = true;
    bench.options.stop = &stop;
    bench.options.tick = count_tick;
    bench.options.context = &ticks;
    ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_STOPPED);
    ck_assert_uint_gt(ticks, 0);
    ck_assert(bench_has(&bench, MANIFEST_NAME) && !bench_has(&bench, JOURNAL_NAME));
    stop = false;
    bench.options.threads = 3;
    bench_open(&bench);
    ck_assert_uint_eq(bench.state.shards_done, 1);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
}

/* A kill between the shard and the end of the run must not hide that another image was included. */
TEST(a_repaired_shard_that_is_another_is_known_after_a_kill_too)
{
    for (size_t item = 0; item < 2; item++) {
        uint8_t *record;

        complete(&bench);
        bench_flip(&bench, bench.plan.shard[0].name, 100, 1);
        bench.options.repair = true;
        bench_open(&bench);
        ck_assert(store_wants(bench.store, 0, 0) && !store_wants(bench.store, 0, 1));
        record = bench_record(&bench, 0, 0, item, 1);
        ck_assert_int_eq(store_put(bench.store, 0, 0, 1, record, &bench.err), CHEX_OK);
        free(record);
        ck_assert(store_results(bench.store)[0].done);
        ck_assert(store_differs(bench.store, 0) == (item != 0));
        bench_close(&bench);
        bench_open(&bench);
        ck_assert_uint_eq(bench.state.shards_done, bench.plan.shard_count);
        ck_assert(store_differs(bench.store, 0) == (item != 0));
        bench_close(&bench);
        bench_move(&bench);
    }
}

TEST(without_rejects_no_list_is_written)
{
    bench_text(&bench, REJECTS_NAME, "of an earlier run");
    complete(&bench);
    ck_assert(!bench_has(&bench, REJECTS_NAME));
}

TEST(another_data_set_is_replaced_only_by_force)
{
    char fresh[DIGEST_HEX], replaced[DIGEST_HEX];

    complete(&other);
    bench_digest(&other, fresh);
    bench.rejected[0] = true;
    complete(&bench);
    same_folder();
    expect_refused(&other, "holds another data set");
    ck_assert_msg(strstr(other.err.text, "seed 0") && strstr(other.err.text, "seed 1"), "%s", other.err.text);
    bench_text(&bench, bench_part(&bench, 1), "of an even earlier run");
    bench_text(&bench, "chestxray14-old.tfrecord-00000-of-00001", "and one of another split");
    bench_text(&bench, "chestxray14-all.tfrecord-00001-of-00002.idx", "0 1\n");
    other.options.force = true;
    bench_open(&other);
    ck_assert(!bench_has(&other, MANIFEST_NAME)); /* the manifest, the mark of completion, is removed first */
    ck_assert(!other.state.complete && other.state.shards_done == 0 && other.state.slots_full == 0);
    bench_fill(&other, 1);
    bench_publish(&other);
    bench_close(&other);
    bench_digest(&other, replaced);
    ck_assert_str_eq(replaced, fresh);
}

TEST(a_manifest_that_cannot_be_read_is_replaced_only_by_force)
{
    static const char *const texts[] = {"", "{", "{}", "not JSON at all"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bench_text(&bench, MANIFEST_NAME, texts[i]);
        expect_refused(&bench, MANIFEST_NAME);
    }
    bench.options.force = true;
    complete(&bench);
    bench.options.force = false;
    bench_open(&bench);
    ck_assert(bench.state.complete);
}

/* The manifest alone is not enough: tests a shard that is missing or cut and, with --verify, one that differs. */
TEST(a_complete_data_set_that_was_damaged_is_refused)
{
    complete(&bench);
    bench_flip(&bench, bench.plan.shard[1].name, 100, 1);
    bench_open(&bench);
    ck_assert(bench.state.complete);
    bench_close(&bench);
    bench.options.verify = true;
    ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_DAMAGED);
    ck_assert_msg(strstr(bench.err.text, bench.plan.shard[1].name), "%s", bench.err.text);
    bench.options.verify = false;
    bench_resize(&bench, bench.plan.shard[0].name, 100);
    ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_DAMAGED);
    ck_assert_int_eq(unlinkat(bench.folder.fd, bench.plan.shard[0].name, 0), 0);
    ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_DAMAGED);
    ck_assert_msg(strstr(bench.err.text, "--repair"), "%s", bench.err.text);
}

/* ---- unfinished ones ------------------------------------------------------------------------------------------ */

/*
 * By its id.  But a published data set is not replaced, nor one with all shards: that may be a published one under
 * --repair.
 */
TEST(an_unfinished_data_set_is_replaced_by_who_names_it)
{
    bench_open(&bench);
    bench_item(&bench, 0);
    same_folder();
    other.options.replaces = "0123456789abcdef";
    expect_refused(&other, "holds an unfinished conversion");
    other.options.replaces = bench.plan.dataset_id;
    bench_open(&other);
    ck_assert(other.state.shards_done == 0 && other.state.slots_full == 0);
    bench_close(&other);
    bench_move(&bench);
    bench_open(&bench);
    bench_fill(&bench, 1); /* all shards, and no manifest */
    same_folder();
    expect_refused(&other, "holds an unfinished conversion");
    complete(&bench);
    expect_refused(&other, "holds another data set");
}

TEST(another_unfinished_data_set_is_replaced_only_by_force)
{
    bench_open(&bench);
    for (size_t i = 0; i < 6; i++)
        bench_item(&bench, i);
    same_folder();
    bench_text(&bench, "." MANIFEST_NAME ".tmp.17", "{");
    expect_refused(&other, "holds an unfinished conversion of other data or options");
    ck_assert_msg(strstr(other.err.text, ": it has seed 0, wanted is seed 1"), "%s", other.err.text);
    other.options.force = true;
    bench_open(&other);
    ck_assert(other.state.shards_done == 0 && other.state.slots_full == 0);
    bench_fill(&other, 1);
    bench_expect_shards(&other);
}

/* The content of the file is printed, so it must be escaped. */
TEST(a_journal_of_other_data_is_shown_without_control_characters)
{
    bench_text(&bench, JOURNAL_NAME, "{\"journal\":1,\"dataset_id\":\"\\u001b[2J\",\"spec\":\"\\u0007bell\"}\n");
    expect_refused(&bench, "\\x07bell");
    ck_assert_ptr_null(strpbrk(bench.err.text, "\x1b\x07"));
}

TEST(a_journal_that_is_none_is_refused)
{
    static const char *const texts[] = {"{\"a\":1}\n", "[1]\n",
                                        "{\"journal\":2,\"dataset_id\":\"0123456789abcdef\",\"spec\":\"\"}\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bench_text(&bench, JOURNAL_NAME, texts[i]);
        ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_INCOMPATIBLE);
    }
    bench.options.force = true;
    bench_run(&bench, 1);
    bench_expect_shards(&bench);
}

TEST(shards_without_manifest_and_journal_are_replaced_only_by_force)
{
    bench_run(&bench, 1);
    ck_assert_int_eq(unlinkat(bench.folder.fd, JOURNAL_NAME, 0), 0);
    expect_refused(&bench, "neither a manifest nor a journal");
    bench.options.force = true;
    bench_open(&bench);
    ck_assert(bench.state.shards_done == 0 && bench.state.slots_full == 0);
    bench_fill(&bench, 1);
    bench_expect_shards(&bench);
}

/* ---- foreign files, leftovers --------------------------------------------------------------------------------- */

TEST(files_of_others_are_never_touched)
{
    put_foreign();
    bench_open(&bench);
    expect_foreign();
    bench_fill(&bench, 1);
    bench_publish(&bench);
    expect_foreign();
    same_folder();
    other.options.force = true;
    bench_open(&other);
    expect_foreign();
    bench_fill(&other, 1);
    bench_publish(&other);
    expect_foreign();
    bench_expect_shards(&other);
}

TEST(temporary_files_of_killed_runs_are_removed)
{
    static const char *const leftovers[] = {
        "." MANIFEST_NAME ".tmp.123",
        "." REJECTS_NAME ".tmp.4194304",
        ".chestxray14-all.tfrecord-00000-of-00002.idx.tmp.77",
    };

    for (size_t i = 0; i < 3; i++)
        bench_text(&bench, leftovers[i], "x");
    bench_open(&bench);
    for (size_t i = 0; i < 3; i++)
        ck_assert_msg(!bench_has(&bench, leftovers[i]), "%s", leftovers[i]);
    ck_assert_uint_eq(files(), 1); /* the journal */
}

TEST(a_folder_in_the_place_of_a_file_is_an_error)
{
    ck_assert_int_eq(mkdirat(bench.folder.fd, JOURNAL_NAME, 0777), 0);
    ck_assert_int_ne(bench_try_open(&bench), CHEX_OK);
    ck_assert_msg(strstr(bench.err.text, "not a regular file"), "%s", bench.err.text);
    bench_move(&bench);
    ck_assert_int_eq(mkdirat(bench.folder.fd, MANIFEST_NAME, 0777), 0);
    /* Neither --force nor --repair would remove it, so the message names neither. */
    ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_INCOMPATIBLE);
    ck_assert_msg(strstr(bench.err.text, "not a regular file") && !strstr(bench.err.text, "--"), "%s", bench.err.text);
    bench.options.force = true;
    ck_assert_int_eq(bench_try_open(&bench), CHEX_ERR_WRITE);
    ck_assert(bench_has(&bench, MANIFEST_NAME));
}

/* ---- DALI ----------------------------------------------------------------------------------------------------- */

/* The format of DALI's tfrecord2idx: offset and size of each record. */
TEST(an_index_has_a_line_for_each_record)
{
    size_t stride = bench.plan.layout.stride, used = 0;
    char wanted[256];

    for (size_t i = 0; i < 4; i++)
        used += (size_t)sprintf(wanted + used, "%zu %zu\n", i * stride, stride);
    bench_open(&bench);
    bench_text(&bench, "chestxray14-all.tfrecord-00000-of-00002.idx", "torn");
    for (size_t i = 0; i < bench.plan.shard_count; i++) {
        char name[SHARD_NAME_MAX + 8];
        struct buffer text;

        ck_assert_int_eq(
            dali_index_write(&bench.folder, bench.plan.shard[i].name, bench.plan.shard[i].records, stride, &bench.err),
            CHEX_OK);
        snprintf(name, sizeof(name), "%s" DALI_INDEX_SUFFIX, bench.plan.shard[i].name);
        text = bench_get(&bench, name);
        ck_assert_uint_eq(text.size, used);
        ck_assert_mem_eq(text.data, wanted, used);
        buffer_release(&text);
    }
    /* They do not prevent a rerun, and are removed with their data set. */
    bench_close(&bench);
    complete(&bench);
    same_folder();
    other.options.force = true;
    bench_open(&other);
    ck_assert(!bench_has(&bench, "chestxray14-all.tfrecord-00001-of-00002.idx"));
}
