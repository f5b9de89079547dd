/*
 * box_published.c - the values of Wang et al., ChestX-ray8, arXiv 1705.02315v5 (see predict_boxes.h)
 *
 * Their network is a ResNet-50; the boxes are the 984 of BBox_List_2017.csv.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_boxes.h"

#include <math.h>
#include <string.h>

#define TABLE_19 "wang2017_table19", "Wang et al. 2017, table 19, ChestX-ray14"
#define TABLE_4  "wang2017_table4", "Wang et al. 2017, table 4, ChestX-ray8"
#define TABLE_7  "wang2017_table7", "Wang et al. 2017, table 7, ChestX-ray8"

const struct published_boxes published_boxes[PUBLISHED_BOXES] = {
    {TABLE_7, BOX_IOU, {0.6888, 0.9383, 0.6601, 0.7073, 0.4000, 0.1392, 0.6333, 0.3775}},
    {TABLE_7, BOX_IOU + 2, {0.2444, 0.4589, 0.3006, 0.2764, 0.1529, 0.0379, 0.1666, 0.1326}},
    {TABLE_7, BOX_IOU + 4, {0.0500, 0.1780, 0.1111, 0.0650, 0.0117, 0.0126, 0.0333, 0.0306}},
    {TABLE_4, BOX_IOBB, {0.7277, 0.9931, 0.7124, 0.7886, 0.4352, 0.1645, 0.7500, 0.4591}},
    {TABLE_19, BOX_IOBB, {0.6222, 1, 0.7974, 0.9106, 0.5882, 0.1519, 0.8583, 0.5204}},
    {TABLE_19, BOX_IOBB + 1, {0.3944, 0.9863, 0.6339, 0.7967, 0.4588, 0.0506, 0.7083, 0.3367}},
    {TABLE_19, BOX_IOBB + 2, {0.1944, 0.9452, 0.4183, 0.6504, 0.3058, 0, 0.4833, 0.2653}},
    {TABLE_19, BOX_FALSE, {0.8293, 0.1768, 0.6148, 0.4919, 0.3933, 0.4685, 0.4360, 0.4543}},
};

double
published_value(const struct published_boxes *p, const char *finding)
{
    int k = finding_index(&findings_nih14, finding, strlen(finding));

    return k >= 0 && k < 8 ? p->value[k] : (double)NAN;
}
