# SPDX-License-Identifier: Apache-2.0
"""A model of training on several GPUs: what a step and an epoch take on 1 to 256 of them.  Arithmetic, stdlib only.

One rank stands for all: every rank does the same work, and an allreduce ends for all at once.  Two resources, the
compute stream and the wire:

    forward -> backward, from the last layer to the first -> update
                   |  a bucket whose gradients are there joins the queue of the wire
                   v
               allreduce of bucket 1, 2, ...; what is left of them when backward ends is exposed

The time of an allreduce is a + b * bytes, by the cost model that NCCL itself chooses its algorithm with.  The time of a
layer is its share of the bytes that it moves, since DenseNet training is bound by memory traffic; the sum of all layers
is given, as images a second of one GPU.  Nothing here is fitted: each constant has its source beside it, and a constant
without a source is called an assumption.  doc/design/ranks.md explains; scale.py has the cases.

No contention between jobs, no congestion of a network, no failure is modelled.
"""
import math
from dataclasses import dataclass, replace
from statistics import NormalDist

US, MB = 1e-6, 1e6


# ---- links ---------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Link:
    """One direction of a link of a GPU, or of the adapter of a node; hops are seconds of one step of an algorithm."""
    name: str
    nominal: float   # bytes/s
    ring_hop: float
    tree_hop: float

    @property
    def bandwidth(self):
        return REACHED * self.nominal


REACHED = 0.85  # of the nominal bandwidth; assumption: nccl-tests on such links mostly show 80 to 90 %

# Hops: NCCL 2.7, src/graph/tuning.cc, hwLat: ring in the protocol Simple, tree in LL128.  10 GbE is not in that table:
# half a round trip of TCP, assumption.  Nominal: data sheets; V100 6 x 25 GB/s, A100 600 and H200 900 GB/s of both
# directions.
LINKS = {link.name: link for link in (
    Link("NVLink V100", 150e9, 3.4 * US, 1.2 * US),
    Link("NVLink A100", 300e9, 3.4 * US, 1.2 * US),
    Link("NVLink H200", 450e9, 3.4 * US, 1.2 * US),
    Link("PCIe 3", 15.75e9, 5.7 * US, 1.9 * US),
    Link("EDR", 12.5e9, 9.6 * US, 8.5 * US),
    Link("HDR", 25e9, 9.6 * US, 8.5 * US),
    Link("NDR", 50e9, 9.6 * US, 8.5 * US),
    Link("10 GbE", 1.25e9, 30 * US, 30 * US),
)}


@dataclass(frozen=True)
class Machine:
    gpus: int          # of a node
    inside: Link       # between the GPUs of a node
    outside: Link      # the adapter of a node
    adapters: int = 1

    def shape(self, ranks):
        """Nodes, and ranks on each."""
        nodes = -(-ranks // self.gpus)
        return nodes, ranks / nodes

    def bandwidth(self, ranks):
        """Of the slowest link of a ring through all ranks."""
        nodes, _ = self.shape(ranks)
        return self.inside.bandwidth if nodes == 1 else min(self.inside.bandwidth,
                                                            self.adapters * self.outside.bandwidth)


def ring(size, ranks, machine):
    """Seconds of an allreduce: 2 (N - 1) steps, each of which moves size / N."""
    if ranks == 1:
        return 0.0
    nodes, _ = machine.shape(ranks)
    steps, between = 2 * (ranks - 1), 2 * (nodes - 1)
    latency = (steps - between) * machine.inside.ring_hop + between * machine.outside.ring_hop
    if nodes > 1 and size >= 4096 * ranks:
        latency *= 1.9                                  # NCCL's "plateau effect of ring"
    return 8.4 * US + latency + size * steps / ranks / machine.bandwidth(ranks)


def tree(size, ranks, machine):
    """Seconds of an allreduce: up and down a tree of nodes, a chain inside each of them."""
    if ranks == 1:
        return 0.0
    nodes, local = machine.shape(ranks)
    latency = 2 * ((math.ceil(local) - 1) * machine.inside.tree_hop +
                   math.ceil(math.log2(nodes)) * machine.outside.tree_hop)
    # NCCL: 0.9 of a ring's bandwidth, 120 of 128 bytes are data, and 0.7 of that for sums of a few MB.
    return 4.4 * US + latency + 2 * size / (0.9 * 0.915 * 0.7 * machine.bandwidth(ranks))


ALGORITHMS = {"ring": ring, "tree": tree, "best": lambda *a: min(ring(*a), tree(*a))}


# ---- the network ---------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Layer:
    name: str
    parameters: int
    forward: float   # elements that it reads and writes for an image
    backward: float


def densenet121(outputs=14):
    """Layers in the order of the arena: parameters exactly, elements moved with fused kernels (doc/design/gpu.md)."""
    p = 112 * 112
    layers = [Layer("stem", 3 * 64 * 49 + 128, 144 * p, (144 + 192 + 64) * p)]
    channels = 64
    for block, (side, count) in enumerate(((56, 6), (28, 12), (14, 24), (7, 16)), 1):
        p = side * side
        for i in range(count):
            c = channels + 32 * i
            layers.append(Layer(f"block {block} layer {i + 1}", 2 * c + 128 * c + 256 + 128 * 32 * 9,
                                (c + 288) * p, (4 * c + 1184) * p))
        channels += 32 * count
        if block < 4:
            q, half = p // 4, channels // 2
            layers.append(Layer(f"transition {block}", 2 * channels + channels * half,
                                channels * p + 2 * channels * q + half * q,
                                2 * (channels + half) * q + channels * q + 2 * channels * p))
            channels = half
    layers.append(Layer("head", 2 * channels + channels * outputs + outputs, channels * 49, 2 * channels * 49))
    return layers


def even_buckets(sizes, limit):
    """Groups of layers from the end of the arena: a bucket is closed by the layer that fills it.  [[index]]"""
    found, group, size = [], [], 0
    for index in reversed(range(len(sizes))):
        group.append(index)
        size += sizes[index]
        if size >= limit:
            found.append(group)
            group, size = [], 0
    return found + [group] if group else found


def with_small_last(sizes, limit, last):
    """The same, but the first layers of the network, at most `last` bytes of them, are a bucket of their own."""
    first, size = 0, 0
    while first < len(sizes) and size + sizes[first] <= last:
        size += sizes[first]
        first += 1
    rest = [[index + first for index in group] for group in even_buckets(sizes[first:], limit)]
    return rest + [list(reversed(range(first)))] if first else rest


# ---- a job ---------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Job:
    """What one GPU does, and how the ranks share it."""
    machine: Machine
    rate: float                  # img/s of one GPU, forward to update, without data wait
    batch: int = 64              # of a rank
    micro: int = 64
    update: float = 3.4e-4       # seconds of the optimizer: 7 M parameters x 30 B at 0.8 of a V100's 790 GB/s
    wire: int = 4                # bytes of a gradient: 4 fp32, 2 bf16
    bucket: float = 7 * MB       # of fp32 gradients
    last: float = 0              # bytes of fp32 for a last bucket of its own; 0: none
    cycle: float = 0             # Horovod: gradients that are there are summed each so many seconds; 0: buckets
    tail: int = 335_000          # bytes behind the gradients: running statistics (2 x 41,824 floats), loss, requests
    algorithm: str = "best"
    contention: float = 0.05     # backward is slower while sums run: 4 of 80 SMs; assumption
    jitter: float = 0.005        # deviation of a rank's step, of its time; assumption
    input_rate: float = math.inf  # img/s that the host gives each GPU
    train: int = 78_484          # images of an epoch: patient:70,10,20 of 112,120
    judged: int = 11_212         # images of an evaluation
    judge_rate: float = 3.45     # inference beside training, img/s; PyTorch, DenseNet-121: 20.7 / 6.0 measured
    judging: str = "ranks"       # ranks: shared by them; each: every rank judges all; one: rank 0, the others wait
    host: float = 0              # seconds an epoch that more ranks do not shorten: order of scores, lines and curves
    threads: int = 1             # of a rank, for what follows
    alike: tuple = ()            # what every rank does by threads an epoch: (seconds of one core, pieces)
    bootstrap: float = 0         # seconds an epoch of one core, which the ranks share
    passes: int = 125            # its pieces: 1,000 replicates, eight in a pass
    meetings: int = 0            # of all ranks behind the last step of an epoch
    message: float = 2 * US      # to send one and to take one; assumption: twice the overhead of a call of MPI
    snapshot: float = 0          # seconds of a copy of the arenas, which an evaluation hides
    writing: float = 0           # seconds of a thread of rank 0 behind it; the next copy waits for it
    testing: float = 0           # seconds of testing an epoch on one GPU; 0: judged / (judge_rate * rate)
    layers: tuple = tuple(densenet121())

    @property
    def unit(self):
        """Seconds of an element of an image."""
        return (1 / self.rate - self.update / self.batch) / sum(a.forward + a.backward for a in self.layers)


def with_layers(job, rows):
    """The job with measured layers: (name, parameters, forward, backward), seconds of a batch."""
    layers = tuple(Layer(name, int(count), float(there), float(back)) for name, count, there, back in rows)
    seconds = sum(layer.forward + layer.backward for layer in layers)
    return replace(job, layers=layers, rate=job.batch / (seconds + job.update))


def straggler(ranks, jitter):
    """How much longer than the mean the slowest of N normal steps takes (Blom's score of the largest)."""
    return 0.0 if ranks == 1 else jitter * NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25))


def buckets_of(job):
    sizes = [4 * layer.parameters for layer in job.layers]
    return with_small_last(sizes, job.bucket, job.last) if job.last else even_buckets(sizes, job.bucket)


class Wire:
    """The stream of sums: one after the other."""

    def __init__(self, job, ranks):
        self.job, self.ranks, self.free, self.bytes, self.sums = job, ranks, 0.0, 0, 0

    def add(self, parameters, ready, extra=0):
        size = parameters * self.job.wire + extra
        self.free = max(self.free, ready) + ALGORITHMS[self.job.algorithm](size, self.ranks, self.job.machine)
        self.bytes += size
        self.sums += 1


def backward(job, ranks, images, begun):
    """Walk the layers from the last to the first; the seconds when backward and the last sum end, and the wire."""
    wire, now = Wire(job, ranks), begun
    closing = {group[-1]: group for group in buckets_of(job)}
    waiting, due = 0, begun + job.cycle
    for index, layer in reversed(list(enumerate(job.layers))):
        took = layer.backward * job.unit * images
        slowed = min(took, max(0.0, wire.free - now)) * job.contention if ranks > 1 else 0.0
        now += took + slowed
        waiting += layer.parameters
        if job.cycle:
            if now < due and index > 0:
                continue
            due = now + job.cycle
        elif index not in closing:
            continue
        late = job.cycle / 2 if index == 0 and ranks > 1 else 0.0  # nothing follows that would start the last sum
        wire.add(waiting, now + late, job.tail if index == 0 else 0)
        waiting = 0
    return now, max(now, wire.free), wire


def step(job, ranks, images=None):
    """A step of `images` on each rank (default: a batch).  Seconds of its parts; total is what all take together."""
    images = job.batch if images is None else images
    forward = sum(layer.forward for layer in job.layers) * job.unit * images
    computed, summed, wire = backward(job, ranks, images, forward)
    useful = images / job.batch * (job.batch / job.rate - job.update) + job.update
    late = straggler(ranks, job.jitter) * useful
    gpu = summed + job.update + late
    data = max(0.0, images / job.input_rate - gpu)
    return {"forward": forward, "backward": computed - forward, "exposed": summed - computed, "update": job.update,
            "straggler": late, "data": data, "total": gpu + data, "useful": useful, "bytes": wire.bytes,
            "sums": wire.sums}


def evaluation(job, ranks):
    """Seconds that all ranks are in an evaluation, and seconds of GPU work in it, of all ranks together."""
    rate = job.judge_rate * job.rate
    alone = job.testing or job.judged / rate
    if job.judging == "ranks":  # whole micro-batches, one rank after the other
        return math.ceil(math.ceil(job.judged / job.micro) / ranks) * job.micro / rate, alone
    return alone, alone * (ranks if job.judging == "each" else 1)


def by_threads(seconds, pieces, threads):
    """Seconds of the thread with the most pieces."""
    return seconds * math.ceil(pieces / threads) / pieces


def bootstrap(job, ranks):
    """Seconds of the rank with the most passes."""
    return by_threads(job.bootstrap, job.passes, ranks * job.threads)


def meetings(job, ranks):
    """Seconds: a rank sends a message to every other one, and takes one of each."""
    hop = job.machine.outside.ring_hop if ranks > job.machine.gpus else job.machine.inside.ring_hop
    return job.meetings * (hop + (ranks - 1) * job.message) if ranks > 1 else 0.0


def epoch(job, ranks):
    """Seconds of an epoch and of its parts, and the mean of the ranks' useful seconds."""
    whole, left = divmod(job.train, job.batch * ranks)
    one = step(job, ranks)
    seconds, useful, moved = whole * one["total"], whole * one["useful"], whole * one["bytes"]
    if left:
        images = min(job.batch, math.ceil(math.ceil(left / ranks) / job.micro) * job.micro)
        last = step(job, ranks, images)
        seconds += last["total"]
        useful += left / ranks / job.batch * one["useful"]
        moved += last["bytes"]
    judged, judging = evaluation(job, ranks)
    drawn, met = bootstrap(job, ranks), meetings(job, ranks)
    host = job.host + sum(by_threads(*one, job.threads) for one in job.alike)
    copied = max(0.0, job.snapshot - judged - drawn - host)
    total = seconds + judged + drawn + host + met + copied
    disk = max(0.0, job.snapshot + job.writing - total)
    total += disk
    # Work that every rank repeats is no use: once is.
    once = judging / ranks if job.judging != "each" else judging / ranks / ranks
    useful += once + (by_threads(job.bootstrap, job.passes, job.threads) + host) / ranks
    return {"train": seconds, "judged": judged, "bootstrap": drawn, "host": host, "met": met, "saved": copied + disk,
            "total": total, "bytes": moved, "steps": whole + (left > 0), "useful": useful,
            "parallel_efficiency": useful / total}


def step_efficiency(job, ranks):
    """Of whole steps: images a second of N, beside N times those of one GPU."""
    return step(job, 1)["total"] / step(job, ranks)["total"]


def speedup(job, ranks):
    """Of an epoch with all that belongs to it."""
    return epoch(job, 1)["total"] / epoch(job, ranks)["total"]


def epoch_efficiency(job, ranks):
    return speedup(job, ranks) / ranks
