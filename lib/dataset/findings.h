/*
 * findings.h - the 14 findings of ChestX-ray14: names, aliases, sets of them
 *
 * A set is a bit mask: bit i is finding i in the order of CheXNet (chex_finding_name()).  "No Finding" is the
 * empty set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_FINDINGS_H
#define CHEX_LIB_FINDINGS_H

#include "base/error.h"

/*
 * The index of a finding's name, or -1.  Compared without case; blank, '_' and '-' are alike; "Infiltrate" is
 * Infiltration, "Pleural Thickening" (and the spaceless form) Pleural_Thickening.
 */
int finding_index(const char *name, size_t length);

/* True for "No Finding" in any of the spellings above. */
bool finding_is_none(const char *name, size_t length);

/* The name nearest to a misspelt one (edit distance at most 3), also "No Finding", or NULL. */
const char *finding_suggest(const char *name, size_t length);

/* What a text of findings can have wrong. */
enum findings_fault {
    FINDINGS_GOOD,
    FINDINGS_EMPTY,        /* nothing but blanks */
    FINDINGS_EMPTY_PART,   /* "Mass|" */
    FINDINGS_UNKNOWN,      /* a name that is no finding's; *mask has the others */
    FINDINGS_CONTRADICTION /* No Finding together with a finding */
};

/* Called with each unknown name; a part of the text, not terminated. */
typedef void findings_unknown_fn(const char *name, size_t length, void *context);

/* Parse "Atelectasis|Effusion" or "No Finding" into *mask; the caller makes the text of a fault. */
enum findings_fault findings_scan(const char *text, size_t length, findings_unknown_fn *unknown, void *context,
                                  uint16_t *mask);

/* Does a text that findings_scan() took write each name as NIH does, but for blanks around it? */
bool findings_are_exact(const char *text, size_t length);

#endif
