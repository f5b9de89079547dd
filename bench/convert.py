#!/usr/bin/env python3
"""Compares chex-convert with similar programs: the same images, sizes and cores, in one run.

    bench/convert.py [--images FOLDER] [--count N] [--sizes N[,N...]] [--runs N] [--threads N[,N...]]
                     [--peers NAME,...] [--markdown]

Without --images, chex-synth makes a synthetic set.  With it, the 216th image and each 216th after it are RGBA.  Every
contender converts the same images --runs times.  The contenders take turns, so that a noisy machine disturbs all of
them alike.  Each run is pinned to as many cores as it has threads.

The first table is for one size (256, or the first of --sizes): medians of wall time and of the CPU time of all threads
and processes, and the ratio to chex-convert on loose files.  Sources are loose files, a .tar and a .tar.gz of them.
The peers read loose files; img2dataset-like also reads the archives: its Python worker processes fetch, shrink with
OpenCV and write tar shards.  "apart" is one chex-convert process per core, with one thread and a part of the images
each: the rate of the cores if they share nothing.

The second table has every size: CPU time from loose files with the first number of --threads, median and quartiles, and
the median of the ratios to the chex-convert run of the same turn.  Its last row is the ratio of chex-convert to the
floor: the time of ISA-L's inflate with its Adler-32 for the same images, which bench-stages measures in each turn.

All of it takes about 45 minutes on two quiet cores, and about 15 with --peers kornia-rs,OpenCV (estimated).

kornia-rs and imagecodecs only decode; OpenCV shrinks their images by area.  Peers that this Python cannot import are
skipped by name; bench/requirements.txt lists them.  --peers limits them.

--markdown prints the page doc/benchmarks.md.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import csv
import datetime
import glob
import io
import multiprocessing
import os
import platform
import resource
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

BUILD = os.environ.get("BUILDDIR", "build")


def tool(name):
    return os.path.abspath(os.path.join(BUILD, name))


# ---- peers: each takes (source, files, size, output folder, threads) -------------------------------------------------


def write_raw(out, path, pixels):
    with open(os.path.join(out, os.path.basename(path) + ".raw"), "wb") as f:
        f.write(pixels)


def pillow_one(job):
    from PIL import Image
    path, size, out = job
    with Image.open(path) as image:
        write_raw(out, path, image.convert("L").resize((size, size), Image.BILINEAR).tobytes())


def opencv_one(job):
    import cv2
    cv2.setNumThreads(1)
    path, size, out = job
    image = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
    write_raw(out, path, cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA).tobytes())


def shrink_by_area(pixels, path, size, out):
    """Shrinks with OpenCV; kornia-rs and imagecodecs have no resize by area."""
    import cv2
    cv2.setNumThreads(1)
    write_raw(out, path, cv2.resize(pixels, (size, size), interpolation=cv2.INTER_AREA).tobytes())


def imagecodecs_one(job):
    import imagecodecs
    path, size, out = job
    with open(path, "rb") as f:
        pixels = imagecodecs.png_decode(f.read())
    shrink_by_area(pixels if pixels.ndim == 2 else pixels[..., 0].copy(), path, size, out)


def kornia_one(job):
    import kornia_rs
    import numpy
    path, size, out = job
    pixels = numpy.ascontiguousarray(kornia_rs.io.read_image(path)[..., 0])
    shrink_by_area(pixels, path, size, out)


def run_pool(function, jobs, threads):
    if threads == 1:
        for job in jobs:
            function(job)
        return
    with multiprocessing.get_context("fork").Pool(threads) as pool:
        pool.map(function, jobs, chunksize=8)


def pillow(_source, files, size, out, threads):
    run_pool(pillow_one, [(f, size, out) for f in files], threads)


def opencv(_source, files, size, out, threads):
    run_pool(opencv_one, [(f, size, out) for f in files], threads)


def imagecodecs_png(_source, files, size, out, threads):
    run_pool(imagecodecs_one, [(f, size, out) for f in files], threads)


def kornia(_source, files, size, out, threads):
    run_pool(kornia_one, [(f, size, out) for f in files], threads)


def tensorflow(_source, files, size, out, threads):
    import tensorflow as tf

    def decode(path):
        image = tf.io.decode_png(tf.io.read_file(path), channels=1)
        return tf.cast(tf.image.resize(image, (size, size), antialias=True), tf.uint8)

    data = tf.data.Dataset.from_tensor_slices(files).map(decode, num_parallel_calls=threads)
    with tf.io.TFRecordWriter(os.path.join(out, "tf.tfrecord")) as writer:
        for image in data:
            raw = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.numpy().tobytes()]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"image": raw})).SerializeToString())


def shard_worker(job):
    """One shard as img2dataset makes it: decode, shrink, encode as PNG, add to a tar."""
    import cv2
    import numpy
    cv2.setNumThreads(1)
    number, images, size, out = job
    with tarfile.open(os.path.join(out, f"{number:05d}.tar"), "w") as shard:
        for name, data in images:
            if data is None:
                with open(name, "rb") as f:
                    data = f.read()
            image = cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_GRAYSCALE)
            image = cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA)
            encoded = cv2.imencode(".png", image)[1].tobytes()
            info = tarfile.TarInfo(os.path.basename(name))
            info.size = len(encoded)
            shard.addfile(info, io.BytesIO(encoded))


def members_of(path, files):
    if path is None:
        for name in files:
            yield name, None
        return
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            if member.isfile():
                yield member.name, archive.extractfile(member).read()


def shards_of(images, size, out):
    batch, number = [], 0
    for image in images:
        batch.append(image)
        if len(batch) == 64:
            yield number, batch, size, out
            batch, number = [], number + 1
    if batch:
        yield number, batch, size, out


def python_shards(source, files, size, out, threads):
    jobs = shards_of(members_of(source, files), size, out)
    if threads == 1:
        for job in jobs:
            shard_worker(job)
        return
    with multiprocessing.get_context("fork").Pool(threads) as pool:
        for _ in pool.imap_unordered(shard_worker, jobs):
            pass


def chex_command(source, labels, size, out, threads):
    return [tool("chex-convert"), "-q", "--progress", "none", "-i", source, "-l", labels, "-o", out, "--size",
            str(size), "--split", "none", "--tail", "short", "-j", str(threads), "--min-size", "1"]


def chex(source, files, size, out, threads):
    subprocess.run(chex_command(source or os.path.dirname(files[0]), out + ".csv", size, out, threads), check=True)


def apart(_source, files, size, out, threads):
    processes = []
    for i, core in enumerate(sorted(os.sched_getaffinity(0))[:threads]):
        part = f"{out}/{i}"
        write_labels(part + ".csv", files[i::threads])
        command = chex_command(os.path.dirname(files[0]), part + ".csv", size, part, 1)
        processes.append(subprocess.Popen(["taskset", "-c", str(core), *command]))
    if any(p.wait() != 0 for p in processes):
        sys.exit("chex-convert failed")


# (name, function, modules that it imports, sources)
CONTENDERS = [("chex-convert", chex, None, ("files", "tar", "tar.gz")),
              ("chex-convert, apart", apart, None, ("files",)),
              ("kornia-rs", kornia, "kornia_rs, cv2", ("files",)),
              ("imagecodecs", imagecodecs_png, "imagecodecs, cv2", ("files",)),
              ("OpenCV", opencv, "cv2", ("files",)),
              ("Pillow", pillow, "PIL", ("files",)),
              ("TensorFlow", tensorflow, "tensorflow", ("files",)),
              ("img2dataset-like", python_shards, "cv2", ("files", "tar", "tar.gz"))]
ONE_SIZE = (apart, python_shards)
STAGES_FILES = 67  # bench-stages decodes each of them 7 times in 6 ways

# ---- the run ---------------------------------------------------------------------------------------------------------


def available(module):
    if module is None:
        return True
    code = subprocess.run([sys.executable, "-c", f"import {module}"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode
    return code == 0


def write_labels(path, files):
    with open(path, "w", encoding="ascii") as f:
        rows = csv.writer(f)
        rows.writerow(["Image Index", "Finding Labels", "Patient ID"])
        rows.writerows([os.path.basename(p), "No Finding", os.path.basename(p).split("_")[0]] for p in files)


def cpu_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def time_one(function, source, files, size, threads):
    """(wall, CPU) seconds, in a process of its own, on as many cores as threads; imports are warmed up before."""
    receive, send = multiprocessing.Pipe(False)

    def child():
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "warm")
            os.mkdir(out)
            if function not in (chex, apart):
                function(None, files[:2], size, out, 1 if threads == 1 else threads)
            out = os.path.join(folder, "out")
            os.mkdir(out)
            write_labels(out + ".csv", files)
            begun, used = time.perf_counter(), cpu_seconds()
            function(source, files, size, out, threads)
            send.send((time.perf_counter() - begun, cpu_seconds() - used))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    return receive.recv() if process.exitcode == 0 else None


def run_stages(files, size):
    """{stage: CPU milliseconds an image} of one run of bench-stages."""
    text = subprocess.run([tool("bench-stages"), str(size), *files[:STAGES_FILES]], check=True, capture_output=True,
                          text=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines()}


def median_stages(parts):
    return {name: statistics.median(part[name] for part in parts) for name in parts[0]}


def is_rgba(path):
    with open(path, "rb") as f:
        return f.read(26)[25] == 6  # the colour type in the header


def mixed(paths, count):
    """`count` of the paths: gray ones, and one RGBA in 216, the reported share of ChestX-ray14 (519 of 112,120)."""
    gray = [p for p in paths if not is_rgba(p)] or paths
    rgba = [p for p in paths if is_rgba(p)] or gray
    return [rgba[i // 216 % len(rgba)] if i % 216 == 215 else gray[i % len(gray)] for i in range(count)]


def make_images(options, folder):
    images = os.path.join(folder, "images")
    if options.images:
        # Links under as many names as asked for: each is read and decoded anew.
        os.mkdir(images)
        real = sorted(glob.glob(os.path.join(options.images, "*.png")))
        for i, path in enumerate(mixed(real, options.count)):
            os.symlink(os.path.abspath(path), os.path.join(images, f"{i + 1:08d}_000.png"))
    else:
        subprocess.run([tool("chex-synth"), "-q", "-n", str(options.count), "-o", folder], check=True)
    return sorted(glob.glob(os.path.join(images, "*.png")))


def make_sources(folder, files):
    """{kind: path of the archive, None: loose files}; level 6, gzip's own default."""
    sources = {"files": None}
    for kind, mode, more in (("tar", "w", {}), ("tar.gz", "w:gz", {"compresslevel": 6})):
        sources[kind] = os.path.join(folder, f"images.{kind}")
        with tarfile.open(sources[kind], mode, dereference=True, **more) as archive:
            for path in files:
                archive.add(path, os.path.join("images", os.path.basename(path)))
    return sources


def measure(options, sources, files, here):
    """
    {(name, kind, threads, size): [(wall, CPU) milliseconds an image, None: failed]}, and the stages of each turn with
    the first number of threads
    """
    took, parts = {}, []
    for threads in options.threads:
        for _ in range(options.runs):
            if threads == options.threads[0]:
                parts.append(run_stages(files, options.size))
            for size in options.sizes:
                for name, function, _, kinds in here:
                    for kind in kinds if threads > 1 or function is not apart else ():
                        if size != options.size and (kind != "files" or function in ONE_SIZE or
                                                     threads != options.threads[0]):
                            continue
                        both = time_one(function, sources[kind], files, size, threads)
                        took.setdefault((name, kind, threads, size), []).append(
                            both and [s / len(files) * 1e3 for s in both])
    return took, parts


def of_one_size(options, took):
    """{(name, kind, threads): [(wall, CPU)]} of the size of the first table, without the runs that failed."""
    found = {key[:3]: [both for both in runs if both] for key, runs in took.items() if key[3] == options.size}
    return {key: runs for key, runs in found.items() if runs}


def size_cell(runs, ours):
    """Median, quartiles and ratio to chex-convert of the CPU times; '-': not measured, or all runs failed."""
    pairs = [(theirs[1], own[1]) for theirs, own in zip(runs, ours) if theirs and own]
    if not pairs:
        return "-"
    cpu = [theirs for theirs, _ in pairs]
    low, middle, high = statistics.quantiles(cpu, n=4, method="inclusive") if len(cpu) > 1 else cpu * 3
    return f"{middle:.2f} ({low:.2f}-{high:.2f}), {statistics.median(a / b for a, b in pairs):.2f} x"


def times_floor(runs, parts):
    """Median of the ratios of CPU time to the floor of the same turn; '-': all runs failed."""
    ratios = [both[1] / part["floor"] for both, part in zip(runs, parts) if both]
    return f"{statistics.median(ratios):.2f} x" if ratios else "-"


def print_sizes(options, took, parts, here):
    threads = options.threads[0]
    print("\nEvery size: CPU ms an image from loose files, threads: "
          f"{threads}. Median (quartiles), times chex-convert in the same turn:\n")
    print("| contender |" + "".join(f" {size} |" for size in options.sizes))
    print("|---|" + "---:|" * len(options.sizes))
    for name, function, _, _ in here:
        if function not in ONE_SIZE:
            cells = [size_cell(took[name, "files", threads, size], took["chex-convert", "files", threads, size])
                     for size in options.sizes]
            print(f"| {name} | {' | '.join(cells)} |")
    floor = statistics.median(part["floor"] for part in parts)
    cells = [times_floor(took["chex-convert", "files", threads, size], parts) for size in options.sizes]
    print(f"| chex-convert, compared with the floor of {floor:.2f} ms | {' | '.join(cells)} |")


def median_of(took, name, kind, threads, what=0):
    """Wall time, or with what = 1 CPU time."""
    return statistics.median(value[what] for value in took[name, kind, threads])


def rows_of(took):
    """(name, source, threads, median wall and CPU ms, images/s, ratio) in the order of measuring."""
    for name, kind, threads in took:
        wall = median_of(took, name, kind, threads)
        yield (name, kind, threads, wall, median_of(took, name, kind, threads, 1), 1e3 / wall,
               wall / median_of(took, "chex-convert", "files", threads))


def scaling(took):
    """(threads, times as fast as one thread, times as fast as one thread where as many processes work apart)"""
    for name, kind, threads in took:
        if name == "chex-convert" and kind == "files" and threads > 1 and (name, kind, 1) in took:
            one = median_of(took, name, kind, 1)
            yield threads, one / median_of(took, name, kind, threads), one / median_of(took, name + ", apart", kind,
                                                                                       threads)


def plain(options, files, took, parts, _here):
    print(f"{len(files)} images to {options.size}x{options.size}, medians of {options.runs}")
    print(f"\n{'contender':<21}{'source':<9}{'threads':>7}{'ms an image':>13}{'CPU ms':>9}{'images/s':>10}{'ratio':>8}")
    for name, kind, threads, wall, cpu, rate, ratio in rows_of(took):
        print(f"{name:<21}{kind:<9}{threads:>7}{wall:>13.2f}{cpu:>9.2f}{rate:>10.0f}{ratio:>8.2f}")
    for threads, gain, limit in scaling(took):
        print(f"\n{threads} threads: {gain:.2f} times as fast as one; {threads} processes apart: {limit:.2f}")
    part = median_stages(parts)
    ours = median_of(took, "chex-convert", "files", options.threads[0])
    print(f"\n{'stage':<18}{'ms an image':>12}{'of floor':>10}   (CPU time of one thread; floor: ISA-L's inflate)")
    for name, value in part.items():
        print(f"{name:<18}{value:>12.3f}{value / part['floor']:>10.2f}")
    print(f"{'conversion':<18}{ours:>12.3f}{ours / part['floor']:>10.2f}   (wall time, from above)")


def print_stages(options, took, parts):
    part = median_stages(parts)
    ours = median_of(took, "chex-convert", "files", options.threads[0])
    print("\nThe stages of one thread, in CPU time, beside the floor, which is ISA-L's inflate alone:\n")
    print("| stage | ms an image | times the floor |")
    print("|---|---:|---:|")
    for name, value in part.items():
        print(f"| {name} | {value:.3f} | {value / part['floor']:.2f} |")
    print(f"| conversion (wall time, from above) | {ours:.3f} | {ours / part['floor']:.2f} |")


def machine():
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{len(os.sched_getaffinity(0))} cores, {model}, {platform.system()} {platform.release()}"


def versions(here):
    found = [subprocess.run([tool("chex-convert"), "-V"], check=True, capture_output=True, text=True).stdout.strip()]
    titles = {"cv2": "OpenCV", "PIL": "Pillow", "tensorflow": "TensorFlow", "kornia_rs": "kornia-rs"}
    for module in sorted({one for _, _, m, _ in here if m for one in m.split(", ")}):
        code = f"import {module}; print({module}.__version__)"
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        found.append(f"{titles.get(module, module)} {done.stdout.strip()}")
    return ", ".join(found)


def png_bytes(files):
    return sum(os.stat(f).st_size for f in files) / len(files) / 1e3


def side_of(path):
    with open(path, "rb") as f:
        return struct.unpack(">II", f.read(24)[16:])


def page(options, files, took, parts, here):
    width, height = side_of(files[0])
    what = "images of ChestX-ray14" if options.images else "synthetic images (chex-synth)"
    print("# Benchmarks\n")
    print("How long chex-convert takes for an image, beside what people use today. Written by\n"
          "`bench/convert.py --markdown` (`make bench-convert`); measure on your own machine before you decide.\n")
    print(f"- date: {datetime.date.today().isoformat()}")
    print(f"- machine: {machine()}")
    print(f"- versions: {versions(here)}")
    print(f"- images: {len(files)} {what}, {width}x{height}, {png_bytes(files):.0f} kB on average, in the page cache;"
          f" first table: to {options.size}x{options.size}")
    print(f"- load: {os.getloadavg()[0]:.1f} at the end of the run")
    print(f"- medians of {options.runs} runs; contenders take turns; each run is pinned to as many cores as it has "
          "threads\n")
    print("| contender | source | threads | ms an image | CPU ms an image | images/s | times chex-convert |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, kind, threads, wall, cpu, rate, ratio in rows_of(took):
        print(f"| {name} | {kind} | {threads} | {wall:.2f} | {cpu:.2f} | {rate:.0f} | {ratio:.2f} |")
    for threads, gain, limit in scaling(took):
        print(f"\n{threads} threads are {gain:.2f} times as fast as one. {threads} processes of one thread each, with "
              f"a part\nof the images each, are {limit:.2f} times as fast as one: that is what these cores give.")
    print_stages(options, took, parts)
    for name, _, module, _ in CONTENDERS:
        if (name, module) not in {(n, m) for n, _, m, _ in here}:
            print(f"\nNot measured: {name}.")
    print("\nOpenCV, Pillow, kornia-rs and imagecodecs write bare pixels, one file an image; OpenCV shrinks the\n"
          "images of the last two. TensorFlow decodes and resizes in tf.data and writes\n"
          "TFRecord by Python; img2dataset-like is worker processes that decode and shrink by OpenCV and write tar\n"
          "shards of PNG files. Only chex-convert checks every checksum, reads its output back, and syncs it to the\n"
          "disk.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", default=os.environ.get("BENCH_IMAGES"))
    parser.add_argument("--count", type=int, default=1536)  # few make the ends of a run weigh
    parser.add_argument("--sizes", type=lambda s: [int(x) for x in s.split(",")], default=[128, 224, 256, 320, 512])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=lambda s: [int(x) for x in s.split(",")], default=[1, 2])
    parser.add_argument("--peers", type=lambda s: s.split(","), default=None)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.threads = [t for t in options.threads if t <= len(os.sched_getaffinity(0))] or [1]
    options.size = 256 if 256 in options.sizes else options.sizes[0]
    here = [c for c in CONTENDERS
            if available(c[2]) and (options.peers is None or c[2] is None or c[0] in options.peers)]
    for name, _, module, _ in CONTENDERS:
        if not available(module):
            print(f"skip {name}: this Python cannot import {module}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        files = make_images(options, folder)
        took, parts = measure(options, make_sources(folder, files), files, here)
        (page if options.markdown else plain)(options, files, of_one_size(options, took), parts, here)
        print_sizes(options, took, parts, here)


if __name__ == "__main__":
    main()
