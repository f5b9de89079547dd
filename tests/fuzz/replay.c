/*
 * replay.c - runs the inputs of one fuzz target without a fuzzer
 *
 *     TARGET [-n ROUNDS] [-w FOLDER] [-f FINDS] [FILE...]
 *
 * Runs the target's seeds, those of FINDS, and each FILE.  With -n N, each input is also mutated N times, always in the
 * same way, so that a compiler without a fuzzer can also test mutations.  With -w, the inputs are not run but written
 * to FOLDER, as a corpus for a fuzzer.
 *
 * FINDS is a text, so that an input can be read.  Each line is a name, a tab and the bytes: non-printable bytes as
 * \xNN, the backslash as \\, LF as \n; '#' begins a comment.  pack.py converts a fuzzer's files to this form.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "base/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_INPUT (1u << 20)

extern size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
    __attribute__((weak));

/* The action for each input. */
struct replay {
    unsigned long rounds;
    const char *folder; /* write, do not run */
    unsigned long inputs, mutations;
};

/* The name of the current input, for the message of a failure. */
static char current[256];
static uint64_t random_state;

static _Noreturn void
die(const char *what, const char *subject)
{
    fprintf(stderr, "%s '%s': %s\n", what, subject, strerror(errno));
    exit(2);
}

static void
last_words(int number)
{
    static const char text[] = "the input was: ";

    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 || write(STDERR_FILENO, current, strlen(current)) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0)
        _exit(3);
    signal(number, SIG_DFL);
    raise(number);
}

/* Makes a few typical mutations: bits, bytes, blocks that are cut out, copied and inserted. */
size_t
LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    uint32_t changes = 1 + fuzz_below(&random_state, 4);

    for (uint32_t i = 0; i < changes; i++) {
        uint32_t at = size > 0 ? fuzz_below(&random_state, (uint32_t)size) : 0;
        uint32_t length = 1 + fuzz_below(&random_state, 16);

        switch (fuzz_below(&random_state, 5)) {
        case 0:
            if (size > 0)
                data[at] ^= (uint8_t)(1u << fuzz_below(&random_state, 8));
            break;
        case 1:
            if (size > 0)
                data[at] = (uint8_t)fuzz_random(&random_state);
            break;
        case 2:
            if (size > 1 && size - at > length) {
                memmove(data + at, data + at + length, size - at - length);
                size -= length;
            }
            break;
        case 3:
            if (size + length <= max_size) {
                memmove(data + at + length, data + at, size - at);
                size += length;
                for (uint32_t k = 0; k < length; k++)
                    data[at + k] = (uint8_t)fuzz_random(&random_state);
            }
            break;
        default:
            if (size > length) {
                uint32_t from = fuzz_below(&random_state, (uint32_t)size - length);

                memmove(data + (at + length <= size ? at : size - length), data + from, length);
            }
        }
    }
    if (size == 0)
        data[size++] = 0;
    return size;
}

/* ---- inputs ---------------------------------------------------------------------------------------------------- */

static void
write_input(const char *folder, const char *name, const void *data, size_t size)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        die("cannot write", path);
}

/* Copies the input to the heap with its exact size, so that a sanitizer detects a read beyond its end. */
static void
run_copy(const void *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);

    if (!copy)
        die("no memory for", current);
    memcpy(copy + 1, data, size); /* and without alignment */
    LLVMFuzzerTestOneInput(copy + 1, size);
    free(copy);
}

static void
mutate_and_run(const uint8_t *data, size_t size)
{
    size_t room = size < 4096 ? 8192 : 2 * size;
    uint8_t *copy = malloc(room);

    if (!copy)
        die("no memory for", current);
    memcpy(copy, data, size);
    size = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(copy, size, room, (unsigned int)fuzz_random(&random_state))
                                   : LLVMFuzzerMutate(copy, size, room);
    run_copy(copy, size);
    free(copy);
}

static void
take(const char *name, const void *data, size_t size, void *context)
{
    struct replay *r = context;

    r->inputs++;
    if (r->folder) {
        write_input(r->folder, name, data, size);
        return;
    }
    snprintf(current, sizeof(current), "%s", name);
    run_copy(data, size);
    for (unsigned long i = 0; i < r->rounds; i++, r->mutations++) {
        snprintf(current, sizeof(current), "%.100s, mutation %lu", name, i);
        random_state = i;
        mutate_and_run(data, size);
    }
}

static void
take_file(struct replay *r, const char *path)
{
    uint8_t *data = malloc(MAX_INPUT);
    FILE *f = fopen(path, "rb");
    size_t size;

    if (!data || !f)
        die("cannot read", path);
    size = fread(data, 1, MAX_INPUT, f);
    if (ferror(f))
        die("cannot read", path);
    fclose(f);
    take(path, data, size, r);
    free(data);
}

/* Replaces \xNN, \n and \\ in place; returns the size, or -1. */
static long
unescape(char *text)
{
    char *to = text;

    for (char *p = text; *p; p++) {
        unsigned byte;

        if (*p != '\\') {
            *to++ = *p;
        } else if (p[1] == '\\') {
            *to++ = *++p;
        } else if (p[1] == 'n') {
            *to++ = '\n';
            p++;
        } else if (p[1] == 'x' && sscanf(p + 2, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            p += 3;
        } else {
            return -1;
        }
    }
    return to - text;
}

static void
take_finds(struct replay *r, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;

    if (!f)
        die("cannot read", path);
    while (getline(&line, &room, f) > 0) {
        char *tab = strchr(line, '\t');
        long size;

        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (!tab || (*tab = '\0', size = unescape(tab + 1)) < 0) {
            fprintf(stderr, "%s: not a name, a tab and bytes: %s\n", path, line);
            exit(2);
        }
        take(line, tab + 1, (size_t)size, r);
    }
    free(line);
    fclose(f);
}

int
main(int argc, char **argv)
{
    struct replay r = {0};
    const char *name = strrchr(argv[0], '/');
    const char *finds = NULL;
    int c;

    while ((c = getopt(argc, argv, "n:w:f:")) != -1) {
        if (c == 'n')
            r.rounds = strtoul(optarg, NULL, 10);
        else if (c == 'w')
            r.folder = optarg;
        else if (c == 'f')
            finds = optarg;
        else
            return 2;
    }
    signal(SIGABRT, last_words);
    signal(SIGSEGV, last_words);
    argv += optind; /* a target may parse options itself */
    fuzz_seeds(take, &r);
    if (finds)
        take_finds(&r, finds);
    for (; *argv; argv++)
        take_file(&r, *argv);
    printf("%s: %lu inputs, %lu mutations\n", name ? name + 1 : "fuzz", r.inputs, r.mutations);
    return 0;
}
