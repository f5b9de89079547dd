/*
 * input.h - the constants that turn an image into the input of the network, for C and for CUDA
 *
 * Gray levels 0 .. 255 become (level / 255 - mean[c]) / deviation[c], c = 0 .. 2.  The numbers are initialisers, so
 * that GPU kernels can use them as constants (train/cuda/) and other code as arrays (batch.h).  crop.h describes how
 * images are rotated and brightened, and batch.h how two of them are mixed.
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

/* The units of struct crop. */
#define CROP_ONE  (1 << 30)
#define CROP_GAIN (1 << 16)

/* Levels are mixed with weights in units of 1 / MIX_ONE. */
#define MIX_ONE (1 << 16)

/*
 * Positions in a source image are in units of 2^-31 pixels: half a pixel times CROP_ONE.  CROP_OFFSET, 2^17 pixels, is
 * added, so that all are positive.  Interpolation uses 11 bits of the fraction, so weights of pixels have 22 bits.
 */
#define CROP_FRACTION 11
#define CROP_SHIFT    (31 - CROP_FRACTION)
#define CROP_OFFSET   (1LL << 48)

#endif
