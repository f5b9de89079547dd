/*
 * verify_fixture.c - see verify_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify_fixture.h"

#include "unit.h"

#include "dataset/tfrecord.h"
#include "lib/dataset/small_dataset.h"
#include "verify/verify.h"

#include <stdio.h>
#include <string.h>

void
heard_fault(void *context, const struct verify_fault *fault)
{
    struct heard *h = context;
    size_t used = strlen(h->text);

    snprintf(h->text + used, sizeof(h->text) - used, "%s[%lld@%llu]: %s (%s)\n", fault->file, (long long)fault->record,
             (unsigned long long)fault->offset, fault->text, fault->image ? fault->image : "-");
    h->count++;
    h->status = fault->status;
}

struct verify
heard_run(const struct small_dataset *s, enum verify_depth depth, unsigned threads, struct heard *h)
{
    struct chex_dataset *ds;
    struct chex_error err = {.text = ""};
    struct verify v = {.depth = depth,
                       .sha256 = depth == VERIFY_FULL && s->compare_sha256,
                       .sample_percent = 100,
                       .threads = threads,
                       .fault = heard_fault,
                       .context = h};

    *h = (struct heard){.count = 0};
    ck_assert_int_eq(chex_dataset_open(s->path, &ds, NULL), CHEX_OK);
    v.dataset = ds;
    ck_assert_msg(verify_run(&v, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_ge(v.faults, h->count);
    chex_dataset_close(ds);
    return v;
}

void
heard_expect(const struct small_dataset *s, enum verify_depth depth, const char *text)
{
    struct heard h;

    heard_run(s, depth, 1, &h);
    ck_assert_msg(strcmp(h.text, text) == 0, "is:\n%sshould be:\n%s", h.text, text);
}
