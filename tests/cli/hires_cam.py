# SPDX-License-Identifier: Apache-2.0
"""The maps of densenet-micro by PyTorch, as HiResCAM at norm5 (Draelos and Carin 2020), for check_maps.py.

    hires_cam.py MODEL.safetensors PIXELS.npy OUT.npy

PIXELS is uint8 [images][side][side].  OUT is float64 [images][findings][height][width]: the gradient of each logit by
the output of norm5, times this output, summed over the channels, times the number of cells.  norm5 comes before the
ReLU, so nothing here knows the formula of chex-predict.
"""
import json
import struct
import sys

import numpy
import torch
import torchvision


def tensors(path):
    with open(path, "rb") as file:
        blob = file.read()
    size, = struct.unpack_from("<Q", blob)
    kinds = {"F32": numpy.float32, "I64": numpy.int64}
    for name, entry in json.loads(blob[8:8 + size]).items():
        if name != "__metadata__":
            first, end = (8 + size + at for at in entry["data_offsets"])
            yield name, torch.tensor(numpy.frombuffer(blob[first:end], kinds[entry["dtype"]]).reshape(entry["shape"]))


def main(model, pixels, out):
    state = dict(tensors(model))
    network = torchvision.models.DenseNet(growth_rate=16, block_config=(4, 4, 4), num_init_features=32,
                                          num_classes=len(state["classifier.bias"]))
    network.load_state_dict(state)
    network = network.double().eval()
    gray = torch.tensor(numpy.load(pixels)).double()[:, None].repeat(1, 3, 1, 1) / 255
    mean, deviation = (torch.tensor(v).double()[:, None, None] for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    features = network.features((gray - mean) / deviation).detach().requires_grad_()
    logits = network.classifier(features.relu().mean((2, 3)))
    maps = []
    for k in range(logits.shape[1]):
        gradient, = torch.autograd.grad(logits[:, k].sum(), features, retain_graph=True)
        maps.append((gradient * features).sum(1) * features.shape[2] * features.shape[3])
    numpy.save(out, torch.stack(maps, 1).detach().numpy())


main(*sys.argv[1:])
