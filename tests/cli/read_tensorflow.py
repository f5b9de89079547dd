#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read every record of a data set with TensorFlow, and print what is in it: a JSON object a line.

    read_tensorflow.py DATASET

For check_interop.py and check_scale.sh, which compare it with the sources.  Pixels are printed as SHA-256.
"""
import hashlib
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

FEATURES = {
    "image/raw": tf.io.FixedLenFeature([], tf.string),
    "image/height": tf.io.FixedLenFeature([], tf.int64),
    "image/width": tf.io.FixedLenFeature([], tf.int64),
    "image/channels": tf.io.FixedLenFeature([], tf.int64),
    "image/label": tf.io.FixedLenFeature([14], tf.int64),
    "image/weight": tf.io.FixedLenFeature([], tf.int64),
    "image/filename": tf.io.FixedLenFeature([], tf.string),
    "image/view": tf.io.FixedLenFeature([], tf.string),
    "patient/id": tf.io.FixedLenFeature([], tf.string),
    "patient/age": tf.io.FixedLenFeature([], tf.float32),
    "patient/sex": tf.io.FixedLenFeature([], tf.string),
    "record/slot": tf.io.FixedLenFeature([], tf.string),
}


def plain(key, value):
    """What JSON can hold."""
    value = value.numpy()
    if key == "image/raw":
        return hashlib.sha256(value).hexdigest()
    if key == "patient/age":
        return float(value) if value == value else None
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist()


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    for shard in manifest["shards"]:
        records = tf.data.TFRecordDataset(os.path.join(folder, shard["name"]), buffer_size=1 << 20)
        count = 0
        for data in records:
            example = tf.io.parse_single_example(data, FEATURES)
            values = {key: plain(key, value) for key, value in example.items()}
            print(json.dumps({"split": shard["split"], **values}))
            count += 1
        if count != shard["records"]:
            sys.exit(f"{shard['name']}: {count} records, {shard['records']} in the manifest")


if __name__ == "__main__":
    main()
