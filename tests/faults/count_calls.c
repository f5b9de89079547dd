/*
 * count_calls.c - a preloaded library that counts calls of libpng, zlib and protobuf-c, for check_libraries.py
 *
 * It counts functions that every reader needs: the start of a PNG, of a zlib stream and of a message, and zlib's
 * CRC-32.  At the end of the process it appends a line "NAME COUNT" for each function to the file $CHEX_CALLS.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name, type, parameters, arguments.  Pointers are void *, so the headers of the libraries are not needed. */
#define FUNCTIONS(X)                                                                                                 \
    X(png_create_read_struct_2, void *, (const char *version, void *a, void *b, void *c, void *d, void *e, void *f), \
      (version, a, b, c, d, e, f))                                                                                   \
    X(inflateInit_, int, (void *stream, const char *version, int size), (stream, version, size))                     \
    X(inflateInit2_, int, (void *stream, int bits, const char *version, int size), (stream, bits, version, size))    \
    X(crc32, unsigned long, (unsigned long crc, const void *data, unsigned size), (crc, data, size))                 \
    X(crc32_z, unsigned long, (unsigned long crc, const void *data, size_t size), (crc, data, size))                 \
    X(protobuf_c_message_unpack, void *, (const void *type, void *memory, size_t size, const uint8_t *data),         \
      (type, memory, size, data))

#define WRAP(name, type, parameters, arguments)  \
    type name parameters;                        \
    static atomic_uint calls_of_##name;          \
    type name parameters                         \
    {                                            \
        type(*next) parameters;                  \
        void *address = dlsym(RTLD_NEXT, #name); \
                                                 \
        memcpy(&next, &address, sizeof(next));   \
        atomic_fetch_add(&calls_of_##name, 1);   \
        return next arguments;                   \
    }
FUNCTIONS(WRAP)

#define REPORT(name, type, parameters, arguments) fprintf(out, #name " %u\n", atomic_load(&calls_of_##name));

__attribute__((destructor)) static void
report(void)
{
    const char *path = getenv("CHEX_CALLS");
    FILE *out = path ? fopen(path, "a") : NULL;

    if (!out)
        return;
    FUNCTIONS(REPORT)
    fclose(out);
}
