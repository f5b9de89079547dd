/*
 * train_report_plan.c - reports the plan of a run: its data, its network and its batches; see train_report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_report.h"

#include "common/wrap.h"
#include "dataset/dataset.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
print_split(struct wrap *w, const struct trainer_facts *f, const char *role, int split)
{
    const struct chex_split_info *s = split >= 0 ? chex_dataset_split(f->ds, (unsigned)split) : NULL;
    char n[FORMAT_TEXT];

    if (s)
        wrap_put(w, *role ? ", " : ": ", "%s %s (%.8s)", s->name, format_count(s->image_count, n), s->members_sha256);
}

/* Prints what was found in two splits, if anything is known about it. */
static void
print_certificate(const struct trainer_facts *f)
{
    char text[CERTIFICATE_TEXT];

    if (f->certificate->sha256[0])
        wrap_line(stderr, "", "certificate %.16s: %s", f->certificate->sha256, certificate_text(f->certificate, text));
    else
        fprintf(stderr, "         no certificate of the split\n");
}

static void
print_fold(const struct fold *f)
{
    char images[FOLD_PARTS][FORMAT_THINGS], patients[FOLD_PARTS][FORMAT_THINGS];
    int p;

    for (p = 0; p < FOLD_PARTS; p++) {
        format_things(f->samples[p].count, "image", images[p]);
        format_things(f->patients[p], "patient", patients[p]);
    }
    wrap_line(stderr, "fold", "%u/%u: train has %s of %s, val %s of %s", f->choice.index + 1, f->choice.count,
              images[FOLD_TRAIN], patients[FOLD_TRAIN], images[FOLD_VALIDATION], patients[FOLD_VALIDATION]);
}

static void
print_data(const struct trainer_facts *f, bool evaluate_only)
{
    struct wrap w = {.out = stderr};
    char patients[FORMAT_THINGS];

    wrap_put(&w, "", "data     %s", chex_dataset_info(f->ds)->id);
    wrap_put(&w, ", ", "split %s", f->ds->manifest.split_rule);
    if (!evaluate_only) {
        print_split(&w, f, "", f->train);
        print_split(&w, f, "val", f->validation);
    }
    print_split(&w, f, evaluate_only ? "" : "test", f->test);
    wrap_end(&w);
    if (f->fold)
        print_fold(f->fold);
    print_certificate(f);
    if (f->ds->info.leaky_patients > 0)
        wrap_line(stderr, "", "leaky: %s in two splits, so every number and figure is marked leaky",
                  format_things(f->ds->info.leaky_patients, "patient", patients));
    else if (f->certificate->images > 0)
        wrap_line(stderr, "", "leaky: %s in two splits, so every number and figure is marked leaky",
                  format_things(f->certificate->images, "image", patients));
    if (evaluate_only)
        return;
    if (strcmp(chex_dataset_split(f->ds, (unsigned)f->train)->name, "train") != 0)
        fprintf(stderr, "         no split train: trained on all images\n");
    if (f->validation < 0)
        fprintf(stderr, "         no split val: the learning rate follows the training loss,\n"
                        "         the last model is the best\n");
    else if (f->select == SELECT_LOSS)
        fprintf(stderr, "         the best model is that with the lowest validation loss\n");
}

static void
print_memory(const struct trainer_facts *f)
{
    char all[FORMAT_TEXT], there[FORMAT_TEXT];

    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "memory   %s", format_bytes(f->memory_all, all));
    if (f->memory_there > 0)
        wrap_put(&w, " ", "of %s", format_bytes(f->memory_there, there));
    wrap_put(&w, " ", "a rank");
    wrap_put(&w, ": ", "parameters %s", format_bytes(f->memory.parameters, all));
    if (f->memory.optimizer > 0)
        wrap_put(&w, ", ", "optimizer %s", format_bytes(f->memory.optimizer, all));
    wrap_put(&w, ", ", "activations %s", format_bytes(f->memory.activations, all));
    wrap_put(&w, ", ", "workspace %s", format_bytes(f->memory.workspace, there));
    wrap_end(&w);
}

static void
print_batches(const struct trainer_facts *f, const struct trainer_options *o)
{
    char a[FORMAT_THINGS], b[FORMAT_TEXT], c[FORMAT_TEXT];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "batch    %s a step", format_things(f->global_batch, "image", a));
    if (f->ranks > 1 || f->micro_batches > 1)
        wrap_put(&w, " ", "= %s x %s micro-batch%s of %s", format_things((unsigned)f->ranks, "rank", a),
                 format_count(f->micro_batches, b), f->micro_batches == 1 ? "" : "es", format_count(f->micro_batch, c));
    wrap_put(&w, ", ", "%s an epoch", format_things(f->steps, "step", a));
    wrap_put(&w, ", ", "%s", format_things(o->epochs, "epoch", a));
    wrap_end(&w);
}

static void
print_engine(const struct trainer_facts *f)
{
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "engine   %s", f->engine);
    wrap_end(&w);
}

/* Prints how the ranks sum gradients, and NCCL's environment variables: both help to explain the speed. */
static void
print_sums(const struct trainer_facts *f, const struct trainer_options *o)
{
    char **setting, text[PRINTABLE_TEXT];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "sums     %s", f->sums);
    if (strncmp(f->sums, "by NCCL", 7) != 0) {
        wrap_end(&w);
        return;
    }
    if (!o->evaluate_only)
        wrap_put(&w, ", ", "%s on the wire", wire_names[o->wire]);
    for (setting = environ; *setting; setting++)
        if (strncmp(*setting, "NCCL_", 5) == 0)
            wrap_put(&w, ", ", "%s", printable_text(*setting, text));
    wrap_end(&w);
}

/* Prints the data and the network of a run. */
static void
print_network(const struct train_report *r, const struct trainer_facts *f, const struct trainer_options *o)
{
    struct wrap w = {.out = stderr};

    print_data(f, o->evaluate_only);
    wrap_put(&w, "", "model    %s, %.2f M parameters", f->graph->model, (double)f->graph->param_floats / 1e6);
    wrap_put(&w, ", ", "input %u x %u", f->side, f->side);
    wrap_put(&w, " ", "of images of %u x %u", f->source, f->source);
    wrap_end(&w);
    print_memory(f);
    if (r->common->verbose > 0 && *f->engine)
        print_engine(f);
    if (r->common->verbose > 0 && *f->sums)
        print_sums(f, o);
}

void
train_report_plan(struct train_report *r, const struct trainer *t)
{
    const struct trainer_options *o = trainer_options(t);
    struct trainer_facts f;
    struct wrap w = {.out = stderr};
    char text[FORMAT_THINGS];

    if (r->common->quiet)
        return;
    progress_line_begin_log(r->common, train_program.name);
    r->begun = true;
    trainer_facts(t, &f);
    wrap_put(&w, "", "%s %s   %s", train_program.name, chex_version(), format_things((unsigned)f.ranks, "rank", text));
    wrap_put(&w, ", ", "%s", f.device);
    if (f.precision != PRECISION_FP32)
        wrap_put(&w, ", ", "%s", precision_names[f.precision]);
    if (!o->storage_check)
        wrap_put(&w, ", ", "%s", format_things(o->threads, "thread", text));
    wrap_end(&w);
    if (!o->storage_check)
        print_network(r, &f, o);
    else
        train_report_check(&f, o);
    if (o->storage_check && f.fold)
        print_fold(f.fold);
    if (!o->evaluate_only)
        print_batches(&f, o);
    if (!o->evaluate_only) {
        train_report_reading(&f, o);
        train_report_augmentation(o);
    }
    train_report_begin(r); /* prints the lines that were held */
}
