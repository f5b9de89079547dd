/*
 * disk_reads.c - see disk_reads.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/disk_reads.h"

#include <inttypes.h>
#include <stdio.h>

bool
disk_reads(uint64_t *bytes)
{
    FILE *f = fopen("/proc/self/io", "re");
    char line[64];
    bool found = false;

    while (f && !found && fgets(line, sizeof(line), f))
        found = sscanf(line, "read_bytes: %" SCNu64, bytes) == 1;
    if (f)
        fclose(f);
    return found;
}

double
disk_share(bool known, uint64_t from_disk, uint64_t bytes)
{
    if (!known || bytes == 0)
        return -1;
    return from_disk < bytes ? (double)from_disk / (double)bytes : 1;
}
