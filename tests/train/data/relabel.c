/*
 * relabel.c - copies a data set with another list of findings, and with unknown labels
 *
 *     relabel FROM TO FINDINGS UNKNOWN [SPLIT]
 *
 * FINDINGS  "A,B,C", or a number N: finding_000 ... finding_N-1
 * UNKNOWN   per cent of the labels that are unknown; 0: none, and the data set has no unknown labels.  Otherwise also
 *           all labels of the second finding, and all labels of every seventh image.
 * SPLIT     only this split has unknown labels
 * Labels are functions of the name of the image and the name of the finding: a quarter of them is 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/sha256.h"
#include "dataset/dataset.h"
#include "dataset/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct copy {
    struct chex_dataset *from;
    struct manifest manifest; /* of the copy */
    struct findings findings;
    unsigned unknown;
    const char *split;         /* NULL: all */
    uint8_t *in, *out, *label; /* a record of each; [findings.count] */
};

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "relabel: %s\n", err->text);
    exit(1);
}

static void *
take(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p)
        exit(1);
    return p;
}

/* FNV-1a of both names. */
static uint32_t
hash_of(const char *image, size_t size, const char *finding)
{
    uint32_t h = 2166136261u;
    size_t i;

    for (i = 0; i < size; i++)
        h = (h ^ (uint8_t)image[i]) * 16777619u;
    for (; *finding; finding++)
        h = (h ^ (uint8_t)*finding) * 16777619u;
    return (h ^ h >> 15) * 2654435761u >> 8;
}

static void
make_findings(const char *text, struct findings *out)
{
    static char room[CHEX_FINDINGS_MAX][16];
    struct chex_bytes name[CHEX_FINDINGS_MAX];
    unsigned long number = strtoul(text, NULL, 10);
    struct chex_error err;
    size_t count = 0;

    for (; count < number && count < CHEX_FINDINGS_MAX; count++)
        name[count] = (struct chex_bytes){
            room[count], (size_t)snprintf(room[count], sizeof(room[count]), "finding_%03u", (unsigned)count % 1000)};
    while (number == 0 && *text && count < CHEX_FINDINGS_MAX) {
        size_t length = strcspn(text, ",");

        name[count++] = (struct chex_bytes){text, length};
        text += length + (text[length] == ',');
    }
    check(findings_make(name, count, out, &err), &err);
}

static void
make_labels(struct copy *c, const struct record_values *v, struct manifest_split *split)
{
    bool masked = c->unknown > 0 && (!c->split || strcmp(c->split, split->name) == 0);
    unsigned k;

    for (k = 0; k < c->findings.count; k++) {
        uint32_t h = hash_of(v->name.data, v->name.size, c->findings.name[k]);
        bool all = k == 1 || hash_of(v->name.data, v->name.size, "") % 7 == 0;

        c->label[k] = masked && (all || h % 100 < c->unknown) ? CHEX_LABEL_UNKNOWN : h / 100 % 4 == 0;
        split->positives[k] += v->weight && c->label[k] == 1;
        split->known[k] += v->weight && c->label[k] != CHEX_LABEL_UNKNOWN;
    }
}

static void
copy_shard(struct copy *c, const char *from, const char *to, unsigned number)
{
    const struct record_layout *old = &c->from->manifest.layout, *new = &c->manifest.layout;
    struct manifest_shard *shard = &c->manifest.shard[number];
    struct digest *digest = digest_new();
    uint8_t hash[DIGEST_SIZE];
    char path[1024], *hex = take(1, DIGEST_HEX), *crc = take(1, CRC_HEX);
    uint32_t sum = 0, i;
    FILE *in, *out;

    snprintf(path, sizeof(path), "%s/%s", from, shard->name);
    in = fopen(path, "rb");
    snprintf(path, sizeof(path), "%s/%s", to, shard->name);
    out = fopen(path, "wb");
    if (!in || !out || !digest)
        exit(1);
    digest_start(digest);
    for (i = 0; i < shard->records; i++) {
        struct record_values v;
        struct chex_error err;

        if (fread(c->in, 1, old->stride, in) != old->stride)
            exit(1);
        check(record_decode(old, c->in, &v, &err), &err);
        make_labels(c, &v, &c->manifest.split[shard->split]);
        v.label = c->label;
        memcpy(v.dataset_id, c->manifest.dataset_id, sizeof(v.dataset_id));
        memset(c->out, 0, new->stride);
        memcpy(c->out + new->pixel_offset, c->in + old->pixel_offset, old->pixel_size);
        record_encode(new, &v, c->out);
        record_seal(new, c->out);
        digest_add(digest, c->out, new->stride);
        sum = chex_crc32c(sum, c->out + new->stride - 4, 4);
        if (fwrite(c->out, 1, new->stride, out) != new->stride)
            exit(1);
    }
    digest_finish(digest, hash);
    digest_hex(hash, sizeof(hash), hex);
    crc_hex(sum, crc);
    digest_free(digest);
    fclose(in);
    if (fclose(out) != 0)
        exit(1);
    shard->sha256 = hex;
    shard->crc32c = crc;
    shard->size = shard->records * new->stride;
}

/* Ids differ for different findings and different unknown labels. */
static void
make_id(struct copy *c, const char *findings)
{
    uint32_t h = hash_of(findings, strlen(findings), c->from->manifest.dataset_id) + c->unknown;

    snprintf(c->manifest.dataset_id, sizeof(c->manifest.dataset_id), "%08x%08x", (unsigned)h,
             (unsigned)h * 2654435761u);
}

/* Some strides are impossible: see record_choose(). */
static void
choose_layout(struct copy *c)
{
    const struct record_layout old = c->manifest.layout;
    const struct label_form form = {c->findings.count, c->unknown > 0};
    size_t stride = old.stride;
    struct chex_error err;

    while (record_restore(old.height, old.width, old.align, form, stride, &c->manifest.layout, &err) != CHEX_OK ||
           stride < old.stride + c->findings.count) {
        stride += old.align;
        if (stride > 2 * old.stride)
            check(err.status, &err);
    }
}

int
main(int argc, char **argv)
{
    struct copy c = {.unknown = argc >= 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 0,
                     .split = argc == 6 ? argv[5] : NULL};
    struct buffer b = {0};
    struct chex_error err;
    char path[1024];
    unsigned i;
    FILE *f;

    if (argc != 5 && argc != 6)
        return 2;
    check(chex_dataset_open(argv[1], &c.from, &err), &err);
    make_findings(argv[3], &c.findings);
    c.manifest = c.from->manifest;
    c.manifest.findings = c.findings;
    make_id(&c, argv[3]);
    choose_layout(&c);
    if (mkdir(argv[2], 0777) != 0)
        return 1;
    c.in = take(1, c.from->manifest.layout.stride);
    c.out = take(1, c.manifest.layout.stride);
    c.label = take(c.findings.count, 1);
    for (i = 0; i < c.manifest.split_count; i++) {
        memset(c.manifest.split[i].positives, 0, sizeof(c.manifest.split[i].positives));
        memset(c.manifest.split[i].known, 0, sizeof(c.manifest.split[i].known));
    }
    for (i = 0; i < c.manifest.shard_count; i++)
        copy_shard(&c, argv[1], argv[2], i);
    check(manifest_format(&c.manifest, &b, &err), &err);
    snprintf(path, sizeof(path), "%s/manifest.json", argv[2]);
    f = fopen(path, "wb");
    free(c.in);
    free(c.out);
    free(c.label);
    return !f || fwrite(b.data, 1, b.size, f) != b.size || fclose(f) != 0;
}
