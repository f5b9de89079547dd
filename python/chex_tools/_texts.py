# SPDX-License-Identifier: Apache-2.0
"""Reads the texts of a record whose sizes are not constant, and so are no fields of the dtype."""

from ._manifest import TEXTS
from .errors import DamagedError

KEYS = {b"image/view": TEXTS[0], b"patient/id": TEXTS[1], b"image/filename": TEXTS[2]}


def _message(data: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Where the content of a field with this tag begins and ends."""
    size = shift = 0
    if at >= end or data[at] != tag:
        raise ValueError
    at += 1
    while True:
        if at >= end or shift > 28:
            raise ValueError
        byte = data[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    if size > end - at:
        raise ValueError
    return at, at + size


def read_texts(data: bytes, at: int, where: str) -> dict[str, bytes]:
    """The texts of a record; its map entries go on at this offset, see chex-shard(5)."""
    found: dict[str, bytes] = {}
    try:
        while len(found) < len(KEYS):
            begin, at = _message(data, at, len(data) - 4, 0x0A)
            key_begin, key_end = _message(data, begin, at, 0x0A)
            name = KEYS.get(data[key_begin:key_end])
            if name:
                begin, end = _message(data, key_end, at, 0x12)
                begin, end = _message(data, begin, end, 0x0A)
                begin, end = _message(data, begin, end, 0x0A)
                found[name] = data[begin:end]
    except ValueError:
        raise DamagedError(f"{where}: the texts of the record are damaged") from None
    return found
