/*
 * shared_library.h - a library that a backend opens when it needs it
 *
 * A program that was built with such a library runs where the library is not, so it is not linked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_SHARED_LIBRARY_H
#define CHEX_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Its name, for the dynamic linker, which looks where LD_LIBRARY_PATH says; then its place as configure found it. */
struct shared_library {
    const char *name, *place;
    void *handle;
};

/* false, and why: "libname.so.1 is not there", or what the dynamic linker says of one that cannot be loaded. */
bool shared_library_open(struct shared_library *l, char *why, size_t size);

/* Put the address of a function of it into a pointer; false, and why: "libname.so.1 is too old: it has no call()". */
bool shared_library_find(const struct shared_library *l, const char *call, void *pointer, char *why, size_t size);

#endif
