/*
 * versions.c - reports the versions of the loaded libraries, not of their headers; see versions.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/versions.h"

#include "base/cpu.h"
#include "chex.h"
#include "input/archive.h"

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>
#include <jpeglib.h>
#include <png.h>
#include <protobuf-c/protobuf-c.h>
#include <zlib.h>

#define TEXT_OF(x)  #x
#define TEXT_OF2(x) TEXT_OF(x)

size_t
versions_list(struct version out[VERSIONS_MAX])
{
    const struct {
        const char *name, *text;
    } known[] = {
        {"libpng", png_get_libpng_ver(NULL)},
#ifdef LIBJPEG_TURBO_VERSION
        {"libjpeg-turbo", TEXT_OF2(LIBJPEG_TURBO_VERSION)},
#endif
        {"zlib", zlibVersion()},
        {"protobuf-c", protobuf_c_version()},
        {"jansson", jansson_version_str()},
        {"libarchive", image_archive_version() ? image_archive_version() : "none"},
        {"liblzma", image_archive_xz_version() ? image_archive_xz_version() : "none"},
    };
    size_t i;

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        out[i] = (struct version){known[i].name, known[i].text};
    return i;
}

const char *
versions_cpu(char *out, size_t size)
{
#if defined(__x86_64__)
    const char *family = "x86-64";
#elif defined(__aarch64__)
    const char *family = "aarch64";
#else
    const char *family = "unknown";
#endif
    size_t used = (size_t)snprintf(out, size, "%s", family);
    const char *name;

    for (unsigned i = 0; (name = cpu_set_name(i)) && used < size; i++)
        if (name[0])
            used += (size_t)snprintf(out + used, size - used, " %s", name);
    return out;
}

void
versions_print(const char *program, bool details)
{
    struct version version[VERSIONS_MAX];
    char cpu[128];
    size_t count, i;

    printf("%s %s\n", program, chex_version());
    if (PACKAGE_URL[0])
        printf("%s\n", PACKAGE_URL);
    puts("Copyright 2026 The chex-tools authors; licence Apache-2.0, without any warranty");
    if (!details)
        return;
    count = versions_list(version);
    for (i = 0; i < count; i++)
        printf("%-14s %s\n", version[i].name, version[i].text);
    printf("%-14s %s\n", "cpu", versions_cpu(cpu, sizeof(cpu)));
}
