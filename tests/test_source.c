/*
 * test_source.c - which image files there are (input_scan.h), and which are missing (coverage.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "calls.h"
#include "cases.h"
#include "plan/coverage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

static char base[512];
static struct source source;
static struct chex_error err;

static void
setup(void)
{
    static unsigned count;

    snprintf(base, sizeof(base), "%s/source-%ld-%u", unit_folder(), (long)getpid(), count++);
    ck_assert_int_eq(mkdir(base, 0777), 0);
}

static void
teardown(void)
{
    source_release(&source);
}

/* A path below the folder of this test; static, four of them alive at a time. */
static const char *
at(const char *name)
{
    static char path[4][1024];
    static unsigned next;

    next = (next + 1) % 4;
    snprintf(path[next], sizeof(path[next]), "%s%s%s", base, name[0] ? "/" : "", name);
    return path[next];
}

static void
folder(const char *name)
{
    ck_assert_int_eq(mkdir(at(name), 0777), 0);
}

static void
file(const char *name, const char *content)
{
    FILE *f = fopen(at(name), "wb");

    ck_assert_ptr_nonnull(f);
    fputs(content, f);
    ck_assert_int_eq(fclose(f), 0);
}

static void
link_to(const char *target, const char *name)
{
    ck_assert_int_eq(symlink(target, at(name)), 0);
}

static enum chex_status
scan(const char *a, const char *b)
{
    const char *paths[2] = {a, b};

    source_release(&source);
    return source_scan(paths, b ? 2 : 1, &source, &err);
}

/* The files found, as paths below the folder of this test. */
static void
expect_files(const char *wanted)
{
    char text[2048] = "";
    size_t used = 0;

    for (size_t i = 0; i < source.count; i++) {
        char path[4096];

        ck_assert_int_eq(source_path(&source, &source.file[i], path, sizeof(path), &err), CHEX_OK);
        ck_assert_int_eq(strncmp(path, base, strlen(base)), 0);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", path + strlen(base) + 1);
        ck_assert_ptr_eq(source_find(&source, source.file[i].name), &source.file[i]);
    }
    ck_assert_str_eq(text, wanted);
    ck_assert_ptr_null(source_find(&source, "no such image.png"));
    ck_assert_ptr_null(source_find(&source, ""));
}

static void
expect_found(const char *a, const char *b, const char *wanted)
{
    ck_assert_msg(scan(a, b) == CHEX_OK, "%s", err.text);
    expect_files(wanted);
}

static void
expect_error(const char *a, const char *b, enum chex_status status, const char *text)
{
    ck_assert_int_eq(scan(a, b), status);
    ck_assert_msg(strstr(err.text, text), "\"%s\" is not in \"%s\"", text, err.text);
}

/* ---- source --------------------------------------------------------------------------------------------------- */

START_TEST(images_are_found_in_folders_of_folders)
{
    folder("b");
    folder("b/c");
    folder("a.png"); /* a folder by that name is one */
    file("b/c/2.png", "");
    file("b/1.PNG", "");
    file("a.png/3.jpg", "");
    file("a.png/4.Jpeg", "");
    file("5.tif", "");
    file("png", "");
    file("6.png.txt", "");
    file("7 with blank.png", "");
    expect_found(base, NULL, "b/1.PNG b/c/2.png a.png/3.jpg a.png/4.Jpeg 7 with blank.png");
    ck_assert_uint_eq(source.folder_count, 4);
    ck_assert_uint_eq(source.repeated, 0);
}
END_TEST

START_TEST(hidden_files_and_folders_are_passed_over)
{
    folder(".thumbnails");
    file(".thumbnails/1.png", "");
    file("._2.png", "");
    file(".png", "");
    file("3.png", "");
    expect_found(base, NULL, "3.png");
    /* A folder that the user names is meant. */
    expect_found(at(".thumbnails"), NULL, ".thumbnails/1.png");
}
END_TEST

START_TEST(an_empty_folder_has_no_images)
{
    expect_found(base, NULL, "");
    ck_assert_uint_eq(source.count, 0);
    ck_assert_uint_eq(source.input_count, 1);
}
END_TEST

START_TEST(loops_of_links_end)
{
    folder("a");
    folder("b");
    file("a/1.png", "");
    file("b/2.png", "");
    link_to("..", "a/up");
    link_to(".", "a/same");
    link_to("../b", "a/over");
    link_to("../a", "b/over");
    link_to("loop", "loop");
    expect_found(base, NULL, "a/1.png a/over/2.png"); /* where it is found first */
    ck_assert_uint_gt(source.repeated, 0);
    expect_found(at("a"), NULL, "a/1.png a/over/2.png");
}
END_TEST

/* Two links to a folder with two links to the next, and so on: 2^24 ways to the last. */
START_TEST(links_do_not_multiply)
{
    char name[32], target[32];

    for (unsigned i = 0; i < 24; i++) {
        snprintf(name, sizeof(name), "d%02u", i);
        folder(name);
        snprintf(target, sizeof(target), "../d%02u", i + 1);
        snprintf(name, sizeof(name), "d%02u/one", i);
        link_to(target, name);
        snprintf(name, sizeof(name), "d%02u/two", i);
        link_to(target, name);
    }
    folder("d24");
    file("d24/1.png", "");
    ck_assert_msg(scan(at("d00"), NULL) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(source.count, 1);
    ck_assert_uint_eq(source.folder_count, 1);
}
END_TEST

static const char *searched;

static enum chex_status
search(struct chex_error *e)
{
    enum chex_status status = scan(searched, NULL);

    *e = err;
    return status;
}

/* Each call of a search once: whatever passes is tried again, and nothing is twice in the list that is begun anew. */
START_TEST(what_fails_in_passing_loses_no_image)
{
    static const enum call kinds[] = {CALL_OPEN, CALL_STAT, CALL_LIST};
    static const int errors[] = {EIO, ESTALE, EINTR};

    folder("a");
    folder("b");
    folder("a/c");
    file("a/1.png", "same");
    file("b/1.png", "same");
    file("a/c/2.png", "");
    file("a/images.zip", "");
    link_to("../a", "b/over");
    for (size_t k = 0; k < 3 * 3; k++) {
        unsigned failed = 1;

        for (unsigned n = 1; failed > 0; n++) {
            calls_fail(kinds[k / 3], n, false, errors[k % 3]);
            ck_assert_int_eq(scan(base, NULL), CHEX_OK);
            failed = calls_end();
            expect_files("a/1.png a/c/2.png");
            ck_assert_uint_eq(source.unopened, 2); /* by two ways */
            ck_assert(n > 1 || failed > 0);
        }
    }
    /* What does not pass is an error: of a folder that cannot be read nobody knows what is missing. */
    searched = base;
    calls_each(CALL_OPEN, EIO, search, NULL, CHEX_ERR_READ, 99);
    calls_each(CALL_LIST, EIO, search, NULL, CHEX_ERR_READ, 99);
}
END_TEST

START_TEST(a_stop_ends_the_search)
{
    const char *paths[] = {base};
    atomic_bool stop = true;

    file("1.png", "");
    source.stop = &stop;
    ck_assert_int_eq(source_scan(paths, 1, &source, &err), CHEX_ERR_STOPPED);
}
END_TEST

START_TEST(links_to_files_and_folders_are_followed)
{
    folder("store");
    folder("images");
    file("store/1.png", "x");
    link_to("../store/1.png", "images/2.png");
    link_to("../store", "images/more");
    link_to("nowhere", "images/3.png"); /* it will be rejected when it is opened */
    expect_found(at("images"), NULL, "images/more/1.png images/2.png images/3.png");
}
END_TEST

START_TEST(copies_are_left_out_and_counted)
{
    folder("a");
    folder("b");
    folder("c");
    file("a/1.png", "same");
    file("b/1.png", "same");
    file("c/1.png", "same");
    file("c/2.png", "");
    expect_found(base, NULL, "a/1.png c/2.png");
    ck_assert_uint_eq(source.repeated, 2);
    expect_found(base, base, "a/1.png c/2.png");
    ck_assert_uint_eq(source.repeated, 6);
    expect_found(base, at("b"), "a/1.png c/2.png");
    ck_assert_uint_eq(source.repeated, 3);
}
END_TEST

START_TEST(a_name_with_two_contents_is_an_error)
{
    char wanted[2048];

    folder("a");
    folder("b");
    file("a/1.png", "one");
    file("b/1.png", "two");
    snprintf(wanted, sizeof(wanted), "'1.png' found twice with different content: '%s' and '%s'", at("a/1.png"),
             at("b/1.png"));
    expect_error(base, NULL, CHEX_ERR_USAGE, wanted);
    file("b/1.png", "three"); /* of another size */
    expect_error(base, NULL, CHEX_ERR_USAGE, wanted);
    unlink(at("b/1.png"));
    ck_assert_int_eq(mkfifo(at("b/1.png"), 0666), 0);
    expect_error(base, NULL, CHEX_ERR_USAGE, wanted); /* and it does not wait for a writer */
}
END_TEST

/* Of one size, which no memory has room for. */
START_TEST(large_files_of_one_name_are_compared_in_pieces)
{
    const off_t size = (off_t)1 << 40;

    folder("a");
    folder("b");
    file("a/1.png", "one");
    file("b/1.png", "two");
    if (truncate(at("a/1.png"), size) != 0 || truncate(at("b/1.png"), size) != 0)
        return; /* a file system without holes */
    expect_error(base, NULL, CHEX_ERR_USAGE, "found twice with different content");
}
END_TEST

START_TEST(the_order_of_the_inputs_does_not_matter)
{
    folder("a");
    folder("b");
    file("a/2.png", "");
    file("b/1.png", "");
    file("b/3.png", "");
    expect_found(at("a"), at("b"), "b/1.png a/2.png b/3.png");
    expect_found(at("b"), at("a"), "b/1.png a/2.png b/3.png");
    file("b/2.png", "other");
    expect_error(at("a"), at("b"), CHEX_ERR_USAGE, "'2.png' found twice");
    expect_error(at("b"), at("a"), CHEX_ERR_USAGE, "'2.png' found twice");
}
END_TEST

START_TEST(a_single_image_is_an_input_too)
{
    char here[1024];

    file("1.png", "");
    file("2.jpg", "");
    file("3.txt", "x");
    expect_found(at("1.png"), at("2.jpg"), "1.png 2.jpg");
    expect_found(at("1.png"), at("1.png"), "1.png");
    ck_assert_uint_eq(source.repeated, 1);
    expect_error(at("3.txt"), NULL, CHEX_ERR_USAGE, "neither a folder");
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    ck_assert_int_eq(chdir(base), 0);
    ck_assert_int_eq(scan("1.png", NULL), CHEX_OK);
    ck_assert_str_eq(source.folder[source.file[0].folder], ".");
    ck_assert_int_eq(chdir(here), 0);
}
END_TEST

START_TEST(paths_that_are_none_are_errors)
{
    char long_path[5000];

    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    expect_error(at("none"), NULL, CHEX_ERR_MISSING, "No such file");
    expect_error("", NULL, CHEX_ERR_USAGE, "an input path is empty");
    expect_error(long_path, NULL, CHEX_ERR_USAGE, "an input path is too long");
    long_path[4000] = '\0';
    expect_error(long_path, NULL, CHEX_ERR_MISSING, "cannot read");
    file("1.png", "");
    expect_error(at("1.png/x"), NULL, CHEX_ERR_MISSING, "Not a directory");
}
END_TEST

START_TEST(slashes_at_the_end_make_no_difference)
{
    char path[600];

    folder("a");
    file("a/1.png", "");
    snprintf(path, sizeof(path), "%s/a///", base);
    expect_found(path, NULL, "a/1.png");
}
END_TEST

/* The search ends 32 folders down. */
START_TEST(deep_folders_are_searched_and_too_deep_ones_are_not)
{
    char path[1024] = "", name[16];

    for (unsigned depth = 0; depth <= 40; depth++) {
        snprintf(name, sizeof(name), "%02u.png", depth);
        snprintf(path + 2 * depth, sizeof(path) - 2 * depth, "%s", name);
        file(path, "");
        strcpy(path + 2 * depth, "d/");
        path[2 * depth + 1] = '\0';
        folder(path);
        path[2 * depth + 1] = '/';
    }
    ck_assert_int_eq(scan(base, NULL), CHEX_OK);
    ck_assert_uint_eq(source.count, 33);
    ck_assert_ptr_nonnull(source_find(&source, "32.png"));
}
END_TEST

START_TEST(a_path_that_is_too_long_is_no_path)
{
    char path[1024];
    size_t length;

    file("1.png", "");
    expect_found(base, NULL, "1.png");
    length = strlen(at("1.png"));
    ck_assert_int_eq(source_path(&source, source.file, path, length + 1, &err), CHEX_OK);
    ck_assert_int_eq(source_path(&source, source.file, path, length, &err), CHEX_ERR_LIMIT);
    /* In the root folder there is one slash, not two. */
    source.folder[0] = "/";
    ck_assert_int_eq(source_path(&source, source.file, path, sizeof(path), &err), CHEX_OK);
    ck_assert_str_eq(path, "/1.png");
}
END_TEST

/* ---- preflight ------------------------------------------------------------------------------------------------ */

/* The names of the data set's form, in order: images 0 to 9 of each patient. */
static struct labels
labels_of(size_t rows)
{
    const struct labels_options options = {.empty_is_no_finding = true}; /* an empty label is short */
    char *csv = malloc(64 + rows * 32);
    size_t used = (size_t)sprintf(csv, "Image Index,Finding Labels,Patient ID\n");
    struct labels labels = {0};

    for (size_t i = 0; i < rows; i++)
        used += (size_t)sprintf(csv + used, "%08zu_%03zu.png,,%zu\n", i / 10 + 1, i % 10, i / 10 + 1);
    ck_assert_int_eq(labels_read(unit_file("whole.csv", csv, used), &options, &labels, &err), CHEX_OK);
    free(csv);
    return labels;
}

/* README_CHESTXRAY.pdf of the data set: 4,999 images in images_001, 10,000 in the next ten, 7,121 in images_012. */
START_TEST(images_are_counted_by_the_archive_that_holds_them)
{
    enum { ROWS = 112120, FIRST = 4999, EACH = 10000, LAST = 7121 };
    struct labels labels = labels_of(ROWS);
    struct source_file *found = calloc(ROWS, sizeof(*found));
    struct source whole = {.file = found};
    bool *missing = calloc(ROWS, 1), *skip = calloc(ROWS, 1);
    struct preflight p;

    /* images_003 was not unpacked, one image of images_012 is lost, and one of images_001 takes no part. */
    for (size_t i = 0; i < ROWS; i++)
        if ((i < FIRST + EACH || i >= FIRST + 2 * EACH) && i != ROWS - 1)
            found[whole.count++].name = labels.entry[i].name;
    skip[0] = true;
    preflight_count(&labels, skip, &whole, missing, &p);
    ck_assert(p.whole);
    ck_assert_uint_eq(p.wanted, ROWS - 1);
    ck_assert_uint_eq(p.missing, EACH + 1);
    ck_assert_uint_eq(p.found, ROWS - 1 - EACH - 1);
    ck_assert_uint_eq(p.extra, 1); /* that of the row that takes no part */
    for (unsigned i = 0; i < PREFLIGHT_ARCHIVES; i++) {
        size_t wanted = i == 0 ? FIRST - 1 : i == 11 ? LAST : EACH;

        ck_assert_uint_eq(p.archive[i].wanted, wanted);
        ck_assert_uint_eq(p.archive[i].found, i == 2 ? 0 : i == 11 ? LAST - 1 : wanted);
    }
    for (unsigned i = 0; i < PREFLIGHT_SAMPLES; i++)
        ck_assert_ptr_eq(p.sample[i], labels.entry[FIRST + EACH + i].name);
    for (size_t i = 0; i < ROWS; i++)
        if (missing[i] != ((i >= FIRST + EACH && i < FIRST + 2 * EACH) || i == ROWS - 1))
            ck_abort_msg("row %zu", i);
    free(found);
    free(missing);
    free(skip);
    labels_release(&labels);
}
END_TEST

START_TEST(a_part_of_the_data_set_has_no_archives)
{
    struct labels labels = labels_of(30);
    struct preflight p;

    preflight_count(&labels, NULL, &source, NULL, &p);
    ck_assert(!p.whole);
    ck_assert(p.wanted == 30 && p.missing == 30 && p.found == 0 && p.extra == 0);
    ck_assert_str_eq(p.sample[4], "00000001_004.png");
    file("00000002_003.png", "");
    file("unknown.png", "");
    ck_assert_int_eq(scan(base, NULL), CHEX_OK);
    preflight_count(&labels, NULL, &source, NULL, &p);
    ck_assert(p.missing == 29 && p.found == 1 && p.extra == 1);
    labels_release(&labels);
}
END_TEST

void
source_case(Suite *suite)
{
    TCase *tests = tcase_create("source");
    TCase *preflight = tcase_create("preflight");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, images_are_found_in_folders_of_folders);
    tcase_add_test(tests, hidden_files_and_folders_are_passed_over);
    tcase_add_test(tests, an_empty_folder_has_no_images);
    tcase_add_test(tests, loops_of_links_end);
    tcase_add_test(tests, links_do_not_multiply);
    tcase_add_test(tests, what_fails_in_passing_loses_no_image);
    tcase_add_test(tests, a_stop_ends_the_search);
    tcase_add_test(tests, links_to_files_and_folders_are_followed);
    tcase_add_test(tests, copies_are_left_out_and_counted);
    tcase_add_test(tests, a_name_with_two_contents_is_an_error);
    tcase_add_test(tests, large_files_of_one_name_are_compared_in_pieces);
    tcase_add_test(tests, the_order_of_the_inputs_does_not_matter);
    tcase_add_test(tests, a_single_image_is_an_input_too);
    tcase_add_test(tests, paths_that_are_none_are_errors);
    tcase_add_test(tests, slashes_at_the_end_make_no_difference);
    tcase_add_test(tests, deep_folders_are_searched_and_too_deep_ones_are_not);
    tcase_add_test(tests, a_path_that_is_too_long_is_no_path);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(preflight, setup, teardown);
    tcase_add_test(preflight, images_are_counted_by_the_archive_that_holds_them);
    tcase_add_test(preflight, a_part_of_the_data_set_has_no_archives);
    suite_add_tcase(suite, preflight);
}
