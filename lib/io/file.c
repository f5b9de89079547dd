/*
 * file.c - folders, and files that are written atomically; see file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_TRIES 100

struct safe_file {
    const struct folder *folder;
    enum safe_file_kind kind;
    int fd;
    bool created;    /* this process created the temporary file */
    bool lost;       /* some data did not reach the disk, and it is unknown which */
    uint64_t end;    /* the offset at which safe_file_write() appends */
    char *name;      /* final name */
    char *temporary; /* name until commit */
};

/* ---- folders -------------------------------------------------------------------------------------------------- */

/*
 * Sync the folder's own name, so that a power loss does not remove the folder.  Returns 0 or the errno.  A parent that
 * is not readable or cannot be synced is ignored.
 */
static int
sync_parent(const char *path)
{
    size_t length = strlen(path);
    int fd, error = 0;
    char *parent;

    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    parent = length > 0 ? strndup(path, length) : strdup(".");
    fd = parent ? file_openat(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -1;
    free(parent);
    if (fd >= 0) {
        error = file_fsync(fd);
        close(fd);
    }
    return error == EIO || error == ENOSPC || error == EDQUOT ? error : 0;
}

/*
 * Create a folder.  Returns 0 or the errno.  Syncs an existing folder too: the run that created it may have been
 * killed.
 */
static int
make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? sync_parent(path) : errno;
}

/* Create a folder and its missing parents. */
static int
make_folders(const char *path)
{
    int error = make_folder(path);
    char *parent = error == ENOENT ? strdup(path) : NULL;
    size_t i;

    if (error != ENOENT)
        return error;
    if (!parent)
        return ENOMEM;
    for (i = 1, error = 0; parent[i] && error == 0; i++) {
        if (parent[i] != '/' || parent[i - 1] == '/')
            continue;
        parent[i] = '\0';
        error = make_folder(parent);
        parent[i] = '/';
    }
    free(parent);
    return error == 0 ? make_folder(path) : error;
}

enum chex_status
folder_open(const char *path, bool create, struct folder *out, struct chex_error *err)
{
    unsigned failures = 0;
    int error = 0;

    *out = (struct folder){.fd = -1};
    if (create)
        error = make_folders(path);
    if (error != 0)
        return error_write(err, error, "cannot create the folder '%s'", path);
    do
        out->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (out->fd < 0 && file_try_again(errno, &failures));
    if (out->fd < 0)
        return error_system(err, create ? CHEX_ERR_WRITE : status_of_read_errno(errno), errno,
                            "cannot open the folder '%s'", path);
    out->path = strdup(path);
    if (!out->path) {
        folder_close(out);
        return error_memory(err);
    }
    return CHEX_OK;
}

void
folder_find_existing(const char *path, char *out, size_t size)
{
    size_t length = (size_t)snprintf(out, size, "%s", path);

    while (length < size && length > 0 && faccessat(AT_FDCWD, out, F_OK, 0) != 0) {
        while (length > 0 && out[length - 1] != '/')
            length--;
        while (length > 1 && out[length - 1] == '/')
            length--;
        out[length] = '\0';
    }
    if (length == 0)
        snprintf(out, size, ".");
}

enum chex_status
folder_check_writable(const char *path, struct chex_error *err)
{
    char existing[4096];
    struct stat st;

    folder_find_existing(path, existing, sizeof(existing));
    if (stat(existing, &st) == 0 && !S_ISDIR(st.st_mode))
        return error_set(err, CHEX_ERR_WRITE, "'%s' is not a folder", existing);
    if (faccessat(AT_FDCWD, existing, W_OK | X_OK, AT_EACCESS) != 0)
        return error_write(err, errno, "cannot write to the folder '%s'", existing);
    return CHEX_OK;
}

enum chex_status
folder_open_output(const char *path, struct folder *out, const char **name, struct chex_error *err)
{
    const char *slash = strrchr(path, '/');
    char *parent = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    struct stat there;
    enum chex_status status;

    *name = slash ? slash + 1 : path;
    *out = (struct folder){.fd = -1};
    status = parent ? folder_open(parent, false, out, err) : error_memory(err);
    free(parent);
    if (status != CHEX_OK && status != CHEX_ERR_MEMORY) {
        status = CHEX_ERR_WRITE;
        if (err)
            err->status = status;
    }
    if (status != CHEX_OK)
        return status;
    if (!**name || (fstatat(out->fd, *name, &there, 0) == 0 && !S_ISREG(there.st_mode)))
        status = error_set(err, CHEX_ERR_WRITE, "'%s' is not a regular file", path);
    else if (faccessat(out->fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        status = error_write(err, errno, "cannot write to the folder '%s'", out->path);
    if (status != CHEX_OK)
        folder_close(out);
    return status;
}

void
folder_close(struct folder *folder)
{
    /* A zeroed struct has fd 0, which folder_open() did not open. */
    if (folder->fd > 0)
        close(folder->fd);
    free(folder->path);
    *folder = (struct folder){.fd = -1};
}

mode_t
folder_file_mode(const struct folder *folder)
{
    return folder->is_private ? S_IRUSR | S_IWUSR : 0666;
}

enum chex_status
folder_sync(const struct folder *folder, struct chex_error *err)
{
    int error = file_fsync(folder->fd);

    /* Some network file systems cannot sync a folder and return EINVAL: ignore it. */
    if (error != 0 && error != EINVAL && error != ENOTSUP)
        return error_system(err, CHEX_ERR_WRITE, error, "cannot sync the folder '%s'", folder->path);
    return CHEX_OK;
}

enum chex_status
folder_remove(const struct folder *folder, const char *name, struct chex_error *err)
{
    if (unlinkat(folder->fd, name, 0) != 0 && errno != ENOENT)
        return error_system(err, CHEX_ERR_WRITE, errno, "cannot remove '%s/%s'", folder->path, name);
    return CHEX_OK;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static enum chex_status
fail_write(const struct safe_file *f, const char *verb, int error, struct chex_error *err)
{
    return error_write(err, error, "cannot %s '%s/%s'", verb, f->folder->path, f->name);
}

enum chex_status
safe_file_reserve(struct safe_file *f, uint64_t size, struct chex_error *err)
{
#ifdef HAVE_FALLOCATE
    /* Use the system call, because posix_fallocate() over NFS writes to every block. */
    while (size > 0 && fallocate(f->fd, 0, 0, (off_t)size) != 0) {
        if (errno == EINTR)
            continue;
        if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
            return fail_write(f, "reserve space for", errno, err);
        break;
    }
#endif
    /* Set the size if the file is longer, or if its space could not be reserved. */
    while (size > 0 && ftruncate(f->fd, (off_t)size) != 0)
        if (errno != EINTR)
            return fail_write(f, "reserve space for", errno, err);
    return CHEX_OK;
}

bool
file_is_temporary_suffix(const char *suffix)
{
    static const char infix[] = ".tmp.";
    size_t digits;

    if (strncmp(suffix, infix, strlen(infix)) != 0)
        return false;
    digits = strspn(suffix + strlen(infix), "0123456789");
    return digits > 0 && suffix[strlen(infix) + digits] == '\0';
}

/*
 * Create the temporary file.  Its name has the pid, but in containers every process may have pid 1.  If the name
 * exists, it may belong to another host or a killed process: keep that file, and try the next name.
 */
static int
open_temporary(struct safe_file *f, size_t size, int flags)
{
    mode_t mode = folder_file_mode(f->folder);
    unsigned i;
    int fd;

    if (f->kind == SAFE_FILE_PARTIAL) {
        snprintf(f->temporary, size, ".%s.part", f->name);
        return file_openat(f->folder->fd, f->temporary, flags, mode);
    }
    snprintf(f->temporary, size, ".%s.tmp.%ld", f->name, (long)getpid());
    fd = file_openat(f->folder->fd, f->temporary, flags, mode);
    for (i = 0; fd == -EEXIST && i < TEMPORARY_TRIES; i++) {
        snprintf(f->temporary, size, ".%s.tmp.%ld%02u", f->name, (long)getpid(), i);
        fd = file_openat(f->folder->fd, f->temporary, flags, mode);
    }
    return fd;
}

enum chex_status
safe_file_create(const struct folder *folder, const char *name, enum safe_file_kind kind, uint64_t size,
                 struct safe_file **out, struct chex_error *err)
{
    struct safe_file *f = calloc(1, sizeof(*f));
    size_t length = strlen(name) + 32;
    enum chex_status status;
    int flags = O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_RDWR | (kind == SAFE_FILE_NEW ? O_EXCL : 0);

    *out = NULL;
    if (!f)
        return error_memory(err);
    f->folder = folder;
    f->kind = kind;
    f->fd = -1;
    f->name = strdup(name);
    f->temporary = malloc(length);
    status = f->name && f->temporary ? CHEX_OK : error_memory(err);
    if (status == CHEX_OK) {
        f->fd = open_temporary(f, length, flags);
        f->created = f->fd >= 0;
        status = f->created ? safe_file_reserve(f, size, err) : fail_write(f, "create", -f->fd, err);
    }
    if (status == CHEX_OK)
        *out = f;
    else
        safe_file_free(f);
    return status;
}

enum chex_status
safe_file_pwrite(struct safe_file *f, uint64_t offset, const void *data, size_t size, struct chex_error *err)
{
    int error = file_pwrite(f->fd, offset, data, size);

    return error == 0 ? CHEX_OK : fail_write(f, "write", error, err);
}

enum chex_status
safe_file_write(struct safe_file *f, const void *data, size_t size, struct chex_error *err)
{
    enum chex_status status = safe_file_pwrite(f, f->end, data, size, err);

    if (status == CHEX_OK)
        f->end += size;
    return status;
}

enum chex_status
safe_file_pread(struct safe_file *f, uint64_t offset, void *data, size_t size, size_t *got, struct chex_error *err)
{
    enum chex_status status = file_pread(f->fd, offset, data, size, got, err);

    /* Data just written cannot be read: the output has failed. */
    if (status == CHEX_ERR_READ)
        status = CHEX_ERR_WRITE;
    return status == CHEX_OK ? status : error_context(err, status, "reading back '%s/%s'", f->folder->path, f->name);
}

void
safe_file_begin_sync(struct safe_file *f)
{
#ifdef HAVE_SYNC_FILE_RANGE
    /* An error does not matter here: fsync() will report it. */
    (void)sync_file_range(f->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
    (void)f;
#endif
}

/*
 * Fail after a sync or close.  Data that did not reach the disk may still be read from memory for a while: the next run
 * must not use it.
 */
static enum chex_status
fail_lost(struct safe_file *f, const char *verb, int error, struct chex_error *err)
{
    f->lost = true;
    return fail_write(f, verb, error, err);
}

enum chex_status
safe_file_close_partial(struct safe_file *f, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    int fd = f->fd;

    f->fd = -1;
    if (close(fd) != 0 && errno != EINTR)
        status = fail_lost(f, "close", errno, err);
    safe_file_free(f);
    return status;
}

enum chex_status
safe_file_commit(struct safe_file *f, bool durable, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    int fd = f->fd, error = durable ? file_fsync(fd) : 0;

    if (error != 0)
        status = fail_lost(f, "sync", error, err);
    /* A shard is written once, and was read back before: its pages would only displace useful ones. */
    if (status == CHEX_OK && durable && f->kind == SAFE_FILE_PARTIAL)
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (status == CHEX_OK) {
        f->fd = -1;
        if (close(fd) != 0 && errno != EINTR)
            status = fail_lost(f, "close", errno, err);
    }
    if (status == CHEX_OK && renameat(f->folder->fd, f->temporary, f->folder->fd, f->name) != 0)
        status = fail_write(f, "rename to", errno, err);
    /* The temporary name no longer exists, so safe_file_free() must not remove it. */
    if (status == CHEX_OK)
        f->created = false;
    if (status == CHEX_OK && durable)
        status = folder_sync(f->folder, err);
    safe_file_free(f);
    return status;
}

void
safe_file_free(struct safe_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    if (f->created && (f->kind == SAFE_FILE_NEW || f->lost))
        unlinkat(f->folder->fd, f->temporary, 0);
    free(f->name);
    free(f->temporary);
    free(f);
}

enum chex_status
safe_file_put(const struct folder *folder, const char *name, const void *data, size_t size, struct chex_error *err)
{
    struct safe_file *f;
    enum chex_status status = safe_file_create(folder, name, SAFE_FILE_NEW, 0, &f, err);

    if (status != CHEX_OK)
        return status;
    status = safe_file_write(f, data, size, err);
    if (status != CHEX_OK) {
        safe_file_free(f);
        return status;
    }
    return safe_file_commit(f, true, err);
}
