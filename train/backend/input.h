/*
 * input.h - converts gray levels to the input of the network
 *
 * Gray levels 0 .. 255 become (level / 255 - mean[c]) / deviation[c], c = 0 .. 2.  The numbers are initialisers, so
 * that GPU kernels can use them as constants (train/cuda/) and other code as arrays (batch.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_INPUT_H
#define CHEX_TRAIN_INPUT_H

/* ImageNet's, as in torchvision. */
#define INPUT_CHANNELS 3
#define INPUT_MEAN             \
    {                          \
        0.485f, 0.456f, 0.406f \
    }
#define INPUT_DEVIATION        \
    {                          \
        0.229f, 0.224f, 0.225f \
    }

#endif
