/*
 * input_scan.c - see input_scan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/ascii.h"
#include "input/image_name.h"
#include "input/input_scan.h"

#include "dataset/format.h"
#include "input/archive.h"
#include "input/stored_scan.h"
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 32
#define MAX_PATH  4096

/* The folders from the input down to the current one.  A symbolic link back to one of them is a loop. */
struct ancestor {
    const struct ancestor *up;
    dev_t device;
    ino_t inode;
    unsigned depth;
};

/* Used only for a hint; the content decides whether a file is an archive. */
static bool
is_named_archive(const char *name)
{
    static const char *const endings[] = {".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst", ".tar.bz2", ".zip"};
    size_t length = strlen(name), i;

    for (i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (length > strlen(endings[i]) && strcasecmp(name + length - strlen(endings[i]), endings[i]) == 0)
            return true;
    return false;
}

/*
 * Count an archive inside a folder, which is skipped.  Keep the path of the first one; within a folder, the first by
 * name.
 */
static enum chex_status
note_unopened(struct source *s, const char *folder, const char *name, struct chex_error *err)
{
    char path[MAX_PATH];

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
        return CHEX_OK;
    if (s->unopened == 0 ||
        (strncmp(s->unopened_first, folder, strlen(folder)) == 0 && strcmp(path, s->unopened_first) < 0))
        s->unopened_first = arena_copy(&s->strings, path, strlen(path));
    s->unopened++;
    return s->unopened_first ? CHEX_OK : error_memory(err);
}

static enum chex_status
add_folder(struct source *s, const char *path, uint32_t *index, struct chex_error *err)
{
    const char **grown = array_grow(s->folder, &s->folder_capacity, s->folder_count, sizeof(*s->folder));
    char *copy = arena_copy(&s->strings, path, strlen(path));

    if (grown)
        s->folder = grown;
    if (!grown || !copy)
        return error_memory(err);
    *index = (uint32_t)s->folder_count;
    s->folder[s->folder_count++] = copy;
    return CHEX_OK;
}

static enum chex_status
add_file(struct source *s, uint32_t folder, const char *name, struct chex_error *err)
{
    struct source_file *grown = array_grow(s->file, &s->file_capacity, s->count, sizeof(*s->file));
    const char *in = s->folder[folder];
    char path[MAX_PATH];
    char *copy;

    if (s->name_parts > 1) {
        int length = snprintf(path, sizeof(path), "%s%s%s", in, strcmp(in, "/") == 0 ? "" : "/", name);

        if ((size_t)length >= sizeof(path))
            return error_set(err, CHEX_ERR_MISSING, "the path '%s/...' is too long", in);
        name = path_tail(path, (size_t)length, s->name_parts);
    }
    copy = arena_copy(&s->strings, name, strlen(name));
    if (grown)
        s->file = grown;
    if (!grown || !copy)
        return error_memory(err);
    s->file[s->count++] = (struct source_file){copy, folder, 0};
    return CHEX_OK;
}

/* Names of subfolders, kept after the folder is closed.  So only one folder is open at a time, at any depth. */
struct listing {
    char **name;
    size_t count, capacity;
};

static void
listing_release(struct listing *l)
{
    while (l->count > 0)
        free(l->name[--l->count]);
    free(l->name);
}

static bool
listing_add(struct listing *l, const char *name)
{
    char **grown = array_grow(l->name, &l->capacity, l->count, sizeof(*l->name));

    if (!grown)
        return false;
    l->name = grown;
    l->name[l->count] = strdup(name);
    return l->name[l->count] && ++l->count;
}

/*
 * Set *folder if the entry is a folder; a dangling link is not.  If stat fails in another way, fail: otherwise the scan
 * would silently miss the content of a folder.
 */
static enum chex_status
is_folder(int fd, const struct dirent *d, const char *path, bool *folder, struct chex_error *err)
{
    struct stat st;
    int error;

    *folder = d->d_type == DT_DIR;
    if (d->d_type != DT_LNK && d->d_type != DT_UNKNOWN)
        return CHEX_OK;
    error = file_fstatat(fd, d->d_name, 0, &st);
    *folder = error == 0 && S_ISDIR(st.st_mode);
    if (error != 0 && status_of_read_errno(error) != CHEX_ERR_MISSING)
        return error_read(err, error, "cannot read '%s/%s'", path, d->d_name);
    return CHEX_OK;
}

/*
 * The state of listing one folder: its index in the source, once it contains an image, and the names of its subfolders.
 */
struct here {
    const char *path;
    bool known;
    uint32_t folder;
    struct listing below;
};

static enum chex_status
take_entry(struct source *s, int fd, const struct dirent *d, struct here *here, struct chex_error *err)
{
    bool folder;
    enum chex_status status;

    /* Skip hidden entries: also "." and "..", and the ._NAME.png files of macOS. */
    if (d->d_name[0] == '.')
        return CHEX_OK;
    status = is_folder(fd, d, here->path, &folder, err);
    if (status != CHEX_OK)
        return status;
    if (folder)
        return listing_add(&here->below, d->d_name) ? CHEX_OK : error_memory(err);
    if (is_named_archive(d->d_name))
        return note_unopened(s, here->path, d->d_name, err);
    if (!image_name_is_known(d->d_name))
        return CHEX_OK;
    if (!here->known)
        status = add_folder(s, here->path, &here->folder, err);
    here->known = status == CHEX_OK;
    return status == CHEX_OK ? add_file(s, here->folder, d->d_name, err) : status;
}

/* List an open folder: add files to the source and subfolders to here->below. */
static enum chex_status
list_folder(struct source *s, DIR *dir, struct here *here, struct chex_error *err)
{
    struct dirent *d;

    while (errno = 0, (d = readdir(dir)) != NULL) {
        enum chex_status status = s->stop && atomic_load(s->stop) ? error_stopped(err)
                                                                  : take_entry(s, dirfd(dir), d, here, err);

        if (status != CHEX_OK)
            return status;
    }
    if (errno != 0)
        return error_read(err, errno, "cannot list the folder '%s'", here->path);
    return CHEX_OK;
}

/* List an open folder.  If the listing fails, undo it and start again. */
static enum chex_status
list_whole_folder(struct source *s, DIR *dir, struct here *here, struct chex_error *err)
{
    const struct source before = *s;
    unsigned failures = 0;
    enum chex_status status = list_folder(s, dir, here, err);

    while (status == CHEX_ERR_READ && file_try_again(err->cause, &failures)) {
        s->count = before.count;
        s->folder_count = before.folder_count;
        s->unopened = before.unopened;
        s->unopened_first = before.unopened_first;
        listing_release(&here->below);
        *here = (struct here){.path = here->path};
        rewinddir(dir);
        status = list_folder(s, dir, here, err);
    }
    return status;
}

static int
compare_places(const void *a, const void *b)
{
    const struct ancestor *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

/*
 * Find out whether a folder that is reached through a symbolic link was searched before (*again): it is searched only
 * once.  Otherwise two links to a folder with two links to another folder, and so on, would make 2^32 paths to the last
 * folder.
 */
static enum chex_status
note_linked(struct source *s, const struct ancestor *here, bool *again, struct chex_error *err)
{
    struct ancestor *copy = malloc(sizeof(*copy));
    void **node;

    if (!copy)
        return error_memory(err);
    *copy = (struct ancestor){.device = here->device, .inode = here->inode};
    node = tsearch(copy, &s->linked, compare_places);
    *again = node && *node != copy;
    if (!node || *again)
        free(copy);
    return node ? CHEX_OK : error_memory(err);
}

/* Open a folder with retries.  Returns 0 or the errno. */
static int
open_folder(const char *path, DIR **out)
{
    unsigned failures = 0;
    int error;

    do {
        *out = opendir(path);
        error = *out ? 0 : errno;
    } while (error != 0 && file_try_again(error, &failures));
    return error;
}

static enum chex_status
scan_folder(struct source *s, const char *path, const struct ancestor *up, struct chex_error *err)
{
    struct ancestor here = {.up = up, .depth = up ? up->depth + 1 : 0};
    const struct ancestor *a;
    struct here list = {.path = path};
    struct listing *below = &list.below;
    struct stat st;
    enum chex_status status;
    bool again = false;
    size_t i;
    DIR *dir;
    int error = open_folder(path, &dir);

    /* Count a subfolder without permission, such as lost+found.  A later step detects missing images. */
    if (error == EACCES && up) {
        s->unreadable++;
        return CHEX_OK;
    }
    if (!dir)
        return error_read(err, error, "cannot open the folder '%s'", path);
    if (file_fstatat(dirfd(dir), "", AT_EMPTY_PATH, &st) == 0) {
        here.device = st.st_dev;
        here.inode = st.st_ino;
    }
    for (a = up; a; a = a->up) {
        if (a->device == here.device && a->inode == here.inode) {
            closedir(dir);
            return CHEX_OK;
        }
    }
    status = CHEX_OK;
    if (up && file_fstatat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &st) == 0 && S_ISLNK(st.st_mode))
        status = note_linked(s, &here, &again, err);
    if (status == CHEX_OK && !again)
        status = list_whole_folder(s, dir, &list, err);
    closedir(dir);
    if (below->count > 1)
        qsort(below->name, below->count, sizeof(*below->name), compare_texts);
    for (i = 0; status == CHEX_OK && i < below->count && here.depth < MAX_DEPTH; i++) {
        char child[MAX_PATH];

        if ((size_t)snprintf(child, sizeof(child), "%s/%s", path, below->name[i]) >= sizeof(child))
            status = error_set(err, CHEX_ERR_MISSING, "the path '%s/...' is too long", path);
        else
            status = scan_folder(s, child, &here, err);
    }
    listing_release(below);
    return status;
}

/*
 * An input that is neither a folder nor an image must be an archive.  Check it now, so that a mistake shows at once and
 * not after hours.
 */
static enum chex_status
scan_archive(struct source *s, const char *path, struct chex_error *err)
{
    const char **grown = array_grow(s->archive, &s->archive_capacity, s->archive_count, sizeof(*s->archive));
    char *copy = arena_copy(&s->strings, path, strlen(path));
    struct image_archive *archive;
    struct chex_error why;
    enum chex_status status;

    if (grown)
        s->archive = grown;
    if (!grown || !copy)
        return error_memory(err);
    status = image_archive_open(path, &(struct image_archive_options){.stop = s->stop}, &archive, &why);
    image_archive_close(archive);
    if (status == CHEX_ERR_NOT_IMAGE)
        return error_set(err, CHEX_ERR_MISSING, "'%s' is neither a folder nor a .png or .jpg file: %s", path, why.text);
    if (status != CHEX_OK) {
        if (err)
            *err = why;
        return error_context(err, status == CHEX_ERR_EMPTY ? CHEX_ERR_MISSING : status, "'%s'", path);
    }
    s->archive[s->archive_count++] = copy;
    return CHEX_OK;
}

/* Scan an input that is not a folder: an image or an archive. */
static enum chex_status
scan_file(struct source *s, const char *path, struct chex_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char folder[MAX_PATH];
    size_t length = slash ? (size_t)(slash - path) : 0;
    uint32_t index = 0;
    enum chex_status status;

    if (!image_name_is_known(name))
        return scan_archive(s, path, err);
    if (length >= sizeof(folder))
        return error_set(err, CHEX_ERR_MISSING, "the path '%s' is too long", path);
    memcpy(folder, path, length);
    folder[length] = '\0';
    status = add_folder(s, length > 0 ? folder : slash ? "/" : ".", &index, err);
    return status == CHEX_OK ? add_file(s, index, name, err) : status;
}

static int
compare_files(const void *a, const void *b)
{
    return strcmp(((const struct source_file *)a)->name, ((const struct source_file *)b)->name);
}

/*
 * Keep one of several files with the same name.  Their content must be equal, so any of them will do.  But qsort() is
 * not stable: keep the file found first, so that messages do not vary.
 */
static enum chex_status
drop_repeated(struct source *s, struct chex_error *err)
{
    size_t i, kept = 0;

    for (i = 0; i < s->count; i++) {
        char a[MAX_PATH], b[MAX_PATH];
        struct source_file *last = kept > 0 ? &s->file[kept - 1] : NULL;
        enum chex_status status;
        bool same = false;

        if (!last || strcmp(last->name, s->file[i].name) != 0) {
            s->file[kept++] = s->file[i];
            continue;
        }
        if (source_path(s, last, a, sizeof(a), err) != CHEX_OK ||
            source_path(s, &s->file[i], b, sizeof(b), err) != CHEX_OK)
            return error_set(err, CHEX_ERR_MISSING, "the path of '%s' is too long", last->name);
        status = s->stop && atomic_load(s->stop) ? error_stopped(err) : file_same(a, b, &same, err);
        if (status != CHEX_OK)
            return status;
        if (!same)
            return error_set(err, CHEX_ERR_USAGE, "'%s' found twice with different content: '%s' and '%s'%s%s%s",
                             last->name, s->file[i].folder < last->folder ? b : a,
                             s->file[i].folder < last->folder ? a : b, s->apart ? " (" : "", s->apart ? s->apart : "",
                             s->apart ? ")" : "");
        if (s->file[i].folder < last->folder)
            *last = s->file[i];
        s->repeated++;
    }
    s->count = kept;
    return CHEX_OK;
}

enum chex_status
source_is_folder(const char *path, bool *is_folder, struct chex_error *err)
{
    struct stat st;
    int error = file_fstatat(AT_FDCWD, path, 0, &st);

    if (error != 0)
        return error_read(err, error, "cannot read '%s'", path);
    *is_folder = S_ISDIR(st.st_mode);
    if (!*is_folder && !S_ISREG(st.st_mode))
        return error_set(err, CHEX_ERR_MISSING, "'%s': not a regular file", path);
    return CHEX_OK;
}

/* Returns whether both paths lead to the same folder. */
static bool
is_same_folder(const char *a, const char *b)
{
    struct stat x, y;

    return b && stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Scan a folder of images, or a data set. */
static enum chex_status
scan_input_folder(struct source *s, const char *path, struct chex_error *err)
{
    size_t files = s->count;
    struct chex_error why = {.status = CHEX_OK};
    bool is_stored = false;
    enum chex_status status;

    if (!s->with_datasets)
        return scan_folder(s, path, NULL, err);
    if (stored_probe(path, &is_stored, &why) != CHEX_OK)
        return error_memory(err);
    if (is_stored && !is_same_folder(path, s->output))
        return stored_scan(s, path, err);
    status = scan_folder(s, path, NULL, err);
    if (status != CHEX_OK || s->count > files)
        return status;
    /* There are no images: say why it is not a data set, if it looks like one. */
    if (is_stored)
        return error_set(err, CHEX_ERR_USAGE, "'%s' is an input and the output: choose another folder for -o", path);
    return stored_explain(path, &why, err);
}

static enum chex_status
check_kinds(const struct source *s, struct chex_error *err)
{
    size_t i, k;

    if (s->dataset_count == 0)
        return CHEX_OK;
    if (s->dataset_count < s->input_count)
        return error_set(err, CHEX_ERR_USAGE,
                         "'%s' is a data set, and another input is not: use them in separate commands",
                         s->dataset[0]->folder.path);
    if (s->dataset_count > SOURCES_MAX)
        return error_set(err, CHEX_ERR_USAGE, "%zu data sets: at most %d can be merged", s->dataset_count, SOURCES_MAX);
    for (i = 0; i < s->dataset_count; i++)
        for (k = 0; k < i; k++)
            if (strcmp(s->dataset[k]->info.id, s->dataset[i]->info.id) == 0)
                return error_set(err, CHEX_ERR_USAGE, "'%s' and '%s' are the same data set, %.8s",
                                 s->dataset[k]->folder.path, s->dataset[i]->folder.path, s->dataset[i]->info.id);
    return CHEX_OK;
}

enum chex_status
source_scan(const char *const *paths, size_t path_count, struct source *out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    out->input_count = path_count;
    for (i = 0; status == CHEX_OK && i < path_count; i++) {
        char path[MAX_PATH];
        size_t length = strlen(paths[i]);
        bool is_folder = false;

        while (length > 1 && paths[i][length - 1] == '/')
            length--;
        if (length == 0 || length >= sizeof(path))
            return error_set(err, CHEX_ERR_USAGE, "an input path is %s", length == 0 ? "empty" : "too long");
        memcpy(path, paths[i], length);
        path[length] = '\0';
        status = source_is_folder(path, &is_folder, err);
        if (status == CHEX_OK)
            status = is_folder ? scan_input_folder(out, path, err) : scan_file(out, path, err);
        tdestroy(out->linked, free);
        out->linked = NULL;
    }
    if (status == CHEX_OK)
        status = check_kinds(out, err);
    if (status != CHEX_OK)
        return status;
    if (out->count > 1)
        qsort(out->file, out->count, sizeof(*out->file), compare_files);
    return out->dataset_count > 0 ? stored_check_names(out, err) : drop_repeated(out, err);
}

void
source_release(struct source *source)
{
    free(source->file);
    free(source->folder);
    free(source->archive);
    while (source->dataset_count > 0)
        chex_dataset_close(source->dataset[--source->dataset_count]);
    free(source->dataset);
    free(source->stored);
    arena_release(&source->strings);
    *source = (struct source){0};
}

const struct source_file *
source_find(const struct source *source, const char *name)
{
    struct source_file key = {.name = name};

    if (source->count == 0)
        return NULL;
    return bsearch(&key, source->file, source->count, sizeof(*source->file), compare_files);
}

enum chex_status
source_path(const struct source *source, const struct source_file *file, char *path, size_t size,
            struct chex_error *err)
{
    const char *folder = source->folder[file->folder];
    int length = snprintf(path, size, "%s%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/",
                          path_tail(file->name, strlen(file->name), 1));

    if (length < 0 || (size_t)length >= size)
        return error_set(err, CHEX_ERR_LIMIT, "the path is too long");
    return CHEX_OK;
}
