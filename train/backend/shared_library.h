/*
 * shared_library.h - a library that a backend opens on demand
 *
 * It is not linked, so the program also runs on machines without the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_SHARED_LIBRARY_H
#define CHEX_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The name for the dynamic linker, which searches LD_LIBRARY_PATH; then the path that configure found; then the folder
 * of NVIDIA's Python package: DIR/lib/python3.N/site-packages/nvidia/PACKAGE/lib, if the program is DIR/bin/NAME.
 */
struct shared_library {
    const char *name, *place, *package;
    void *handle;
};

/* Returns false and the reason: "libname.so.1 was not found", or the error text of the dynamic linker. */
bool shared_library_open(struct shared_library *l, char *why, size_t size);

/* Find the address of a function; returns false and the reason: "libname.so.1 is too old: it has no call()". */
bool shared_library_find(const struct shared_library *l, const char *call, void *pointer, char *why, size_t size);

#endif
