/*
 * versions.c - see versions.h; the versions are those of the libraries that are running, not of their headers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "versions.h"

#include "chex.h"
#include "image_archive.h"

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>
#include <jpeglib.h>
#include <openssl/crypto.h>
#include <png.h>
#include <protobuf-c/protobuf-c.h>
#include <zlib.h>

#define TEXT_OF(x)  #x
#define TEXT_OF2(x) TEXT_OF(x)

static void
cpu_features(void)
{
#if defined(__x86_64__)
    static const char *const names[] = {"sse4.1", "sse4.2", "pclmul", "avx2", "avx512bw"};
    const int have[] = {__builtin_cpu_supports("sse4.1"), __builtin_cpu_supports("sse4.2"),
                        __builtin_cpu_supports("pclmul"), __builtin_cpu_supports("avx2"),
                        __builtin_cpu_supports("avx512bw")};
    size_t i;

    printf("cpu            x86-64");
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (have[i])
            printf(" %s", names[i]);
    printf("\n");
#elif defined(__aarch64__)
    printf("cpu            aarch64\n");
#endif
}

void
versions_print(const char *program, bool details)
{
    printf("%s %s\n", program, chex_version());
    if (!details)
        return;
    printf("libpng         %s\n", png_get_libpng_ver(NULL));
#ifdef LIBJPEG_TURBO_VERSION
    printf("libjpeg-turbo  %s\n", TEXT_OF2(LIBJPEG_TURBO_VERSION));
#endif
    printf("zlib           %s\n", zlibVersion());
    printf("protobuf-c     %s\n", protobuf_c_version());
    printf("jansson        %s\n", jansson_version_str());
    printf("openssl        %s\n", OpenSSL_version(OPENSSL_VERSION_STRING));
    printf("libarchive     %s\n", image_archive_version() ? image_archive_version() : "none");
    cpu_features();
}
