/*
 * roc_plot.h - draws the results of an evaluation on one page: auroc.svg and auroc-SPLIT.svg
 *
 * The page lists the findings by falling AUROC, each with its interval, its numbers and its positive images, then the
 * mean and the ROC curve of each finding.  The title names the split, the data set and the model.  The page loads no
 * font, script or style.  Like the documents of predictions.h, it contains no time, host or path.
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
