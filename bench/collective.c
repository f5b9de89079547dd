/*
 * collective.c - measures how long the sum of the gradients of a step over the ranks takes: ours in buckets, and
 * MPI_Allreduce
 *
 *     mpirun -np 4 bench-collective-ranks [NUMBERS [BUCKET [ROUNDS]]]
 *
 * Default: DenseNet-121, 6,968,206 doubles in buckets of 2^20.  Rounds alternate; the median of each method is printed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "common/launcher.h"
#include "ranks/collective.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_ROUNDS = 1000 };

static int
compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Returns the seconds of one sum; all ranks start together. */
static double
time_sum(struct collective *c, double *data, size_t count, size_t bucket, struct chex_error *err)
{
    enum chex_status status = collective_agree(c, CHEX_OK, NULL, err);
    double start = clock_now();
    size_t end = count;

    while (status == CHEX_OK && end > 0) {
        size_t n = end < bucket ? end : bucket;

        end -= n;
        status = collective_allreduce_start(c, data + end, n, err);
    }
    if (status == CHEX_OK)
        status = collective_allreduce_wait(c, err);
    if (status != CHEX_OK) {
        fprintf(stderr, "%s\n", err->text);
        exit(EXIT_FAILURE);
    }
    return clock_now() - start;
}

static double
time_allreduce(double *data, size_t count)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = clock_now();
    MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return clock_now() - start;
}

int
main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 6968206;
    size_t bucket = argc > 2 ? strtoul(argv[2], NULL, 10) : 1u << 20;
    int rounds = argc > 3 ? atoi(argv[3]) : 21, i;
    static double ours[MAX_ROUNDS], theirs[MAX_ROUNDS];
    struct collective *c = NULL;
    struct chex_error err;
    struct comm comm;
    double *data;

    if (launcher_comm(launcher_probe(), &comm, &err) != CHEX_OK || collective_new(&comm, NULL, &c, &err) != CHEX_OK) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    if (rounds < 1 || rounds > MAX_ROUNDS || count < 1 || bucket < 1)
        return EXIT_FAILURE;
    data = calloc(count, sizeof(*data));
    if (!data)
        return EXIT_FAILURE;
    for (i = 0; i < rounds; i++) {
        ours[i] = time_sum(c, data, count, bucket, &err);
        theirs[i] = comm.size > 1 ? time_allreduce(data, count) : 0;
    }
    qsort(ours, (size_t)rounds, sizeof(ours[0]), compare);
    qsort(theirs, (size_t)rounds, sizeof(theirs[0]), compare);
    if (comm.rank == 0)
        printf("%d ranks, %.1f MB: %.1f ms (best %.1f), MPI_Allreduce %.1f ms (best %.1f)\n", comm.size,
               (double)count * 8e-6, ours[rounds / 2] * 1e3, ours[0] * 1e3, theirs[rounds / 2] * 1e3, theirs[0] * 1e3);
    collective_free(c);
    free(data);
    comm.ops->close(&comm);
    return EXIT_SUCCESS;
}
