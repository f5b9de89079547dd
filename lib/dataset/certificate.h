/*
 * certificate.h - the certificate of a split: what is in two splits of a data set (schemas/certificate.schema.json)
 *
 * chex-inspect check --near --certificate writes it, next to the manifest or elsewhere.  It contains no time, host or
 * path, so the same data set has the same certificate.  It belongs to one data set: it names its id, its split and the
 * hashes of its members, and the SHA-256 of its shards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CERTIFICATE_H
#define CHEX_LIB_CERTIFICATE_H

#include "base/json.h"
#include "base/sha256.h"

#define CERTIFICATE_NAME    "split-certificate.json" /* where chex-train looks for it, in the folder of the data set */
#define CERTIFICATE_FORMAT  1
#define CERTIFICATE_MAX     (64u << 20)
#define CERTIFICATE_SUM_KEY "certificate_sha256"

struct certificate {
    char sha256[DIGEST_HEX]; /* of the file; "" if there is none */
    uint64_t patients;       /* in two splits or more */
    uint64_t images;         /* groups of equal images in two splits or more */
    uint64_t near;           /* pairs of nearly equal images in two splits */
    bool near_known;         /* false: there were too many pairs to compare them */
};

/* Compute the SHA-256 of the SHA-256 of all shards in the manifest, each followed by a newline.  CHEX_ERR_MEMORY */
enum chex_status certificate_shards(const struct chex_dataset *ds, char out[DIGEST_HEX], struct chex_error *err);

/*
 * Read CERTIFICATE_NAME in the folder of the data set, and check that it belongs to the data set and agrees with its
 * manifest.  After an error *out is zero.
 * CHEX_ERR_MISSING       there is none
 * CHEX_ERR_INCOMPATIBLE  of another data set or version;  CHEX_ERR_DAMAGED, CHEX_ERR_LIMIT, CHEX_ERR_READ
 */
enum chex_status certificate_read(const struct chex_dataset *ds, struct certificate *out, struct chex_error *err);

/*
 * Returns its hash and numbers as an object for other documents, null if there is none or c is NULL.  NULL when out of
 * memory.
 */
json_t *certificate_json(const struct certificate *c);

/* Write "0 patients and 0 images in two splits, 3 nearly equal pairs"; returns out. */
#define CERTIFICATE_TEXT 160
const char *certificate_text(const struct certificate *c, char out[CERTIFICATE_TEXT]);

#endif
