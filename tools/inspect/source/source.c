/*
 * source.c - the command `source`: checks a download for completeness; see source.h
 *
 * The command uses the code of chex-convert to read the label file, search the folders and read the archives.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/source/source.h"

#include "base/threads.h"
#include "input/image_name.h"
#include "inspect/command.h"
#include "io/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH 4096

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Items 0 .. archive_count - 1 are the archives, which take longest; the loose files follow. */
static enum chex_status
work(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct source_check *c = context;
    struct source_item *file;
    char path[PATH];

    if (item < c->archive_count)
        return source_read_archive(c, item, worker, err);
    item -= c->archive_count;
    file = &c->item[item];
    if (source_path(&c->source, &c->source.file[item], path, sizeof(path), NULL) == CHEX_OK)
        return source_probe_file(c, file, path, err);
    file->fault = SOURCE_UNREADABLE;
    return CHEX_OK;
}

static void *
reader_new(void *context)
{
    (void)context;
    return calloc(1, sizeof(struct source_reader));
}

static void
reader_free(void *worker)
{
    struct source_reader *r = worker;

    if (!r)
        return;
    buffer_release(&r->member);
    buffer_release(&r->loose);
    free(r);
}

static void
tick(void *context, size_t done)
{
    struct source_check *c = context;
    char text[128], a[FORMAT_TEXT], b[FORMAT_TEXT];

    /* If there are archives, their readers report the progress. */
    if (c->archive_count > 0 || !progress_line_due(&c->in->line))
        return;
    snprintf(text, sizeof(text), "looking  %3u %%  %s of %s files", (unsigned)(c->count ? 100 * done / c->count : 100),
             format_count(done, a), format_count(c->count, b));
    progress_line_update(&c->in->line, text);
}

/* Create the places of folders and archives, and an item per loose file. */
static enum chex_status
make_room(struct source_check *c, struct chex_error *err)
{
    const struct source *s = &c->source;
    size_t i;

    c->place_count = s->folder_count + c->archive_count;
    c->count = s->count;
    c->place = calloc(c->place_count ? c->place_count : 1, sizeof(*c->place));
    c->archive = calloc(c->archive_count ? c->archive_count : 1, sizeof(*c->archive));
    c->item = calloc(c->count ? c->count : 1, sizeof(*c->item));
    if (!c->place || !c->archive || !c->item)
        return error_memory(err);
    for (i = 0; i < s->folder_count; i++)
        c->place[i].path = s->folder[i];
    for (i = 0; i < s->count; i++) {
        c->item[i].name = s->file[i].name;
        c->item[i].place = s->file[i].folder;
    }
    return CHEX_OK;
}

static enum chex_status
look_at_all(struct source_check *c, struct chex_error *err)
{
    struct parallel p = {.count = c->archive_count + c->source.count,
                         .threads = c->in->common->threads,
                         .work = work,
                         .worker_new = reader_new,
                         .worker_free = reader_free,
                         .context = c,
                         .tick = tick};
    enum chex_status status = parallel_for(&p, err);

    progress_line_clear(&c->in->line);
    return status;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* The inputs by kind: folders and single images; everything else should be an archive. */
struct inputs {
    const char **loose, **archive;
    size_t loose_count, archive_count;
};

static enum chex_status
sort_inputs(const struct inspect_options *o, struct inputs *in, struct chex_error *err)
{
    size_t i, count = o->input_count + o->path_count;

    in->loose = calloc(count, sizeof(*in->loose));
    in->archive = calloc(count, sizeof(*in->archive));
    if (!in->loose || !in->archive)
        return error_memory(err);
    for (i = 0; i < count; i++) {
        const char *path = i < o->input_count ? o->input[i] : o->path[i - o->input_count];
        bool is_folder;
        enum chex_status status = source_is_folder(path, &is_folder, err);

        if (status != CHEX_OK)
            return status;
        if (is_folder || image_name_is_known(path))
            in->loose[in->loose_count++] = path;
        else
            in->archive[in->archive_count++] = path;
    }
    return CHEX_OK;
}

/*
 * Read the label file and search the folders.  An unusable label file or folder is a result, and the report includes
 * it.  A missing file is an error.
 */
static enum chex_status
read_inputs(struct source_check *c, const struct inputs *in, struct chex_error *err)
{
    const struct inspect_options *o = c->in->options;
    struct labels_options options = {.kind = o->label_columns ? o->label_columns : o->label_kind};
    enum chex_status status = labels_read(o->labels, &options, &c->labels, &c->labels_err);
    size_t i;

    if (status != CHEX_OK && status != CHEX_ERR_USAGE) {
        *err = c->labels_err;
        return status;
    }
    c->source.name_parts = labels_name_parts(&c->labels);
    status = source_scan(in->loose, in->loose_count, &c->source, &c->source_err);
    if (status != CHEX_OK && status != CHEX_ERR_USAGE) {
        *err = c->source_err;
        return status;
    }
    /* The folders contradict each other, so it is unknown which image to use. */
    c->archive_count = status == CHEX_OK ? in->archive_count : 0;
    if (status != CHEX_OK)
        c->source.count = c->source.folder_count = 0;
    status = make_room(c, err);
    for (i = 0; status == CHEX_OK && i < c->archive_count; i++)
        c->place[c->source.folder_count + i] = (struct source_place){.path = in->archive[i], .archive = true};
    return status;
}

static enum chex_status
gather(struct source_check *c, struct inputs *in, struct chex_error *err)
{
    enum chex_status status = sort_inputs(c->in->options, in, err);
    uint64_t total = 0;
    struct stat st;
    size_t i;

    if (status == CHEX_OK)
        status = read_inputs(c, in, err);
    for (i = 0; status == CHEX_OK && i < c->archive_count; i++)
        total += stat(in->archive[i], &st) == 0 ? (uint64_t)st.st_size : 0;
    progress_start(&c->progress, total);
    if (status == CHEX_OK)
        status = look_at_all(c, err);
    if (status == CHEX_OK)
        status = source_sum(c, err);
    return status;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static void
release(struct source_check *c)
{
    size_t i;

    for (i = 0; c->archive && i < c->archive_count; i++) {
        free(c->archive[i].item);
        arena_release(&c->archive[i].strings);
    }
    free(c->archive);
    free(c->place);
    free(c->item);
    free(c->conflict);
    free(c->missing);
    arena_release(&c->strings);
    source_release(&c->source);
    labels_release(&c->labels);
    pthread_mutex_destroy(&c->lock);
    if (c->utf8)
        freelocale(c->utf8);
}

static int
check_download(struct inspect *in)
{
    struct source_check c = {
        .in = in, .lock = PTHREAD_MUTEX_INITIALIZER, .utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0)};
    struct inputs inputs = {.loose = NULL};
    struct chex_error err;
    int code;
    enum chex_status status;
    size_t i;

    hash_key_make(&c.key);
    status = gather(&c, &inputs, &err);
    if (status == CHEX_OK) {
        inspect_print_result(in, &source_result, &c);
        code = c.read_errors > 0 ? EXIT_MISSING : source_check_good(&c) ? EXIT_GOOD : EXIT_DATA;
    } else {
        for (i = 0; i < in->options->input_count; i++)
            cli_suggest_path(&err, in->options->input[i]);
        code = inspect_fail(in, in->options->labels, &err);
    }
    free(inputs.loose);
    free(inputs.archive);
    release(&c);
    return code;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    if (inspect_wants_rows(o) && common->json)
        return error_set(err, CHEX_ERR_USAGE, "--json goes with --format json");
    if (o->input_count + o->path_count == 0 || !o->labels)
        return error_set(err, CHEX_ERR_USAGE, "'source' needs -i PATH and -l CSV");
    if (o->label_columns && o->label_kind)
        return error_set(err, CHEX_ERR_USAGE,
                         "--columns describes a label file, --label-kind names one: use one of them");
    return CHEX_OK;
}

static const struct cli_option options[] = {
    {ID_INPUT, 'i', "input", "PATH", NULL, NULL,
     "folder, image or archive with the images; a folder is searched recursively, an archive is .tar, .tar.gz or "
     ".zip; may be repeated"},
    {ID_LABEL_FILE, 'l', "labels", "FILE", NULL, NULL,
     "label file; Data_Entry_2017_v2020.csv or one like it, .csv or .csv.gz"},
    {ID_LABEL_KIND, 0, "label-kind", "KIND", label_kind_names, NULL,
     "read the label file as this kind; default: the kind whose columns it has"},
    {ID_LABEL_COLUMNS, 0, "columns", "FILE", NULL, NULL, "read the label file by the columns that this file describes"},
    {ID_MAX_MEMORY, 0, "max-memory", "SIZE", NULL, NULL,
     "memory limit for unpacking an archive (.tar.xz); K, M or G; default 128M"},
    ROW_FORMAT,
    ROW_END,
};

const struct inspect_command inspect_source_command = {
    .cli = {.name = "source",
            .summary = "check a download before any conversion",
            .usage = "-l CSV [OPTION...] -i PATH...",
            .examples = "chex-inspect source -l Data_Entry_2017_v2020.csv -i images_*.tar.gz",
            .notes = "It reports images that are missing, truncated, damaged or no images, and reads\n"
                     "archives too.  A PATH without -i is an input too.",
            .options = options},
    .action = INSPECT_SOURCE,
    .max = UINT_MAX,
    .check = check_options,
    .all = check_download,
};
