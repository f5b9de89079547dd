/*
 * test_file.c - folders, and files that are written safely (file.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "file_fixture.h"
#include "io/lock.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- folders -------------------------------------------------------------------------------------------------- */

TEST_CASE("file", "file", files_setup, files_teardown);

TEST(a_missing_folder_is_made_with_its_parents)
{
    char path[600];
    struct folder f;

    snprintf(path, sizeof(path), "%s/new", files.base);
    files_expect_error(folder_open(path, false, &f, &files.err), CHEX_ERR_MISSING, "No such file");
    ck_assert(f.fd == -1 && !f.path);
    ck_assert_int_eq(folder_open(path, true, &f, &files.err), CHEX_OK);
    folder_close(&f);
    folder_close(&f);
    ck_assert_int_eq(folder_open(path, true, &f, &files.err), CHEX_OK); /* it is there now */
    ck_assert_int_eq(folder_sync(&f, &files.err), CHEX_OK);
    folder_close(&f);
    snprintf(path, sizeof(path), "%s/a//b/c/new/", files.base);
    files_expect_error(folder_open(path, false, &f, &files.err), CHEX_ERR_MISSING, "No such file");
    ck_assert_int_eq(folder_open(path, true, &f, &files.err), CHEX_OK);
    folder_close(&f);
    files_put("file", "");
    snprintf(path, sizeof(path), "%s/file/new", files.base);
    files_expect_error(folder_open(path, true, &f, &files.err), CHEX_ERR_WRITE, "cannot create the folder");
    snprintf(path, sizeof(path), "%s/file", files.base);
    files_expect_error(folder_open(path, true, &f, &files.err), CHEX_ERR_WRITE, "cannot open the folder");
    f = (struct folder){0};
    folder_close(&f); /* a zeroed one: fd 0 is not closed */
    ck_assert_int_ge(fcntl(0, F_GETFD), 0);
}

/* Otherwise a power loss could remove a whole data set. */
TEST(the_name_of_a_new_folder_is_synced)
{
    const char *tails[] = {"/synced", "/synced///"};
    char path[600];
    struct folder f;
    enum chex_status status;

    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s%s", files.base, tails[i]);
        calls_fail(CALL_SYNC, 1, true, EIO);
        status = folder_open(path, true, &f, &files.err);
        ck_assert_uint_eq(calls_end(), 1);
        files_expect_error(status, CHEX_ERR_WRITE, "cannot create the folder");
        calls_fail(CALL_SYNC, 1, true, EINVAL);
        status = folder_open(path, true, &f, &files.err);
        ck_assert_uint_eq(calls_end(), 1);
        ck_assert_int_eq(status, CHEX_OK);
        folder_close(&f);
    }
    calls_fail(CALL_SYNC, 1, true, EIO);
    status = folder_open(path, false, &f, &files.err);
    ck_assert_uint_eq(calls_end(), 0);
    ck_assert_int_eq(status, CHEX_OK);
    folder_close(&f);
}

TEST(a_file_that_is_not_there_is_removed_already)
{
    files_put("a", "x");
    ck_assert_int_eq(folder_remove(&files.folder, "a", &files.err), CHEX_OK);
    ck_assert(!files_has("a"));
    ck_assert_int_eq(folder_remove(&files.folder, "a", &files.err), CHEX_OK);
    ck_assert_int_eq(mkdirat(files.folder.fd, "d", 0777), 0);
    files_expect_error(folder_remove(&files.folder, "d", &files.err), CHEX_ERR_WRITE, "cannot remove");
    ck_assert(files_has("d"));
}

TEST(a_folder_that_is_moved_meanwhile_stays_the_same)
{
    char moved[600];
    struct safe_file *f = files_create("a", SAFE_FILE_NEW, 0);

    snprintf(moved, sizeof(moved), "%s-moved", files.base);
    ck_assert_int_eq(rename(files.base, moved), 0);
    ck_assert_int_eq(safe_file_write(f, "x", 1, &files.err), CHEX_OK);
    ck_assert_int_eq(safe_file_commit(f, true, &files.err), CHEX_OK);
    files_expect("a", "x");
}

static mode_t
mode_of(int folder_fd, const char *name)
{
    struct stat st;

    ck_assert_int_eq(fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

TEST(a_scratch_folder_and_its_files_are_private_to_the_user)
{
    mode_t before = umask(0);
    struct folder scratch;
    struct lock lock;

    files_expect_error(folder_open_private(&files.folder, "scratch", false, &scratch, &files.err), CHEX_ERR_MISSING,
                       "cannot open the folder");
    ck_assert(scratch.fd == -1 && !scratch.path);
    ck_assert_int_eq(folder_open_private(&files.folder, "scratch", true, &scratch, &files.err), CHEX_OK);
    ck_assert_int_eq(safe_file_put(&scratch, "a", "x", 1, &files.err), CHEX_OK);
    ck_assert_int_eq(lock_take(&lock, &scratch, false, &files.err), CHEX_OK);
    umask(before);
    ck_assert_uint_eq(mode_of(files.folder.fd, "scratch"), 0700);
    ck_assert_uint_eq(mode_of(scratch.fd, "a"), 0600);
    ck_assert_uint_eq(mode_of(scratch.fd, LOCK_NAME), 0600);
    ck_assert_int_eq(lock_drop(&lock, &files.err), CHEX_OK);
    folder_close(&scratch);
    /* An existing folder with other permissions is restricted. */
    ck_assert_int_eq(fchmodat(files.folder.fd, "scratch", 02755, 0), 0);
    ck_assert_int_eq(folder_open_private(&files.folder, "scratch", true, &scratch, &files.err), CHEX_OK);
    ck_assert_uint_eq(mode_of(files.folder.fd, "scratch"), 0700);
    folder_close(&scratch);
}

TEST(a_link_or_a_folder_writable_by_others_is_refused_as_scratch_folder)
{
    static const mode_t modes[] = {0777, 01777, 0770, 0720, 0702};
    struct folder scratch;

    ck_assert_int_eq(mkdirat(files.folder.fd, "scratch", 0700), 0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        ck_assert_int_eq(fchmodat(files.folder.fd, "scratch", modes[i], 0), 0);
        files_expect_error(folder_open_private(&files.folder, "scratch", true, &scratch, &files.err), CHEX_ERR_USAGE,
                           "other users may write to the folder");
        ck_assert_uint_eq(mode_of(files.folder.fd, "scratch"), modes[i]);
    }
    ck_assert_int_eq(fchmodat(files.folder.fd, "scratch", 0755, 0), 0);
    ck_assert_int_eq(symlinkat("scratch", files.folder.fd, "link"), 0);
    files_expect_error(folder_open_private(&files.folder, "link", true, &scratch, &files.err), CHEX_ERR_USAGE,
                       "is a symbolic link");
    ck_assert_uint_eq(mode_of(files.folder.fd, "scratch"), 0755);
    files_put("file", "");
    files_expect_error(folder_open_private(&files.folder, "file", true, &scratch, &files.err), CHEX_ERR_WRITE,
                       "cannot open the folder");
}

/* ---- new files ------------------------------------------------------------------------------------------------ */

TEST(a_new_file_has_its_name_only_after_commit)
{
    struct safe_file *f = files_create("a", SAFE_FILE_NEW, 0);

    ck_assert_int_eq(safe_file_write(f, "one ", 4, &files.err), CHEX_OK);
    ck_assert_int_eq(safe_file_write(f, "", 0, &files.err), CHEX_OK);
    ck_assert_int_eq(safe_file_write(f, "two", 3, &files.err), CHEX_OK);
    ck_assert_int_eq(safe_file_pwrite(f, 1, "N", 1, &files.err), CHEX_OK);
    ck_assert(files_has(files_temporary("a")) && !files_has("a"));
    ck_assert_int_eq(safe_file_commit(f, true, &files.err), CHEX_OK);
    ck_assert(!files_has(files_temporary("a")));
    files_expect("a", "oNe two");
}

TEST(an_abandoned_new_file_leaves_nothing)
{
    struct safe_file *f = files_create("a", SAFE_FILE_NEW, 0);

    ck_assert_int_eq(safe_file_write(f, "x", 1, &files.err), CHEX_OK);
    safe_file_free(f);
    ck_assert(!files_has(files_temporary("a")) && !files_has("a"));
    safe_file_free(NULL);
}

TEST(a_file_is_replaced_atomically)
{
    struct safe_file *f;

    files_put("a", "the old text");
    f = files_create("a", SAFE_FILE_NEW, 0);
    ck_assert_int_eq(safe_file_write(f, "new", 3, &files.err), CHEX_OK);
    files_expect("a", "the old text");
    ck_assert_int_eq(safe_file_commit(f, false, &files.err), CHEX_OK);
    files_expect("a", "new");
    ck_assert_int_eq(safe_file_put(&files.folder, "a", "third", 5, &files.err), CHEX_OK);
    files_expect("a", "third");
    ck_assert_int_eq(safe_file_put(&files.folder, "empty", NULL, 0, &files.err), CHEX_OK);
    files_expect("empty", "");
}

/* A process with this number on another host writes to the same folder over a network. */
TEST(the_temporary_file_of_a_rival_is_neither_overwritten_nor_removed)
{
    struct safe_file *f;

    files_put(files_temporary("a"), "the rival's");
    ck_assert_int_eq(safe_file_create(&files.folder, "a", SAFE_FILE_NEW, 0, &f, &files.err), CHEX_OK);
    ck_assert_int_eq(safe_file_write(f, "ours", 4, &files.err), CHEX_OK);
    files_expect(files_temporary("a"), "the rival's");
    ck_assert_int_eq(safe_file_commit(f, true, &files.err), CHEX_OK);
    files_expect("a", "ours");
    files_expect(files_temporary("a"), "the rival's");
}

TEST(a_new_file_that_cannot_be_renamed_is_removed)
{
    struct safe_file *f = files_create("d", SAFE_FILE_NEW, 0);

    ck_assert_int_eq(mkdirat(files.folder.fd, "d", 0777), 0);
    files_expect_error(safe_file_commit(f, true, &files.err), CHEX_ERR_WRITE, "cannot rename to");
    ck_assert(!files_has(files_temporary("d")));
}

TEST(a_folder_that_takes_no_files_is_a_write_error)
{
    struct folder proc;
    struct safe_file *f;

    /* Nobody can create files there, not even root. */
    ck_assert_int_eq(folder_open("/proc/self", false, &proc, &files.err), CHEX_OK);
    files_expect_error(safe_file_create(&proc, "a", SAFE_FILE_NEW, 0, &f, &files.err), CHEX_ERR_WRITE,
                       "cannot create '/proc/self/a'");
    folder_close(&proc);
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */

TEST(a_part_survives_and_goes_on)
{
    struct safe_file *f = files_create("s", SAFE_FILE_PARTIAL, 8);
    uint8_t back[16];
    size_t got;

    ck_assert_int_eq(safe_file_pwrite(f, 4, "late", 4, &files.err), CHEX_OK);
    safe_file_free(f);
    ck_assert(files_has(".s.part") && !files_has("s"));
    f = files_create("s", SAFE_FILE_PARTIAL, 8);
    ck_assert_int_eq(safe_file_pwrite(f, 0, "soon", 4, &files.err), CHEX_OK);
    ck_assert_int_eq(safe_file_pread(f, 0, back, sizeof(back), &got, &files.err), CHEX_OK);
    ck_assert_uint_eq(got, 8);
    ck_assert_mem_eq(back, "soonlate", 8);
    ck_assert_int_eq(safe_file_commit(f, true, &files.err), CHEX_OK);
    ck_assert(!files_has(".s.part"));
    files_expect("s", "soonlate");
}

/* Old content from a damaged file system or a copy would get into the shard, outside its checksum. */
TEST(a_part_has_its_size_from_the_start)
{
    struct safe_file *f = files_create("s", SAFE_FILE_PARTIAL, 100000);

    ck_assert_int_eq(files_size(".s.part"), 100000);
    safe_file_free(f);
    files_put(".t.part", "0123456789");
    f = files_create("t", SAFE_FILE_PARTIAL, 4);
    ck_assert_int_eq(safe_file_commit(f, true, &files.err), CHEX_OK);
    files_expect("t", "0123");
}

TEST(a_part_that_cannot_be_renamed_stays)
{
    struct safe_file *f = files_create("d", SAFE_FILE_PARTIAL, 4);

    ck_assert_int_eq(mkdirat(files.folder.fd, "d", 0777), 0);
    files_expect_error(safe_file_commit(f, true, &files.err), CHEX_ERR_WRITE, "cannot rename to");
    ck_assert(files_has(".d.part"));
}

TEST(a_link_in_the_place_of_a_part_is_not_followed)
{
    struct safe_file *f;

    files_put("precious", "do not touch");
    ck_assert_int_eq(symlinkat("precious", files.folder.fd, ".s.part"), 0);
    files_expect_error(safe_file_create(&files.folder, "s", SAFE_FILE_PARTIAL, 4, &f, &files.err), CHEX_ERR_WRITE,
                       "cannot create");
    files_expect("precious", "do not touch");
    ck_assert_int_eq(symlinkat("precious", files.folder.fd, files_temporary("n")), 0);
    ck_assert_int_eq(safe_file_put(&files.folder, "n", "new", 3, &files.err), CHEX_OK);
    files_expect("n", "new");
    files_expect("precious", "do not touch");
}

/* ---- limits --------------------------------------------------------------------------------------------------- */

static void
limit_file_size(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN); /* as the tools do */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(a_file_size_limit_is_a_write_error_and_leaves_nothing)
{
    static const char large[20000];
    struct safe_file *f;

    limit_file_size(10000);
    files_expect_error(safe_file_put(&files.folder, "a", large, sizeof(large), &files.err), CHEX_ERR_WRITE,
                       "File too large");
    ck_assert(!files_has("a") && !files_has(files_temporary("a")));
    f = files_create("b", SAFE_FILE_NEW, 0);
    ck_assert_int_eq(safe_file_write(f, large, 9000, &files.err), CHEX_OK);
    files_expect_error(safe_file_write(f, large, 9000, &files.err), CHEX_ERR_WRITE, "cannot write");
    safe_file_free(f);
    ck_assert(!files_has("b") && !files_has(files_temporary("b")));
    limit_file_size(RLIM_INFINITY);
}

TEST(a_part_that_is_too_large_is_refused_at_once)
{
    struct safe_file *f;

    limit_file_size(10000);
    files_expect_error(safe_file_create(&files.folder, "s", SAFE_FILE_PARTIAL, 20000, &f, &files.err), CHEX_ERR_WRITE,
                       "File too large");
    ck_assert_ptr_null(f);
    ck_assert(!files_has("s"));
    limit_file_size(RLIM_INFINITY);
}
