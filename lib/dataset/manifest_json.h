/*
 * manifest_json.h - the fields of the manifest as a table, which drives reading, checking and writing
 *
 * A manifest is an object.  A field of it is a value, or an object or a list of objects with fields of their own.  The
 * table is in manifest_fields.c, in the order in which the fields are written; tests hold the schema to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_MANIFEST_JSON_H
#define CHEX_LIB_MANIFEST_JSON_H

#include "dataset/manifest.h"

#include <jansson.h>

enum manifest_type {
    MANIFEST_NUMBER,   /* unsigned, of 4 or 8 bytes */
    MANIFEST_REAL,     /* double */
    MANIFEST_BOOL,     /* bool */
    MANIFEST_TEXT,     /* const char *, or char[] */
    MANIFEST_FINDINGS, /* uint64_t[CHEX_FINDINGS]; an object with the names of the findings */
    MANIFEST_SPLIT,    /* unsigned; the name of this split */
    MANIFEST_DERIVED,  /* no member: a fixed text, or what derive() makes of the others */
    MANIFEST_OBJECT,   /* fields of the same struct */
    MANIFEST_LIST      /* a pointer to structs, and an unsigned */
};

struct manifest_field {
    const char *key;
    enum manifest_type type;
    size_t offset, size;                         /* of the member */
    uint64_t min, max;                           /* a NUMBER; the length of a TEXT, of a LIST */
    double most;                                 /* a REAL is from 0 to this */
    const char *letters;                         /* of which a TEXT is made */
    const char *const *names;                    /* or one of these, up to NULL */
    const char *wanted;                          /* what an error says that it is not */
    size_t count, element;                       /* LIST: offset of its length, size of a struct */
    const struct manifest_field *fields;         /* OBJECT, LIST: up to a NULL key */
    const char *fixed;                           /* DERIVED: this text */
    json_t *(*derive)(const struct manifest *m); /* NULL when out of memory */
    enum chex_status (*then)(struct manifest *m, struct chex_error *err); /* OBJECT: once it was read */
    bool any;                                                             /* DERIVED: another text is good too */
    bool optional; /* manifests of before lack it; written where it is not NULL or false, or has a number or a text */
};

extern const struct manifest_field manifest_fields[];

/*
 * Read all fields of a JSON object: each of its type, in its limits, and agreeing with the others.  The writer reads
 * what it has made, so that it refuses what a reader would refuse.  CHEX_ERR_DAMAGED, CHEX_ERR_MEMORY
 */
enum chex_status manifest_read(const json_t *top, struct manifest *out, struct chex_error *err);

/* Sums that agree, names that are there once, shards that follow each other.  CHEX_ERR_DAMAGED, CHEX_ERR_MEMORY */
enum chex_status manifest_check(const struct manifest *m, struct chex_error *err);

/* The last key: SHA-256 of the text before its line. */
#define MANIFEST_SUM_KEY "manifest_sha256"

/* The two lines, terminated, that end a manifest which begins with this text.  CHEX_ERR_MEMORY */
#define MANIFEST_SUM_ROOM 128
enum chex_status manifest_sum(const void *text, size_t size, char out[MANIFEST_SUM_ROOM], struct chex_error *err);

#endif
