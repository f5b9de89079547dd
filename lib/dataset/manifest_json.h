/*
 * manifest_json.h - the fields of the manifest as a table; reading, checking and writing use it
 *
 * A manifest is an object.  Each field is a value, an object, or a list of objects; objects have fields of their own.
 * The table is in manifest_fields.c, in the order of writing.  Tests compare it with the schema.
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
    MANIFEST_TEXT,     /* const char * or char[] */
    MANIFEST_FINDINGS, /* uint64_t[FINDINGS_MAX]; in JSON an object with the names of the findings.  Optional: present
                          if labels may be unknown */
    MANIFEST_SPLIT,    /* unsigned; in JSON the name of the split */
    MANIFEST_DERIVED,  /* no member: a fixed text, or the result of derive() */
    MANIFEST_OBJECT,   /* its fields are members of the same struct */
    MANIFEST_LIST      /* a pointer to structs, and an unsigned with their number */
};

struct manifest_field {
    const char *key;
    enum manifest_type type;
    size_t offset, size;                         /* of the member */
    uint64_t min, max;                           /* range of a NUMBER; range of the length of a TEXT or LIST */
    double most;                                 /* REAL: range 0 to this */
    const char *letters;                         /* TEXT: the allowed characters */
    const char *const *names;                    /* TEXT: or one of these words; ends with NULL */
    const char *wanted;                          /* the error text is "not " and this */
    size_t count, element;                       /* LIST: offset of the member with its length; size of a struct */
    const struct manifest_field *fields;         /* OBJECT, LIST: their fields; ends with a NULL key */
    const char *fixed;                           /* DERIVED: this text */
    json_t *(*derive)(const struct manifest *m); /* NULL when out of memory */
    enum chex_status (*then)(struct manifest *m, struct chex_error *err); /* OBJECT: called after its fields */
    bool any;                                                             /* DERIVED: any other text is valid too */
    bool optional; /* older manifests lack it; written unless it is NULL, false or 0 */
};

extern const struct manifest_field manifest_fields[];

/*
 * Read all fields of a JSON object.  Each must have its type, be within its limits, and agree with the other fields.
 * The writer also reads the object that it has made, so it refuses everything that a reader would refuse.
 * CHEX_ERR_DAMAGED, CHEX_ERR_MEMORY
 */
enum chex_status manifest_read(const json_t *top, struct manifest *out, struct chex_error *err);

/* Check sums, duplicate names and the order of shards.  CHEX_ERR_DAMAGED, CHEX_ERR_MEMORY */
enum chex_status manifest_check(const struct manifest *m, struct chex_error *err);

/* The last key: the SHA-256 of the text before its line. */
#define MANIFEST_SUM_KEY "manifest_sha256"

#endif
