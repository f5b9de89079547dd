/*
 * torch_file.h - opens weights of either format: safetensors, or a file of torch.save() (.pth, .pt, .pth.tar)
 *
 * A file of torch.save() becomes the same struct as a safetensors file: a list of tensors with their offsets.  Its
 * values are read at these offsets later.  Two formats of PyTorch are read:
 *     since 1.6    a zip: PREFIX/data.pkl is a pickle, PREFIX/data/KEY the bytes of a storage
 *     before       five pickles (two numbers, the machine, the object, the keys of the storages), and then for each
 *                  key the 64-bit number of its values, and these
 * The oldest, a tar (before 0.1.10), is refused with the command that converts it.
 *
 * pickle.h runs the pickles: no code of the file runs, and all it can hold is tensors and plain values.  The tensors
 * may be in a dictionary under "state_dict", "model_state_dict" or "model"; other keys are ignored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_TORCH_FILE_H
#define CHEX_TRAIN_TORCH_FILE_H

#include "checkpoint/safetensors.h"

#define TORCH_TENSORS    65536u /* DenseNet-121 has 727 */
#define TORCH_NAME_BYTES 512u   /* of a tensor */

/*
 * Open a file of weights, whose first bytes decide the format.  Close and release *out with safetensors_close(), also
 * after a failure.  A file of torch.save() has no metadata.
 * Errors of safetensors_open(), pickle_run() and zip_members_read(); CHEX_ERR_UNSUPPORTED also for big-endian values;
 * CHEX_ERR_DAMAGED also for a storage that is missing, too short, or has another checksum; CHEX_ERR_LIMIT also for more
 * than TORCH_TENSORS tensors, or a name of more than TORCH_NAME_BYTES bytes
 */
enum chex_status weights_open(int folder_fd, const char *path, struct safetensors *out, struct chex_error *err);

#endif
