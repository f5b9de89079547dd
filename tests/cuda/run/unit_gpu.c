/*
 * unit_gpu.c - runs the suites of train/cuda on emulated GPUs; a separate program, because they take minutes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include <stdlib.h>

int
main(void)
{
    SRunner *runner;
    int failed;

    setenv("CK_DEFAULT_TIMEOUT", UNIT_TIMEOUT, 0);
    runner = srunner_create(cuda_suite());
    srunner_add_suite(runner, cuda_cudnn_suite());
    srunner_add_suite(runner, cuda_engine_suite());
    srunner_add_suite(runner, cuda_faults_suite());
    srunner_add_suite(runner, cuda_ranks_suite());
    srunner_add_suite(runner, cuda_splits_suite());
    srunner_add_suite(runner, cuda_state_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
