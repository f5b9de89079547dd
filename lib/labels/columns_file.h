/*
 * columns_file.h - reads a description of a label file: the argument of --columns
 *
 * The file makes a struct label_kind, like those of the table in label_kinds.c.  Each line is `key = value`, a comment
 * that begins with #, or empty:
 *
 *     image = File            patient = Patient ID      age = Age      sex = Gender      view = View
 *     findings = Mass, Rib fracture                     names; may be repeated
 *     finding Lung Opacity = Target                     a finding whose column has another name
 *     list = Labels           separator = ;             the column of a list of names; a character or `python`
 *     empty = 0               unknown (default) or 0: the label of an empty cell
 *     folders = 2             folders that belong to an image's name: 0 (default) to 8
 *     suffix = .png           end of an image's name that the column lacks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_COLUMNS_FILE_H
#define CHEX_LIB_COLUMNS_FILE_H

#include "labels/label_kinds.h"

/*
 * Read the file.  Free *out with columns_file_free(); NULL after a failure.
 * CHEX_ERR_USAGE  with "PATH:LINE: ...": a line of another form, an unknown key, a key twice, a value that is invalid;
 *                 with "PATH: ...": a required key is missing, keys that exclude each other, a list that
 *                 findings_make() refuses
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status columns_file_read(const char *path, struct label_kind **out, struct chex_error *err);
void columns_file_free(struct label_kind *kind);

#endif
