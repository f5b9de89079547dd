/*
 * leaks_report.c - prints the result of check --leaks as text, rows or JSON; see leaks.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/number_format.h"
#include "inspect/check/near.h"

#include <math.h>
#include <string.h>

#define SHOWN 10
#define GROUP 4 /* largest group of equal images that is listed in full */

static const char *
split_name(const struct split_check *c, unsigned split)
{
    return c->dataset->split[split].name;
}

/* ---- patients ---------------------------------------------------------------------------------------------------- */

static void
print_patients(const struct inspect *in, const struct split_check *c)
{
    uint64_t images[SPLIT_MAX], shown = 0;
    char text[FORMAT_THINGS], name[INSPECT_TEXT];
    size_t i, next;
    unsigned s;

    if (c->shared_patients == 0) {
        printf("patients %sno patient is in two splits%s (%s)\n", in->color.green, in->color.off,
               format_things(c->patients, "patient", text));
        return;
    }
    printf("patients %s%s in more than one split%s\n", in->color.red,
           format_things(c->shared_patients, "patient", text), in->color.off);
    for (i = 0; i < c->count && shown < SHOWN; i = next) {
        bool first = true;

        if (!split_check_patient(c, i, &next, images))
            continue;
        printf("         %s:", inspect_text(inspect_bytes(c->seen[i].patient), name));
        for (s = 0; s < c->dataset->info.split_count; s++) {
            if (images[s] > 0)
                printf("%s %s %s", first ? "" : ",", split_name(c, s), format_things(images[s], "image", text));
            first &= images[s] == 0;
        }
        printf("\n");
        shown++;
    }
    if (c->shared_patients > shown)
        printf("         and %s\n", format_things(c->shared_patients - shown, "more patient", text));
}

json_t *
split_check_patients_json(const struct split_check *c, size_t most)
{
    json_t *list = json_array();
    uint64_t images[SPLIT_MAX];
    size_t i, next;
    unsigned s;

    for (i = 0; i < c->count && json_array_size(list) < most; i = next) {
        json_t *splits;

        if (!split_check_patient(c, i, &next, images))
            continue;
        splits = json_object();
        for (s = 0; s < c->dataset->info.split_count; s++)
            if (images[s] > 0)
                inspect_json_set(&splits, split_name(c, s), count_json(images[s]));
        inspect_json_push(&list, json_pack("{s:o, s:o}", "patient", text_json(c->seen[i].patient), "images", splits));
    }
    return list;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static void
print_images(const struct inspect *in, const struct split_check *c)
{
    char text[FORMAT_THINGS], name[INSPECT_TEXT];
    uint64_t shown = 0;
    size_t i, j, next;

    if (c->shared_images == 0)
        printf("images   %sno image is in two splits%s (%s)\n", in->color.green, in->color.off,
               format_things(c->count, "image", text));
    else
        printf("images   %s%s in more than one split%s\n", in->color.red,
               format_things(c->shared_images, "image", text), in->color.off);
    for (i = 0; i < c->count && shown < SHOWN; i = next) {
        if (!split_check_image(c, i, &next))
            continue;
        for (j = i; j < next; j++) {
            /* Of a large group, which is sorted by split, name only the first image of each split. */
            if (next - i > GROUP && j > i && c->by_hash[j]->split == c->by_hash[j - 1]->split)
                continue;
            printf("%s %s %s", j == i ? "        " : " =", split_name(c, c->by_hash[j]->split),
                   inspect_text(inspect_bytes(c->by_hash[j]->name), name));
        }
        if (next - i > GROUP)
            printf(", %s in all", format_things(next - i, "image", text));
        printf("\n");
        shown++;
    }
    if (c->shared_images > shown)
        printf("         and %s\n", format_things(c->shared_images - shown, "more image", text));
    if (c->repeated_images > 0)
        printf("         note: %s equal to another one of the same split\n",
               format_things(c->repeated_images, "image", text));
}

static json_t *
image_json(const struct split_check *c, const struct seen *seen)
{
    return json_pack("{s:o, s:s, s:s, s:o}", "name", text_json(seen->name), "split", split_name(c, seen->split),
                     "shard", c->dataset->shard[seen->shard].name, "index", count_json(seen->index));
}

json_t *
split_check_images_json(const struct split_check *c, size_t most)
{
    json_t *list = json_array();
    size_t i, j, next;

    for (i = 0; i < c->count && json_array_size(list) < most; i = next) {
        json_t *group;

        if (!split_check_image(c, i, &next))
            continue;
        group = json_array();
        for (j = i; j < next && j - i < most; j++)
            inspect_json_push(&group, image_json(c, c->by_hash[j]));
        inspect_json_push(&list, group);
    }
    return list;
}

/* ---- nearly equal images ----------------------------------------------------------------------------------------- */

static void
print_near(const struct inspect *in, const struct split_check *c)
{
    const struct near_search *s = c->near;
    char text[FORMAT_THINGS], a[INSPECT_TEXT], b[INSPECT_TEXT];
    size_t i;

    if (s->too_many)
        printf("near     %smore than %s pairs of images in two splits may be nearly equal%s: none is listed\n",
               in->color.red, format_count(NEAR_MAX, text), in->color.off);
    else if (s->pair_count == 0)
        printf("near     %sno image is nearly equal to one of another split%s\n", in->color.green, in->color.off);
    else
        printf("near     %s%s of nearly equal images in two splits%s\n", in->color.red,
               format_things(s->pair_count, "pair", text), in->color.off);
    for (i = 0; i < s->pair_count && i < SHOWN; i++) {
        const struct seen *x = s->image[s->pair[i].a].seen, *y = s->image[s->pair[i].b].seen;

        printf("         %s %s ~ %s %s, correlation %.3f\n", split_name(c, x->split),
               inspect_text(inspect_bytes(x->name), a), split_name(c, y->split),
               inspect_text(inspect_bytes(y->name), b), s->pair[i].correlation);
    }
    if (s->pair_count > SHOWN)
        printf("         and %s\n", format_things(s->pair_count - SHOWN, "more pair", text));
}

/* Returns null without --near, or if there are too many pairs. */
json_t *
split_check_near_json(const struct split_check *c, size_t most)
{
    const struct near_search *s = c->near;
    json_t *list = s && !s->too_many ? json_array() : json_null();
    size_t i;

    for (i = 0; s && i < s->pair_count && i < most; i++)
        inspect_json_push(&list, json_pack("{s:f, s:[o, o]}", "correlation", s->pair[i].correlation, "images",
                                           image_json(c, s->image[s->pair[i].a].seen),
                                           image_json(c, s->image[s->pair[i].b].seen)));
    return list;
}

/* ---- prevalence -------------------------------------------------------------------------------------------------- */

/* Split s has the prevalences of the first one: the largest of the differences that were compared. */
static void
print_largest(const struct split_check *c, unsigned s)
{
    const struct split_sums *a = &c->sums[0], *b = &c->sums[s];
    unsigned f, compared = 0, largest = 0;

    for (f = 0; f < c->dataset->info.finding_count; f++) {
        if (!ratio_comparable(&a->finding[f], &b->finding[f], SPLIT_EXPECTED))
            continue;
        if (compared++ == 0 || fabs(split_z(a, b, f)) > fabs(split_z(a, b, largest)))
            largest = f;
    }
    if (compared == 0) {
        printf("labels   %s cannot be compared with %s: too few images or patients\n", split_name(c, s),
               split_name(c, 0));
        return;
    }
    printf("labels   %s has the prevalences of %s, as far as chance allows\n", split_name(c, s), split_name(c, 0));
    printf("         %u of %u findings compared; largest |z|: %s\n", compared, c->dataset->info.finding_count,
           c->dataset->manifest.findings.name[largest]);
    printf("         %.2f %% in %s, %.2f %% in %s, z %.1f\n", 100 * ratio_value(&a->finding[largest]), split_name(c, 0),
           100 * ratio_value(&b->finding[largest]), split_name(c, s), split_z(a, b, largest));
}

/* Split s against the first one: the findings that differ. */
static void
print_drift(const struct inspect *in, const struct split_check *c, unsigned s)
{
    const struct split_sums *a = &c->sums[0], *b = &c->sums[s];
    unsigned f, differ = 0;

    for (f = 0; f < c->dataset->info.finding_count; f++)
        differ += fabs(split_z(a, b, f)) >= SPLIT_Z;
    if (differ == 0) {
        print_largest(c, s);
        return;
    }
    printf("labels   %s%s differs from %s in %u of %u findings%s\n", in->color.yellow, split_name(c, s),
           split_name(c, 0), differ, c->dataset->info.finding_count, in->color.off);
    printf("         %s%-20s %11.11s %11.11s %7s %7s%s\n", in->color.dim, "", split_name(c, 0), split_name(c, s),
           "ratio", "z", in->color.off);
    for (f = 0; f < c->dataset->info.finding_count; f++) {
        double z = split_z(a, b, f), p = ratio_value(&a->finding[f]), q = ratio_value(&b->finding[f]);

        if (fabs(z) < SPLIT_Z)
            continue;
        printf("         %-20s %9.2f %% %9.2f %%", c->dataset->manifest.findings.name[f], 100 * p, 100 * q);
        if (p > 0)
            printf(" %7.2f", q / p);
        else
            printf(" %7s", "-");
        printf(" %7.1f\n", z);
    }
}

static json_t *
drift_json(const struct split_check *c)
{
    json_t *list = json_array();
    unsigned s, f;

    for (s = 1; s < c->dataset->info.split_count; s++) {
        for (f = 0; f < c->dataset->info.finding_count; f++) {
            double z = split_z(&c->sums[0], &c->sums[s], f);

            inspect_json_push(&list,
                              json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:b}", "finding",
                                        c->dataset->manifest.findings.name[f], "reference", split_name(c, 0), "split",
                                        split_name(c, s), "reference_prevalence", ratio_value(&c->sums[0].finding[f]),
                                        "prevalence", ratio_value(&c->sums[s].finding[f]), "z", z, "differs",
                                        fabs(z) >= SPLIT_Z));
        }
    }
    return list;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static void
print_result(void *result)
{
    const struct split_check *c = result;
    const struct inspect *in = c->in;
    char path[PRINTABLE_TEXT];
    bool differs = false;
    unsigned s, f;

    print_patients(in, c);
    print_images(in, c);
    if (c->near)
        print_near(in, c);
    if (in->common->quiet)
        return;
    if (c->certificate[0])
        printf("written  %s\n         sha256 %s\n", printable_text(in->options->certificate, path), c->certificate);
    if (c->dataset->info.split_count == 1)
        printf("labels   one split: nothing to compare\n");
    for (s = 1; s < c->dataset->info.split_count; s++) {
        print_drift(in, c, s);
        for (f = 0; f < c->dataset->info.finding_count; f++)
            differs |= fabs(split_z(&c->sums[0], &c->sums[s], f)) >= SPLIT_Z;
    }
    if (differs)
        printf("         |z| above %.2f is shown (p < .001; images of one patient count as a cluster).\n"
               "         Not a fault, but thresholds and class weights of %s do not carry over.\n",
               SPLIT_Z, split_name(c, 0));
}

static json_t *
result_json(void *result)
{
    const struct split_check *c = result;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:o}", "path", text_json(c->path),
                     "patients", count_json(c->patients), "images", count_json(c->count), "patients_in_two_splits",
                     split_check_patients_json(c, SIZE_MAX), "images_in_two_splits",
                     split_check_images_json(c, SIZE_MAX), "repeated_within_split", count_json(c->repeated_images),
                     "near_in_two_splits", split_check_near_json(c, SIZE_MAX), "near_threshold", NEAR_LEAST,
                     "z_threshold", SPLIT_Z, "drift", drift_json(c), "certificate_sha256",
                     text_json(c->certificate[0] ? c->certificate : NULL), "faults", count_json(c->faults));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const struct table_column columns[] = {{.name = "check"},       {.name = "name"},        {.name = "other_name"},
                                              {.name = "split"},       {.name = "other_split"}, {.name = "value"},
                                              {.name = "other_value"}, {.name = "z"},           {.name = NULL}};

/* A patient in the split of its first image and in another one; how many images it has in both. */
static void
put_patients(struct table_writer *t, const struct split_check *c)
{
    uint64_t images[SPLIT_MAX];
    char name[INSPECT_TEXT];
    size_t i, next;
    unsigned s, first;

    for (i = 0; i < c->count; i = next) {
        if (!split_check_patient(c, i, &next, images))
            continue;
        for (first = 0; images[first] == 0;)
            first++;
        inspect_text(inspect_bytes(c->seen[i].patient), name);
        for (s = first + 1; s < c->dataset->info.split_count; s++)
            if (images[s] > 0)
                table_row(t, (struct cell[]){cell_text("patient"), cell_text(name), cell_none(),
                                             cell_text(split_name(c, first)), cell_text(split_name(c, s)),
                                             cell_count(images[first]), cell_count(images[s]), cell_none()});
    }
}

/* The first of equal images, and each other one, where they are in more than one split. */
static void
put_images(struct table_writer *t, const struct split_check *c)
{
    char name[INSPECT_TEXT], other[INSPECT_TEXT];
    size_t i, j, next;

    for (i = 0; i < c->count; i = next) {
        if (!split_check_image(c, i, &next))
            continue;
        inspect_text(inspect_bytes(c->by_hash[i]->name), name);
        for (j = i + 1; j < next; j++)
            table_row(t, (struct cell[]){cell_text("image"), cell_text(name),
                                         cell_text(inspect_text(inspect_bytes(c->by_hash[j]->name), other)),
                                         cell_text(split_name(c, c->by_hash[i]->split)),
                                         cell_text(split_name(c, c->by_hash[j]->split)), cell_none(), cell_none(),
                                         cell_none()});
    }
}

static void
put_near(struct table_writer *t, const struct split_check *c)
{
    const struct near_search *s = c->near;
    char name[INSPECT_TEXT], other[INSPECT_TEXT];
    size_t i;

    for (i = 0; s && i < s->pair_count; i++) {
        const struct seen *x = s->image[s->pair[i].a].seen, *y = s->image[s->pair[i].b].seen;

        table_row(t, (struct cell[]){cell_text("near"), cell_text(inspect_text(inspect_bytes(x->name), name)),
                                     cell_text(inspect_text(inspect_bytes(y->name), other)),
                                     cell_text(split_name(c, x->split)), cell_text(split_name(c, y->split)),
                                     cell_number(s->pair[i].correlation), cell_none(), cell_none()});
    }
}

static void
put_rows(struct table_writer *t, void *result)
{
    const struct split_check *c = result;
    unsigned s, f;

    put_patients(t, c);
    put_images(t, c);
    put_near(t, c);
    for (s = 1; s < c->dataset->info.split_count; s++)
        for (f = 0; f < c->dataset->info.finding_count; f++)
            table_row(t, (struct cell[]){cell_text("prevalence"), cell_text(c->dataset->manifest.findings.name[f]),
                                         cell_none(), cell_text(split_name(c, 0)), cell_text(split_name(c, s)),
                                         cell_number(ratio_value(&c->sums[0].finding[f])),
                                         cell_number(ratio_value(&c->sums[s].finding[f])),
                                         cell_number(split_z(&c->sums[0], &c->sums[s], f))});
}

const struct inspect_result split_check_result = {columns, put_rows, result_json, print_result};
