/*
 * unit.c - runs the unit tests (Check)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

/* Empties and removes a folder and its subfolders; the tests make only few. */
static void
remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;

    while (dir && (d = readdir(dir))) {
        char child[1024];

        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        snprintf(child, sizeof(child), "%s/%s", path, d->d_name);
        if (unlink(child) != 0)
            remove_folder(child);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

const char *
unit_folder(void)
{
    if (!folder[0]) {
        const char *base = getenv("TMPDIR");

        snprintf(folder, sizeof(folder), "%s/chex-unit-XXXXXX", base ? base : "/tmp");
        /* Also called from main(), where Check cannot handle assertions. */
        if (!mkdtemp(folder)) {
            perror(folder);
            exit(EXIT_FAILURE);
        }
    }
    return folder;
}

const char *
unit_file(const char *name, const void *data, size_t size)
{
    static char path[1024];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", unit_folder(), name);
    f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

unsigned
unit_count_files(const char *path)
{
    DIR *dir = opendir(path);
    unsigned count = 0;

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *d; (d = readdir(dir));)
        count += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
    closedir(dir);
    return count;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

#define SUITES 64

static struct unit_item *items;
static size_t item_count;
static struct suite {
    const char *name;
    Suite *suite;
} suites[SUITES];

void
unit_add(struct unit_item *item)
{
    item->next = items;
    items = item;
    item_count++;
}

/* The order of constructors is unspecified. */
static int
by_place(const void *a, const void *b)
{
    const struct unit_item *one = *(struct unit_item *const *)a, *other = *(struct unit_item *const *)b;
    int order = strcmp(one->file, other->file);

    return order != 0 ? order : (one->line > other->line) - (one->line < other->line);
}

static Suite *
suite_of(const char *name)
{
    size_t i;

    for (i = 0; i < SUITES && suites[i].name; i++)
        if (strcmp(suites[i].name, name) == 0)
            return suites[i].suite;
    if (i == SUITES) {
        fprintf(stderr, "unit.c: more than %d suites\n", SUITES);
        exit(EXIT_FAILURE);
    }
    suites[i] = (struct suite){name, suite_create(name)};
    return suites[i].suite;
}

static void
make_suites(void)
{
    struct unit_item **sorted = calloc(item_count, sizeof(*sorted)), *item = items;
    const struct unit_item *last = NULL;
    TCase *tests = NULL;
    size_t i;

    for (i = 0; sorted && i < item_count; i++, item = item->next)
        sorted[i] = item;
    if (sorted)
        qsort(sorted, item_count, sizeof(*sorted), by_place);
    for (i = 0; sorted && i < item_count; i++) {
        item = sorted[i];
        if (item->suite) {
            last = item;
            tests = item->left_out ? NULL : tcase_create(item->name);
            if (tests) {
                tcase_add_checked_fixture(tests, item->setup, item->teardown);
                suite_add_tcase(suite_of(item->suite), tests);
            }
        } else if (!last || strcmp(last->file, item->file) != 0) {
            fprintf(stderr, "%s:%d: a test before the first TEST_CASE of its file\n", item->file, item->line);
            exit(EXIT_FAILURE);
        } else if (tests) {
            tcase_add_loop_test_raise_signal(tests, item->test, item->signal, item->from, item->end);
        }
    }
    free(sorted);
}

/* The option --suites prints the names of the suites. */
int
main(int argc, char **argv)
{
    SRunner *runner = srunner_create(NULL);
    bool lists = argc > 1 && strcmp(argv[1], "--suites") == 0;
    int failed = 0;

    setenv("CK_DEFAULT_TIMEOUT", UNIT_TIMEOUT, 0);
    make_suites();
    for (size_t i = 0; i < SUITES && suites[i].name; i++) {
        srunner_add_suite(runner, suites[i].suite);
        if (lists)
            puts(suites[i].name);
    }
    if (!lists) {
        unit_folder();
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
    }
    srunner_free(runner);
    remove_folder(folder);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
