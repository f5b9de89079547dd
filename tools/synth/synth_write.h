/*
 * synth_write.h - writes a population to a folder, in this order
 *
 *   FOLDER/SYNTHETIC.txt                       first: what the folder contains
 *   FOLDER/train_val_list.txt, test_list.txt   second: they also show a rerun that FOLDER/images is its own
 *   FOLDER/images/NNNNNNNN_NNN.png             by any number of threads, each file first under a temporary name;
 *                                              CheXpert: images/patientNNNNN/studyN/view1_frontal.png
 *   FOLDER/BBox_List_2017.csv                  after the images: boxes of findings in the test images
 *   FOLDER/Data_Entry_2017_v2020.csv           last: if it exists, everything does; or population_csv_name()
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
    unsigned size;    /* pixels per side, 64 .. 4096 */
    unsigned threads; /* at least 1; fewer if the system does not provide them */
    bool quiet;       /* print no notes */
    struct progress_line *line;

    uint64_t bytes; /* result: size of all images */
};

/*
 * Writes all files; a rerun with the same population overwrites them with the same bytes.
 * CHEX_ERR_INCOMPATIBLE  the folder contains another data set, or images of unknown origin; nothing was changed
 * CHEX_ERR_WRITE, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status synth_write(struct synth_job *job, struct chex_error *err);

#endif
