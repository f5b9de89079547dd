# SPDX-License-Identifier: Apache-2.0
"""Reads the folder of a run of chex-train, see chex-train(1), FILES."""
import csv
import io
import json
import os
import re
from typing import Any

import numpy as np

from ._manifest import parse_integer, parse_json, read_file
from ._maps import Path, text_path
from ._safetensors import read_metadata, read_safetensors
from .errors import DamagedError, IncompatibleError, InputError, UsageError

MOST_BYTES = 1 << 30
TEXTS = ("image", "patient", "split", "sex", "view")


def _table(columns: dict[str, Any]) -> Any:
    """A pandas.DataFrame if pandas is installed, else the dict of NumPy arrays."""
    try:
        import pandas
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


def _column(values: list[Any]) -> Any:
    """Numbers as floats, or as whole numbers if all are; None becomes NaN; True and False.  Others stay objects."""
    if all(isinstance(v, bool) for v in values):
        return np.array(values, dtype=np.bool_)
    if all(isinstance(v, int) and not isinstance(v, bool) and abs(v) < 1 << 63 for v in values):
        return np.array(values, dtype=np.int64)
    if all(v is None or (isinstance(v, (int, float)) and not isinstance(v, bool)) for v in values):
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _signed(name: str, array: Any) -> Any:
    """Unsigned whole numbers of more than 8 bits as signed ones that hold them."""
    if array.dtype.kind != "u" or array.dtype.itemsize == 1:
        return array
    if array.dtype.itemsize == 8 and (array >> np.uint64(63)).any():
        raise IncompatibleError(f"{name}: numbers above 9223372036854775807 need PyTorch 2.3")
    return array.astype(np.int32 if array.dtype.itemsize == 2 else np.int64)


def _flat(line: dict[str, Any]) -> dict[str, Any]:
    """{"parts": {"forward": 1}} as {"parts.forward": 1}."""
    found = {}
    for key, value in line.items():
        if isinstance(value, dict):
            found.update({f"{key}.{inner}": v for inner, v in value.items()})
        else:
            found[key] = value
    return found


class Run:
    """A run of chex-train: read_run() makes it.

    Tables are a pandas.DataFrame if pandas is installed, else a dict of NumPy arrays with the same columns."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.path.abspath(text_path(folder))
        self.info: dict[str, Any] = self._json("run.json")

    def _path(self, name: str, what: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,80}", name):
            raise UsageError(f"{what} is not '{name}'")
        return os.path.join(self.folder, name)

    def _weights_path(self, name: str) -> str:
        return self._path(f"{name}.safetensors", "a checkpoint")

    def _json(self, name: str) -> dict[str, Any]:
        path = self._path(name, "a file of a run")
        return parse_json(read_file(path, MOST_BYTES, "the run"), path)

    @property
    def findings(self) -> tuple[str, ...]:
        """The names of the findings, in the order of the network's outputs."""
        name = "best"
        if not os.path.exists(self._weights_path(name)):  # it is written after the first validation
            name = next(iter(self.checkpoints), name)
        names = self.weights_metadata(name).get("labels")
        if not names:
            raise DamagedError(f"'{self._weights_path(name)}': no labels in its metadata")
        return tuple(names.split(","))

    def metrics(self, kind: str = "epoch") -> Any:
        """A table of the lines of metrics.jsonl of this kind: step, epoch, evaluation, times or note.

        An object in a line becomes columns such as parts.forward; lists stay lists."""
        path = os.path.join(self.folder, "metrics.jsonl")
        text = read_file(path, MOST_BYTES, "the metrics").decode("utf-8", "replace")
        lines = []
        for number, line in enumerate(text.split("\n")[:-1], 1):  # a run may be writing the last line
            try:
                found = json.loads(line, parse_int=parse_integer)
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise DamagedError(f"'{path}': line {number}: not an object of JSON")
            if found.get("kind") == kind:
                lines.append(_flat(found))
        names = list(dict.fromkeys(name for line in lines for name in line if name != "kind"))
        return _table({name: _column([line.get(name) for line in lines]) for name in names})

    def predictions(self, split: str = "test") -> Any:
        """A table of predictions-SPLIT.csv: image, patient, split, age, sex, view, prob_X and label_X.

        Probabilities and labels are float32; an unknown label or age is NaN."""
        path = self._path(f"predictions-{split}.csv", "a split")
        text = read_file(path, MOST_BYTES, "the predictions").decode("utf-8", "replace")
        try:
            rows = list(csv.reader(io.StringIO(text, newline="")))
        except csv.Error as e:
            raise DamagedError(f"'{path}': not a table of predictions: {e}") from None
        if not rows or tuple(rows[0][:3]) != TEXTS[:3] or any(len(row) != len(rows[0]) for row in rows):
            raise DamagedError(f"'{path}': not a table of predictions")
        if len(set(rows[0])) < len(rows[0]):
            raise DamagedError(f"'{path}': a column occurs twice")
        columns: dict[str, Any] = {}
        for name, values in zip(rows[0], zip(*rows[1:]) if rows[1:] else [()] * len(rows[0])):
            if name in TEXTS:
                columns[name] = np.array(values, dtype=object)
                continue
            try:
                columns[name] = np.array([v or "nan" for v in values], dtype=object).astype(np.float32)
            except ValueError:
                raise DamagedError(f"'{path}': {name}: not numbers") from None
        return _table(columns)

    def evaluation(self, split: str = "test") -> dict[str, Any]:
        """The numbers of metrics-SPLIT.json."""
        return self._json(f"metrics-{split}.json")

    @property
    def checkpoints(self) -> list[str]:
        """The names of the checkpoints, the newest first."""
        path = os.path.join(self.folder, "latest")
        if not os.path.exists(path):
            return []
        text = read_file(path, 1 << 20, "the list of checkpoints").decode("utf-8", "replace")
        return [line.split()[0] for line in text.splitlines() if line.strip()]

    def weights(self, name: str = "best") -> dict[str, Any]:
        """The state_dict of the best model, or of a checkpoint; load_state_dict(strict=True) takes it.

        Tensors if torch is installed, else NumPy arrays."""
        tensors, _ = read_safetensors(self._weights_path(name))
        try:
            import torch
        except ImportError:
            return tensors
        if not hasattr(torch, "uint64"):  # PyTorch before 2.3
            tensors = {key: _signed(key, array) for key, array in tensors.items()}
        return {key: torch.from_numpy(array) for key, array in tensors.items()}

    def weights_metadata(self, name: str = "best") -> dict[str, str]:
        """The metadata of these weights: labels, thresholds, the state of the run."""
        return read_metadata(self._weights_path(name))


def read_run(folder: Path) -> Run:
    """Open the folder of a run of chex-train.  InputError: it is none."""
    if not os.path.isdir(text_path(folder)):
        raise InputError(f"'{text_path(folder)}' is not a folder")
    return Run(folder)
