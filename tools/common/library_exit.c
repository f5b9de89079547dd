/*
 * library_exit.c - see library_exit.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/library_exit.h"

#include "common/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void
on_exit_of_process(void)
{
    static const char text[] = "out of memory: what is done is kept, the same command resumes\n";

    if (errno != ENOMEM)
        return;
    /* Ignore a write error: stderr is the only way to report. */
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(EXIT_OUTPUT);
}

void
library_exit_catch(void)
{
    (void)atexit(on_exit_of_process);
}

void
library_exit_release(void)
{
    errno = 0;
}
