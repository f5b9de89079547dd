# SPDX-License-Identifier: Apache-2.0
"""Reads and checks manifest.json, see chex-shard(5).

Every number that this module uses is checked, so a damaged or hostile manifest gives an exception, and never a name
outside the folder or an offset outside a record.
"""
import hashlib
import json
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, Optional

import numpy as np

from .errors import ChexError, DamagedError, IncompatibleError, InputError

FORMAT = 1
NAME = "manifest.json"
MOST_BYTES = 64 << 20
MOST_STRIDE = 1 << 29
TEXTS = ("view", "patient", "filename")
FIXED = ("image", "label", "weight", "age", "sex", "slot")


class Shard(NamedTuple):
    """A shard of the manifest."""

    name: str
    split: str
    records: int
    images: int
    size: int
    sha256: str


class Split(NamedTuple):
    """A split: its shards are shards[first : first + shards] of the manifest."""

    name: str
    first: int
    shards: int
    images: int
    patients: int


class Manifest(NamedTuple):
    """What this module uses of a manifest; raw is all of it."""

    dataset_id: str
    height: int
    width: int
    dtype: "np.dtype[np.void]"
    findings: tuple[str, ...]
    splits: tuple[Split, ...]
    shards: tuple[Shard, ...]
    raw: dict[str, Any]
    sha256: str  # of the file
    signature: tuple[int, ...]  # device, inode, size and time of the file


class _Reader:
    """Values of one file; a fault names the file and the key."""

    def __init__(self, path: str) -> None:
        self.path = path

    def fault(self, where: str, wrong: str, kind: type[Exception] = DamagedError) -> NoReturn:
        raise kind(f"'{self.path}': {where}: {wrong}")

    def value(self, parent: Any, key: str, kind: type, where: str) -> Any:
        found = parent.get(key) if isinstance(parent, dict) else None
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            self.fault(f"{where}{key}", f"not {'a number' if kind is int else 'of type ' + kind.__name__}, or missing")
        return found

    def number(self, parent: Any, key: str, least: int, most: int, where: str = "") -> int:
        found: int = self.value(parent, key, int, where)
        if not least <= found <= most:
            self.fault(f"{where}{key}", f"{found} is not from {least} to {most}")
        return found

    def text(self, parent: Any, key: str, pattern: str, where: str = "") -> str:
        found: str = self.value(parent, key, str, where)
        if not re.fullmatch(pattern, found, re.ASCII):
            self.fault(f"{where}{key}", "not in the form of chex-shard(5)")
        return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def parse_integer(text: str) -> int:
    """For json: a number with thousands of digits is refused."""
    if len(text) > 20:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def parse_json(data: bytes, path: str) -> dict[str, Any]:
    """An object of JSON in UTF-8, without repeated keys."""
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_int=parse_integer,
                           parse_constant=_no_constant)
    except (ValueError, RecursionError) as e:
        raise DamagedError(f"'{path}': not JSON: {e}") from None
    if not isinstance(found, dict):
        raise DamagedError(f"'{path}': not an object of JSON")
    return found


def refuse_special(path: str) -> None:
    """A pipe or a device in place of a file would block, or never end."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"'{path}' is not a regular file")


def read_file(path: str, most: int, what: str) -> bytes:
    """The bytes of a small file."""
    refuse_special(path)
    try:
        with open(path, "rb") as f:
            data = f.read(most + 1)
    except OSError as e:
        raise InputError(f"cannot read {what} '{path}': {e.strerror or e}") from e
    if len(data) > most:
        raise DamagedError(f"'{path}': more than {most} bytes")
    return data


def _check_hash(data: bytes, raw: dict[str, Any], path: str) -> None:
    """manifest_sha256 is the last key, and covers the text before its line."""
    if "manifest_sha256" not in raw:
        return
    before = data.rstrip(b"\n").rsplit(b"\n", 2)[0] + b"\n"
    if hashlib.sha256(before).hexdigest() != raw["manifest_sha256"]:
        raise DamagedError(f"'{path}': does not have its manifest_sha256: it is damaged or was edited")


def _findings(r: _Reader, raw: dict[str, Any]) -> tuple[str, ...]:
    names = r.value(raw, "labels", list, "")
    if not 1 <= len(names) <= 254 or not all(isinstance(n, str) and re.fullmatch(r"[ -~]{1,64}", n) for n in names):
        r.fault("labels", "not 1 to 254 names of findings")
    if len(set(names)) < len(names):
        r.fault("labels", "a finding occurs twice")
    return tuple(names)


def _dtype(r: _Reader, raw: dict[str, Any], shape: tuple[int, int], findings: int) -> "np.dtype[np.void]":
    """The fields of a record: in order, without overlap, between the frame's header and its last checksum."""
    record, given = r.value(raw, "record", dict, ""), r.value(raw, "dtype", dict, "")
    stride = r.number(record, "stride", 64, MOST_STRIDE, "record.")
    names, formats, offsets = (r.value(given, key, list, "dtype.") for key in ("names", "formats", "offsets"))
    texts = names[len(FIXED):]
    if tuple(names[:len(FIXED)]) != FIXED or texts != [t for t in TEXTS if t in texts]:
        r.fault("dtype.names", "not the fields of chex-shard(5)")
    wanted = [f"\\({shape[0]},{shape[1]}\\)u1", f"\\({findings},\\)u1", "u1", "<f4", "S1", "S28"]
    wanted += ["S(?:[1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"] * len(texts)
    if len(formats) != len(names) or not all(
            isinstance(f, str) and re.fullmatch(w, f) for f, w in zip(formats, wanted)):
        r.fault("dtype.formats", "not those of chex-shard(5)")
    if len(offsets) != len(names) or not all(isinstance(o, int) and not isinstance(o, bool) for o in offsets):
        r.fault("dtype.offsets", "not a number for each name")
    used = 12
    for offset, form in zip(offsets, formats):
        if not used <= offset <= stride - 4:
            r.fault("dtype.offsets", "fields overlap, or are outside the record")
        used = offset + np.dtype(form).itemsize
    if used > stride - 4:
        r.fault("dtype.offsets", "a field ends outside the record")
    if given.get("itemsize") != stride or offsets[0] != record.get("pixel_offset"):
        r.fault("dtype", "does not agree with record")
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": stride})


def _shard(r: _Reader, given: Any, where: str, stride: int) -> Shard:
    records = r.number(given, "records", 1, 100000, where)
    shard = Shard(r.text(given, "name", "[A-Za-z0-9_-][A-Za-z0-9._-]{0,94}", where),
                  r.text(given, "split", "[a-z0-9_]{1,23}", where), records,
                  r.number(given, "images", 0, records, where), r.number(given, "size", 1, 1 << 62, where),
                  r.text(given, "sha256", "[0-9a-f]{64}", where))
    if shard.size != records * stride:
        r.fault(f"{where}size", f"not {records} records of {stride} bytes")
    return shard


def _check_splits(r: _Reader, splits: Sequence[Split], shards: Sequence[Shard]) -> None:
    """Splits follow each other, and have the shards and images that they say."""
    first = 0
    for split in splits:
        own = shards[split.first:split.first + split.shards]
        if split.first != first or len(own) != split.shards or any(s.split != split.name for s in own):
            r.fault(f"splits: {split.name}", "its shards are not those of the list of shards")
        if sum(s.images for s in own) != split.images:
            r.fault(f"splits: {split.name}", "its images are not those of its shards")
        first += split.shards
    if first != len(shards):
        r.fault("splits", "there are shards of no split")
    for what, names in (("splits", [s.name for s in splits]), ("shards", [s.name for s in shards])):
        if len(set(names)) < len(names):
            r.fault(what, "a name occurs twice")


def _signature(path: str) -> tuple[int, ...]:
    """What differs if another file has taken the place of this one."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def refuse_replaced(folder: str, manifest: Manifest) -> None:
    """IncompatibleError: the folder no longer has this manifest.  A copy of the same bytes is the same manifest.

    To be called when a shard is open: chex-convert removes a manifest before it replaces shards."""
    path = os.path.join(folder, NAME)
    if _signature(path) == manifest.signature:
        return
    try:
        same = hashlib.sha256(read_file(path, MOST_BYTES, "the manifest")).hexdigest() == manifest.sha256
    except ChexError:
        same = False
    if not same:
        raise IncompatibleError(f"the data set in '{folder}' was replaced, changed or removed since it was "
                                "opened: open it again")


def read_manifest(folder: str) -> Manifest:
    """Read and check the manifest of a data set.

    InputError: there is none.  IncompatibleError: a newer format.  DamagedError: damaged, edited or hostile."""
    path = os.path.join(folder, NAME)
    if os.path.isdir(folder) and not os.path.exists(path):
        raise InputError(f"'{folder}' has no {NAME}: no data set, or a conversion that is not complete")
    signature = _signature(path)  # before the file is read, so that it is never that of a later file
    data = read_file(path, MOST_BYTES, "the manifest")
    raw = parse_json(data, path)
    r = _Reader(path)
    if r.number(raw, "format", 1, 1 << 62) > FORMAT:
        r.fault("format", f"{raw['format']}, this chex_tools reads up to {FORMAT}", IncompatibleError)
    _check_hash(data, raw, path)
    record = r.value(raw, "record", dict, "")
    shape = (r.number(record, "height", 1, 16384, "record."), r.number(record, "width", 1, 16384, "record."))
    r.number(record, "channels", 1, 1, "record.")
    findings = _findings(r, raw)
    dtype = _dtype(r, raw, shape, len(findings))
    given = r.value(raw, "shards", list, "")
    if not 1 <= len(given) <= 99999:
        r.fault("shards", f"{len(given)} are not from 1 to 99999")
    shards = tuple(_shard(r, s, f"shards[{i}].", dtype.itemsize) for i, s in enumerate(given))
    splits = []
    for i, s in enumerate(r.value(raw, "splits", list, "")):
        where = f"splits[{i}]."
        splits.append(Split(r.text(s, "name", "[a-z0-9_]{1,23}", where), r.number(s, "first_shard", 0, 99999, where),
                            r.number(s, "shards", 1, 99999, where), r.number(s, "images", 0, 1 << 62, where),
                            r.number(s, "patients", 0, 1 << 62, where)))
    _check_splits(r, splits, shards)
    dataset_id = r.text(raw, "dataset_id", "[0-9a-f]{16}")
    return Manifest(dataset_id, *shape, dtype, findings, tuple(splits), shards, raw, hashlib.sha256(data).hexdigest(),
                    signature)


def find_split(manifest: Manifest, name: str) -> Optional[Split]:
    """The split of this name, or None."""
    return next((s for s in manifest.splits if s.name == name), None)
