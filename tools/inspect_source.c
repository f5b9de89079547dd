/*
 * inspect_source.c - --source: is a download whole, before anything is converted? see inspect_source.h, inspect.h
 *
 * The label file is read as chex-convert reads it, the folders are searched in the same way; of each image file the
 * size, the first 1024 bytes and the last 64 are looked at, nothing is decoded.  A PNG ends with its IEND chunk and a
 * JPEG with an EOI marker, so a download that was cut is noticed; damage in the middle is not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect_source.h"

#include "decode.h"
#include "pipeline.h"
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD 1024
#define TAIL 64
#define PATH 4096

/* ---- one file -------------------------------------------------------------------------------------------------- */

static bool
named_png(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcasecmp(dot, ".png") == 0;
}

static bool
begins_with(const uint8_t *head, size_t size, const char *signature)
{
    return size >= strlen(signature) && memcmp(head, signature, strlen(signature)) == 0;
}

/* IEND and its checksum (PNG specification, 11.2.5), or the marker EOI, perhaps with a little behind it. */
static bool
ends_as_it_should(const uint8_t *tail, size_t size, bool png)
{
    size_t i;

    for (i = 0; png && i + 8 <= size; i++)
        if (memcmp(tail + i, "IEND\xae\x42\x60\x82", 8) == 0)
            return true;
    for (i = 0; !png && i + 2 <= size; i++)
        if (tail[i] == 0xff && tail[i + 1] == 0xd9)
            return true;
    return false;
}

/* The words for what a file is instead; constants of decode.c, of which the text is a copy. */
static const char *
type_of(struct source_check *c, const uint8_t *head, size_t size)
{
    struct decoder none = {NULL};
    struct decode_limits limits = {.max_pixels = 1};
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err = {.text = ""};

    decode_image(&none, head, size, &limits, &image, &traits, &err);
    image_release(&image);
    return arena_copy(&c->labels.strings, err.text, strlen(err.text));
}

static enum source_fault
look_at(int fd, uint64_t size, struct source_look *look, const char *name, uint8_t head[HEAD], size_t *got)
{
    uint8_t tail[TAIL];
    size_t of_tail = size < TAIL ? (size_t)size : TAIL;
    bool png;

    if (size == 0)
        return SOURCE_EMPTY;
    if (file_pread(fd, 0, head, HEAD, got, NULL) != CHEX_OK ||
        file_pread(fd, size - of_tail, tail, of_tail, &of_tail, NULL) != CHEX_OK)
        return SOURCE_UNREADABLE;
    png = begins_with(head, *got, "\x89PNG\r\n\x1a\n");
    if (!png && !begins_with(head, *got, "\xff\xd8\xff"))
        return SOURCE_TYPE;
    look->misnamed = png != named_png(name);
    return ends_as_it_should(tail, of_tail, png) ? SOURCE_GOOD : SOURCE_SHORT;
}

struct looking {
    struct source_check *c;
    pthread_mutex_t lock;
    _Atomic uint64_t bytes;
};

static enum chex_status
work(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct looking *l = context;
    struct source_check *c = l->c;
    struct source_look *look = &c->look[item];
    const struct source_file *file = &c->source.file[item];
    uint8_t head[HEAD];
    char path[PATH];
    uint64_t size = 0;
    size_t got = 0;
    int fd;

    (void)worker;
    look->fault = SOURCE_UNREADABLE;
    if (source_path(&c->source, file, path, sizeof(path), err) != CHEX_OK ||
        file_open(AT_FDCWD, path, &fd, &size, NULL) != CHEX_OK)
        return CHEX_OK;
    look->fault = (uint8_t)look_at(fd, size, look, file->name, head, &got);
    close(fd);
    atomic_fetch_add(&l->bytes, size);
    if (look->fault == SOURCE_TYPE) {
        pthread_mutex_lock(&l->lock);
        look->detail = type_of(c, head, got);
        pthread_mutex_unlock(&l->lock);
        if (!look->detail)
            return chex_fail_memory(err);
    }
    return CHEX_OK;
}

static void
tick(void *context, size_t done)
{
    struct looking *l = context;
    struct source_check *c = l->c;
    char text[128], a[PROGRESS_TEXT], b[PROGRESS_TEXT];

    if (!meter_due(&c->in->meter))
        return;
    snprintf(text, sizeof(text), "looking  %3u %%  %s/%s files",
             (unsigned)(c->source.count ? 100 * done / c->source.count : 100), format_count(done, a),
             format_count(c->source.count, b));
    meter_tick(&c->in->meter, text);
}

static enum chex_status
look_at_files(struct source_check *c, struct chex_error *err)
{
    struct looking l = {.c = c, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct pipeline p = {
        .count = c->source.count, .threads = c->in->common->threads, .work = work, .context = &l, .tick = tick};
    enum chex_status status;
    size_t i;

    c->look = calloc(c->source.count ? c->source.count : 1, sizeof(*c->look));
    status = c->look ? pipeline_run(&p, err) : chex_fail_memory(err);
    pthread_mutex_destroy(&l.lock);
    meter_clear(&c->in->meter);
    c->bytes = l.bytes;
    for (i = 0; status == CHEX_OK && i < c->source.count; i++) {
        c->count[c->look[i].fault]++;
        c->misnamed += c->look[i].misnamed;
    }
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

const char *
source_fault_name(enum source_fault fault)
{
    static const char *const names[SOURCE_FAULTS] = {"good",       "empty",   "short", "type",
                                                     "unreadable", "missing", "extra", "row"};

    return names[fault];
}

bool
source_check_good(const struct source_check *c)
{
    unsigned i;

    for (i = SOURCE_GOOD + 1; i < SOURCE_FAULTS; i++)
        if (i != SOURCE_EXTRA && c->count[i] > 0)
            return false;
    return c->labels_err.status == CHEX_OK && c->source_err.status == CHEX_OK && c->source.unreadable == 0 &&
           c->source.count > 0;
}

/* What is in an archive is not looked at here: its images would all be missing. */
static enum chex_status
check_inputs(const struct inspect_options *o, struct chex_error *err)
{
    struct stat st;
    size_t i;

    for (i = 0; i < o->input_count; i++) {
        const char *dot = strrchr(o->input[i], '.');

        if (stat(o->input[i], &st) == 0 && !S_ISDIR(st.st_mode) &&
            !(dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0)))
            return chex_fail(err, CHEX_ERR_USAGE, "'%s' is neither a folder nor an image; unpack an archive first",
                             o->input[i]);
    }
    return CHEX_OK;
}

/*
 * A label file or folders that cannot be used are what this is to find out, not misuse: they are told with the rest.
 * Files that are not there are no result.
 */
static enum chex_status
gather(struct source_check *c, struct chex_error *err)
{
    const struct inspect_options *o = c->in->options;
    struct labels_options options = {.empty_is_no_finding = false};
    enum chex_status status = check_inputs(o, err);

    if (status != CHEX_OK)
        return status;
    status = labels_read(o->labels, &options, &c->labels, &c->labels_err);

    if (status == CHEX_OK || status == CHEX_ERR_USAGE)
        status = source_scan(o->input, o->input_count, &c->source, &c->source_err);
    else
        *err = c->labels_err;
    if (status == CHEX_ERR_USAGE)
        return CHEX_OK;
    if (status != CHEX_OK && c->labels_err.status != status)
        *err = c->source_err;
    if (status == CHEX_OK)
        status = look_at_files(c, err);
    return status;
}

static enum chex_status
compare(struct source_check *c, struct chex_error *err)
{
    c->missing = calloc(c->labels.count ? c->labels.count : 1, sizeof(*c->missing));
    if (!c->missing)
        return chex_fail_memory(err);
    if (c->labels_err.status != CHEX_OK || c->source_err.status != CHEX_OK)
        return CHEX_OK;
    preflight_count(&c->labels, NULL, &c->source, c->missing, &c->preflight);
    c->count[SOURCE_MISSING] = c->preflight.missing;
    c->count[SOURCE_EXTRA] = c->preflight.extra;
    c->count[SOURCE_ROW] = c->labels.reject_count;
    return CHEX_OK;
}

int
inspect_source(struct inspect *in)
{
    struct source_check c = {.in = in};
    struct chex_error err;
    int code;
    enum chex_status status = gather(&c, &err);

    if (status == CHEX_OK)
        status = compare(&c, &err);
    if (status == CHEX_OK) {
        source_report(&c);
        code = source_check_good(&c) ? EXIT_GOOD : EXIT_DATA;
    } else {
        code = inspect_fail(in, in->options->labels, &err);
    }
    free(c.look);
    free(c.missing);
    source_release(&c.source);
    labels_release(&c.labels);
    return code;
}
