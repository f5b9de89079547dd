#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast chex-train is on a GPU, beside PyTorch on the same device in the same run (make bench-gpu).

    gpu.py [--quick] [--device cuda] [--out FOLDER] [--budget SECONDS] [PART...]
    gpu.py --table FILE.json           the table of stored results; of bench.jsonl too, of a run that was cut off

Parts, in this order:
    machine   what is here: GPU, driver, versions
    rates     copy bandwidth and products of matrices: gpu-rates
    steps     chex-train's DenseNet-121 through its seam: batches, fp16 and bf16, training and inference, with graph and
              without (then each kernel is waited for: what a graph saves, and more), and with kernels that begin while
              the one in front still runs (--pdl)
    torch     PyTorch: eager, AMP, AMP with channels last, torch.compile, a CUDA graph; training and inference
    kernels   the time of each launch of a step beside the plan's own model: gpu-loop kernels, without a profiler
    ncu       bytes and time of each kind of kernel by Nsight Compute, beside the model; left out where it is not here

All of one run go into FOLDER/DATE-DEVICE.json and .md (-2, -3 where these exist), written whenever a part ends; FOLDER
is $OUT or bench/results/.  bench.jsonl, bench.log there (else in the build folder's gpu-results/) have each result when
it is known.  --quick takes ten minutes, all an hour and a half, of which PyTorch's compilers take most.  Each part has
a limit of its own; what was left out for want of time is listed.  machine is always the first part.
Exit status: 0 good, 1 something failed, 77 there is no GPU, or nothing could run.
"""
import argparse
import csv
import io
import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests", "cuda", "device"))
import gpu_results  # noqa: E402
from gpu_results import BUILD, Missing, ROOT, Results, facts_of, page_of, program, python_with, tool  # noqa: E402

MODEL = "densenet121"
# (what, precision, side, batch, last word of gpu-loop), the most important first
STEPS = [("train", "fp16", 224, 64, ""), ("train", "fp16", 224, 256, ""), ("train", "fp16", 224, 64, "pdl"),
         ("train", "bf16", 224, 64, ""), ("train", "bf16", 224, 256, ""), ("infer", "fp16", 224, 64, ""),
         ("infer", "fp16", 224, 256, ""), ("train", "fp16", 224, 64, "no-graph")]
MORE_STEPS = [(what, precision, 224, batch, "") for precision in ("fp16", "bf16") for what in ("train", "infer")
              for batch in (32, 64, 128, 256, 512)]
MORE_STEPS += [(what, "fp16", 224, batch, "pdl") for what in ("train", "infer") for batch in (32, 64, 256)]
MORE_STEPS += [("train", "fp16", 224, batch, "no-graph") for batch in (32, 64, 128, 256, 512)]
MORE_STEPS += [("train", "fp16", 256, batch, "") for batch in (64, 256)]
HOW = {"": "", "no-graph": " without graph", "pdl": " with PDL"}
# (variant of gpu_torch.py, side, batch, what)
PEERS = [("eager-fp16-nhwc", 224, 64, "train"), ("compile-fp16-nhwc", 224, 64, "train"),
         ("compile-fp16-nhwc", 224, 256, "train"), ("eager-fp16-nhwc", 224, 256, "train"),
         ("compile-fp16-nhwc", 224, 64, "infer"), ("eager-fp16-nhwc", 224, 64, "infer"),
         ("graph-fp16-nhwc", 224, 64, "train"), ("eager-tf32-nhwc", 224, 64, "train")]
BATCHES = (64, 256, 32, 128, 512)
MORE_PEERS = [(f"{kind}-fp16-nhwc", 224, batch, "train") for batch in BATCHES for kind in ("compile", "eager")]
MORE_PEERS += [("max-fp16-nhwc", 224, 256, "train"), ("max-fp16-nhwc", 224, 64, "train")]
MORE_PEERS += [(f"{kind}-fp16-nhwc", 224, batch, "infer") for batch in BATCHES for kind in ("compile", "eager")]
MORE_PEERS += [(f"{kind}-bf16-nhwc", 224, batch, "train") for batch in BATCHES for kind in ("compile", "eager")]
MORE_PEERS += [("max-fp16-nhwc", 224, batch, "train") for batch in (32, 128, 512)]
MORE_PEERS += [("graph-fp16-nhwc", 224, 256, "train"), ("eager-fp16-nchw", 224, 256, "train"),
               ("eager-tf32-nhwc", 224, 256, "train"), ("eager-fp32-nchw", 224, 64, "train"),
               ("compile-fp16-nhwc", 256, 64, "train"), ("compile-fp16-nhwc", 256, 256, "train")]
# (precision, batch) of the part kernels
LAUNCHES = [("fp16", 64)]
MORE_LAUNCHES = [("fp16", 64), ("fp16", 256), ("bf16", 64), ("fp16", 16)]
LIMITS = {True: {"machine": 20, "rates": 60, "steps": 130, "kernels": 30, "torch": 290, "ncu": 90},
          False: {"machine": 20, "rates": 60, "steps": 500, "kernels": 240, "torch": 4500, "ncu": 200}}
METRICS = ["dram__bytes.sum", "gpu__time_duration.sum"]
# Words of a kernel's name that its kind has not: the shape of its tiles, the type of its values.
SHAPE = re.compile(r"_(\d+(x\d+)*|fp16|bf16|tf32|float)(?=_|$)")
# A whole page takes longer than a page of ten minutes; max-autotune tries every kernel that it knows.
WAIT = {"max": 420}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", default=MODEL, help="of steps and ncu; PyTorch's is densenet121")
    parser.add_argument("--out", default=os.environ.get("OUT"))
    parser.add_argument("--budget", type=float, default=None)
    parser.add_argument("--seconds", type=float, default=None, help="of each measurement")
    parser.add_argument("--table", metavar="FILE", help="the table of stored results")
    parser.add_argument("part", nargs="*", help=" ".join(LIMITS[True]))
    o = parser.parse_args()
    if any(p not in LIMITS[True] for p in o.part):
        parser.error(f"parts are: {' '.join(LIMITS[True])}")
    o.budget = o.budget or (570 if o.quick else 5400)
    o.seconds = o.seconds if o.seconds is not None else 3 if o.quick else 5
    return o


# ---- parts -------------------------------------------------------------------------------------------------------

def take_machine(r, _):
    for what, words in gpu_results.machine_facts().items():
        r.record(what, "fact", value=words)


def take_rates(r, _):
    try:
        program("gpu-rates")
    except Missing:
        gpu_results.build_by_nvcc(r, "gpu-rates")
    done = r.run([program("gpu-rates")], None)
    if done.returncode == 77:
        raise Missing(done.stderr.strip())
    assert done.returncode == 0, done.stderr.strip()[-300:]
    row = r.run([program("gpu-rates"), "--table"], None)
    assert row.returncode == 0, row.stderr.strip()[-300:]
    r.record("row of plan/gpu.c", "fact", value=row.stdout.strip())
    for line in done.stdout.splitlines():
        found = json.loads(line)
        if "rate" in found:
            r.record(found.pop("rate"), "ok", **found)
        else:
            r.record("device", "fact", **found)


def take_steps(r, o):
    for what, precision, side, batch, how in STEPS if o.quick else MORE_STEPS:
        if o.device != "cuda":  # to try this program: small, and what the device has
            precision, side, batch = "auto", 32, batch // 32
        def measure(words=(what, precision, side, batch, how)):
            what, precision, side, batch, how = words
            done = r.run([program("gpu-loop", o.device), f"{o.device}:{precision}", o.model, side, batch, what,
                          o.seconds, *([how] if how else [])], None, 60)
            if done.returncode == 77:
                raise Missing(done.stderr.strip())
            assert done.returncode == 0, done.stderr.strip()[-300:]
            return json.loads(done.stdout)
        r.case(f"{what} {precision} {side} px batch {batch}{HOW[how]}", measure)


def take_kernels(r, o):
    for precision, batch in LAUNCHES if o.quick else MORE_LAUNCHES:
        words = ["fp16", o.model, 32, 2, 2] if o.device != "cuda" else [precision, o.model, 224, batch]
        try:
            found = gpu_results.measured_launches(r, o.device, *words)
        except AssertionError as e:
            r.record(f"{precision} batch {batch}", "FAIL", why=str(e))
            continue
        gpu_results.record_kernels(r, found)


def take_torch(r, o):
    python = python_with("torch", "torchvision")
    for variant, side, batch, what in PEERS if o.quick else MORE_PEERS + PEERS:
        case = f"{variant} {side} px batch {batch} {what}"
        if any(line["case"] == case for line in r.lines):
            continue
        def measure(words=(variant, side, batch, what)):
            # a compile that hangs takes no other with it
            done = r.run([python, os.path.join(HERE, "gpu_torch.py"), *words, o.seconds], None,
                         WAIT.get(words[0].split("-")[0], 150))
            if done.returncode == 77:
                raise Missing(done.stderr.strip().splitlines()[-1])
            assert done.returncode == 0, done.stderr.strip()[-300:]
            return json.loads(done.stdout.strip().splitlines()[-1])
        r.case(case, measure)


def take_ncu(r, o):
    batch, (model, modelled_on) = 64, model_of(r, o, 224, 64)
    r.record("the model", "fact", value=modelled_on)
    loop, ncu = program("gpu-loop", o.device), tool("ncu")
    with tempfile.TemporaryDirectory() as work:
        log = os.path.join(work, "csv")
        done = r.run([ncu, "--clock-control", "none", "--csv", "--page", "raw", "--metrics", ",".join(METRICS),
                      "--log-file", log, loop, f"{o.device}:fp16", o.model, 224, batch, "train", "0", "no-graph"], None,
                     140)
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
    r.log(text[:200000])
    if done.returncode != 0 or "dram__bytes" not in text:
        raise Missing(f"ncu did not measure, exit code {done.returncode}: {(text + done.stderr).strip()[-300:]}")
    for kind, found in by_kind(text, model, steps=2).items():
        r.record(kind, "ok", batch=batch, **found)


def model_of(r, o, side, batch, precision="fp16"):
    """{kind: launches, bytes, flops, ms} of a step as the plan has it, and the GPU of the figures."""
    done = r.run([program("gpu-loop", o.device), "--model", f"{o.device}:{precision}", o.model, side, batch], None)
    if done.returncode == 77:
        raise Missing(done.stderr.strip())
    assert done.returncode == 0, done.stderr.strip()[-300:]
    found = json.loads(done.stdout)
    return found["kernels"], found["modelled_on"]


def kind_of(kernel):
    """"conv_fprop_pointwise" of "conv_fprop_64x64_pointwise_fp16(fprop_args)", as cuda_kind() has it."""
    return SHAPE.sub("", re.sub(r"\(.*", "", kernel))


UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9,  # and milliseconds
         "nsecond": 1e-6, "usecond": 1e-3, "msecond": 1, "second": 1e3, "ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}


def by_kind(text, model, steps):
    """{kind: launches, ms, bytes of a step by ncu's page of raw values; the same as the model has it, and flops}"""
    rows = list(csv.reader(io.StringIO(text[text.index('"ID"'):])))
    header, units, rows = rows[0], rows[1], rows[2:]
    name, (data, time) = header.index("Kernel Name"), (header.index(m) for m in METRICS)
    found = {}
    for row in rows:
        if len(row) != len(header):
            continue
        kind = kind_of(row[name])
        sums = found.setdefault(kind, {"launches": 0, "ms": 0.0, "bytes": 0.0})
        sums["launches"] += 1 / steps
        sums["ms"] += float(row[time].replace(",", "")) * UNITS[units[time]] / steps
        sums["bytes"] += float(row[data].replace(",", "")) * UNITS[units[data]] / steps
    for kind, sums in found.items():
        told = model.get(kind, {})
        sums["flops"] = told.get("flops", 0)
        for what in ("launches", "ms", "bytes"):
            sums["model_" + what] = told.get(what)
    return dict(sorted(found.items(), key=lambda item: -item[1]["ms"]))


# ---- tables ------------------------------------------------------------------------------------------------------

def table(header, rows):
    text = ["| " + " | ".join(header) + " |", "|" + "---|" + "---:|" * (len(header) - 1)]
    return "\n".join(text + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def number(value, digits=3):
    return "" if value is None else f"{value:,.{digits}f}"


def speeds(lines, what):
    """Rows by side and batch, the fastest first; "times compile": beside the fastest torch.compile of them."""
    good = [line for line in lines if line["outcome"] == "ok" and line.get("what") == what]
    both = [dict(line, who=f"chex-train {line['precision']}" + ("" if line["graph"] else ", without graph") +
                 (", PDL" if line.get("pdl") else "")) for line in good if line["part"] == "steps"]
    both += [dict(line, who="PyTorch " + line["variant"].replace("-", " ")) for line in good if line["part"] == "torch"]
    rows = []
    for side, batch in sorted({(line["side"], line["batch"]) for line in both}):
        mine = [line for line in both if (line["side"], line["batch"]) == (side, batch)]
        compiled = [line["img_s"] for line in mine if line.get("variant", "").startswith(("compile", "max"))]
        for line in sorted(mine, key=lambda line: -line["img_s"]):
            ratio = line["img_s"] / max(compiled) if compiled else None
            rows.append([line["who"], side, batch, number(line["img_s"], 0), number(line["ms"]),
                         number(line["best_ms"]), number(line["worst_ms"]), number(ratio, 2),
                         number(line["bytes"] / 1e9, 2), number(line["first_s"], 1)])
    return table(["", "px", "batch", "img/s", "ms", "best", "worst", "times compile", "GB", "first step, s"], rows) \
        if rows else ""


def launches(lines, precision, batch):
    """What gpu-loop measured beside the model, of the kernels of a step; those with the most time beyond it first."""
    mine = [line for line in lines if line["part"] == "kernels" and line["outcome"] == "ok" and
            (line["precision"], line["batch"]) == (precision, batch)]
    copy = max((line["GB_s"] for line in lines if line["part"] == "rates" and "copy" in line["case"]), default=None)
    rows = [[line["case"], line["launches"], number(line["ms"]), number(line["model_ms"]), number(line["ratio"], 2),
             number(line["bytes"] / 1e9), number(line["GB_s"], 0), number(line["GB_s"] / copy, 2) if copy else "",
             number(line["TFLOP_s"], 0) if line["flops"] else ""]
            for line in sorted(mine, key=lambda line: line["model_ms"] - line["ms"])]
    rows.append(["a step", sum(line["launches"] for line in mine), number(sum(line["ms"] for line in mine)),
                 number(sum(line["model_ms"] for line in mine)), "", number(sum(line["bytes"] for line in mine) / 1e9),
                 "", "", ""])
    return table(["kernels", "launches", "ms", "modelled", "times", "GB modelled", "GB/s", "of the copy", "TFLOP/s"],
                 rows)


def kernels(lines):
    """What ncu measured beside the model; the three that cost the most beyond it are marked."""
    mine = [line for line in lines if line["part"] == "ncu" and line["outcome"] == "ok"]
    copy = max((line["GB_s"] for line in lines if line["part"] == "rates" and "copy" in line["case"]), default=None)
    beyond = {line["case"]: line["ms"] - line["model_ms"] for line in mine if line["model_ms"]}
    farthest = sorted(beyond, key=lambda case: -beyond[case])[:3]
    rows = []
    for line in mine:
        case, rate = line["case"], line["bytes"] / line["ms"] / 1e6 if line["ms"] else 0
        told = line["model_bytes"]
        rows.append([case + (" (far)" if case in farthest else ""), number(line["launches"], 0), number(line["ms"]),
                     number(line["model_ms"]), number(line["ms"] / line["model_ms"], 2) if line["model_ms"] else "",
                     number(line["bytes"] / 1e9), number(told / 1e9) if told is not None else "",
                     number(line["bytes"] / told, 2) if told else "", number(rate, 0),
                     number(rate / copy, 2) if copy else "",
                     number(line["flops"] / line["ms"] / 1e9, 0) if line["flops"] and line["ms"] else ""])
    return table(["kernels", "launches", "ms", "modelled", "times", "GB by ncu", "modelled", "times", "GB/s",
                  "of the copy", "TFLOP/s"], rows) if rows else ""


def tables(lines):
    """The page of a run."""
    facts = facts_of(lines)
    text = [f"# chex-train on {facts.get('gpu', '?').split(',')[0]}, {facts.get('date', '?')}\n",
            "Written by `bench/gpu.py` (`make bench-gpu`). Ours and PyTorch's are of one run; medians of rounds of "
            "five steps.\n", "".join(f"- {what}: {words}\n" for what, words in facts.items())]
    rates = [line for line in lines if line["part"] == "rates" and line["outcome"] == "ok"]
    if rates:
        units = ["GB_s", "TFLOP_s", "GHz", "us"]
        text += ["## The device\n", table(["", *(unit.replace("_", "/") for unit in units)], [
            [line["case"], *(number(line.get(unit), 0 if "_" in unit else 3) for unit in units)] for line in rates])]
    model = next((line["model"] for line in lines if "model" in line), MODEL)
    for what, title in (("train", "Training"), ("infer", "Inference")):
        rows = speeds(lines, what)
        text += [f"## {title}, {model}\n", rows] if rows else []
    for precision, batch in dict.fromkeys((line["precision"], line["batch"]) for line in lines
                                          if line["part"] == "kernels" and line["outcome"] == "ok"):
        text += [f"## Launches of a step of {batch} images, {precision}\n",
                 "Each launch ran many times in a graph, between two events; times include the gap between two runs. "
                 "GB: by the model. The kernels that cost the most beyond it come first.\n",
                 launches(lines, precision, batch)]
    rows = kernels(lines)
    if rows:
        batch = next(line["batch"] for line in lines if line["part"] == "ncu" and "batch" in line)
        text += [f"## Kernels of a step of {batch} images, fp16\n",
                 "Modelled: by the plan itself, as `chex-train -n -v` has it. Under the profiler kernels run alone, "
                 "with caches that are cold. Far: the three that cost the most beyond the model.\n", rows]
    missing = [line for line in lines if line["outcome"] in ("FAIL", "skip", "left out")]
    if missing:
        text += ["## Not measured\n", "".join(f"- {gpu_results.result_line(line).strip()}\n" for line in missing)]
    return "\n".join(text)


def write_pages(r, path):
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(r.lines, file, indent=1)
        file.write("\n")
    with open(path + ".md", "w", encoding="utf-8") as file:
        file.write(tables(r.lines))


def main():
    o = options()
    if o.table:
        if o.table.endswith(".jsonl"):
            sys.stdout.write(tables(gpu_results.read_results(o.table)))
            return 0
        with open(o.table, encoding="utf-8") as file:
            sys.stdout.write(tables(json.load(file)))
        return 0
    if o.device == "cuda":
        why = gpu_results.no_gpu()
        if why:
            print(f"skip: bench-gpu: there is no GPU: {why}")
            return 77
    functions = {"machine": take_machine, "rates": take_rates, "steps": take_steps, "kernels": take_kernels,
                 "torch": take_torch, "ncu": take_ncu}
    r = Results(o.out or os.path.join(BUILD, "gpu-results"), "bench", o.budget)
    chosen = o.part or [name for name in functions if o.device == "cuda" or name in ("machine", "steps")]
    path = ""
    for name in ["machine", *(name for name in chosen if name != "machine")]:
        r.part(name, LIMITS[o.quick][name], lambda r, f=functions[name]: f(r, o))
        path = path or page_of(facts_of(r.lines), o.out or os.path.join(ROOT, "bench", "results"))
        write_pages(r, path)
    with open(path + ".md", encoding="utf-8") as file:
        print(file.read())
    count = gpu_results.counts(r.lines)
    print(f"results: {path}.json and .md")
    print(f"{count['ok']} measured, {count['FAIL']} failed, {count['skip'] + count['left out']} left out")
    return r.code()


if __name__ == "__main__":
    sys.exit(main())
