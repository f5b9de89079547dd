#!/usr/bin/env python3
"""How training scales to 256 GPUs, by the model of scale_model.py; no GPU is needed.

    bench/scale.py                         all tables
    bench/scale.py --markdown              the same, as doc/design/ranks.md has them
    bench/scale.py --svg doc/scale.svg     the picture
    bench/scale.py --case [--gpus 1,4,16] [--rate R] [--batch B] [--node G] [--inside LINK] [--outside LINK]
                   [--adapters A] [--wire fp32|bf16] [--bucket MB] [--last MB] [--input R] [--host S] [--layers FILE]
                                           a job of your own: what each part of a step takes

--rate: images a second of one GPU, without data wait.  --input: what the host gives each GPU.  --host: seconds an epoch
that more ranks do not shorten.  --layers: CSV of measured layers, from the first to the last: name, parameters, forward
and backward in seconds of a batch; it takes the place of --rate.  Every figure is modelled unless its column says
published.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import csv
import math
import os
from dataclasses import replace

import scale_model as model
from scale_model import LINKS, MB, Job, Machine

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GPUS = (1, 4, 8, 16, 32, 64, 128, 256)
V100 = Machine(4, LINKS["NVLink V100"], LINKS["EDR"])
H200 = Machine(8, LINKS["NVLink H200"], LINKS["NDR"])
SMALL_LAST = 1.6 * MB

# ---- the published jobs --------------------------------------------------------------------------------------------


def published_points(study, column):
    """The points of a study by the number of GPUs; chex-inspect scaling --reference shows the same file."""
    path = os.path.join(SOURCE, "tools", "inspect", "scaling", "published.csv")
    with open(path, encoding="utf-8", newline="") as file:
        return {int(row["gpus"]): float(row[column]) for row in csv.DictReader(file) if row["study"] == study}


# Dell, "Training an AI Radiologist using Distributed Deep Learning with Nvidia GPUs" (knowledge base 000124388), and
# github.com/dellemc-hpc-ai/ai-radiologist-GPU: C4140 with 4 V100 SXM2 and one EDR adapter, TensorFlow 1.12, Horovod
# 0.16.4, NCCL 2.4.7; img/s by the number of GPUs.  The job scripts skip the evaluation.  Seconds x img/s is 10 x 77,871
# images for each count.  Horovod 0.16 starts sums every 5 ms.
DELL_RATES = published_points("dell", "images_per_second")
DELL = Job(V100, rate=DELL_RATES[1], micro=1, cycle=5e-3, tail=0, update=0, train=77_871, judged=0)
# RWTH Aachen's analysis of ResNet-50 on BigEarthNet by Score-P: parallel efficiency by the number of GPUs.  It rises
# with the number of GPUs, so no model of this file describes it.
RWTH_EFFICIENCY = published_points("rwth", "parallel_efficiency")


def dell_speedup(ranks, contention=0.0):
    """Host contention: each further GPU of a node makes a step longer by this share, e.g. decoding on shared cores."""
    return model.speedup(DELL, ranks) / (1 + contention * (min(ranks, DELL.machine.gpus) - 1))


def fitted_contention():
    """The contention with the least sum of squared relative errors over Dell's points."""
    def error(contention):
        return sum((dell_speedup(n, contention) * DELL_RATES[1] / rate - 1) ** 2 for n, rate in DELL_RATES.items())
    return min((i / 1000 for i in range(1001)), key=error)


# ---- ours ----------------------------------------------------------------------------------------------------------

# Rates: modelled (doc/design/gpu.md), never measured.  Host, measured on a virtual machine with 2 cores, seconds of one
# core, 11,212 images:
BOOTSTRAP = 0.102    # 1,000 replicates
RANKING = 0.0029     # sorting, of 14 findings
INTERVALS = 0.0023   # of 30 rows of replicates
ALIKE = 0.0038       # what no thread shares: scores into their order 0.0033, values and thresholds 0.0005
TELL = 0.0025        # what rank 0 does alone; measured when it also wrote histograms and curves
THREADS = 8          # of a rank; assumption: such nodes have ten cores for each GPU
MEETINGS = 20        # from the last step of an epoch to the first of the next, as the code has them
# The copy of the arenas: 84 MB over PCIe 3 (modelled), then in memory (0.018 s, measured as "save" in metrics.jsonl
# when it was not hidden); that the one does not overlap the other is an assumption.
SNAPSHOT = 84 * MB / LINKS["PCIe 3"].bandwidth + 0.018
# What a thread writes: a checkpoint 0.20 s, and of an epoch that is the best so far best.safetensors 0.11 s and the
# predictions 0.04 s.
WRITING, BEST = 0.20, 0.15
HOST = {"host": ALIKE + TELL, "threads": THREADS, "alike": ((RANKING, 14), (INTERVALS, 30)), "bootstrap": BOOTSTRAP,
        "meetings": MEETINGS, "snapshot": SNAPSHOT, "writing": WRITING + BEST}
OURS = Job(V100, rate=2040, **HOST)
HIDDEN = replace(OURS, last=SMALL_LAST, host=0, alike=(), bootstrap=0, meetings=0, snapshot=0, writing=0)
VARIANTS = (
    ("four buckets of 7 MB, fp32", OURS),
    ("the same, bf16 on the wire", replace(OURS, wire=2)),
    ("two buckets of 14 MB, fp32", replace(OURS, bucket=14 * MB)),
    ("a small last bucket, fp32", replace(OURS, last=SMALL_LAST)),
    ("a small last bucket, bf16", replace(OURS, last=SMALL_LAST, wire=2)),
)
FASTER = replace(OURS, rate=2670, last=SMALL_LAST)
NEW = Job(H200, rate=9980, last=SMALL_LAST, update=7e-5, **HOST)
LINES = (
    ("V100, NVLink and EDR", V100),
    ("V100, NVLink and HDR", Machine(4, LINKS["NVLink V100"], LINKS["HDR"])),
    ("V100, PCIe and EDR", Machine(4, LINKS["PCIe 3"], LINKS["EDR"])),
    ("V100, PCIe and 10 GbE", Machine(4, LINKS["PCIe 3"], LINKS["10 GbE"])),
)


def percent(value):
    return f"{100 * value:.1f} %"


def published():
    contention = fitted_contention()
    yield f"| Dell, GPUs | img/s, published | times one GPU | modelled | off | host contention {contention:.3f} | off |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for ranks, rate in DELL_RATES.items():
        said, plain, fitted = rate / DELL_RATES[1], dell_speedup(ranks), dell_speedup(ranks, contention)
        yield (f"| {ranks} | {rate:,.2f} | {said:.2f} | {plain:.2f} | {100 * (plain / said - 1):+.1f} % | "
               f"{fitted:.2f} | {100 * (fitted / said - 1):+.1f} % |")
    yield ""
    yield "| RWTH, GPUs | parallel efficiency, published |"
    yield "|---:|---:|"
    for ranks, value in RWTH_EFFICIENCY.items():
        yield f"| {ranks} | {value:.2f} |"


def ours():
    yield "| V100, EDR, 2,040 img/s, batch 64 | MB sent a step | exposed at 64 | " + \
        " | ".join(map(str, GPUS[1:])) + " |"
    yield "|---|---:|---:|" + 7 * "---:|"
    for name, job in VARIANTS:
        one = model.step(job, 64)
        yield (f"| {name} | {one['bytes'] / MB:.1f} | {1e3 * one['exposed']:.2f} ms | " +
               " | ".join(percent(model.step_efficiency(job, n)) for n in GPUS[1:]) + " |")


def others():
    yield "| a small last bucket, fp32 | img/s of one | 4 | 8 | 16 | 64 | 256 | 16, bf16 | 64, bf16 |"
    yield "|---|---:|" + 7 * "---:|"
    rows = [(name, replace(OURS, machine=machine, last=SMALL_LAST)) for name, machine in LINES]
    rows += [("V100, EDR, a faster step", FASTER), ("V100, EDR, batch 128", replace(HIDDEN, batch=128, micro=128)),
             ("H200, 8 a node, one NDR", NEW),
             ("H200, 8 a node, eight NDR", replace(NEW, machine=replace(H200, adapters=8))),
             ("the same, batch 256", replace(NEW, machine=replace(H200, adapters=8), batch=256, micro=256, rate=11580))]
    for name, job in rows:
        half = replace(job, wire=2)
        yield (f"| {name} | {job.rate:,.0f} | " +
               " | ".join(percent(model.step_efficiency(job, n)) for n in (4, 8, 16, 64, 256)) + " | " +
               " | ".join(percent(model.step_efficiency(half, n)) for n in (16, 64)) + " |")


def epochs():
    yield "| an epoch of 78,484 images and its evaluation | 1 | 4 | 16 | 64 | 256 |"
    yield "|---|---:|---:|---:|---:|---:|"
    job = replace(OURS, last=SMALL_LAST)
    found = {n: model.epoch(job, n) for n in (1, 4, 16, 64, 256)}
    for name, key in (("steps", "train"), ("evaluation, shared by the ranks", "judged"),
                      ("bootstrap, shared by the ranks", "bootstrap"), ("what no rank shares", "host"),
                      ("meetings", "met"), ("waiting for the copy or the disk", "saved"), ("all", "total")):
        yield f"| {name}, s | " + " | ".join(f"{e[key]:.3f}" for e in found.values()) + " |"
    drawn = model.bootstrap(job, 1)
    for name, kind in (("efficiency", job), ("with bf16 on the wire", replace(job, wire=2)),
                       ("if no thread shared what all ranks do alike", replace(job, threads=1)),
                       ("if all waited for the copy", replace(job, host=job.host + SNAPSHOT, snapshot=0)),
                       ("if all waited for the files of a best model, too",
                        replace(job, host=job.host + 2 * SNAPSHOT + BEST, snapshot=0, writing=WRITING)),
                       ("if nothing were left but steps and scoring", HIDDEN),
                       ("if rank 0 made the bootstrap alone", replace(job, host=job.host + drawn, bootstrap=0)),
                       ("if rank 0 judged alone, too",
                        replace(job, host=job.host + drawn, bootstrap=0, judging="one"))):
        yield f"| {name} | " + " | ".join(percent(model.epoch_efficiency(kind, n)) for n in found) + " |"


def doubts():
    yield "| if an assumption is wrong | 16 | 64 |"
    yield "|---|---:|---:|"
    job = replace(OURS, last=SMALL_LAST)
    for name, change in (("as above", {}), ("a rank's steps deviate by 2 %, not 0.5 %", {"jitter": 0.02}),
                         ("sums slow backward by 15 %, not 5 %", {"contention": 0.15}),
                         ("inference is 3 times as fast as training, not 3.45", {"judge_rate": 3}),
                         ("inference is 4 times as fast", {"judge_rate": 4}),
                         ("ring alone", {"algorithm": "ring"})):
        yield (f"| {name} | {percent(model.step_efficiency(replace(job, **change), 16))} | "
               f"{percent(model.step_efficiency(replace(job, **change), 64))} |")


TABLES = (("Published", published), ("Ours", ours), ("Other links, other GPUs", others),
          ("An epoch", epochs), ("Doubts", doubts))


def tables(markdown):
    for title, rows in TABLES:
        yield f"\n{'**' + title + '**' if markdown else title}\n"
        yield from rows()


# ---- the picture ---------------------------------------------------------------------------------------------------

STYLE = ("text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;fill:#16191d}"
         ".d{fill:#50575f}.m{text-anchor:middle}.e{text-anchor:end}.t{font-size:19px;font-weight:600}.g{stroke:#d5d9de}"
         ".a{stroke:#16191d}")
SERIES = (  # name, colour, dashes, value, last number of GPUs
    ("ours, steps, small last bucket", "#0072b2", "", lambda n: model.step_efficiency(HIDDEN, n), 256),
    ("ours, steps, four buckets of 7 MB", "#0072b2", "5 4", lambda n: model.step_efficiency(OURS, n), 256),
    ("ours, epochs with all", "#56777f", "2 3",
     lambda n: model.epoch_efficiency(replace(OURS, last=SMALL_LAST), n), 256),
    ("ours by PCIe and 10 GbE, steps", "#6b727a", "",
     lambda n: model.step_efficiency(replace(HIDDEN, machine=LINES[3][1]), n), 256),
    ("Dell, TensorFlow and Horovod", "#b34a00", "", lambda n: dell_speedup(n) / n, 64),
    ("the same, with host contention fitted", "#b34a00", "5 4", lambda n: dell_speedup(n, fitted_contention()) / n, 64),
)
POINTS = (
    ("Dell, published", "#b34a00", [(n, rate / n / DELL_RATES[1]) for n, rate in DELL_RATES.items()]),
    ("RWTH, published", "#8a5a9e", list(RWTH_EFFICIENCY.items())),
)
LEFT, TOP, WIDTH, HEIGHT = 70, 70, 560, 400


def place(ranks, value):
    return LEFT + WIDTH * math.log2(ranks) / 8, TOP + HEIGHT * (1 - value)


def picture():
    yield '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 530" width="960" height="530" role="img">'
    title = "Parallel efficiency of training DenseNet-121, modelled; circles: published"
    yield f"<title>{title}</title>\n<style>{STYLE}</style>\n" + '<rect width="960" height="530" fill="#fff"/>'
    yield f'<text x="20" y="34" class="t">{title}</text>'
    for tenth in range(0, 11, 2):
        _, y = place(1, tenth / 10)
        yield f'<path class="g" d="M{LEFT} {y:.1f}h{WIDTH}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="e d">{10 * tenth} %</text>'
    for power in range(9):
        x, y = place(1 << power, 0)
        yield f'<path class="a" d="M{x:.1f} {y:.1f}v5"/>'
        yield f'<text x="{x:.1f}" y="{y + 21:.1f}" class="m d">{1 << power}</text>'
    what = "GPUs (V100; ours and Dell 4 a node, RWTH 2; EDR between nodes)"
    yield f'<text x="{LEFT + WIDTH / 2:.1f}" y="{TOP + HEIGHT + 45}" class="m d">{what}</text>'
    for row, (name, colour, dashes, value, last) in enumerate(SERIES):
        points = " ".join("{:.1f},{:.1f}".format(*place(1 << p, value(1 << p))) for p in range(last.bit_length()))
        line = f'fill="none" stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dashes}"' if dashes else "")
        yield f'<polyline {line} points="{points}"/>'
        yield f'<path {line} d="M660 {TOP + 16 + 26 * row}h36"/>'
        yield f'<text x="706" y="{TOP + 20 + 26 * row}">{name}</text>'
    for row, (name, colour, points) in enumerate(POINTS, len(SERIES)):
        mark = f'r="5" fill="#fff" stroke="{colour}" stroke-width="2.5"'
        for ranks, value in points:
            x, y = place(ranks, value)
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" {mark}/>'
        yield f'<circle cx="678" cy="{TOP + 16 + 26 * row}" {mark}/>'
        yield f'<text x="706" y="{TOP + 20 + 26 * row}">{name}</text>'
    yield "</svg>"


# ---- a job of your own ---------------------------------------------------------------------------------------------


def case(a):
    machine = Machine(a.node, LINKS[a.inside], LINKS[a.outside], a.adapters)
    job = Job(machine, rate=a.rate, batch=a.batch, micro=a.batch, wire={"fp32": 4, "bf16": 2}[a.wire],
              bucket=a.bucket * MB, last=a.last * MB, input_rate=a.input, host=a.host)
    if a.layers:
        job = model.with_layers(job, a.layers)
    parts = ("forward", "backward", "exposed", "update", "straggler", "data", "total")
    yield "| GPUs | " + " | ".join(f"{p}, ms" for p in parts) + " | img/s | steps | epochs |"
    yield "|---:|" + (len(parts) + 3) * "---:|"
    for ranks in a.gpus:
        one = model.step(job, ranks)
        yield (f"| {ranks} | " + " | ".join(f"{1e3 * one[p]:.2f}" for p in parts) +
               f" | {ranks * job.batch / one['total']:,.0f} | {percent(model.step_efficiency(job, ranks))}"
               f" | {percent(model.epoch_efficiency(job, ranks))} |")


def positive(text):
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


def whole(text):
    return int(positive(int(text)))


def counts(text):
    return [whole(number) for number in text.split(",")]


def measured(path):
    """Layers of a CSV file."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    except OSError as err:
        raise argparse.ArgumentTypeError(str(err)) from err
    if not rows or any(len(row) != 4 for row in rows):
        raise ValueError(path)
    return [(name, int(count), positive(there), positive(back)) for name, count, there, back in rows]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--markdown", action="store_true")
    p.add_argument("--svg")
    p.add_argument("--case", action="store_true")
    p.add_argument("--gpus", type=counts, default=list(GPUS))
    p.add_argument("--rate", type=positive, default=OURS.rate)
    p.add_argument("--batch", type=whole, default=64)
    p.add_argument("--node", type=whole, default=4)
    p.add_argument("--inside", choices=LINKS, default="NVLink V100")
    p.add_argument("--outside", choices=LINKS, default="EDR")
    p.add_argument("--adapters", type=whole, default=1)
    p.add_argument("--wire", choices=("fp32", "bf16"), default="fp32")
    p.add_argument("--bucket", type=positive, default=7)
    p.add_argument("--last", type=float, default=0)
    p.add_argument("--input", type=positive, default=float("inf"))
    p.add_argument("--host", type=float, default=0)
    p.add_argument("--layers", type=measured)
    return p.parse_args()


def main():
    a = arguments()
    if a.svg:
        with open(a.svg, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in picture())
        return
    for line in case(a) if a.case else tables(a.markdown):
        print(line)


if __name__ == "__main__":
    main()
