/*
 * fake_cudnn.h - a cuDNN for the emulated GPU: a plain kernel computes the convolutions of cudnn_graph.h
 *
 * Descriptors are as strict as cuDNN's, or stricter: an attribute must belong to its kind of descriptor and have the
 * right type and count; all required attributes must be set when a descriptor is finalized, and none after that.
 * Strides are used as given.  The heuristics have four engines: 1 is not deterministic, 2 is Winograd, 3 needs 64 MiB
 * of workspace and 4 needs FAKE_CUDNN_WORKSPACE bytes, which it overwrites.
 *
 * From the environment:
 *     FAKE_CUDNN          "none": no library; "old": version 9.10.2; "no-device": it does not work here
 *     FAKE_CUDNN_REFUSE   "forward", "data", "add" (data that is added), "weights": kinds that no engine accepts
 *     FAKE_CUDNN_FAIL     "NAME COUNT STATUS": call COUNT of the function NAME fails with this status
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAKE_CUDNN_H
#define FAKE_CUDNN_H

#include <stdint.h>

#define FAKE_CUDNN_WORKSPACE 4096

#ifdef __cplusplus
extern "C" {
#endif

/* Convolutions run since the process began; recorded convolutions count once. */
struct fake_cudnn_counts {
    uint64_t forward, data, weights;
    uint64_t descriptors; /* that exist now */
};
struct fake_cudnn_counts fake_cudnn_count(void);

#ifdef __cplusplus
}
#endif

#endif
