/*
 * library_exit.h - a library that ends the process
 *
 * libarchive calls exit(1) where it has no memory for a name or a message.  1 would say that the data is damaged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_LIBRARY_EXIT_H
#define CHEX_TOOLS_LIBRARY_EXIT_H

/*
 * From now on an exit() for lack of memory (errno is ENOMEM in its thread) ends the process with EXIT_OUTPUT, and
 * leaves files as kill -9 does.  Once, at the beginning of main().
 */
void library_exit_catch(void);
/* At the end of main(): the next exit is the program's own. */
void library_exit_release(void);

#endif
