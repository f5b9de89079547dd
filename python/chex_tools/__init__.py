# SPDX-License-Identifier: Apache-2.0
"""Reads the data sets of chex-convert and the runs of chex-train, and calls the programs.

    from chex_tools import Dataset
    train = Dataset("shards", "train", where="Effusion,Mass")
    train[0].image, train.labels, train.ages, train.images([0, 1, 2])

This module needs NumPy.  chex_tools.torch is for PyTorch, and chex_tools.tf for TensorFlow.
"""
from ._dataset import Dataset, Record
from ._programs import convert, find_program, inspect
from ._run import Run, read_run
from ._version import __version__
from .errors import (
    ChexError,
    DamagedError,
    IncompatibleError,
    InputError,
    InUseError,
    OutputError,
    StoppedError,
    UsageError,
)
from .order import epoch_order, order_hash

__all__ = [
    "ChexError", "DamagedError", "Dataset", "InUseError", "IncompatibleError", "InputError", "OutputError", "Record",
    "Run", "StoppedError", "UsageError", "__version__", "convert", "epoch_order", "find_program", "inspect",
    "order_hash", "read_run",
]
