#!/usr/bin/env python3
"""chex-convert beside what people use today, on the same images, to the same size, on the same cores, in one run.

    bench/convert.py [--images FOLDER] [--count N] [--size N] [--runs N] [--threads N]

Without --images a synthetic set is made by chex-synth.  Every contender converts the same files --runs times, taking
turns, so that a noisy machine disturbs all alike; the table shows medians, and how many times slower than chex-convert.
Peers that are not installed are skipped by name: Pillow, OpenCV (cv2), TensorFlow.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import csv
import glob
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILDDIR", "build")


def tool(name):
    return os.path.join(BUILD, name)


# ---- peers: each takes (files, size, output folder, threads) --------------------------------------------------------


def pillow_one(job):
    from PIL import Image
    path, size, out = job
    with Image.open(path) as image:
        pixels = image.convert("L").resize((size, size), Image.BILINEAR).tobytes()
    with open(os.path.join(out, os.path.basename(path) + ".raw"), "wb") as f:
        f.write(pixels)


def opencv_one(job):
    import cv2
    cv2.setNumThreads(1)
    path, size, out = job
    image = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
    pixels = cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA).tobytes()
    with open(os.path.join(out, os.path.basename(path) + ".raw"), "wb") as f:
        f.write(pixels)


def run_pool(function, files, size, out, threads):
    jobs = [(f, size, out) for f in files]
    if threads == 1:
        for job in jobs:
            function(job)
        return
    with multiprocessing.get_context("fork").Pool(threads) as pool:
        pool.map(function, jobs, chunksize=8)


def pillow(files, size, out, threads):
    run_pool(pillow_one, files, size, out, threads)


def opencv(files, size, out, threads):
    run_pool(opencv_one, files, size, out, threads)


def tensorflow(files, size, out, threads):
    import tensorflow as tf

    def decode(path):
        image = tf.io.decode_png(tf.io.read_file(path), channels=1)
        return tf.cast(tf.image.resize(image, (size, size), antialias=True), tf.uint8)

    data = tf.data.Dataset.from_tensor_slices(files).map(decode, num_parallel_calls=threads)
    with tf.io.TFRecordWriter(os.path.join(out, "tf.tfrecord")) as writer:
        for image in data:
            raw = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.numpy().tobytes()]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"image": raw})).SerializeToString())


def chex(files, size, out, threads):
    folder = os.path.dirname(files[0])
    subprocess.run([tool("chex-convert"), "-q", "--progress", "none", "-i", folder, "-l", out + ".csv", "-o", out,
                    "--size", str(size), "--split", "none", "--tail", "short", "-j", str(threads), "--min-size", "1"],
                   check=True)


CONTENDERS = [("chex-convert", chex, None), ("OpenCV", opencv, "cv2"), ("Pillow", pillow, "PIL"),
              ("TensorFlow", tensorflow, "tensorflow")]

# ---- the run ---------------------------------------------------------------------------------------------------------


def available(module):
    if module is None:
        return True
    code = subprocess.run([sys.executable, "-c", f"import {module}"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode
    return code == 0


def time_one(function, files, size, threads):
    """Seconds, in a process of its own: imports and start-up are warmed up before the clock starts."""
    receive, send = multiprocessing.Pipe(False)

    def child():
        with tempfile.TemporaryDirectory() as folder:
            for part, name in ((files[:2], "warm"), (files, "out")):
                out = os.path.join(folder, name)
                os.mkdir(out)
                with open(out + ".csv", "w") as f:
                    rows = csv.writer(f)
                    rows.writerow(["Image Index", "Finding Labels", "Patient ID"])
                    rows.writerows([os.path.basename(p), "No Finding", os.path.basename(p).split("_")[0]]
                                   for p in (files if name == "out" else part))
                begun = time.perf_counter()
                if name == "out" or function is not chex:
                    function(part, size, out, threads)
                took = time.perf_counter() - begun
        send.send(took)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    return receive.recv() if process.exitcode == 0 else None


def stages(files, size):
    """Medians of three runs of bench-stages, milliseconds an image."""
    runs = []
    for _ in range(3):
        text = subprocess.run([tool("bench-stages"), str(size), *files], check=True, capture_output=True,
                              text=True).stdout
        runs.append(dict((line.split()[0], float(line.split()[1])) for line in text.splitlines()))
    return {name: statistics.median(r[name] for r in runs) for name in runs[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", default=os.environ.get("BENCH_IMAGES"))
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        images = os.path.join(folder, "images")
        if options.images:
            # Links under as many names as asked for: each is read and decoded anew.
            os.mkdir(images)
            real = sorted(glob.glob(os.path.join(options.images, "*.png")))
            for i in range(options.count):
                os.symlink(os.path.abspath(real[i % len(real)]), os.path.join(images, f"{i + 1:08d}_000.png"))
        else:
            subprocess.run([tool("chex-synth"), "-q", "-n", str(options.count), "-o", folder], check=True)
        files = sorted(glob.glob(os.path.join(images, "*.png")))
        compare(options, files)


def compare(options, files):
    print(f"{len(files)} images to {options.size}x{options.size}, {options.threads} thread(s), medians of {options.runs}")
    here = [c for c in CONTENDERS if available(c[2])]
    for name, _, module in CONTENDERS:
        if not available(module):
            print(f"skip {name}: this Python has no {module}")
    took = {name: [] for name, _, _ in here}
    for _ in range(options.runs):
        for name, function, _ in here:
            seconds = time_one(function, files, options.size, options.threads)
            if seconds is not None:
                took[name].append(seconds / len(files) * 1e3)
    ours = statistics.median(took["chex-convert"])
    print(f"\n{'contender':<16}{'ms an image':>12}{'images/s':>10}{'ratio':>8}")
    for name in took:
        if took[name]:
            median = statistics.median(took[name])
            print(f"{name:<16}{median:>12.2f}{1e3 / median:>10.0f}{median / ours:>8.2f}")
    part = stages(files[:64], options.size)
    print(f"\n{'stage':<16}{'ms an image':>12}{'of floor':>10}   (CPU time of one thread; floor: ISA-L's inflate)")
    for name, value in part.items():
        print(f"{name:<16}{value:>12.3f}{value / part['floor']:>10.2f}")
    print(f"{'conversion':<16}{ours:>12.3f}{ours / part['floor']:>10.2f}   (wall time, from above)")


if __name__ == "__main__":
    main()
