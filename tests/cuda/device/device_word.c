/*
 * device_word.c - see device_word.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "device_word.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct backend *
device_of_word(const char *program, const char *word, enum precision *precision)
{
    char name[32];
    const char *colon = strchr(word, ':');
    size_t length = colon ? (size_t)(colon - word) : strlen(word);
    const struct backend *b;
    unsigned i = PRECISION_AUTO;

    snprintf(name, sizeof(name), "%.*s", (int)length, word);
    while (colon && i < PRECISION_COUNT && strcmp(precision_names[i], colon + 1) != 0)
        i++;
    if (i == PRECISION_COUNT) {
        fprintf(stderr, "%s: '%s': no such precision\n", program, word);
        exit(2);
    }
    *precision = (enum precision)i;
    b = backend_find(name);
    if (!b || b->device_count() == 0) {
        fprintf(stderr, "%s: '%s': %s\n", program, name, b ? "there is no such device here" : "not in this build");
        exit(77);
    }
    return b;
}
