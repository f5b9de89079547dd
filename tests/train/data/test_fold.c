/*
 * test_fold.c - folds of a data set, by patient
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "data/fold.h"
#include "dataset/dataset.h"
#include "lib/dataset/small_dataset.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The small data set: splits train and val, images and patients 0 to 7. */
struct bench {
    struct small_dataset small;
    struct chex_dataset *ds;
    struct digest *digest;
};

static void
bench_make(struct bench *b)
{
    struct chex_error err;
    char name[32];

    snprintf(name, sizeof(name), "fold%ld", (long)getpid());
    small_make(&b->small, name);
    ck_assert_int_eq(chex_dataset_open(b->small.path, &b->ds, &err), CHEX_OK);
    b->digest = digest_new();
}

static void
bench_release(struct bench *b)
{
    digest_free(b->digest);
    chex_dataset_close(b->ds);
    small_release(&b->small);
}

/* Returns the image, which is also the patient, of a sample: shards have three records. */
static unsigned
image_of(const struct sample_place *place)
{
    return place->shard * SMALL_RECORDS + place->index;
}

static unsigned
fold_of_image(const struct bench *b, unsigned image, unsigned count)
{
    char patient[16];

    snprintf(patient, sizeof(patient), "%08u", image);
    return fold_of_patient(b->digest, (struct chex_bytes){patient, 8}, count);
}

TEST_CASE("loader", "fold", NULL, NULL);

TEST(a_fold_is_written_as_K_of_N)
{
    static const char *const bad[] = {"",      "3",    "/",    "3/",    "/5",    "0/5",          "6/5",
                                      "1/1",   "1/0",  "03/5", "3/05",  "+3/5",  "3/-5",         "3/5/",
                                      "1/101", "3 /5", "3/5 ", "1e0/5", "3/5.0", "1/4294967298", "4294967297/5",
                                      "1/999", "a/b",  "3:5",  NULL};
    struct fold_choice c;
    struct chex_error err;

    ck_assert_int_eq(fold_parse("1/2", &c, &err), CHEX_OK);
    ck_assert_uint_eq(c.index, 0);
    ck_assert_uint_eq(c.count, 2);
    ck_assert_int_eq(fold_parse("100/100", &c, &err), CHEX_OK);
    ck_assert_uint_eq(c.index, 99);
    ck_assert_uint_eq(c.count, 100);
    for (size_t i = 0; bad[i]; i++) {
        ck_assert_msg(fold_parse(bad[i], &c, &err) == CHEX_ERR_USAGE, "'%s'", bad[i]);
        ck_assert(strstr(err.text, bad[i]));
    }
}

/* hashlib: int.from_bytes(sha256(b"chex-fold:00000013").digest()[:8], "big") is 0x278d0a0aeb9aa032. */
TEST(the_fold_of_a_patient_is_that_of_hashlib)
{
    struct digest *d = digest_new();

    ck_assert_uint_eq(fold_of_patient(d, (struct chex_bytes){"00000013", 8}, 5), 4);
    ck_assert_uint_eq(fold_of_patient(d, (struct chex_bytes){"00000013", 8}, 100), 34);
    digest_free(d);
}

/* Check the parts of one fold, and count the images of its val. */
static void
expect_parts(const struct bench *b, const struct fold *f, unsigned validated[SMALL_IMAGES])
{
    size_t images = 0;

    for (unsigned p = 0; p < FOLD_PARTS; p++) {
        for (size_t i = 0; i < f->samples[p].count; i++) {
            unsigned image = image_of(&f->samples[p].place[i]);
            bool own = fold_of_image(b, image, f->choice.count) == f->choice.index;

            ck_assert_int_eq(own, p == FOLD_VALIDATION);
            ck_assert(i == 0 || image_of(&f->samples[p].place[i - 1]) < image);
            validated[image] += own;
        }
        images += f->samples[p].count;
    }
    ck_assert_uint_eq(images, SMALL_IMAGES);
}

TEST(n_folds_divide_train_and_val_by_patient)
{
    struct bench b;
    struct chex_error err;

    bench_make(&b);
    for (unsigned count = 2; count < 6; count++) {
        unsigned validated[SMALL_IMAGES] = {0};

        for (unsigned index = 0; index < count; index++) {
            struct fold_choice choice = {index, count};
            struct fold *f;
            enum chex_status status = fold_new(b.ds, 0, 1, &choice, false, &f, &err);

            if (count == 5 && (index == 1 || index == 2)) { /* hashlib: no patient */
                ck_assert_int_eq(status, CHEX_ERR_USAGE);
                ck_assert(strstr(err.text, "no image to validate with"));
            } else {
                ck_assert_int_eq(status, CHEX_OK);
                expect_parts(&b, f, validated);
            }
            fold_free(f);
        }
        for (unsigned i = 0; i < SMALL_IMAGES; i++)
            ck_assert_uint_eq(validated[i], 1);
    }
    bench_release(&b);
}

TEST(the_data_set_then_describes_the_fold)
{
    struct fold_choice choice = {1, 2};
    struct fold *f;
    struct bench b;
    struct chex_error err;
    uint64_t positives[2] = {0, 0};
    char hex[DIGEST_HEX], names[SMALL_IMAGES * 17 + 1] = "";

    bench_make(&b);
    ck_assert_int_eq(fold_new(b.ds, 0, 1, &choice, false, &f, &err), CHEX_OK);
    fold_apply(f, b.ds);
    for (unsigned i = 0; i < SMALL_IMAGES; i++) {
        if (fold_of_image(&b, i, 2) == 1)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%08u_000.png\n", i);
        if (i == 3) /* the only image with finding 3 */
            positives[fold_of_image(&b, i, 2)]++;
    }
    ck_assert(digest_data(names, strlen(names), hex));
    ck_assert_str_eq(chex_dataset_split(b.ds, 1)->members_sha256, hex);
    ck_assert_str_ne(chex_dataset_split(b.ds, 0)->members_sha256, hex);
    for (unsigned s = 0; s < 2; s++) {
        const struct chex_split_info *info = chex_dataset_split(b.ds, s);

        ck_assert_uint_eq(info->image_count, f->samples[s].count);
        ck_assert_uint_eq(info->patient_count, f->samples[s].count);
        ck_assert_uint_eq(info->known[3], f->samples[s].count);
        ck_assert_uint_eq(info->positives[3], positives[s]);
    }
    ck_assert_str_eq(b.ds->manifest.split_rule, "patient:70,30,0:0, fold 2/2");
    bench_release(&b);
    fold_free(f);
}

TEST(a_damaged_record_is_an_error_or_in_no_fold)
{
    struct fold_choice choice = {0, 2};
    struct fold *f;
    struct bench b;
    struct chex_error err;

    bench_make(&b);
    b.small.bytes[1][0] ^= 1; /* the length of image 3 */
    small_put_shard(&b.small, 1);
    ck_assert(chex_status_is_data(fold_new(b.ds, 0, 1, &choice, false, &f, &err)));
    fold_free(f);
    ck_assert_int_eq(fold_new(b.ds, 0, 1, &choice, true, &f, &err), CHEX_OK);
    ck_assert_uint_eq(f->samples[0].count + f->samples[1].count, SMALL_IMAGES - 1);
    ck_assert_uint_eq(f->unreadable.count, 1);
    ck_assert_int_eq(image_of(&f->unreadable.place[0]), 3);
    for (unsigned p = 0; p < FOLD_PARTS; p++)
        for (size_t i = 0; i < f->samples[p].count; i++)
            ck_assert_uint_ne(image_of(&f->samples[p].place[i]), 3);
    fold_free(f);
    bench_release(&b);
}
