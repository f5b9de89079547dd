/*
 * synth_write.h - a population becomes files in a folder
 *
 *   FOLDER/SYNTHETIC.txt                       first: what the folder holds
 *   FOLDER/train_val_list.txt, test_list.txt   next: they also tell a rerun that what is in FOLDER/images is its own
 *   FOLDER/images/NNNNNNNN_NNN.png             by any number of threads, each file under a temporary name first
 *   FOLDER/Data_Entry_2017_v2020.csv           last: it is there when everything is
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SYNTH_WRITE_H
#define CHEX_TOOLS_SYNTH_WRITE_H

#include "common/progress_line.h"
#include "synth/synth_people.h"

#define SYNTH_CSV    "Data_Entry_2017_v2020.csv"
#define SYNTH_IMAGES "images"

struct synth_job {
    const struct population *population;
    const char *folder;
    unsigned size;    /* pixels a side, 64 .. 4096 */
    unsigned threads; /* at least 1; fewer where the system gives no more */
    bool quiet;       /* print no notes */
    struct progress_line *line;

    uint64_t bytes; /* result: of all images */
};

/*
 * Write all files; a rerun with the same population writes the same bytes over them.
 * CHEX_ERR_INCOMPATIBLE  the folder holds another data set, or images of unknown origin: nothing was touched
 * CHEX_ERR_WRITE, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status synth_write(struct synth_job *job, struct chex_error *err);

#endif
