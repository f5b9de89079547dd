# SPDX-License-Identifier: Apache-2.0
"""A data set of chex-convert as NumPy arrays."""
import concurrent.futures
import hashlib
import operator
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional, Union, overload

import numpy as np

from ._manifest import TEXTS, find_split, read_manifest, refuse_replaced
from ._maps import Path, map_shard, shard_path, text_path
from ._texts import read_texts
from ._where import select
from .errors import DamagedError, InputError, UsageError

Array = Any  # numpy.ndarray: its type has parameters only from NumPy 1.20 on
BLOCK = 1 << 20


class Record(NamedTuple):
    """One image with what is known of it."""

    image: Array  # (height, width) uint8, read-only, 0 is black
    label: Array  # (findings,) uint8: 0, 1, or 255 for unknown
    name: str
    patient: str
    age: float  # years, NaN if unknown
    sex: str  # M, F or U
    view: str
    split: str
    slot: str


def _selection(index: Any) -> Any:
    """An index of several images: a slice, or an array of numbers or of a mask."""
    if isinstance(index, slice):
        return index
    found: Array = np.asarray(index)
    if found.size == 0 and found.dtype != np.bool_:
        found = found.astype(np.int64)
    if found.ndim != 1 or (found.dtype != np.bool_ and found.dtype.kind not in "iu"):
        raise UsageError("an index is a number, a slice, a list of numbers, or a mask; images() takes no single number")
    return found


class Dataset:
    """The images of a data set, or of one split of it, without padding records.

    folder: what `chex-convert -o` wrote.  split: train, val, test, or another name of its manifest; default: all.
    where: only matching images, by the texts of `chex-inspect list --where`; of several texts, each must match.

    data[5] is a Record.  data[10:20], data[list_of_indices] and data[mask] are a Dataset of these images.  images()
    copies many images into one array.  labels, ages, names and so on are arrays with a value for each image.

    The shards are mapped into memory when they are first used, and then IncompatibleError says that the data set was
    replaced since it was opened.  All Datasets of a process share the maps.  A Dataset can be pickled, and used after a
    fork and by several threads.  Checksums are compared only by verify().  Columns such as labels come from all shards
    of the images: if these are not in the page cache, the system reads most of their bytes."""

    def __init__(self, folder: Path, split: Optional[str] = None,
                 where: Union[str, Sequence[str], None] = None) -> None:
        self.folder = os.path.abspath(text_path(folder))
        self._manifest = read_manifest(self.folder)
        self._open: dict[int, tuple[Array, Array]] = {}
        self._columns: dict[str, Array] = {}
        self.places = self._list(split)
        if where is not None:
            mask = select(where, self.findings, self.splits, self._values)
            self.places, self._columns = self.places[mask], {k: v[mask] for k, v in self._columns.items()}

    # ---- what the manifest says ----------------------------------------------------------------------------------

    @property
    def manifest(self) -> dict[str, Any]:
        """manifest.json, see chex-shard(5)."""
        return self._manifest.raw

    @property
    def findings(self) -> tuple[str, ...]:
        """The names of the findings, in the order of the labels."""
        return self._manifest.findings

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits of the data set."""
        return tuple(s.name for s in self._manifest.splits)

    @property
    def id(self) -> str:
        """The data set id."""
        return self._manifest.dataset_id

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of an image."""
        return self._manifest.height, self._manifest.width

    # ---- records -------------------------------------------------------------------------------------------------

    def _list(self, split: Optional[str]) -> Array:
        """(shard, record) of each image; only shards with padding records are read."""
        first, count = 0, len(self._manifest.shards)
        if split is not None:
            found = find_split(self._manifest, split)
            if found is None:
                raise UsageError(f"'{self.folder}' has no split '{split}'; there are {', '.join(self.splits)}")
            first, count = found.first, found.shards
        places: list[Array] = [np.empty((0, 2), np.int32)]
        for i in range(first, first + count):
            shard = self._manifest.shards[i]
            rows = np.arange(shard.records, dtype=np.int32)
            if shard.images < shard.records:
                rows = rows[self._shard(i)["weight"] == 1]
                if len(rows) != shard.images:
                    raise DamagedError(f"the shard '{shard.name}' has {len(rows)} images, the manifest says "
                                       f"{shard.images}; chex-inspect check --full names the damaged records")
            places.append(np.stack([np.full_like(rows, i), rows], axis=1))
        return np.concatenate(places)

    def _map(self, shard: int) -> tuple[Array, Array]:
        """The records of a shard and their images, mapped.  What users get is read-only."""
        found = self._open.get(shard)
        if found is None:
            mapped = map_shard(self.folder, self._manifest, shard)
            records: Array = np.frombuffer(mapped, self._manifest.dtype)
            images = records["image"]
            records.flags.writeable = False
            found = self._open[shard] = (records, images)
        return found

    def mapped_images(self, shard: int) -> Array:
        """The images of a shard (records, height, width), padding records included.  Do not write to them."""
        return self._map(shard)[1]

    def _shard(self, shard: int) -> Array:
        return self._map(shard)[0]

    def __getstate__(self) -> dict[str, Any]:
        """A process that was not forked maps the shards itself."""
        return {**self.__dict__, "_open": {}}

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Record]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: Union[slice, Sequence[int], Array]) -> "Dataset": ...

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (int, np.integer)) and not isinstance(index, (bool, np.bool_)):
            return self._record(operator.index(index))
        index = _selection(index)
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, places=self.places[index], _open=self._open,
                              _columns={name: column[index] for name, column in self._columns.items()})
        return found

    def _record(self, index: int) -> Record:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)} images")
        shard, row = (int(n) for n in self.places[index])
        record = self._shard(shard)[row]
        texts = {name: record[name] for name in TEXTS if name in record.dtype.names}
        if len(texts) < len(TEXTS):
            texts.update(self._read_texts(shard, row))
        view, patient, name = (texts[t].decode("utf-8", "replace") for t in TEXTS)
        return Record(record["image"], record["label"], name, patient, float(record["age"]),
                      record["sex"].decode("utf-8", "replace"), view, self._manifest.shards[shard].split,
                      record["slot"].decode("ascii", "replace"))

    def images(self, indices: Union[Sequence[int], Array, None] = None, out: Optional[Array] = None) -> Array:
        """A copy of these images (default: all) in one array (n, height, width) of uint8, or in out."""
        places = self.places if indices is None else self.places[_selection(indices)]
        if out is None:
            out = np.empty((len(places), *self.shape), np.uint8)
        elif out.shape != (len(places), *self.shape) or out.dtype != np.uint8:
            raise UsageError(f"out is not an array of uint8 with the shape {(len(places), *self.shape)}")
        opened = self._open
        for target, (shard, row) in zip(out, places.tolist()):
            target[...] = (opened[shard] if shard in opened else self._map(shard))[1][row]
        return out

    # ---- columns -------------------------------------------------------------------------------------------------

    def _read_texts(self, shard: int, row: int) -> dict[str, bytes]:
        begin = self._manifest.dtype.fields["slot"][1] + 28  # type: ignore[index]
        where = f"'{self._manifest.shards[shard].name}' record {row}"
        record = self._shard(shard)[row:row + 1].view(np.uint8)
        return read_texts(record[begin:].tobytes(), 0, where)  # what is before the texts is not copied

    def _read_column(self, name: str) -> Array:
        """A field of all images, read shard by shard."""
        order = np.argsort(self.places[:, 0], kind="stable")
        shards, begins = np.unique(self.places[order, 0], return_index=True)
        ends = [*begins.tolist()[1:], len(order)]
        fixed = name in (self._manifest.dtype.names or ())
        parts: list[Array] = []
        for shard, begin, end in zip(shards.tolist(), begins.tolist(), ends):
            rows = self.places[order[begin:end], 1]
            if fixed:
                parts.append(self._shard(shard)[name][rows])
            else:
                parts.append(np.array([self._read_texts(shard, row)[name] for row in rows.tolist()], dtype=np.bytes_))
        if not parts:
            form = self._manifest.dtype[name] if fixed else np.dtype("S1")
            return np.empty((0, *form.shape), form.base)
        joined = np.concatenate(parts)
        out = np.empty_like(joined)
        out[order] = joined
        return out

    def _values(self, name: str) -> Array:
        """The values of a field; texts as str."""
        if name == "split":
            names = np.array([s.split for s in self._manifest.shards], dtype=np.str_)
            return names[self.places[:, 0]]
        if name not in self._columns:
            column = self._read_column(name)
            if column.dtype.kind == "S":
                # decode() makes an empty column one of floats in NumPy 1
                column = np.char.decode(column, "utf-8", "replace") if column.size else np.empty(0, np.str_)
            column.flags.writeable = False
            self._columns[name] = column
        return self._columns[name]

    @property
    def labels(self) -> Array:
        """(n, findings) uint8: 0, 1, or 255 for unknown."""
        return self._values("label")

    @property
    def ages(self) -> Array:
        """(n,) float32: years, NaN if unknown."""
        return self._values("age")

    @property
    def sexes(self) -> Array:
        """(n,) texts: M, F, or U for unknown."""
        return self._values("sex")

    @property
    def views(self) -> Array:
        """(n,) texts: PA, AP and so on, U for unknown."""
        return self._values("view")

    @property
    def names(self) -> Array:
        """(n,) texts: the file names of the images."""
        return self._values("filename")

    @property
    def patients(self) -> Array:
        """(n,) texts: the ids of the patients."""
        return self._values("patient")

    @property
    def split_names(self) -> Array:
        """(n,) texts: the split of each image."""
        return self._values("split")

    # ---- checksums -----------------------------------------------------------------------------------------------

    def _sha256(self, shard: int) -> str:
        path = shard_path(self.folder, self._manifest.shards[shard])
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as f:
                refuse_replaced(self.folder, self._manifest)
                for block in iter(lambda: f.read(BLOCK), b""):
                    digest.update(block)
        except OSError as e:
            raise InputError(f"cannot read the shard '{path}': {e.strerror or e}") from e
        return digest.hexdigest()

    def verify(self, threads: int = 4) -> None:
        """Compare the SHA-256 of each shard that has images of this Dataset with the manifest.

        DamagedError: some differ; its message names them.  Every byte of these shards is read."""
        shards = np.unique(self.places[:, 0]).tolist()
        with concurrent.futures.ThreadPoolExecutor(max(threads, 1)) as pool:
            found = list(pool.map(self._sha256, shards))
        wrong = [self._manifest.shards[s].name for s, digest in zip(shards, found)
                 if digest != self._manifest.shards[s].sha256]
        if wrong:
            raise DamagedError(f"{len(wrong)} of {len(shards)} shards in '{self.folder}' do not have the SHA-256 of "
                               f"the manifest: {', '.join(wrong[:5])}{', ...' if len(wrong) > 5 else ''}")
