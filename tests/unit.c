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

int
main(void)
{
    SRunner *runner;
    int failed;

    setenv("CK_DEFAULT_TIMEOUT", UNIT_TIMEOUT, 0);
    runner = srunner_create(error_suite());
    unit_folder();
    srunner_add_suite(runner, crc32c_suite());
    srunner_add_suite(runner, file_suite());
    srunner_add_suite(runner, png_suite());
    srunner_add_suite(runner, inflate_suite());
    srunner_add_suite(runner, png_fast_suite());
    srunner_add_suite(runner, cross_check_suite());
    srunner_add_suite(runner, jpeg_suite());
    srunner_add_suite(runner, decode_suite());
    srunner_add_suite(runner, resample_suite());
    srunner_add_suite(runner, table_suite());
    srunner_add_suite(runner, findings_suite());
    srunner_add_suite(runner, labels_suite());
    srunner_add_suite(runner, names_suite());
    srunner_add_suite(runner, split_suite());
    srunner_add_suite(runner, record_suite());
    srunner_add_suite(runner, plan_suite());
    srunner_add_suite(runner, manifest_suite());
    srunner_add_suite(runner, store_suite());
    srunner_add_suite(runner, verify_suite());
    srunner_add_suite(runner, random_suite());
    srunner_add_suite(runner, graph_suite());
    srunner_add_suite(runner, step_suite());
    srunner_add_suite(runner, metrics_suite());
    srunner_add_suite(runner, rank_times_suite());
    srunner_add_suite(runner, evaluate_suite());
    srunner_add_suite(runner, safetensors_suite());
    srunner_add_suite(runner, loader_suite());
    srunner_add_suite(runner, reader_suite());
    srunner_add_suite(runner, checkpoint_suite());
    srunner_add_suite(runner, collective_suite());
    srunner_add_suite(runner, settings_suite());
    srunner_add_suite(runner, backends_suite());
    srunner_add_suite(runner, padding_suite());
    srunner_add_suite(runner, seam_suite());
    srunner_add_suite(runner, unknown_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    remove_folder(folder);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
