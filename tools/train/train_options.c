/*
 * train_options.c - the option table of chex-train and the effect of each option
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_options.h"

#include "backend/backend.h"
#include "base/ascii.h"
#include "base/member.h"
#include "graph/models.h"
#include "train/backends.h"
#include "train/train_audit.h"
#include "train/train_storage_options.h"
#include "train/train_values.h"

#include <stdlib.h>
#include <string.h>

/* Options that need code of their own; options that only set a value of the table of settings have no number. */
enum {
    OPT_SETTING,
    OPT_INIT,
    OPT_AUGMENT,
    OPT_OPTIMIZER,
    OPT_WEIGHT_DECAY,
    OPT_EMA,
    OPT_POS_WEIGHT,
    OPT_SHUFFLE,
    OPT_CHECKPOINT_EVERY,
    OPT_RANKS,
    OPT_NODES,
    OPT_NETWORK,
    OPT_EVAL_EVERY,
    OPT_WARMUP,
    OPT_RATE
};

#define FLAG(member) CLI_FLAG(struct train_cli, member)
#define TEXT(member) CLI_TEXT(struct train_cli, member)

static const struct cli_option option_table[] = {
    {OPT_SETTING, 'd', "data", "DIR", NULL, "Input and output", "folder of the data set, as chex-convert wrote it"},
    {OPT_SETTING, 'o', "output", "DIR", NULL, NULL, "folder of this run, RUN; made if missing"},
    {OPT_INIT, 0, "init", "FILE", NULL, NULL,
     "start from these weights (safetensors, or .pth of PyTorch); default random"},
    {OPT_SETTING, 0, "resume", "WHAT", NULL, NULL,
     "where to start: auto (default; resume RUN if there is one), none (start fresh), or the PATH of a checkpoint"},
    {FLAG(dry_run), 'n', "dry-run", NULL, NULL, NULL,
     "show the plan, its memory and time; check --init; train nothing"},
    {OPT_SETTING, 0, "break-lock", NULL, NULL, NULL, "take over a folder whose owner on another host is dead"},

    {OPT_SETTING, 0, "model", "NAME", graph_models, "Model and images", "network to train: " MODEL_HELP},
    {OPT_SETTING, 0, "crop", "N", NULL, NULL,
     "side of the network's input in pixels; default 224, or all of smaller images"},
    {OPT_AUGMENT, 0, "augment", "LIST", NULL, NULL,
     "random changes to training images: flip,crop (default), flip, crop or none"},
    {OPT_SETTING, 0, "rotate", "DEGREES", NULL, NULL,
     "rotate training images by a random angle from -DEGREES to DEGREES; default 0"},
    {OPT_SETTING, 0, "brightness", "X", NULL, NULL,
     "multiply the gray levels of training images by a random factor from 1 - X to 1 + X; default 0"},
    {OPT_SETTING, 0, "mixup", "ALPHA", NULL, NULL,
     "mix each training image, and its labels, with another one, by shares from Beta(ALPHA, ALPHA); default 0: do not"},

    {OPT_SETTING, 0, "epochs", "N", NULL, "Training", "number of passes over the training split; default 10"},
    {OPT_SETTING, 0, "fold", "K/N", NULL, NULL,
     "divide the patients of train and val into N folds for cross-validation, and validate with fold K; --fold 3/5"},
    {OPT_SETTING, 0, "limit", "N", NULL, NULL,
     "train on, and validate with, only N images of each split, or P%, as whole patients: a short run"},
    {OPT_SETTING, 0, "max-steps", "N", NULL, NULL,
     "save and end after N steps in total, without an evaluation: a short run, whose results are marked; default "
     "never"},
    {OPT_SETTING, 0, "batch", "N", NULL, NULL, "images in a step on each rank; default 64"},
    {OPT_SETTING, 0, "accumulate", "N", NULL, NULL, "batches whose gradients make one step; default 1"},
    {OPT_SETTING, 0, "micro-batch", "N", NULL, NULL,
     "images computed at once, a divisor of --batch; batch statistics are those of a micro-batch.  Default on a CPU: "
     "the largest divisor up to 16"},
    {OPT_SETTING, 0, "lr", "X", NULL, NULL,
     "learning rate; default that of PyTorch's optimizer: 1e-3, for adagrad and rmsprop 0.01, for adadelta 1"},
    {OPT_SETTING, 0, "schedule", "NAME", schedule_names, NULL,
     "how the learning rate changes: plateau (default; a tenth after an epoch without a lower validation loss), "
     "cosine or constant"},
    {OPT_SETTING, 0, "patience", "N", NULL, NULL,
     "epochs without a lower loss before plateau lowers the rate; default 0"},
    {OPT_WARMUP, 0, "warmup", "STEPS", NULL, NULL,
     "steps in which the learning rate rises from 0; default 0; or epochs, such as 2epochs"},
    {OPT_SETTING, 0, "lr-scale", "HOW", rate_scale_names, NULL,
     "whether to scale the learning rate: none (default) or linear (multiply it by the number of ranks)"},
    {OPT_OPTIMIZER, 0, "optimizer", "NAME", optimizer_names, NULL,
     "optimizer of the weights: adam (default), adamw, sgd (momentum 0.9), adagrad, adadelta or rmsprop"},
    {OPT_WEIGHT_DECAY, 0, "weight-decay", "X", NULL, NULL, "weight decay of the optimizer; default 0, with adamw 0.01"},
    {OPT_SETTING, 0, "clip", "NORM", NULL, NULL, "scale gradients with a larger norm down to this one; default never"},
    {OPT_EMA, 0, "ema", "DECAY", NULL, NULL, "evaluate and save a moving average of the weights; DECAY such as 0.999"},
    {OPT_SETTING, 0, "loss", "NAME", loss_names, NULL, "loss function: bce (default) or focal (gamma 2)"},
    {OPT_SETTING, 0, "label-smoothing", "X", NULL, NULL,
     "train with labels X / 2 and 1 - X / 2 instead of 0 and 1; default 0"},
    {OPT_POS_WEIGHT, 0, "pos-weight", "WHAT", NULL, NULL,
     "weight of positive labels in the loss: none (default), auto (negatives / positives of the training split), or "
     "a FILE with lines NAME,WEIGHT"},
    {OPT_SETTING, 0, "seed", "N", NULL, NULL, "seed of weights, order and augmentation; default 1"},

    {OPT_SETTING, 0, "device", "NAME", CLI_NAMES("auto", "none", BACKEND_NAMES), "Machine",
     "device to compute on: " BACKEND_HELP
     "; with -n also a model of a GPU: cuda:V100.  none: read the images as a run "
     "does, compute nothing, and report whether the storage is fast enough"},
    {OPT_RATE, 0, "rate", "N", NULL, NULL,
     "with --device none: images a second that each rank uses; default as many as it gets"},
    {OPT_SETTING, 0, "precision", "NAME", precision_names, NULL,
     "number format of the computation: auto (default; fp32 on a CPU, fp16 on a GPU), fp32, tf32, fp16 or bf16"},
    {OPT_SETTING, 0, "engine", "NAME", engine_names, NULL, "kernels for convolutions on a GPU: own (default) or cudnn"},
    {OPT_SETTING, 0, "deterministic", NULL, NULL, NULL,
     "record that every run must give the same bits; all kernels do, also without it"},
    {OPT_SETTING, 0, "wire", "NAME", wire_names, NULL,
     "number format of gradients between GPUs: fp32 (default) or bf16 (half the bytes, less exact; with NCCL only)"},
    {OPT_SETTING, 0, "no-graph", NULL, NULL, NULL, "wait for each kernel of a GPU, so that an error names it"},
    {OPT_SETTING, 0, "pdl", NULL, NULL, NULL,
     "let kernels start before the previous one ends (programmatic dependent launch); GPUs of 9.0 and newer"},
    {OPT_RANKS, 0, "ranks", "N", NULL, NULL,
     "with -n and --device cuda: also model the training on up to N GPUs, one for each rank; with --device none: the "
     "number of ranks that the job must have"},
    {OPT_NODES, 0, "nodes", "N", NULL, NULL, "with --ranks: number of machines that share them; default 1"},
    {OPT_NETWORK, 0, "network", "NAME", scale_network_names, NULL,
     "with --nodes: network between them: edr, hdr or ndr (InfiniBand), or 10g (Ethernet)"},
    {OPT_SETTING, 0, "timeout", "TIME", NULL, NULL, "time after which a silent rank counts as lost; default 5m"},

    {OPT_SETTING, 0, "stage", "DIR", NULL, "Reading",
     "copy the shards once to this disk of each machine, and check them"},
    {OPT_SETTING, 0, "cache", "WHERE", cache_names, NULL,
     "where to keep the images between epochs: auto (default; where they fit), device (a GPU), host or none"},
    {OPT_SHUFFLE, 0, "shuffle", "HOW", NULL, NULL,
     "how to shuffle a new run: auto (default), whole, or N (the shards, and the images of N shards at a time)"},
    {OPT_SETTING, 0, "crc", "WHEN", reader_check_names, NULL,
     "when to check the checksums of an image: first (default; when it is read for the first time), always or never"},

    {OPT_SETTING, 0, "select", "WHAT", select_names, "Checkpoints",
     "which model is the best: auroc (default; highest on the validation split) or loss (lowest)"},
    {OPT_EVAL_EVERY, 0, "eval-every", "N", NULL, NULL,
     "epochs between two evaluations of the validation split; default 1; never: only after the last epoch"},
    {OPT_SETTING, 0, "early-stop", "N", NULL, NULL, "end after N epochs without a better model; default never"},
    {OPT_SETTING, 0, "keep", "N", NULL, NULL, "number of checkpoints to keep; default 2; 0: all"},
    {OPT_CHECKPOINT_EVERY, 0, "checkpoint-every", "TIME", NULL, NULL,
     "how often to save in addition to the end of each epoch: a time, steps such as 500steps, or never; default 10m"},
    {OPT_SETTING, 0, "time-limit", "TIME", NULL, NULL, "save and exit with 75 after this time, as after a signal"},
    {OPT_SETTING, 0, "on-bad-record", "WHAT", bad_record_names, NULL,
     "what to do at a damaged record: stop (default) or skip (take the next good one)"},
    {OPT_SETTING, 0, "allow-new-data", NULL, NULL, NULL, "resume with another data set"},
    {OPT_SETTING, 0, "allow-batch-change", NULL, NULL, NULL, "resume with another global batch"},
    {OPT_SETTING, 0, "allow-precision-change", NULL, NULL, NULL, "resume in another precision; CPU to GPU and back"},

    {OPT_SETTING, 0, "eval-only", NULL, NULL, "Evaluation",
     "evaluate the best model of RUN, or that of --init; no training"},
    {OPT_SETTING, 0, "split", "NAME", NULL, NULL, "split to evaluate (with --eval-only); default test"},
    {OPT_SETTING, 0, "audit", "RUN", NULL, NULL,
     "train the steps between the checkpoints of RUN again and compare every bit; writes nothing; --max-steps limits "
     "its steps"},
    {OPT_SETTING, 0, "predict", "FILE", NULL, NULL,
     "write the predictions of the last evaluation to this CSV file too"},
    {OPT_SETTING, 0, "tta", "NAME", tta_names, NULL, "views of each image to average: none (default), flip or tencrop"},
    {OPT_SETTING, 0, "bootstrap", "N", NULL, NULL,
     "number of bootstrap draws for confidence intervals; default 1000; 0: no intervals"},

    {TEXT(trace), 0, "trace", "FILE", NULL, "Watching",
     "write a timeline of all ranks to this file (.json), for ui.perfetto.dev"},
    {0, 0, NULL, NULL, NULL, NULL, NULL},
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static enum chex_status
set_augment(unsigned *out, const char *value, struct chex_error *err)
{
    int bits = strcmp(value, "crop,flip") == 0 ? AUGMENT_CROP | AUGMENT_FLIP : name_index(augment_names, value);

    if (bits >= 0) {
        *out = (unsigned)bits;
        return CHEX_OK;
    }
    return error_set(err, CHEX_ERR_USAGE, "takes flip,crop, flip, crop or none, not '%s'", value);
}

/* Copies the digits of "500steps" or "500step" (unit: "step"); returns false for a text of another form. */
static bool
take_number(const char *value, const char *unit, char number[20])
{
    size_t digits = strspn(value, "0123456789"), length = strlen(unit);

    if (digits == 0 || digits >= 20 || strncmp(value + digits, unit, length) != 0)
        return false;
    memcpy(number, value, digits);
    number[digits] = '\0';
    return strcmp(value + digits + length, "s") == 0 || value[digits + length] == '\0';
}

/* Parses "10m", "500steps", "never". */
static enum chex_status
set_interval(struct trainer_options *o, const char *value, struct chex_error *err)
{
    char number[20];

    o->checkpoint_seconds = 0;
    o->checkpoint_steps = 0;
    if (strcmp(value, "never") == 0)
        return CHEX_OK;
    if (take_number(value, "step", number))
        return cli_number(number, 1, UINT32_MAX, &o->checkpoint_steps, err);
    return value_duration(value, &o->checkpoint_seconds, err);
}

/* Parses "500", "2epochs". */
static enum chex_status
set_warmup(struct trainer_options *o, const char *value, struct chex_error *err)
{
    char number[20];
    uint64_t epochs = 0;
    enum chex_status status = CHEX_OK;

    o->schedule.warmup = 0;
    if (take_number(value, "epoch", number))
        status = cli_number(number, 0, CHECKPOINT_MAX_EPOCHS, &epochs, NULL);
    else
        status = cli_number(value, 0, CHECKPOINT_MAX_WARMUP, &o->schedule.warmup, NULL);
    o->warmup_epochs = (uint32_t)epochs;
    if (status != CHEX_OK)
        return error_set(err, status,
                         "takes a number from 0 to %llu, or of epochs from 0 to %d, such as 2epochs, not '%s'",
                         (unsigned long long)CHECKPOINT_MAX_WARMUP, CHECKPOINT_MAX_EPOCHS, value);
    return CHEX_OK;
}

/* Parses "2", "never". */
static enum chex_status
set_evaluations(struct trainer_options *o, const char *value, struct chex_error *err)
{
    uint64_t number = 0;

    if (strcmp(value, "never") != 0 && cli_number(value, 1, CHECKPOINT_MAX_EPOCHS, &number, NULL) != CHEX_OK)
        return error_set(err, CHEX_ERR_USAGE, "takes a number from 1 to %d or never, not '%s'", CHECKPOINT_MAX_EPOCHS,
                         value);
    o->evaluate_every = (uint32_t)number;
    return CHEX_OK;
}

/* Parses "auto", "whole", "64". */
static enum chex_status
set_shuffle(struct trainer_options *o, const char *value, struct chex_error *err)
{
    uint64_t window = 0;
    bool word = strcmp(value, "auto") == 0 || strcmp(value, "whole") == 0;
    enum chex_status status = word ? CHEX_OK : cli_number(value, 1, CHECKPOINT_MAX_WINDOW, &window, err);

    o->choose_window = strcmp(value, "auto") == 0;
    o->window = (unsigned)window;
    return status;
}

#define MODELLED_RANKS 4096
static enum chex_status
set_count(const char *value, unsigned *out, struct chex_error *err)
{
    uint64_t count = 0;
    enum chex_status status = cli_number(value, 1, MODELLED_RANKS, &count, err);

    *out = (unsigned)count;
    return status;
}

static void
set_optimizer(struct optimizer_options *o, enum optimizer_kind kind)
{
    double average = o->average;

    *o = optimizer_default(kind);
    o->average = average;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Sets a value of the table of settings. */
static enum chex_status
set_setting(struct trainer_options *o, const char *name, const char *value, struct chex_error *err)
{
    const struct setting *s = trainer_settings;
    enum chex_status status = CHEX_OK;
    uint64_t number;
    void *at;

    while (s->name && strcmp(s->name, name) != 0)
        s++;
    if (!s->name)
        return error_set(err, CHEX_ERR_BUG, "'%s' is in no table", name);
    at = (char *)o + s->offset;
    switch (s->type) {
    case SETTING_TEXT:
        *(const char **)at = value;
        break;
    case SETTING_NUMBER:
    case SETTING_DIGITS:
        status = cli_number(value, s->min, s->max, &number, err);
        if (status == CHEX_OK)
            member_put(at, s->size, number);
        break;
    case SETTING_REAL:
        return value_real(value, 0, s->most, at, err);
    case SETTING_TIME:
        return value_duration(value, at, err);
    case SETTING_FLAG:
        *(bool *)at = true;
        break;
    case SETTING_CHOICE:
        member_put(at, s->size, (uint64_t)name_index(s->names, value));
        break;
    }
    return status;
}

static enum chex_status
apply(void *options, const struct cli_option *option, const char *value, struct chex_error *err)
{
    struct train_cli *cli = options;
    struct trainer_options *o = &cli->train;

    if (!option)
        return error_set(err, CHEX_ERR_USAGE, "'%s' is not an option; the data set is given with -d", value);
    train_storage_note_option(cli, option->name);
    train_audit_note_option(cli, option->name);
    switch (option->id) {
    case OPT_INIT:
        o->init = strcmp(value, "random") == 0 ? NULL : value;
        break;
    case OPT_AUGMENT:
        return set_augment(&o->augment, value, err);
    case OPT_OPTIMIZER:
        set_optimizer(&o->optimizer, (enum optimizer_kind)name_index(option->choices, value));
        break;
    case OPT_WEIGHT_DECAY:
        return value_real(value, 0, 1e3, &cli->decay, err);
    case OPT_EMA:
        o->average = true;
        return value_real(value, 0, 1 - 1e-9, &o->optimizer.average, err);
    case OPT_POS_WEIGHT:
        o->positive = strcmp(value, "none") == 0   ? POSITIVE_NONE
                      : strcmp(value, "auto") == 0 ? POSITIVE_AUTO
                                                   : POSITIVE_GIVEN;
        cli->positive_file = value;
        break;
    case OPT_SHUFFLE:
        return set_shuffle(o, value, err);
    case OPT_CHECKPOINT_EVERY:
        return set_interval(o, value, err);
    case OPT_RANKS:
        return set_count(value, &cli->ranks, err);
    case OPT_NODES:
        return set_count(value, &cli->nodes, err);
    case OPT_NETWORK:
        cli->network = name_index(option->choices, value);
        break;
    case OPT_EVAL_EVERY:
        return set_evaluations(o, value, err);
    case OPT_WARMUP:
        return set_warmup(o, value, err);
    case OPT_RATE:
        return value_real(value, 1e-3, 1e9, &o->rate, err);
    default:
        return set_setting(o, option->name, value, err);
    }
    return CHEX_OK;
}

static const struct cli_words words[] = {
    {"resume", false, CLI_NAMES("auto", "none")},        {"augment", true, CLI_NAMES("flip", "crop")},
    {"pos-weight", false, CLI_NAMES("none", "auto")},    {"shuffle", false, CLI_NAMES("auto", "whole")},
    {"split", false, CLI_NAMES("train", "val", "test")}, {NULL, false, NULL},
};

/* The names in PyTorch and torchvision scripts, timm, Lightning and Hugging Face's Trainer. */
static const struct cli_alias aliases[] = {
    {"accumulate-grad-batches", "accumulate"},
    {"amp", "precision"},
    {"arch", "model"},
    {"batch-size", "batch"},
    {"bf16", "precision"},
    {"clip-grad-norm", "clip"},
    {"crop-size", "crop"},
    {"cuda", "device"},
    {"data-dir", "data"},
    {"data-path", "data"},
    {"dataset", "data"},
    {"evaluate", "eval-only"},
    {"fp16", "precision"},
    {"gpu", "device"},
    {"gpus", "device"},
    {"gradient-accumulation-steps", "accumulate"},
    {"gradient-clip-val", "clip"},
    {"initial-lr", "lr"},
    {"learning-rate", "lr"},
    {"lr-scheduler", "schedule"},
    {"max-epochs", "epochs"},
    {"max-grad-norm", "clip"},
    {"num-epochs", "epochs"},
    {"num-train-epochs", "epochs"},
    {"per-device-train-batch-size", "batch"},
    {"pretrained", "init"},
    {"scheduler", "schedule"},
    {"test-only", "eval-only"},
    {"train-batch-size", "batch"},
    {"warmup-steps", "warmup"},
    {"wd", "weight-decay"},
    {"weights", "init"},
    {NULL, NULL},
};

/* Names that other toolkits have for GPUs: "gpu", "cuda:1", "1". */
static const char *
explain(const struct cli_option *option, const char *value)
{
    const char *number = strncmp(value, "cuda:", 5) == 0 ? value + 5 : value;

    if (strcmp(option->name, "device") != 0)
        return NULL;
    if (value[0] && number[strspn(number, "0123456789")] == '\0')
        return "--device cuda takes the GPUs that CUDA_VISIBLE_DEVICES lists";
    if (number > value)
        return "a model of a GPU is one of this list";
    return strncmp(value, "gpu", 3) == 0 ? "the name of NVIDIA GPUs is cuda" : NULL;
}

const struct cli_program train_program = {
    .name = "chex-train",
    .summary = "train and evaluate a network on a data set of chest X-rays",
    .usage = "-d SHARDS -o RUN [OPTION...]\n-d SHARDS -o RUN --eval-only [--split NAME] [OPTION...]\n"
             "-d SHARDS --init FILE --eval-only --predict CSV [OPTION...]\n"
             "-d SHARDS --device none [--rate N] [OPTION...]\n--audit RUN [-d SHARDS] [--max-steps N] [OPTION...]",
    .examples = "chex-train -d shards -o runs/a\n"
                "chex-train -d shards -o runs/a --init imagenet.safetensors --lr 1e-4\n"
                "chex-train -d synth96 -o runs/small --model densenet-micro\n"
                "chex-train -d shards -o runs/a --eval-only --split test --tta tencrop\n"
                "mpirun -np 2 --map-by socket chex-train -d shards -o runs/a --batch 32\n"
                "mpirun -np 4 chex-train -d shards --device none --rate 15000",
    .notes = "The same command again resumes a run that was stopped or killed.\n"
             "SIGTERM and SIGUSR1 save and end it (75), SIGUSR2 saves and continues.",
    .options = option_table,
    .words = words,
    .aliases = aliases,
    .threads = true,
    .progress = true,
    .apply = apply,
    .explain = explain,
};

struct train_cli
train_cli_default(void)
{
    return (struct train_cli){
        .train = {.resume = "auto",
                  .epochs = 10,
                  .evaluate_every = 1,
                  .batch = 64,
                  .accumulate = 1,
                  .schedule = {.kind = SCHEDULE_PLATEAU,
                               .base = -1, /* the default of the optimizer */
                               .factor = 0.1},
                  .optimizer = optimizer_default(OPTIMIZER_ADAM),
                  .gamma = 2,
                  .augment = AUGMENT_FLIP | AUGMENT_CROP,
                  .seed = 1,
                  .choose_window = true,
                  .device = "auto",
                  .keep = 2,
                  .checkpoint_seconds = 600,
                  .timeout = COLLECTIVE_TIMEOUT,
                  .replicates = 1000},
        .decay = -1,
        .network = -1,
    };
}
