/*
 * unit.h - the suites of the unit test program
 *
 * Each test_NAME.c defines one suite; unit.c runs them all.  The name of a test is a sentence, and an expected value
 * cites its source.  No test here takes longer than a second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_UNIT_H
#define CHEX_TESTS_UNIT_H

#include <check.h>

/*
 * Check writes the position of every passed assertion to a pipe, so that it can name the last one before a crash.  In a
 * loop over pixels these system calls take most of a test's time.  So an assertion is only reported if it is not the
 * one that this file and thread reported last.
 */
static inline void
unit_mark(const char *file, int line)
{
    static _Thread_local int last;

    if (line == last)
        return;
    last = line;
    _mark_point(file, line);
}
#define _mark_point(file, line) unit_mark(file, line)

Suite *error_suite(void);
Suite *crc32c_suite(void);
Suite *file_suite(void);
Suite *png_suite(void);
Suite *inflate_suite(void);
Suite *cross_check_suite(void);
Suite *png_fast_suite(void);
Suite *jpeg_suite(void);
Suite *decode_suite(void);
Suite *resample_suite(void);
Suite *table_suite(void);
Suite *findings_suite(void);
Suite *labels_suite(void);
Suite *names_suite(void);
Suite *split_suite(void);
Suite *record_suite(void);
Suite *plan_suite(void);
Suite *manifest_suite(void);
Suite *store_suite(void);
Suite *verify_suite(void);
Suite *random_suite(void);
Suite *graph_suite(void);
Suite *step_suite(void);
Suite *metrics_suite(void);
Suite *rank_times_suite(void);
Suite *evaluate_suite(void);
Suite *safetensors_suite(void);
Suite *loader_suite(void);
Suite *reader_suite(void);
Suite *checkpoint_suite(void);
Suite *collective_suite(void);
Suite *settings_suite(void);
Suite *backends_suite(void);
Suite *padding_suite(void);
Suite *seam_suite(void);
Suite *unknown_suite(void);

/* of unit_gpu.c */
Suite *cuda_suite(void);
Suite *cuda_faults_suite(void);
Suite *cuda_ranks_suite(void);

/*
 * Seconds after which a test counts as hung: CK_DEFAULT_TIMEOUT of Check, for the main functions.  It is more than ten
 * times the slowest test on a quiet machine with a sanitizer, because the machine may be busy.
 */
#define UNIT_TIMEOUT "1200"

/*
 * Writes a file with this content in the test's own folder, which is removed with it; returns its path (static, until
 * the next call).
 */
const char *unit_file(const char *name, const void *data, size_t size);
/* Returns the folder of this test process; made on first use, removed at exit. */
const char *unit_folder(void);
/* Returns the number of files in a folder. */
unsigned unit_count_files(const char *path);

#endif
