/*
 * collective_ranks.c - runs collective.h over MPI, for tests/ranks/check_train_ranks.py
 *
 *     collective-ranks sums             sums of many sizes, broadcast, gathering; rank 0 prints a hash of all results
 *     collective-ranks fail RANK        this rank comes to a meeting with an error
 *     collective-ranks wait SECONDS     meetings and sums for this time, with a timeout of 2 s; prints "at work" first
 *
 * Exit codes are those of the programs.  Rank 0 returns it; if a rank is lost, the rank that reports errors does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/clock.h"
#include "common/cli.h"
#include "common/launcher.h"
#include "ranks/collective.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool hurry;

static void
on_signal(int number)
{
    (void)number;
    atomic_store(&hurry, true);
}

/* FNV-1a, 64 bits. */
static uint64_t
hash_of(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * 1099511628211u;
    return hash;
}

static double
number_of(int rank, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + (uint32_t)rank * 40503u + 1;

    x = (x ^ x >> 15) * 2246822519u;
    return (double)((int)(x % 2001) - 1000) * (double)(1u << (x >> 27)) * 0.37;
}

/* Starts the sums of all buckets, then compares them with the sum in the order of ranks. */
static enum chex_status
try_sum(struct collective *c, size_t count, uint64_t *hash, struct chex_error *err)
{
    double *data = malloc((count + 1) * sizeof(*data));
    enum chex_status status = data ? CHEX_OK : error_memory(err);
    size_t end = count, i;

    for (i = 0; data && i < count; i++)
        data[i] = number_of(collective_rank(c), i);
    while (status == CHEX_OK && end > 0) {
        size_t bucket = end < (1u << 20) ? end : 1u << 20;

        end -= bucket;
        status = collective_allreduce_start(c, data + end, bucket, err);
    }
    if (status == CHEX_OK)
        status = collective_allreduce_wait(c, err);
    for (i = 0; status == CHEX_OK && i < count; i++) {
        double want = number_of(0, i);
        int r;

        for (r = 1; r < collective_size(c); r++)
            want += number_of(r, i);
        if (memcmp(&want, &data[i], sizeof(want)) != 0)
            status = error_set(err, CHEX_ERR_BUG, "number %zu of %zu is %.17g, not %.17g", i, count, data[i], want);
    }
    if (status == CHEX_OK)
        *hash = hash_of(*hash, data, count * sizeof(*data));
    free(data);
    return status;
}

static enum chex_status
try_broadcast(struct collective *c, size_t size, uint64_t *hash, struct chex_error *err)
{
    uint8_t *data = calloc(1, size);
    enum chex_status status = data ? CHEX_OK : error_memory(err);
    size_t i;

    for (i = 0; data && i < size && collective_rank(c) == 0; i++)
        data[i] = (uint8_t)(i * 31 + i / 256);
    if (status == CHEX_OK)
        status = collective_broadcast(c, data, size, err);
    for (i = 0; status == CHEX_OK && i < size; i++)
        if (data[i] != (uint8_t)(i * 31 + i / 256))
            status = error_set(err, CHEX_ERR_BUG, "byte %zu of %zu is wrong", i, size);
    if (status == CHEX_OK)
        *hash = hash_of(*hash, data, size);
    free(data);
    return status;
}

static enum chex_status
try_gather(struct collective *c, size_t size, uint64_t *hash, struct chex_error *err)
{
    size_t own = size * (size_t)collective_rank(c);
    uint8_t *data = calloc(1, own + 1);
    struct buffer all = {0};
    enum chex_status status;

    if (!data)
        return error_memory(err);
    memset(data, collective_rank(c) + 1, own);
    status = collective_allgather(c, data, own, &all, NULL, err);
    if (status == CHEX_OK)
        *hash = hash_of(*hash, all.data, all.size);
    buffer_release(&all);
    free(data);
    return status;
}

static enum chex_status
sums(struct collective *c, struct chex_error *err)
{
    static const size_t counts[] = {1, 2, 3, 1000, 83613, 6968206};
    uint64_t hash = 14695981039346656037u, first;
    enum chex_status status = CHEX_OK;
    struct buffer all = {0};
    size_t i;
    int r;

    for (i = 0; status == CHEX_OK && i < sizeof(counts) / sizeof(counts[0]); i++) {
        status = try_sum(c, counts[i], &hash, err);
        if (status == CHEX_OK)
            status = try_broadcast(c, counts[i] * 3, &hash, err);
        if (status == CHEX_OK)
            status = try_gather(c, counts[i] / 4, &hash, err);
        status = collective_agree(c, status, NULL, err);
    }
    if (status == CHEX_OK)
        status = collective_allgather(c, &hash, sizeof(hash), &all, NULL, err);
    for (r = 0; status == CHEX_OK && r < collective_size(c); r++) {
        memcpy(&first, all.data + (size_t)r * sizeof(hash), sizeof(first));
        if (first != hash)
            status = error_set(err, CHEX_ERR_BUG, "rank %d has other bits", r);
    }
    if (status == CHEX_OK && collective_rank(c) == 0)
        printf("%016llx\n", (unsigned long long)hash);
    buffer_release(&all);
    return collective_agree(c, status, NULL, err);
}

/* Like the steps of a training: work, a meeting, a sum. */
static enum chex_status
wait_and_meet(struct collective *c, double seconds, struct chex_error *err)
{
    static double data[1u << 18];
    enum chex_status status = CHEX_OK;
    double end = clock_now() + seconds;
    uint64_t step, flags = 0;

    for (step = 0; status == CHEX_OK && flags == 0; step++) {
        flags = collective_rank(c) == 0 && clock_now() > end ? 1 : 0;
        status = collective_agree(c, status, &flags, err);
        if (status == CHEX_OK && flags == 0)
            status = collective_allreduce_start(c, data, sizeof(data) / sizeof(data[0]), err);
        if (status == CHEX_OK)
            status = collective_allreduce_wait(c, err);
        if (step == 10 && collective_rank(c) == 0) {
            puts("at work");
            fflush(stdout);
        }
    }
    return collective_agree(c, status, NULL, err);
}

static void
on_waiting(void *context, const char *text)
{
    const struct comm *comm = context;

    fprintf(stderr, "rank %d: stopping: %s\n", comm->rank, text);
}

static enum chex_status
play(struct collective *c, char **argv, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (strcmp(argv[1], "sums") == 0)
        return sums(c, err);
    if (strcmp(argv[1], "fail") == 0) {
        if (collective_rank(c) == atoi(argv[2]))
            status = error_set(err, CHEX_ERR_READ, "'x' cannot be read");
        return collective_agree(c, status, NULL, err);
    }
    return wait_and_meet(c, atof(argv[2]), err);
}

int
main(int argc, char **argv)
{
    static const struct cli_program program = {.name = "collective-ranks"};
    static const struct cli_common common;
    struct collective_options options = {.timeout = 2, .terminating = &hurry, .warn_waiting = on_waiting};
    struct collective *c = NULL;
    struct chex_error err;
    struct comm comm;
    enum chex_status status;
    int code = 0;

    if (argc < (argc > 1 && strcmp(argv[1], "sums") == 0 ? 2 : 3))
        return EXIT_USAGE;
    if (strcmp(argv[1], "wait") != 0)
        options.timeout = 120; /* no rank is lost here, but a busy machine may be slow */
    signal(SIGTERM, on_signal);
    status = launcher_comm(launcher_probe(), &comm, &err);
    options.context = &comm;
    if (status == CHEX_OK)
        status = collective_new(&comm, &options, &c, &err);
    if (status == CHEX_OK)
        status = play(c, argv, &err);
    if (status != CHEX_OK && (!c || collective_reports_errors(c)))
        code = cli_error(&program, &common, &err);
    if (c && collective_broken(c))
        collective_abort(c, code ? code : cli_exit_of(status));
    collective_free(c);
    comm.ops->close(&comm);
    return code;
}
