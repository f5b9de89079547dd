/*
 * file.h - reads whole input files, and writes files atomically
 *
 * To write a file, the functions create it with a temporary name in the same folder, write it, sync it, close it,
 * rename it, and sync the folder.  So under the final name the file is either complete or does not exist.  There are
 * two kinds:
 *   SAFE_FILE_NEW      named .NAME.tmp.PID (plus two digits if that exists); never overwrites another file; removed
 *                      when freed without commit
 *   SAFE_FILE_PARTIAL  named .NAME.part, and opened again by the next run: a shard whose slots are filled in any order.
 *                      It stays when freed without commit.  The folder's lock (lock.h) excludes other writers, and only
 *                      data with valid checksums is used.  If syncing or closing failed, it is removed: data that did
 *                      not reach the disk could still be read from the page cache, with valid checksums.
 * Files are never mapped, because a full file system would raise SIGBUS.  Short writes and EINTR are handled.
 *
 * Write errors are CHEX_ERR_WRITE or CHEX_ERR_MEMORY.  The text has the file and the reason; a full disk is named as
 * such.  The cause is the errno of the failed call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_FILE_H
#define CHEX_LIB_FILE_H

#include "base/memory.h"

#include <sys/stat.h>
#include <sys/types.h>

/* ---- calls with retries ---------------------------------------------------------------------------------------- */

/*
 * After a call that only reads has failed with errno `error`: returns whether to repeat it, after a pause if needed.
 * An interrupted call is repeated at most a thousand times.  A failure that may be temporary on a network file system
 * (EIO, ESTALE, ETIMEDOUT, EAGAIN) is repeated three times, after 20, 80 and 320 ms.  Set *failures to 0 before the
 * first call.
 *     do
 *         fd = openat(...);
 *     while (fd < 0 && file_try_again(errno, &failures));
 */
bool file_try_again(int error, unsigned *failures);
/* fstatat() with these retries.  Returns 0 or the errno. */
int file_fstatat(int folder_fd, const char *path, int flags, struct stat *st);
/*
 * Calls that write are repeated only after an interruption.  file_openat() returns a descriptor, or minus the errno.
 * The others return 0 or the errno.  file_pwrite() writes all bytes.
 */
int file_openat(int folder_fd, const char *name, int flags, mode_t mode);
int file_fsync(int fd);
int file_pwrite(int fd, uint64_t offset, const void *data, size_t size);

/* ---- folders -------------------------------------------------------------------------------------------------- */

/* An open folder.  All names are relative to fd, so moving the folder does not matter. */
struct folder {
    int fd;          /* -1: not open */
    char *path;      /* as passed to folder_open(), for messages */
    bool is_private; /* opened by folder_open_private(): new files get mode 0600, others 0666 minus the umask */
};

/*
 * Open a folder.  With create, create it and its parents if missing, and sync the parents.  Close it with
 * folder_close().
 */
enum chex_status folder_open(const char *path, bool create, struct folder *out, struct chex_error *err);
/* Find the longest existing prefix of the path: the missing folders will be created there. */
void folder_find_existing(const char *path, char *out, size_t size);
/*
 * For a dry run: check that the folder exists or could be created, and that files could be created in it.  Creates
 * nothing.  CHEX_ERR_WRITE
 */
enum chex_status folder_check_writable(const char *path, struct chex_error *err);
/*
 * Open the folder of an output file that the user named; *name is the part of path after it.
 * CHEX_ERR_WRITE: the folder does not exist or is not writable, or the name belongs to something other than a file (a
 * device or pipe would be replaced);  CHEX_ERR_MEMORY
 */
enum chex_status folder_open_output(const char *path, struct folder *out, const char **name, struct chex_error *err);
/*
 * Open the scratch folder `name` in `above`, where other users may write too.  With create, create it with mode 0700 if
 * missing.  Symbolic links are not followed.  The folder must belong to this user, and no other user may write to it.
 * If others may read it, its mode becomes 0700.  Use it only relative to out->fd.
 * CHEX_ERR_USAGE a link, a folder of another user, or one that others may write to: nothing in it was changed
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY;  without create also CHEX_ERR_MISSING, CHEX_ERR_READ
 */
enum chex_status folder_open_private(const struct folder *above, const char *name, bool create, struct folder *out,
                                     struct chex_error *err);
void folder_close(struct folder *folder); /* a zeroed folder (fd 0 with path NULL) or a closed one is allowed */
/* Returns the mode for open() of a new file in the folder. */
mode_t folder_file_mode(const struct folder *folder);
/* Sync the folder, so that renames in it survive a power loss. */
enum chex_status folder_sync(const struct folder *folder, struct chex_error *err);
/*
 * Call this before writing to a file of an earlier run.  If the file has other names (hard links, for example of a
 * backup), it is copied, and the copy gets this name: the other names keep their content.  A missing file is not an
 * error.
 * CHEX_ERR_WRITE, also if it is not a regular file; CHEX_ERR_MEMORY.
 */
enum chex_status folder_own(const struct folder *folder, const char *name, struct chex_error *err);
/* Remove a file; a missing file is not an error. */
enum chex_status folder_remove(const struct folder *folder, const char *name, struct chex_error *err);

/* Sorted names of a folder's entries.  Zero it before use. */
struct folder_names {
    char **name;
    size_t count;
};

/* List all entries that `wanted` accepts.  Free *out with folder_names_release(), also after a failure. */
enum chex_status folder_list(const struct folder *folder, bool (*wanted)(const char *name), struct folder_names *out,
                             struct chex_error *err);
void folder_names_release(struct folder_names *names);

/* ---- writing -------------------------------------------------------------------------------------------------- */

enum safe_file_kind { SAFE_FILE_NEW, SAFE_FILE_PARTIAL };

struct safe_file; /* used by one thread at a time, except safe_file_pwrite() and safe_file_pread() */

/*
 * Create the file `name` in `folder`, which must stay open until commit or free.
 * size   SAFE_FILE_PARTIAL: the final size.  If the file system can reserve space, this call reserves it, so a full
 *        disk is detected here.  0: unknown
 */
enum chex_status safe_file_create(const struct folder *folder, const char *name, enum safe_file_kind kind,
                                  uint64_t size, struct safe_file **out, struct chex_error *err);

/* Reserve space for a partial file that was created without a size. */
enum chex_status safe_file_reserve(struct safe_file *f, uint64_t size, struct chex_error *err);

/* Append data. */
enum chex_status safe_file_write(struct safe_file *f, const void *data, size_t size, struct chex_error *err);
/* Write data at an offset.  Threads may write to ranges that do not overlap. */
enum chex_status safe_file_pwrite(struct safe_file *f, uint64_t offset, const void *data, size_t size,
                                  struct chex_error *err);
/* Read data back; *got < size at the end of the file.  A read error is CHEX_ERR_WRITE. */
enum chex_status safe_file_pread(struct safe_file *f, uint64_t offset, void *data, size_t size, size_t *got,
                                 struct chex_error *err);

/* Start writing to the disk without waiting, so that the commit's fsync has less to do. */
void safe_file_begin_sync(struct safe_file *f);

/*
 * Sync, close and rename the file, and sync the folder.  f is freed, also on failure.  After a failure a NEW file is
 * removed; a PARTIAL file stays unless syncing or closing failed.  If durable is false, nothing is synced: for many
 * small files that can be written again (chex-synth).  A PARTIAL file is dropped from the page cache after its sync.
 */
enum chex_status safe_file_commit(struct safe_file *f, bool durable, struct chex_error *err);
/*
 * Close a PARTIAL file that a later run will continue.  A network file system may report a full disk only now.  f is
 * freed.
 */
enum chex_status safe_file_close_partial(struct safe_file *f, struct chex_error *err);
void safe_file_free(struct safe_file *f); /* NULL is allowed */

/* Returns whether `suffix` is that of a temporary name after ".NAME": ".tmp." and digits. */
bool file_is_temporary_suffix(const char *suffix);

/* Create, write and commit a small file. */
enum chex_status safe_file_put(const struct folder *folder, const char *name, const void *data, size_t size,
                               struct chex_error *err);

/* ---- reading -------------------------------------------------------------------------------------------------- */

/*
 * Open a regular file for reading; never blocks on a FIFO or device.  *size is its size.  The caller closes *fd.  This
 * function and those below retry failures that may be temporary: file_try_again().
 * CHEX_ERR_MISSING; CHEX_ERR_NOT_IMAGE "not a regular file"; CHEX_ERR_READ.
 */
enum chex_status file_open(int folder_fd, const char *path, int *fd, uint64_t *size, struct chex_error *err);
/*
 * Like file_open(), for an input that the user named.  If it is not a regular file, the status is CHEX_ERR_MISSING
 * instead of CHEX_ERR_NOT_IMAGE, because no data is damaged.
 */
enum chex_status file_open_input(int folder_fd, const char *path, int *fd, uint64_t *size, struct chex_error *err);
/* Like file_open(), for a file that this program writes in the folder: a symbolic link is not a regular file either. */
enum chex_status file_open_own(const struct folder *folder, const char *name, int *fd, uint64_t *size,
                               struct chex_error *err);

/* Fill data from offset, repeating short reads; *got < size at the end of the file. */
enum chex_status file_pread(int fd, uint64_t offset, void *data, size_t size, size_t *got, struct chex_error *err);

/*
 * Read a whole regular file of at most max bytes (CHEX_ERR_LIMIT) into b.  b may be reused; b->size becomes the file's
 * size.  If the file's size or time changes meanwhile, CHEX_ERR_READ "changed while it was read".  Error texts do not
 * contain the path.
 *
 * The memory that b has is used first: a file that fits, and that was last changed more than a minute ago, takes four
 * system calls.  Any other file takes up to two more, because its state before the reading is needed too.
 */
enum chex_status file_read(int folder_fd, const char *path, uint64_t max, struct buffer *b, struct chex_error *err);

/*
 * Find out whether two paths name the same file, or files with the same content.  A path without a readable file
 * differs.
 * CHEX_ERR_READ if reading fails, CHEX_ERR_MEMORY.
 */
enum chex_status file_same(const char *a, const char *b, bool *same, struct chex_error *err);

#endif
