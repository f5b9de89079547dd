/*
 * roc_plot.h - draws the results of an evaluation on one page: auroc.svg and auroc-SPLIT.svg
 *
 * The findings from the best AUROC to the worst, each with its interval, its numbers and the images that have it; the
 * mean; the ROC curve of each; and in the title what the numbers are of.  Complete in itself: no font, script or style
 * is
 * loaded.  Like the documents of predictions.h it holds no time, host or path.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_ROC_PLOT_H
#define CHEX_TOOLS_ROC_PLOT_H

#include "eval/predictions.h"

/*
 * Write the page.  If a logit is not finite, the page only reports that.
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status roc_plot_write(const struct evaluation *e, const struct evaluation_source *from,
                                const struct folder *folder, const char *name, struct chex_error *err);

#endif
