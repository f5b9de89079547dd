#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's time for a step of DenseNet-121 on a GPU, without a data pipeline: the peer of bench/gpu.py.

    gpu_torch.py VARIANT SIDE BATCH train|infer SECONDS

VARIANT: words with "-": eager, compile, max (max-autotune) or graph (a CUDA graph of eager); fp32, tf32, fp16 or bf16
(autocast); nhwc (channels last) or nchw.  Gray images are on the device already, as uint8, and are normalised there;
Adam is fused; fp16 has its GradScaler, but in a graph.  Times are by events of the device over rounds of five steps.
Prints one JSON object.  Exit status: 0 good, 1 an error, 77 PyTorch, torchvision or a GPU is missing.
"""
import json
import sys
import time

try:
    import torch
    import torchvision
except ImportError as e:
    print(f"skip: {e}", file=sys.stderr)
    sys.exit(77)

OUTPUTS, WARM, ROUND, MOST_ROUNDS = 14, 15, 5, 2000
MODES = {"compile": "reduce-overhead", "max": "max-autotune"}
HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Net:
    """The model, its images and one step."""

    def __init__(self, variant, side, batch, trains):
        words = variant.split("-")
        self.kind, self.precision, layout = words
        self.half = HALVES.get(self.precision)
        tf32 = self.precision != "fp32"
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.manual_seed(1)
        self.form = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        self.trains, self.batch = trains, batch
        model = torchvision.models.densenet121(num_classes=OUTPUTS).cuda()
        self.model = model.to(memory_format=self.form).train(trains)
        self.net = torch.compile(self.model, mode=MODES[self.kind]) if self.kind in MODES else self.model
        self.graphed = self.kind == "graph"
        scaled = self.precision == "fp16" and not self.graphed
        newer = getattr(torch.amp, "GradScaler", None)  # PyTorch 2.3 and later
        self.scaler = newer("cuda", enabled=scaled) if newer else torch.cuda.amp.GradScaler(enabled=scaled)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-4, fused=True, capturable=self.graphed)
        self.gray = torch.randint(0, 256, (batch, 1, side, side), dtype=torch.uint8, device="cuda")
        self.target = torch.randint(0, 2, (batch, OUTPUTS), device="cuda").float()
        self.mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1)
        self.deviation = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1)

    def forward(self):
        with torch.autocast("cuda", dtype=self.half or torch.float16, enabled=self.half is not None):
            x = ((self.gray.float() / 255 - self.mean) / self.deviation).contiguous(memory_format=self.form)
            return self.net(x).float()

    def train_step(self):
        self.optimizer.zero_grad(set_to_none=not self.graphed)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(self.forward(), self.target)
        self.scaler.scale(loss).backward()
        if self.graphed:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def step(self):
        if self.trains:
            self.train_step()
        else:
            with torch.inference_mode():
                self.forward()

    def prepared(self):
        """What to call for a step."""
        if not self.graphed:
            return self.step
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(5):
                self.step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=False)
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay


def measure(call, seconds):
    """Milliseconds a step of each round, in order of size."""
    times, end = [], time.monotonic() + seconds
    while len(times) < 3 or (time.monotonic() < end and len(times) < MOST_ROUNDS):
        begin, over = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(ROUND):
            call()
        over.record()
        over.synchronize()
        times.append(begin.elapsed_time(over) / ROUND)
    return sorted(times)


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    variant, side, batch, what, seconds = sys.argv[1:]
    if not torch.cuda.is_available():
        print("skip: PyTorch sees no GPU", file=sys.stderr)
        return 77
    begun = time.monotonic()
    net = Net(variant, int(side), int(batch), what == "train")
    call = net.prepared()
    call()
    torch.cuda.synchronize()
    first = time.monotonic() - begun
    for _ in range(WARM):
        call()
    torch.cuda.synchronize()
    warm = time.monotonic() - begun
    times = measure(call, float(seconds))
    ms = times[len(times) // 2]
    print(json.dumps({"variant": variant, "side": int(side), "batch": int(batch), "what": what, "ms": round(ms, 4),
                      "best_ms": round(times[0], 4), "worst_ms": round(times[-1], 4),
                      "img_s": round(int(batch) * 1e3 / ms, 1), "rounds": len(times), "first_s": round(first, 3),
                      "warm_s": round(warm, 3), "bytes": torch.cuda.max_memory_allocated(),
                      "device": torch.cuda.get_device_name(), "torch": torch.__version__,
                      "cudnn": torch.backends.cudnn.version()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
