# SPDX-License-Identifier: Apache-2.0
"""The maps of a network by PyTorch, as HiResCAM (Draelos and Carin 2020), for check_maps.py.

    hires_cam.py MODEL.safetensors PIXELS.npy OUT.npy

PIXELS is uint8 [images][side][side].  OUT is float64 [images][findings][height][width]: the gradient of each logit by
the last features, times these features, summed over the channels, times the number of cells.  The last features are
the output of norm5 of a DenseNet, before its ReLU, and the output of layer4 of resnet50.  So nothing here knows the
formula of chex-predict.
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


def network_of(state):
    """The network with these weights, its features, and what makes logits of them."""
    if "fc.bias" in state:
        network = torchvision.models.resnet50(num_classes=len(state["fc.bias"]))
        network.load_state_dict(state)
        layers = list(network.double().eval().children())
        return torch.nn.Sequential(*layers[:-2]), lambda features: layers[-1](features.mean((2, 3)))
    shape = {"growth_rate": 16, "block_config": (4, 4, 4), "num_init_features": 32}
    if "features.denseblock4.denselayer1.norm1.weight" in state:
        shape = {"growth_rate": 32, "block_config": (6, 12, 24, 16), "num_init_features": 64}
    network = torchvision.models.DenseNet(num_classes=len(state["classifier.bias"]), **shape)
    network.load_state_dict(state)
    network.double().eval()
    return network.features, lambda features: network.classifier(features.relu().mean((2, 3)))


def main(model, pixels, out):
    forward, head = network_of(dict(tensors(model)))
    gray = torch.tensor(numpy.load(pixels)).double()[:, None].repeat(1, 3, 1, 1) / 255
    mean, deviation = (torch.tensor(v).double()[:, None, None] for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    features = forward((gray - mean) / deviation).detach().requires_grad_()
    logits = head(features)
    maps = []
    for k in range(logits.shape[1]):
        gradient, = torch.autograd.grad(logits[:, k].sum(), features, retain_graph=True)
        maps.append((gradient * features).sum(1) * features.shape[2] * features.shape[3])
    numpy.save(out, torch.stack(maps, 1).detach().numpy())


main(*sys.argv[1:])
