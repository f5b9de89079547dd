/*
 * file.h - the one way to read an input whole, and the one way to write a file safely
 *
 * Writing: a file is made under a temporary name in its own folder, written, fsync'ed, closed with the result
 * checked, renamed, and the folder fsync'ed.  Under its final name it is there whole or not at all.  Two kinds:
 *   SAFE_FILE_NEW   named .NAME.tmp.PID (and two digits where there is one), never over another one; removed when freed
 *                   without commit
 *   SAFE_FILE_PARTIAL  named .NAME.part and opened again by the next run: a shard whose slots are filled in any order
 *                   stays when freed without commit.  The folder's lock (lock.h) keeps rivals away; what is in the
 *                   partial file is believed only where its checksums say so.  One that could not be synced or closed
 *                   is removed: what the disk did not take may still be read from the page cache, with good checksums.
 * No mmap: a full file system would be a SIGBUS.  Short writes and EINTR are looped over.
 *
 * Errors when writing are CHEX_ERR_WRITE, or CHEX_ERR_MEMORY; the text names file and reason, and says so in words
 * for a full disk; the cause is the errno of the call that failed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_FILE_H
#define CHEX_LIB_FILE_H

#include "base/memory.h"

#include <sys/stat.h>
#include <sys/types.h>

/* ---- calls that are repeated ----------------------------------------------------------------------------------- */

/*
 * A call that only reads has failed with errno `error`: repeat it?  An interrupted call a thousand times at most; a
 * failure that may pass on a network file system (EIO, ESTALE, ETIMEDOUT, EAGAIN) three times, after 20, 80 and 320 ms.
 * *failures is 0 before the first.
 *     do
 *         fd = openat(...);
 *     while (fd < 0 && file_try_again(errno, &failures));
 */
bool file_try_again(int error, unsigned *failures);
/* fstatat(), repeated so; 0, or the errno. */
int file_fstatat(int folder_fd, const char *path, int flags, struct stat *st);
/*
 * Writing is repeated only after an interruption.  file_openat() returns a descriptor, or minus the errno; the others
 * return 0 or the errno, and file_pwrite() writes all bytes.
 */
int file_openat(int folder_fd, const char *name, int flags, mode_t mode);
int file_fsync(int fd);
int file_pwrite(int fd, uint64_t offset, const void *data, size_t size);

/* ---- folders -------------------------------------------------------------------------------------------------- */

/* An open folder; every name is taken relative to fd, so a folder that is moved meanwhile stays the same one. */
struct folder {
    int fd;          /* -1 where it is not open */
    char *path;      /* as given, for messages */
    bool is_private; /* folder_open_private() opened it: files made in it get mode 0600, else 0666 less the umask */
};

/*
 * Open a folder.  With create, one that is missing is made, with its missing parents; the parents are synced.
 * folder_close() frees it.
 */
enum chex_status folder_open(const char *path, bool create, struct folder *out, struct chex_error *err);
/*
 * Open the folder of an output file that the user named; *name is the part of path that names the file there.
 * CHEX_ERR_WRITE: no such folder, no permission to write there, or something else than a file has the name (a device or
 * a pipe would be replaced);  CHEX_ERR_MEMORY
 */
enum chex_status folder_open_output(const char *path, struct folder *out, const char **name, struct chex_error *err);
/*
 * Open the scratch folder `name` in `above`, where other users may write too.  With create, a missing one is made
 * with mode 0700.  A symbolic link is not followed.  The opened folder must belong to this user, and no other user may
 * write to it.  If others may read it, it gets mode 0700.  The caller uses it only relative to out->fd.
 * CHEX_ERR_USAGE a link, a folder of another user, or one that others may write to: nothing in it was touched
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY;  without create also CHEX_ERR_MISSING, CHEX_ERR_READ
 */
enum chex_status folder_open_private(const struct folder *above, const char *name, bool create, struct folder *out,
                                     struct chex_error *err);
void folder_close(struct folder *folder); /* zero-initialised or closed ones are allowed: fd 0 with path NULL */
/* The mode of a new file in it, for open(). */
mode_t folder_file_mode(const struct folder *folder);
/* fsync the folder, so that renames in it survive a power loss. */
enum chex_status folder_sync(const struct folder *folder, struct chex_error *err);
/*
 * To be called before writing to a file of an earlier run.  A file with other names (hard links, of a backup perhaps)
 * is copied, and the copy takes this name: the other names keep their content.  No file of this name is no error.
 * CHEX_ERR_WRITE, also where it is not a regular file; CHEX_ERR_MEMORY.
 */
enum chex_status folder_own(const struct folder *folder, const char *name, struct chex_error *err);
/* Remove a file; one that is not there is fine. */
enum chex_status folder_remove(const struct folder *folder, const char *name, struct chex_error *err);

/* Names of a folder's entries, sorted; zero-initialise. */
struct folder_names {
    char **name;
    size_t count;
};

/* All entries for which `wanted` is true.  folder_names_release() frees them, also after a failure. */
enum chex_status folder_list(const struct folder *folder, bool (*wanted)(const char *name), struct folder_names *out,
                             struct chex_error *err);
void folder_names_release(struct folder_names *names);

/* ---- writing -------------------------------------------------------------------------------------------------- */

enum safe_file_kind { SAFE_FILE_NEW, SAFE_FILE_PARTIAL };

struct safe_file; /* used by one thread at a time, but for safe_file_pwrite() and safe_file_pread() */

/*
 * Begin the file `name` in `folder` (which must stay open until commit or free).
 * size   SAFE_FILE_PARTIAL: the size that it will have; reserved at once where the file system can, so that a full disk
 *        shows here.  0: unknown
 */
enum chex_status safe_file_create(const struct folder *folder, const char *name, enum safe_file_kind kind,
                                  uint64_t size, struct safe_file **out, struct chex_error *err);

/* Reserve space for a partial file that was begun without a size. */
enum chex_status safe_file_reserve(struct safe_file *f, uint64_t size, struct chex_error *err);

/* Append. */
enum chex_status safe_file_write(struct safe_file *f, const void *data, size_t size, struct chex_error *err);
/* At an offset; thread-safe for ranges that do not overlap. */
enum chex_status safe_file_pwrite(struct safe_file *f, uint64_t offset, const void *data, size_t size,
                                  struct chex_error *err);
/* Read back; *got < size at the end of the file.  A read error is CHEX_ERR_WRITE. */
enum chex_status safe_file_pread(struct safe_file *f, uint64_t offset, void *data, size_t size, size_t *got,
                                 struct chex_error *err);

/* Start writing to the disk, without waiting: less is left for the fsync of the commit. */
void safe_file_begin_sync(struct safe_file *f);

/*
 * fsync, close, rename, and fsync of the folder.  f is freed, also on failure (a NEW file is then removed, a PART
 * stays unless it could not be synced or closed).  Without durable the two fsyncs are left out: for many small files
 * that can be made again (chex-synth).
 * A PART leaves the page cache once it is synced.
 */
enum chex_status safe_file_commit(struct safe_file *f, bool durable, struct chex_error *err);
/*
 * Close a PART that a later call will continue: a network file system may report a full disk only now.  f is freed.
 */
enum chex_status safe_file_leave(struct safe_file *f, struct chex_error *err);
void safe_file_free(struct safe_file *f); /* NULL is allowed */

/* Is `suffix` what a temporary name has after ".NAME": ".tmp." and digits? */
bool file_is_temporary_suffix(const char *suffix);

/* All of it for a small file: create, write, commit. */
enum chex_status safe_file_put(const struct folder *folder, const char *name, const void *data, size_t size,
                               struct chex_error *err);

/* ---- reading -------------------------------------------------------------------------------------------------- */

/*
 * Open a regular file for reading, never blocking on a FIFO or a device.  *size is its size.  Closed by the caller.
 * Here and below, a failure that may pass is tried again: file_try_again().
 * CHEX_ERR_MISSING; CHEX_ERR_NOT_IMAGE "not a regular file"; CHEX_ERR_READ.
 */
enum chex_status file_open(int folder_fd, const char *path, int *fd, uint64_t *size, struct chex_error *err);
/*
 * The same for an input that the user named: if it is not a regular file, no data is damaged, so the status is
 * CHEX_ERR_MISSING instead of CHEX_ERR_NOT_IMAGE.
 */
enum chex_status file_open_input(int folder_fd, const char *path, int *fd, uint64_t *size, struct chex_error *err);
/* The same for a file that this program makes in the folder: a symbolic link is not a regular file either. */
enum chex_status file_open_own(const struct folder *folder, const char *name, int *fd, uint64_t *size,
                               struct chex_error *err);

/* Fill data from offset, looping over short reads. */
enum chex_status file_pread(int fd, uint64_t offset, void *data, size_t size, size_t *got, struct chex_error *err);

/*
 * Read a whole regular file, at most max bytes (CHEX_ERR_LIMIT), into b (b->size is its size; reused).  A file whose
 * size or time changes meanwhile is CHEX_ERR_READ "changed while it was read".  The texts do not name the file.
 */
enum chex_status file_read(int folder_fd, const char *path, uint64_t max, struct buffer *b, struct chex_error *err);

/*
 * Do two paths name one file, or files of the same content?  A path without a readable file differs.
 * CHEX_ERR_READ where reading fails, CHEX_ERR_MEMORY.
 */
enum chex_status file_same(const char *a, const char *b, bool *same, struct chex_error *err);

#endif
