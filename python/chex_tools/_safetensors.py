# SPDX-License-Identifier: Apache-2.0
"""Reads safetensors files with NumPy.  Every offset is checked before it is used."""
import os
import struct
from typing import Any, BinaryIO

import numpy as np

from ._manifest import parse_json, refuse_special
from .errors import DamagedError, InputError

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
         "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?", "BF16": "<u2"}
MOST_HEADER = 100_000_000  # that of the format
Array = Any


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _tensor(name: str, about: Any, data: Array, path: str) -> tuple[Array, tuple[int, int]]:
    """A tensor as a part of the data, and its place there."""
    if not isinstance(about, dict):
        raise DamagedError(f"'{path}': {name}: not an object")
    form, shape, place = (about.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(form, str) or form not in TYPES:
        raise DamagedError(f"'{path}': {name}: unknown dtype {form!r}")
    if not isinstance(shape, list) or len(shape) > 32 or not all(_is_count(n) for n in shape):
        raise DamagedError(f"'{path}': {name}: not a shape")
    if not isinstance(place, list) or len(place) != 2 or not all(_is_count(n) for n in place):
        raise DamagedError(f"'{path}': {name}: not two offsets")
    begin, end = place
    size = np.dtype(TYPES[form]).itemsize
    for n in shape:
        size *= n
    if not begin <= end <= len(data) or end - begin != size:
        raise DamagedError(f"'{path}': {name}: its offsets are outside the file or do not agree with its shape")
    try:
        array = data[begin:end].view(TYPES[form]).reshape(shape)
    except (ValueError, OverflowError):  # a size of 0, and another one that is too large
        raise DamagedError(f"'{path}': {name}: not a shape") from None
    if form == "BF16":  # NumPy has no such type; as float32 every value is the same
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array, (begin, end)


def _header(f: BinaryIO, path: str) -> tuple[dict[str, Any], dict[str, str], int]:
    """What the file says of its tensors, its metadata, and the size of the tensors."""
    size = os.fstat(f.fileno()).st_size
    head = f.read(8)
    length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
    if not 2 <= length <= min(size - 8, MOST_HEADER):
        raise DamagedError(f"'{path}': not a safetensors file, or cut off")
    header = parse_json(f.read(length), path)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise DamagedError(f"'{path}': __metadata__: not texts")
    return header, metadata, size - 8 - length


def read_metadata(path: str) -> dict[str, str]:
    """The metadata of a file, without its tensors."""
    refuse_special(path)
    try:
        with open(path, "rb") as f:
            return _header(f, path)[1]
    except OSError as e:
        raise InputError(f"cannot read '{path}': {e.strerror or e}") from e


def read_safetensors(path: str) -> tuple[dict[str, Array], dict[str, str]]:
    """The tensors of a file by name, and its metadata; bfloat16 becomes float32."""
    refuse_special(path)
    try:
        with open(path, "rb") as f:
            header, metadata, size = _header(f, path)
            data: Array = np.empty(size, np.uint8)
            if f.readinto(data) != len(data):
                raise DamagedError(f"'{path}': shorter than it was")
    except OSError as e:
        raise InputError(f"cannot read '{path}': {e.strerror or e}") from e
    tensors, places = {}, []
    for name, about in header.items():
        tensors[name], place = _tensor(name, about, data, path)
        places.append(place)
    at = 0
    for begin, end in sorted(places):
        if begin != at:
            raise DamagedError(f"'{path}': tensors overlap, or there are bytes of no tensor")
        at = end
    if at != len(data):
        raise DamagedError(f"'{path}': there are bytes of no tensor")
    return tensors, metadata
