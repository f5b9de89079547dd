/*
 * test_source.c - finds image files (input_scan.h), and which are missing (coverage.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "plan/coverage.h"
#include "source_fixture.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

static void
link_to(const char *target, const char *name)
{
    ck_assert_int_eq(symlink(target, inputs_at(name)), 0);
}

/* Requires these files, as paths below the folder of this test. */
static void
expect_files(const char *wanted)
{
    char text[2048] = "";
    size_t used = 0;

    for (size_t i = 0; i < inputs.source.count; i++) {
        char path[4096];

        ck_assert_int_eq(source_path(&inputs.source, &inputs.source.file[i], path, sizeof(path), &inputs.err), CHEX_OK);
        ck_assert_int_eq(strncmp(path, inputs.base, strlen(inputs.base)), 0);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
                                 path + strlen(inputs.base) + 1);
        ck_assert_ptr_eq(source_find(&inputs.source, inputs.source.file[i].name), &inputs.source.file[i]);
    }
    ck_assert_str_eq(text, wanted);
    ck_assert_ptr_null(source_find(&inputs.source, "no such image.png"));
    ck_assert_ptr_null(source_find(&inputs.source, ""));
}

static void
expect_found(const char *a, const char *b, const char *wanted)
{
    ck_assert_msg(inputs_scan(a, b) == CHEX_OK, "%s", inputs.err.text);
    expect_files(wanted);
}

static void
expect_error(const char *a, const char *b, enum chex_status status, const char *text)
{
    ck_assert_int_eq(inputs_scan(a, b), status);
    ck_assert_msg(strstr(inputs.err.text, text), "\"%s\" is not in \"%s\"", text, inputs.err.text);
}

/* ---- source --------------------------------------------------------------------------------------------------- */

TEST_CASE("plan", "source", inputs_setup, inputs_teardown);

TEST(images_are_found_in_folders_of_folders)
{
    inputs_folder("b");
    inputs_folder("b/c");
    inputs_folder("a.png"); /* a folder by that name is one */
    inputs_file("b/c/2.png", "");
    inputs_file("b/1.PNG", "");
    inputs_file("a.png/3.jpg", "");
    inputs_file("a.png/4.Jpeg", "");
    inputs_file("5.tif", "");
    inputs_file("png", "");
    inputs_file("6.png.txt", "");
    inputs_file("7 with blank.png", "");
    expect_found(inputs.base, NULL, "b/1.PNG b/c/2.png a.png/3.jpg a.png/4.Jpeg 7 with blank.png");
    ck_assert_uint_eq(inputs.source.folder_count, 4);
    ck_assert_uint_eq(inputs.source.repeated, 0);
}

TEST(hidden_files_and_folders_are_skipped)
{
    inputs_folder(".thumbnails");
    inputs_file(".thumbnails/1.png", "");
    inputs_file("._2.png", "");
    inputs_file(".png", "");
    inputs_file("3.png", "");
    expect_found(inputs.base, NULL, "3.png");
    /* A folder that the user names is searched even if it is hidden. */
    expect_found(inputs_at(".thumbnails"), NULL, ".thumbnails/1.png");
}

TEST(an_empty_folder_has_no_images)
{
    expect_found(inputs.base, NULL, "");
    ck_assert_uint_eq(inputs.source.count, 0);
    ck_assert_uint_eq(inputs.source.input_count, 1);
}

TEST(loops_of_links_end)
{
    inputs_folder("a");
    inputs_folder("b");
    inputs_file("a/1.png", "");
    inputs_file("b/2.png", "");
    link_to("..", "a/up");
    link_to(".", "a/same");
    link_to("../b", "a/over");
    link_to("../a", "b/over");
    link_to("loop", "loop");
    expect_found(inputs.base, NULL, "a/1.png a/over/2.png"); /* at the first place */
    ck_assert_uint_gt(inputs.source.repeated, 0);
    expect_found(inputs_at("a"), NULL, "a/1.png a/over/2.png");
}

/* Two links to a folder with two links to the next, and so on: 2^24 paths to the last. */
TEST(links_do_not_multiply)
{
    char name[32], target[32];

    for (unsigned i = 0; i < 24; i++) {
        snprintf(name, sizeof(name), "d%02u", i);
        inputs_folder(name);
        snprintf(target, sizeof(target), "../d%02u", i + 1);
        snprintf(name, sizeof(name), "d%02u/one", i);
        link_to(target, name);
        snprintf(name, sizeof(name), "d%02u/two", i);
        link_to(target, name);
    }
    inputs_folder("d24");
    inputs_file("d24/1.png", "");
    ck_assert_msg(inputs_scan(inputs_at("d00"), NULL) == CHEX_OK, "%s", inputs.err.text);
    ck_assert_uint_eq(inputs.source.count, 1);
    ck_assert_uint_eq(inputs.source.folder_count, 1);
}

static const char *searched;

static enum chex_status
search(struct chex_error *e)
{
    enum chex_status status = inputs_scan(searched, NULL);

    *e = inputs.err;
    return status;
}

/*
 * Makes each call of a search fail once: transient failures are tried again, and the next attempt lists nothing twice.
 */
TEST(a_transient_failure_loses_no_image)
{
    static const enum call kinds[] = {CALL_OPEN, CALL_STAT, CALL_LIST};
    static const int errors[] = {EIO, ESTALE, EINTR};

    inputs_folder("a");
    inputs_folder("b");
    inputs_folder("a/c");
    inputs_file("a/1.png", "same");
    inputs_file("b/1.png", "same");
    inputs_file("a/c/2.png", "");
    inputs_file("a/images.zip", "");
    link_to("../a", "b/over");
    for (size_t k = 0; k < 3 * 3; k++) {
        unsigned failed = 1;

        for (unsigned n = 1; failed > 0; n++) {
            calls_fail(kinds[k / 3], n, false, errors[k % 3]);
            ck_assert_int_eq(inputs_scan(inputs.base, NULL), CHEX_OK);
            failed = calls_end();
            expect_files("a/1.png a/c/2.png");
            ck_assert_uint_eq(inputs.source.unopened, 2); /* by two paths */
            ck_assert(n > 1 || failed > 0);
        }
    }
    /* A permanent failure is an error: if a folder cannot be read, its content is unknown. */
    searched = inputs.base;
    calls_each(CALL_OPEN, EIO, search, NULL, CHEX_ERR_READ, 99);
    calls_each(CALL_LIST, EIO, search, NULL, CHEX_ERR_READ, 99);
}

TEST(a_stop_ends_the_search)
{
    const char *paths[] = {inputs.base};
    atomic_bool stop = true;

    inputs_file("1.png", "");
    inputs.source.stop = &stop;
    ck_assert_int_eq(source_scan(paths, 1, &inputs.source, &inputs.err), CHEX_ERR_STOPPED);
}

TEST(links_to_files_and_folders_are_followed)
{
    inputs_folder("store");
    inputs_folder("images");
    inputs_file("store/1.png", "x");
    link_to("../store/1.png", "images/2.png");
    link_to("../store", "images/more");
    link_to("nowhere", "images/3.png"); /* it will be rejected when it is opened */
    expect_found(inputs_at("images"), NULL, "images/more/1.png images/2.png images/3.png");
}

TEST(copies_are_left_out_and_counted)
{
    inputs_folder("a");
    inputs_folder("b");
    inputs_folder("c");
    inputs_file("a/1.png", "same");
    inputs_file("b/1.png", "same");
    inputs_file("c/1.png", "same");
    inputs_file("c/2.png", "");
    expect_found(inputs.base, NULL, "a/1.png c/2.png");
    ck_assert_uint_eq(inputs.source.repeated, 2);
    expect_found(inputs.base, inputs.base, "a/1.png c/2.png");
    ck_assert_uint_eq(inputs.source.repeated, 6);
    expect_found(inputs.base, inputs_at("b"), "a/1.png c/2.png");
    ck_assert_uint_eq(inputs.source.repeated, 3);
}

TEST(a_name_with_two_contents_is_an_error)
{
    char wanted[2048];

    inputs_folder("a");
    inputs_folder("b");
    inputs_file("a/1.png", "one");
    inputs_file("b/1.png", "two");
    snprintf(wanted, sizeof(wanted), "'1.png' found twice with different content: '%s' and '%s'", inputs_at("a/1.png"),
             inputs_at("b/1.png"));
    expect_error(inputs.base, NULL, CHEX_ERR_USAGE, wanted);
    inputs_file("b/1.png", "three"); /* of another size */
    expect_error(inputs.base, NULL, CHEX_ERR_USAGE, wanted);
    unlink(inputs_at("b/1.png"));
    ck_assert_int_eq(mkfifo(inputs_at("b/1.png"), 0666), 0);
    expect_error(inputs.base, NULL, CHEX_ERR_USAGE, wanted); /* a FIFO: it must not wait for a writer */
}

/* The same size, too large for memory. */
TEST(large_files_of_one_name_are_compared_in_pieces)
{
    const off_t size = (off_t)1 << 40;

    inputs_folder("a");
    inputs_folder("b");
    inputs_file("a/1.png", "one");
    inputs_file("b/1.png", "two");
    if (truncate(inputs_at("a/1.png"), size) != 0 || truncate(inputs_at("b/1.png"), size) != 0)
        return; /* the file system does not support holes */
    expect_error(inputs.base, NULL, CHEX_ERR_USAGE, "found twice with different content");
}

TEST(the_order_of_the_inputs_does_not_matter)
{
    inputs_folder("a");
    inputs_folder("b");
    inputs_file("a/2.png", "");
    inputs_file("b/1.png", "");
    inputs_file("b/3.png", "");
    expect_found(inputs_at("a"), inputs_at("b"), "b/1.png a/2.png b/3.png");
    expect_found(inputs_at("b"), inputs_at("a"), "b/1.png a/2.png b/3.png");
    inputs_file("b/2.png", "other");
    expect_error(inputs_at("a"), inputs_at("b"), CHEX_ERR_USAGE, "'2.png' found twice");
    expect_error(inputs_at("b"), inputs_at("a"), CHEX_ERR_USAGE, "'2.png' found twice");
}

TEST(a_single_image_is_an_input_too)
{
    char here[1024];

    inputs_file("1.png", "");
    inputs_file("2.jpg", "");
    inputs_file("3.txt", "x");
    expect_found(inputs_at("1.png"), inputs_at("2.jpg"), "1.png 2.jpg");
    expect_found(inputs_at("1.png"), inputs_at("1.png"), "1.png");
    ck_assert_uint_eq(inputs.source.repeated, 1);
    expect_error(inputs_at("3.txt"), NULL, CHEX_ERR_MISSING, "neither a folder");
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    ck_assert_int_eq(chdir(inputs.base), 0);
    ck_assert_int_eq(inputs_scan("1.png", NULL), CHEX_OK);
    ck_assert_str_eq(inputs.source.folder[inputs.source.file[0].folder], ".");
    ck_assert_int_eq(chdir(here), 0);
}

TEST(paths_that_are_none_are_errors)
{
    char long_path[5000];

    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    expect_error(inputs_at("none"), NULL, CHEX_ERR_MISSING, "No such file");
    expect_error("", NULL, CHEX_ERR_USAGE, "an input path is empty");
    expect_error(long_path, NULL, CHEX_ERR_USAGE, "an input path is too long");
    long_path[4000] = '\0';
    expect_error(long_path, NULL, CHEX_ERR_MISSING, "cannot read");
    inputs_file("1.png", "");
    expect_error(inputs_at("1.png/x"), NULL, CHEX_ERR_MISSING, "Not a directory");
}

TEST(slashes_at_the_end_make_no_difference)
{
    char path[600];

    inputs_folder("a");
    inputs_file("a/1.png", "");
    snprintf(path, sizeof(path), "%s/a///", inputs.base);
    expect_found(path, NULL, "a/1.png");
}

/* The search ends at 32 levels. */
TEST(deep_folders_are_searched_and_too_deep_ones_are_not)
{
    char path[1024] = "", name[16];

    for (unsigned depth = 0; depth <= 40; depth++) {
        snprintf(name, sizeof(name), "%02u.png", depth);
        snprintf(path + 2 * depth, sizeof(path) - 2 * depth, "%s", name);
        inputs_file(path, "");
        strcpy(path + 2 * depth, "d/");
        path[2 * depth + 1] = '\0';
        inputs_folder(path);
        path[2 * depth + 1] = '/';
    }
    ck_assert_int_eq(inputs_scan(inputs.base, NULL), CHEX_OK);
    ck_assert_uint_eq(inputs.source.count, 33);
    ck_assert_ptr_nonnull(source_find(&inputs.source, "32.png"));
}

TEST(a_path_that_is_too_long_is_refused)
{
    char path[1024];
    size_t length;

    inputs_file("1.png", "");
    expect_found(inputs.base, NULL, "1.png");
    length = strlen(inputs_at("1.png"));
    ck_assert_int_eq(source_path(&inputs.source, inputs.source.file, path, length + 1, &inputs.err), CHEX_OK);
    ck_assert_int_eq(source_path(&inputs.source, inputs.source.file, path, length, &inputs.err), CHEX_ERR_LIMIT);
    /* In the root folder there is one slash, not two. */
    inputs.source.folder[0] = "/";
    ck_assert_int_eq(source_path(&inputs.source, inputs.source.file, path, sizeof(path), &inputs.err), CHEX_OK);
    ck_assert_str_eq(path, "/1.png");
}
