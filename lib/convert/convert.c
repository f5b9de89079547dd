/*
 * convert.c - everything before the first decode; see convert.h
 *
 * convert_run.c runs the conversion, and convert_publish.c writes the final files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/number_format.h"
#include "input/stored_scan.h"
#include "labels/synthetic_note.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Returns whether the list, such as "PA,AP", contains this view. */
static bool
view_wanted(const char *views, const char *view)
{
    size_t length = strlen(view);

    for (; *views; views += strcspn(views, ","), views += *views == ',')
        if (strcspn(views, ",") == length && strncmp(views, view, length) == 0)
            return true;
    return false;
}

/* Skip the rows that do not match --where, and add the selection to *spec. */
static enum chex_status
select_entries(struct convert *c, struct spec *spec, struct chex_error *err)
{
    struct where where = c->options->where;
    struct split_set splits = {0};
    enum chex_status status = where_resolve(&where, &c->labels.findings, err);

    if (status == CHEX_OK)
        status = where_format(&where, &c->labels.findings, spec->where, err);
    if (status != CHEX_OK)
        return error_context(err, status, "--where");
    if (where_has(&where, WHERE_SPLIT)) {
        const char *name[SPLIT_MAX];

        status = split_assign(&spec->split, &c->labels, c->skip, &splits, err);
        for (unsigned i = 0; i < splits.count; i++)
            name[i] = splits.name[i];
        if (status == CHEX_OK && where_check_splits(&where, name, splits.count, err) != CHEX_OK)
            status = error_context(err, CHEX_ERR_USAGE, "--where");
    }
    for (size_t i = 0; status == CHEX_OK && i < c->labels.count; i++) {
        bool known = splits.of_entry && splits.of_entry[i] != SPLIT_OUTSIDE;
        struct record_values values;

        entry_values(&c->labels.entry[i], &values);
        if (c->skip[i] || where_holds(&where, &values, known ? splits.name[splits.of_entry[i]] : NULL))
            continue;
        c->skip[i] = true;
        c->unselected++;
    }
    split_set_release(&splits);
    return status;
}

/* Decide which rows to convert: c->skip. */
static enum chex_status
choose_entries(struct convert *c, struct spec *spec, struct chex_error *err)
{
    const struct convert_options *o = c->options;
    enum chex_status status;
    size_t i;

    c->skip = calloc(c->labels.count ? c->labels.count : 1, sizeof(*c->skip));
    if (!c->skip)
        return error_memory(err);
    if (o->exclude) {
        status = names_read(o->exclude, labels_name_parts(&c->labels), &c->exclude, err);
        if (status != CHEX_OK)
            return status;
    }
    for (i = 0; i < c->labels.count; i++) {
        const struct entry *e = &c->labels.entry[i];

        if (o->exclude && names_have(&c->exclude, e->name))
            c->excluded++;
        else if (o->views && !view_wanted(o->views, e->view))
            c->filtered++;
        else
            continue;
        c->skip[i] = true;
    }
    for (i = 0; i < c->exclude.count; i++)
        c->unmatched += labels_find(&c->labels, c->exclude.name[i]) == NULL;
    if (c->labels.count == 0 && c->labels.reject_count > 0)
        return error_set(err, CHEX_ERR_MISSING, "no row of '%s' can be used; the first, in line %u: %s", o->labels,
                         c->labels.reject[0].line, c->labels.reject[0].reason);
    status = o->where.count > 0 ? select_entries(c, spec, err) : CHEX_OK;
    if (status == CHEX_OK && c->excluded + c->filtered + c->unselected == c->labels.count)
        return error_set(err, CHEX_ERR_MISSING, "%s no image of '%s'",
                         o->where.count > 0 ? "--where, --exclude and --view leave" : "--exclude and --view leave",
                         o->labels ? o->labels : o->inputs[0]);
    return status;
}

/* Collect the images in folders that have no row. */
static enum chex_status
note_unlabeled(struct convert *c, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < c->source.count; i++)
        if (!labels_find(&c->labels, c->source.file[i].name))
            status = unlabeled_add(&c->unlabeled, c->source.file[i].name, err);
    unlabeled_sort(&c->unlabeled);
    return status;
}

/* Handle rows whose image is in no folder: search the archives, or expect the images there. */
static enum chex_status
ask_archives(struct convert *c, bool *missing, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    if (c->options->allow_missing) {
        status = convert_index(c, missing, err);
        preflight_recount(&c->labels, c->skip, missing, &c->preflight);
    } else {
        preflight_expect(&c->labels, missing, &c->preflight);
    }
    return status;
}

static enum chex_status
check_found(const struct convert *c, struct chex_error *err)
{
    const struct preflight *p = &c->preflight;
    const struct convert_options *o = c->options;
    char hint[PREFLIGHT_HINT];

    preflight_endings(&c->labels, c->missing, &c->unlabeled, hint);
    if (p->found + p->expected == 0 && c->source.unopened > 0)
        return error_set(err, CHEX_ERR_MISSING,
                         "none of the %s images of '%s' was found below '%s'; archives in a folder are not looked "
                         "into: give them by name, as -i '%s'",
                         COUNT_TEXT(p->wanted), o->labels, o->inputs[0], c->source.unopened_first);
    if (p->found + p->expected == 0)
        return error_set(err, CHEX_ERR_MISSING, "none of the %s images of '%s' was found %s '%s'%s",
                         COUNT_TEXT(p->wanted), o->labels, c->source.archive_count > 0 ? "in" : "below", o->inputs[0],
                         hint);
    if (p->missing > 0 && !o->allow_missing && !o->plan_only)
        return error_set(err, CHEX_ERR_MISSING,
                         "%s of %s images %s missing, the first is '%s'%s (--allow-missing converts the others)",
                         COUNT_TEXT(p->missing), COUNT_TEXT(p->wanted), p->missing == 1 ? "is" : "are", p->sample[0],
                         hint);
    return CHEX_OK;
}

static enum chex_status
scan_inputs(struct convert *c, struct chex_error *err)
{
    const struct convert_options *o = c->options;
    enum chex_status status;

    c->source.stop = o->stop;
    c->source.with_datasets = true;
    c->source.output = o->out;
    if (o->id_prefix_count > 0 && o->id_prefix_count != o->input_count)
        return error_set(err, CHEX_ERR_USAGE,
                         "--id-prefix takes a prefix for each input, separated by commas: %zu for %zu",
                         o->id_prefix_count, o->input_count);
    c->source.prefix = o->id_prefix;
    status = source_scan(o->inputs, o->input_count, &c->source, err);
    if (status == CHEX_OK && o->id_prefix_count > 0 && c->source.dataset_count == 0)
        return error_set(err, CHEX_ERR_USAGE, "--id-prefix is for data sets, and '%s' is none", o->inputs[0]);
    if (status == CHEX_OK && o->same_patients && c->source.dataset_count < 2)
        return error_set(err, CHEX_ERR_USAGE, "--same-patients is for two or more data sets");
    return status;
}

/* Read the label file and search the inputs.  Without a label file, make the rows from the records of the inputs. */
static enum chex_status
read_rows(struct convert *c, struct chex_error *err)
{
    const struct convert_options *o = c->options;
    const struct labels_options labels = {
        .findings = o->findings.count > 0 ? &o->findings : NULL,
        .unknown = o->unknown,
        .kind = o->label_kind,
        .empty_is_no_finding = o->empty_is_no_finding,
        .stop = o->stop,
    };
    enum chex_status status;

    if (o->labels) {
        status = labels_read(o->labels, &labels, &c->labels, err);
        c->source.name_parts = labels_name_parts(&c->labels);
        return status == CHEX_OK ? scan_inputs(c, err) : status;
    }
    status = scan_inputs(c, err);
    if (status == CHEX_OK && c->source.dataset_count == 0)
        return error_set(err, CHEX_ERR_USAGE, "no labels: give Data_Entry_2017_v2020.csv with -l");
    if (status == CHEX_OK && (o->label_kind || o->findings.count > 0 || o->unknown != UNKNOWN_MASK))
        return error_set(err, CHEX_ERR_USAGE, "%s is for a label file: give one with -l",
                         o->label_kind           ? (o->label_kind->name[0] ? "--label-kind" : "--columns")
                         : o->findings.count > 0 ? "--findings"
                                                 : "--unknown");
    return status == CHEX_OK ? stored_rows(&c->source, &c->labels, err) : status;
}

static enum chex_status
find_images(struct convert *c, struct chex_error *err)
{
    bool *missing = calloc(c->labels.count ? c->labels.count : 1, sizeof(*missing));
    enum chex_status status = CHEX_OK;

    c->archive = calloc(c->source.archive_count ? c->source.archive_count : 1, sizeof(*c->archive));
    if (!missing || !c->archive) {
        free(missing);
        return error_memory(err);
    }
    c->repeated = c->source.repeated;
    preflight_count(&c->labels, c->skip, &c->source, missing, &c->preflight);
    if (c->source.archive_count > 0)
        status = ask_archives(c, missing, err);
    c->missing = missing;
    if (status == CHEX_OK)
        status = note_unlabeled(c, err);
    return status == CHEX_OK ? check_found(c, err) : status;
}

/* Returns whether the label file or the images come from a folder of chex-synth. */
static bool
is_synthetic(const struct convert_options *o)
{
    bool synthetic = o->labels && synthetic_note_beside(o->labels);
    size_t i;

    for (i = 0; i < o->input_count && !synthetic; i++)
        synthetic = synthetic_note_at(o->inputs[i]);
    return synthetic;
}

/* Find the folder of the official lists: the given one, or that of the label file. */
static enum chex_status
lists_folder(const struct convert_options *o, char *out, size_t size, struct chex_error *err)
{
    const char *slash = o->labels ? strrchr(o->labels, '/') : NULL;
    size_t length = slash ? (size_t)(slash - o->labels) : 0;
    int used;

    if (o->lists)
        used = snprintf(out, size, "%s", o->lists);
    else if (slash && length == 0)
        used = snprintf(out, size, "/");
    else
        used = snprintf(out, size, "%.*s", slash ? (int)length : 1, slash ? o->labels : ".");
    if (used < 0 || (size_t)used >= size)
        return error_set(err, CHEX_ERR_USAGE, "the path of the lists is too long");
    return CHEX_OK;
}

static enum chex_status
choose_split(struct convert *c, struct spec *spec, struct chex_error *err)
{
    const struct convert_options *o = c->options;
    char lists[sizeof(spec->split.path)];
    enum chex_status status;

    if (!o->labels && !o->lists && o->split_given && spec->split.kind != SPLIT_OFFICIAL)
        return CHEX_OK;
    if (!o->labels && !o->lists)
        return convert_stored_split(c, &spec->split, err);
    status = lists_folder(o, lists, sizeof(lists), err);
    if (status != CHEX_OK)
        return status;
    if (!o->split_given && o->lists && !split_has_lists(lists))
        return error_set(err, CHEX_ERR_MISSING, "'%s' does not hold both " SPLIT_LIST_TRAIN " and " SPLIT_LIST_TEST,
                         lists);
    if (!o->split_given && split_has_lists(lists)) {
        spec->split = (struct split_rule){.kind = SPLIT_OFFICIAL};
        c->official_found = true;
    } else if (!o->split_given && c->source.dataset_count > 0) {
        return convert_stored_split(c, &spec->split, err);
    }
    if (spec->split.kind == SPLIT_OFFICIAL)
        snprintf(spec->split.path, sizeof(spec->split.path), "%s", lists);
    else if (o->lists)
        return error_set(err, CHEX_ERR_USAGE, "--lists goes with --split official");
    return CHEX_OK;
}

/*
 * Plan the data set with the images found.  With --allow-missing, also compute the id of the data set with all images.
 */
static enum chex_status
make_plan(struct convert *c, const struct spec *spec, struct chex_error *err)
{
    struct slot_plan whole = {0};
    enum chex_status status = CHEX_OK;
    size_t i;

    if (c->options->allow_missing && c->preflight.missing > 0 && !c->options->plan_only) {
        status = plan_make(spec, &c->labels, c->skip, &whole, err);
        if (status == CHEX_OK)
            memcpy(c->whole_id, whole.dataset_id, sizeof(c->whole_id));
        plan_release(&whole);
        /* If there is no valid plan with all images, no run has begun that data set. */
        if (status == CHEX_ERR_USAGE)
            status = CHEX_OK;
    }
    for (i = 0; i < c->labels.count; i++)
        c->skip[i] |= c->missing[i];
    return status == CHEX_OK ? plan_make(spec, &c->labels, c->skip, &c->plan, err) : status;
}

enum chex_status
convert_prepare(const struct convert_options *options, struct convert *c, struct chex_error *err)
{
    struct spec spec = options->spec;
    enum chex_status status;

    c->options = options;
    c->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    c->synthetic = is_synthetic(options);
    status = read_rows(c, err);
    if (status == CHEX_OK && c->source.dataset_count > 0)
        status = convert_stored_spec(c, &spec, err);
    if (status == CHEX_OK)
        status = choose_split(c, &spec, err);
    spec.split.allow_leak = options->allow_leak;
    if (status == CHEX_OK)
        status = choose_entries(c, &spec, err);
    if (status == CHEX_OK && c->source.dataset_count > 1 && !options->labels && !options->same_patients)
        status = stored_check_patients(&c->source, &c->labels, c->skip, err);
    if (status == CHEX_OK)
        status = find_images(c, err);
    if (status == CHEX_OK)
        status = make_plan(c, &spec, err);
    if (status == CHEX_OK)
        c->counts.images = c->plan.image_count;
    return status;
}

void
convert_list_foreign(const struct convert *c, struct folder_names *out, bool *images)
{
    struct folder folder;
    struct stat ours, st;
    size_t i;

    *images = false;
    if (folder_open(c->options->out, false, &folder, NULL) != CHEX_OK)
        return;
    for (i = 0; i < c->source.folder_count && fstat(folder.fd, &ours) == 0; i++)
        *images |= stat(c->source.folder[i], &st) == 0 && st.st_dev == ours.st_dev && st.st_ino == ours.st_ino;
    (void)folder_list(&folder, store_is_foreign, out, NULL);
    folder_close(&folder);
}

uint64_t
convert_free_space(const char *path)
{
    struct statvfs fs;
    char there[4096];

    folder_find_existing(path, there, sizeof(there));
    return statvfs(there, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
}

enum chex_status
convert_check_output(const struct convert *c, struct chex_error *err)
{
    const char *path = c->options->out;
    uint64_t needed = plan_size(&c->plan), there = convert_free_space(path);
    char a[FORMAT_TEXT], b[FORMAT_TEXT];
    struct chex_dataset *ds;

    if (c->options->force || chex_dataset_open(path, &ds, NULL) != CHEX_OK) {
        enum chex_status status = folder_check_writable(path, err);

        if (status != CHEX_OK)
            return status;
        if (there == 0)
            return error_set(err, CHEX_ERR_WRITE, "'%s' cannot be made: the disk is full", path);
        /* An unfinished data set may already contain a part of it; opening it will show how much. */
        if (needed > there && faccessat(AT_FDCWD, path, F_OK, 0) != 0)
            return error_set(err, CHEX_ERR_WRITE, "'%s' needs %s, %s are free", path,
                             format_bytes_compared(needed, there, a), format_bytes_compared(there, needed, b));
        return CHEX_OK;
    }
    if (strcmp(chex_dataset_info(ds)->id, c->plan.dataset_id) != 0) {
        char id[CHEX_ID_LENGTH + 1];

        memcpy(id, chex_dataset_info(ds)->id, sizeof(id));
        chex_dataset_close(ds);
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' holds another data set, %.8s, and %.8s is wanted (--force replaces it)", path, id,
                         c->plan.dataset_id);
    }
    chex_dataset_close(ds);
    return CHEX_OK;
}

void
convert_release(struct convert *c)
{
    plan_release(&c->plan);
    source_release(&c->source);
    names_release(&c->exclude);
    labels_release(&c->labels);
    unlabeled_release(&c->unlabeled);
    if (c->utf8)
        freelocale(c->utf8);
    free(c->given.of_entry);
    free(c->stored);
    free(c->archive);
    free(c->missing);
    free(c->skip);
    *c = (struct convert){0};
}
