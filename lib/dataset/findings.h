/*
 * findings.h - the 14 findings of ChestX-ray14: names, aliases, and texts such as "Atelectasis|Effusion"
 *
 * A set of findings is a bit mask: bit i is finding i in the order of CheXNet (chex_finding_name()).  "No Finding" is
 * the empty set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_FINDINGS_H
#define CHEX_LIB_FINDINGS_H

#include "base/error.h"

/*
 * Returns the index of the finding with this name, or -1.  The comparison ignores case; blank, '_' and '-' are equal.
 * "Infiltrate" means Infiltration; "Pleural Thickening", also without the space, means Pleural_Thickening.
 */
int finding_index(const char *name, size_t length);

/* Returns whether the name is "No Finding" in any of these spellings. */
bool finding_is_none(const char *name, size_t length);

/* Returns the name most similar to a misspelt one (edit distance at most 3), possibly "No Finding", or NULL. */
const char *finding_suggest(const char *name, size_t length);

/* Faults of a text of findings. */
enum findings_fault {
    FINDINGS_GOOD,
    FINDINGS_EMPTY,        /* only blanks */
    FINDINGS_EMPTY_PART,   /* "Mass|" */
    FINDINGS_UNKNOWN,      /* a name is not a finding's; *mask has the other findings */
    FINDINGS_CONTRADICTION /* No Finding and a finding */
};

/* Called for each unknown name, which is a part of the text and not terminated. */
typedef void findings_unknown_fn(const char *name, size_t length, void *context);

/* Parse "Atelectasis|Effusion" or "No Finding" into *mask.  The caller writes the error text of a fault. */
enum findings_fault findings_scan(const char *text, size_t length, findings_unknown_fn *unknown, void *context,
                                  uint16_t *mask);

/*
 * For a text that findings_scan() accepted: returns whether every name is spelled as NIH spells it, ignoring blanks
 * around the names.
 */
bool findings_are_exact(const char *text, size_t length);

#endif
