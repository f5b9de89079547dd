/*
 * library_exit.h - corrects the exit code if a library ends the process
 *
 * libarchive calls exit(1) if it cannot allocate memory for a name or a message.  But exit code 1 means damaged data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_LIBRARY_EXIT_H
#define CHEX_TOOLS_LIBRARY_EXIT_H

/*
 * Install an exit handler: an exit() for lack of memory (errno is ENOMEM in its thread) now ends the process with
 * EXIT_OUTPUT and leaves files as kill -9 does.  Call it once, at the start of main().
 */
void library_exit_catch(void);
/* Clear errno at the end of main(), so that the handler ignores the program's own exit. */
void library_exit_release(void);

#endif
