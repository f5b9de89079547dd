/*
 * cases.h - test cases that have a file of their own
 *
 * Each function adds its cases to the suite of its group; unit.h names the suites.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_CASES_H
#define CHEX_TESTS_CASES_H

#include "unit.h"

/* file suite */
void file_read_case(Suite *suite);   /* test_file_read.c */
void lock_case(Suite *suite);        /* test_lock.c */
void lock_faults_case(Suite *suite); /* test_lock_faults.c */
/* record suite */
void example_case(Suite *suite);       /* test_example.c */
void record_faults_case(Suite *suite); /* test_record_faults.c */
/* inflate suite */
void inflate_streams_case(Suite *suite); /* test_inflate_streams.c */
/* split suite */
void digest_case(Suite *suite);     /* test_digest.c */
void split_rule_case(Suite *suite); /* test_split_rule.c */
/* manifest suite */
void manifest_check_case(Suite *suite); /* test_manifest_check.c */
void dataset_case(Suite *suite);        /* test_dataset.c */
/* plan suite */
void preflight_case(Suite *suite);  /* test_preflight.c */
void source_case(Suite *suite);     /* test_source.c */
void archive_case(Suite *suite);    /* test_archive.c */
void keyed_hash_case(Suite *suite); /* test_keyed_hash.c */
void gunzip_case(Suite *suite);     /* test_gunzip.c */
void progress_case(Suite *suite);   /* test_progress.c */
/* verify suite */
void verify_folder_case(Suite *suite); /* test_verify_folder.c */
void shard_scan_case(Suite *suite);    /* test_shard_scan.c */
/* store suite */
void journal_case(Suite *suite); /* test_journal.c */
void resume_case(Suite *suite);  /* test_resume.c */
void folder_case(Suite *suite);  /* test_store_folder.c */
void threads_case(Suite *suite); /* test_threads.c */
void ranks_case(Suite *suite);   /* test_ranks.c */
void part_case(Suite *suite);    /* test_part.c */
void calls_case(Suite *suite);   /* test_calls.c */
void convert_case(Suite *suite); /* test_convert.c */
void queue_case(Suite *suite);   /* test_queue.c */
/* backends suite */
void live_ranges_case(Suite *suite); /* test_live_ranges.c */
/* collective suite */
void collective_faults_case(Suite *suite); /* test_collective_faults.c */
/* evaluate suite */
void evaluate_ranks_case(Suite *suite); /* test_evaluate_ranks.c */
/* table suite */
void ascii_case(Suite *suite); /* test_ascii.c */
/* checkpoint suite */
void state_bounds_case(Suite *suite); /* test_state.c */
void weights_case(Suite *suite);      /* test_weights.c */
/* labels suite */
void label_errors_case(Suite *suite);
void label_kinds_case(Suite *suite); /* test_label_errors.c */

#endif
