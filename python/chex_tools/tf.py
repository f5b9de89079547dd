# SPDX-License-Identifier: Apache-2.0
"""Reads the shards with TensorFlow.

    import chex_tools.tf
    train = chex_tools.tf.dataset("shards", "train", batch_size=64, shuffle=True)
    model.fit(train)
"""
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from ._manifest import TEXTS, find_split, read_manifest
from ._maps import Path, shard_path, text_path
from .errors import UsageError

HEADER = 12  # bytes of a record before its data, which TFRecordDataset removes


def dataset(folder: Path, split: str, *, batch_size: Optional[int] = None,
            shuffle: bool = False, seed: Optional[int] = None, buffer: int = 1024, about: bool = False,
            checksums: bool = False) -> Any:
    """A tf.data.Dataset of the images of a split: image, label; without padding records.

    image       (height, width, 1) uint8
    label       (findings,) float32; NaN for unknown
    about       a third element: a dict of age, sex, slot, and of view, patient and filename as far as their sizes are
                constant in the data set
    batch_size  batches instead of single images; the last one may have fewer
    shuffle     shuffle the shards, read several at a time, and shuffle the images of a buffer; with seed in the same
                order in every run
    checksums   compare the checksum of each record (TFRecordDataset); a damaged one raises tf.errors.DataLossError"""
    root = text_path(folder)
    manifest = read_manifest(root)
    found = find_split(manifest, split)
    if found is None:
        raise UsageError(f"'{root}' has no split '{split}'; there are {', '.join(s.name for s in manifest.splits)}")
    paths = [shard_path(root, s) for s in manifest.shards[found.first:found.first + found.shards]]
    fields: Any = manifest.dtype.fields
    names = [name for name in ("age", "sex", "slot", *TEXTS) if name in fields]
    cut = HEADER if checksums else 0

    def field(record: Any, name: str) -> Any:
        form, offset = fields[name][:2]
        return tf.strings.substr(record, offset - cut, form.itemsize)

    def parse(record: Any) -> Any:
        """Every field has a constant offset, so no protocol buffers are parsed."""
        image = tf.reshape(tf.io.decode_raw(field(record, "image"), tf.uint8), [manifest.height, manifest.width, 1])
        label = tf.cast(tf.io.decode_raw(field(record, "label"), tf.uint8), tf.float32)
        label = tf.where(label == 255, tf.constant(np.nan, tf.float32), label)
        label = tf.ensure_shape(label, [len(manifest.findings)])
        if not about:
            return image, label
        texts = {name: field(record, name) for name in names if name != "age"}
        age = tf.io.decode_raw(field(record, "age"), tf.float32, little_endian=True)[0]
        return image, label, {"age": age, **texts}

    def records(path: Any) -> Any:
        if checksums:
            return tf.data.TFRecordDataset(path)
        return tf.data.FixedLengthRecordDataset(path, manifest.dtype.itemsize)

    def is_image(record: Any) -> Any:
        return tf.io.decode_raw(field(record, "weight"), tf.uint8)[0] == 1

    many = tf.data.AUTOTUNE
    files = tf.data.Dataset.from_tensor_slices(paths)
    if shuffle:
        files = files.shuffle(len(paths), seed=seed)
        read = files.interleave(records, cycle_length=8, num_parallel_calls=many, deterministic=seed is not None)
    else:
        read = files.interleave(records, cycle_length=1)
    read = read.filter(is_image)
    if shuffle:
        read = read.shuffle(buffer, seed=seed)
    images = read.map(parse, num_parallel_calls=many, deterministic=not shuffle or seed is not None)
    images = images.apply(tf.data.experimental.assert_cardinality(found.images))
    return images.prefetch(many) if batch_size is None else images.batch(batch_size).prefetch(many)
