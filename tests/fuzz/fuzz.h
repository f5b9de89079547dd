/*
 * fuzz.h - what the fuzz targets have in common
 *
 * A target is one file, TARGET.c, in the shape of libFuzzer and AFL++: LLVMFuzzerTestOneInput() takes bytes and must
 * not fail; fuzz_seeds() gives the inputs to begin with, made by code.  Where checksums would stop a fuzzer at the
 * door, LLVMFuzzerCustomMutator() repairs them after each mutation.  A target asserts what its header promises, by
 * FUZZ_REQUIRE(): that nothing crashes is the least of it.
 *
 * Linked with a fuzzer's engine, a target is a fuzzer; with replay.c it is a program that runs the seeds and
 * the finds of earlier runs (finds/TARGET.txt), which is what `make check` does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_FUZZ_H
#define CHEX_TESTS_FUZZ_H

#include "io/file.h"

/* ---- of the target --------------------------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Called for each seed; data lives during the call only. */
typedef void fuzz_seed_fn(const char *name, const void *data, size_t size, void *context);
void fuzz_seeds(fuzz_seed_fn *give, void *context);

/* ---- of the engine, or of replay.c ----------------------------------------------------------------------------- */

/* Changes the bytes in place; returns the new size, 1 to max_size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* ---- of fuzz.c ------------------------------------------------------------------------------------------------- */

/* Ends the process as a crash does, so that the engine keeps the input. */
_Noreturn void fuzz_fail(const char *file, int line, const char *what);
#define FUZZ_REQUIRE(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))

/*
 * What every error must be: a status that is none of a bug or of a lack of memory; a text of one line in printable
 * characters (UTF-8 above ASCII), not empty; err->status the same.  With CHEX_OK nothing is looked at.
 */
void fuzz_require_error(enum chex_status status, const struct chex_error *err);

/* A file of these bytes; its path (static, until the next call of the same number, 0 or 1).  No disk is touched. */
const char *fuzz_file(unsigned number, const void *data, size_t size);

/* A folder for the whole run, in memory where there is such a place; it is removed at the end, with what is in it. */
const struct folder *fuzz_folder(void);
/* A file of these bytes in it. */
void fuzz_put(const char *name, const void *data, size_t size);

/* The next number of a sequence (SplitMix64), and one below a bound. */
uint64_t fuzz_random(uint64_t *state);
uint32_t fuzz_below(uint64_t *state, uint32_t bound);

void fuzz_put_u32be(uint8_t *p, uint32_t value);
uint32_t fuzz_get_u32be(const uint8_t *p);

#endif
