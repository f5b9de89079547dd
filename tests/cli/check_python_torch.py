#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex_tools.torch and chex_tools.tf, compared with the records of the shards and with chex-train's order.

    check_python_torch.py [PATTERN]

Each case runs a small program in a Python that has PyTorch or TensorFlow, and is skipped where none has it.
"""
import json
import os
import shutil
import sys

from check_python_module import CACHE, dataset
from support import SOURCE, Cases, images, manifest, program, python_with, run, write, write_csv

case = Cases()


def python(work, module, text, *words, **variables):
    """Run this program, in a file, in a Python that has the module."""
    path = write(os.path.join(work, "main.py"), text)
    environment = dict(os.environ, PYTHONPATH=os.path.join(SOURCE, "python"), TF_CPP_MIN_LOG_LEVEL="3",
                       OMP_NUM_THREADS="1", **variables)
    done = run([python_with(module), path, *words], env=environment, cwd=work)
    assert module != "torch" or "Warning" not in done.stderr, done.stderr
    return done


READ = """import json, sys
import torch
from chex_tools.torch import Normalize, Shards, batches

def flipped(image):
    return image.flip(2)

def show(image, label, about):
    for k, name in enumerate(about["name"]):
        print(json.dumps([name, about["age"][k].item(), about["sex"][k], about["view"][k], label[k].int().tolist(),
                          image[k].numpy().tobytes().hex()]))

folder = sys.argv[1]
plain = Shards(folder, "train")
gray = plain[0][0]
assert gray.shape == (1, 48, 48) and gray.dtype == torch.uint8
mean, deviation = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1), torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
as_torchvision = (gray.expand(3, -1, -1) / 255 - mean) / deviation
assert torch.allclose(Normalize()(gray), as_torchvision, atol=1e-6)
assert not Normalize().state_dict(), "it changes the checkpoints of a network"
floats, three = Shards(folder, "train", normalize=True), Shards(folder, "train", flipped, channels=3)
assert torch.equal(floats[0][0], Normalize()(gray)) and torch.equal(floats[[0, 1]][0][0], floats[0][0])
assert three[0][0].dtype == torch.uint8 and torch.equal(three[0][0], gray.flip(2).expand(3, -1, -1))
assert torch.equal(Shards(folder, "train", flipped)[[3, 0]][0][1], gray.flip(2))
wipe = Shards(folder, "train", torch.Tensor.zero_)
assert not wipe[0][0].any() and not wipe[[0, 1]][0].any()
assert torch.equal(plain[0][0], gray) and torch.equal(Shards(folder, "train")[0][0], gray), "it changes what is mapped"
image, label, about = plain[[2, -1]]
assert torch.equal(image[1], plain[len(plain) - 1][0]) and about["name"][0] == plain[2][2]["name"]
assert plain[[]][0].shape == (0, 1, 48, 48)
for wrong in (len(plain), [0, len(plain)], -len(plain) - 1):
    try:
        plain[wrong]
        raise SystemExit("no error")
    except IndexError:
        pass
some = Shards(folder, "train", where=["sex=F"])
assert 0 < len(some) < len(plain) and set(some[list(range(len(some)))][2]["sex"]) == {"F"}
for batch in batches(plain, 8, shuffle=False):
    show(*batch)
"""


@case("Shards of PyTorch: images, labels and texts of the records; channels, normalisation, transform, where")
def _(work):
    for folder in (dataset(), dataset("--split", "patient:80,10,10")):
        rows = [json.loads(line) for line in python(work, "torch", READ, folder).stdout.splitlines()]
        if "view" not in manifest(folder)["dtype"]["names"]:
            assert {view for _, _, _, view, _, _ in rows} == {"U", "PA", "AP"}
            continue
        there = images(folder, "train")
        assert [r[0] for r in rows] == list(there)
        for name, age, sex, view, label, image in rows:
            r = there[name]
            assert (age, sex, view) == (r["age"], r["sex"].decode(), r["view"].decode()), name
            assert label == list(r["label"]) and bytes.fromhex(image) == bytes(r["image"]), name


WORKERS = """import sys
import torch
from torch.utils import data
from chex_tools import epoch_order
from chex_tools.torch import Sampler, Shards, worker_init

def is_shared(batch):
    return batch[0].is_shared()

def are_shared(batch):
    return [image.is_shared() for image, label, about in batch]

if __name__ == "__main__":
    shards = Shards(sys.argv[1], "train")
    wanted = shards.text["name"][epoch_order(shards.records, 5, 0)].tolist()
    where = {name: k for k, name in enumerate(shards.text["name"].tolist())}
    for method in ("spawn", "forkserver", "fork"):
        sampler = Sampler(shards, 8, seed=5)
        loader = data.DataLoader(shards, batch_size=None, sampler=sampler, num_workers=2, worker_init_fn=worker_init,
                                 multiprocessing_context=method)
        names = []
        for steps, (image, label, about) in enumerate(loader, 1):
            k = [where[name] for name in about["name"]]
            assert torch.equal(image, shards[k][0]) and torch.equal(label, shards.label[k]), method
            names += about["name"]
            if steps == 3:
                state = sampler.state_dict(steps)
        assert names == wanted and len(loader) == steps, method
        again = Sampler(shards, 8, seed=5)
        again.load_state_dict(state)
        alone = data.DataLoader(shards, batch_size=None, sampler=again)
        assert [n for batch in alone for n in batch[2]["name"]] == wanted[24:], method
    loader = data.DataLoader(shards, batch_size=8, num_workers=1, collate_fn=are_shared)
    assert next(iter(loader)) == [False] * 8, "each single image takes a file descriptor"
    loader = data.DataLoader(shards, batch_size=None, sampler=[[0, 1]], num_workers=1, collate_fn=is_shared)
    assert next(iter(loader)), "a batch is copied into shared memory"
    loader = data.DataLoader(shards, batch_size=8, num_workers=2, multiprocessing_context="spawn")  # image by image
    image, label, about = next(iter(loader))
    assert torch.equal(image, shards[list(range(8))][0]) and about["name"] == shards.text["name"][:8].tolist()
"""


@case("DataLoader with spawn, forkserver and fork: chex-train's order, and it goes on in the middle of an epoch")
def _(work):
    python(work, "torch", WORKERS, dataset())


SAMPLER = """import collections, json, sys
import numpy as np
import torch
from chex_tools import IncompatibleError, UsageError, epoch_order
from chex_tools.torch import Sampler, Shards, batches, inverse_frequency

def fails(kind, call):
    try:
        call()
    except kind:
        return
    raise SystemExit(f"no {kind.__name__}")

shards = Shards(sys.argv[1], "train")
n = len(shards)

# Ranks: each image once; the steps have chex-train's images.
for count in (1, 2, 3, 7):
    for size in (1, 5, 8, n, n + 1):
        samplers = [Sampler(shards, size, seed=3, rank=r, world_size=count) for r in range(count)]
        for epoch in range(2):
            each = [list(s) for s in samplers]
            assert [s.epoch for s in samplers] == [epoch] * count
            assert [len(s) for s in samplers] == [len(e) for e in each], (count, size)
            seen = collections.Counter(k for e in each for batch in e for k in batch)
            assert len(seen) == n and set(seen.values()) == {1}, (count, size)
            order = epoch_order(shards.records, 3, epoch).tolist()
            for g in range(n // (size * count)):
                images = [k for e in each for k in e[g]]
                assert images == order[g * size * count:(g + 1) * size * count], (count, size, g)
        assert max(map(len, each)) - min(map(len, each)) <= 1
    dropped = [list(Sampler(shards, 8, rank=r, world_size=count, drop_last=True)) for r in range(count)]
    assert {len(batch) for e in dropped for batch in e} == {8} and len({len(e) for e in dropped}) == 1

# The middle of an epoch, with other ranks and another batch size, through JSON.
whole = [k for batch in Sampler(shards, 8, seed=3, window=2) for k in batch]
assert whole == epoch_order(shards.records, 3, 0, 2).tolist()
for stop in range(0, n // 8 + 2):
    first = Sampler(shards, 8, seed=3, window=2)
    done = []
    for batch in first:
        if len(done) == 8 * stop:
            break
        done += batch
    else:
        stop = None
    state = json.loads(json.dumps(first.state_dict(stop)))
    for count, size in ((1, 8), (2, 3), (3, 5)):
        rest = []
        for r in range(count):
            s = Sampler(shards, size, seed=3, window=2, rank=r, world_size=count)
            s.load_state_dict(state)
            rest += [k for batch in s for k in batch]
            assert s.epoch == 0
        assert sorted(done + rest) == list(range(n)), (stop, count)
        assert (count, size) != (1, 8) or done + rest == whole
    assert next(iter(s)) and s.epoch == 1

# batches() reads ahead, but its state is that of the loop.
sampler = Sampler(shards, 8, seed=3)
names = []
for image, label, about in batches(shards, sampler=sampler, ahead=4):
    names += about["name"]
    if len(names) == 24:
        state = sampler.state_dict()
        break
assert state["position"] == 24, state
sampler = Sampler(shards, 8, seed=3)
sampler.load_state_dict(state)
for _ in range(2):
    names += [name for batch in batches(shards, sampler=sampler) for name in batch[2]["name"]]
wanted = [k for epoch in range(2) for k in epoch_order(shards.records, 3, epoch)]
assert names == shards.text["name"][wanted].tolist() and sampler.state_dict()["position"] == n
sampler.set_epoch(0)
assert [k for batch in sampler for k in batch] == wanted[:n]
fails(IncompatibleError, lambda: Sampler(shards, 8, seed=4).load_state_dict(state))
fails(IncompatibleError, lambda: Sampler(shards, 8, seed=3).load_state_dict({**state, "position": n + 1}))
fails(IncompatibleError, lambda: Sampler(Shards(sys.argv[1], "val"), 8, seed=3).load_state_dict(state))
fails(IncompatibleError, lambda: sampler.load_state_dict({}))

fails(IncompatibleError, lambda: Sampler(Shards(sys.argv[1], "train", where="sex=F"), 8, seed=3).load_state_dict(state))

# Images of another selection with the same number, and other weights with the same sum, are not those of a state.
first, other = (Shards(sys.argv[1], "train") for _ in range(2))
first.records, other.records = first.records[:20], other.records[20:40]
state = Sampler(first, 4).state_dict()
Sampler(first, 4).load_state_dict(state)
fails(IncompatibleError, lambda: Sampler(other, 4).load_state_dict(state))
some = [[5.0] + [1.0] * (n - 1), [1.0] * (n - 1) + [5.0]]
state = Sampler(shards, 4, weights=some[0]).state_dict()
Sampler(shards, 4, weights=torch.tensor(some[0], requires_grad=True)).load_state_dict(state)
fails(IncompatibleError, lambda: Sampler(shards, 4, weights=some[1]).load_state_dict(state))

# At the end of an epoch all ranks have the same state, also a rank without images in the last step.
for count, size in ((n - 1, 1), (4, 1), (4, n // 4)):
    ranks = [Sampler(shards, size, rank=r, world_size=count) for r in range(count)]
    assert [list(s) for s in ranks] and {s.state_dict()["position"] for s in ranks} == {n}, (count, size)
    ranks = [Sampler(shards, size, rank=r, world_size=count) for r in (0, count - 1)]
    for s in ranks:
        list(batches(shards, sampler=s))
    assert {s.state_dict()["position"] for s in ranks} == {n}, (count, size)

# set_epoch() before each iteration keeps the position of the state; len() is that of the rest.
done = Sampler(shards, 8, seed=np.uint8(3), window=np.int16(2))
order = list(done)
state = json.loads(json.dumps(done.state_dict(np.int64(2))))
assert state["seed"] == 3 and state["position"] == 16
done.load_state_dict(state)
done.set_epoch(state["epoch"])
assert len(done) == len(order) - 2 and list(done) == order[2:]
done.set_epoch(state["epoch"])
assert len(done) == len(order) and list(done) == order
done.load_state_dict(state)
done.set_epoch(state["epoch"] + 1)
assert done.state_dict()["position"] == 0 and len(done) == len(order)
for steps in (-1, 2.5, len(order) + 1):
    fails(UsageError, lambda: done.state_dict(steps))

# No images: no batches.
none = Shards(sys.argv[1], "train", where="age=999")
assert len(none) == 0 and not list(batches(none, 16)) and not list(batches(none, 16, shuffle=False))
assert not list(Sampler(none, 16))

# Weights: only images with a weight, more often with a larger one, the same in each run.
weights = torch.zeros(n)
weights[5], weights[9] = 1, 3
drawn = collections.Counter(k for batch in Sampler(shards, 8, weights=weights) for k in batch)
assert set(drawn) == {5, 9} and sum(drawn.values()) == n and drawn[9] > 1.5 * drawn[5], drawn
assert list(Sampler(shards, 8, weights=weights)) == list(Sampler(shards, 8, weights=weights))
assert list(Sampler(shards, 8, weights=weights, seed=2)) != list(Sampler(shards, 8, weights=weights))
assert list(Sampler(shards, 8, weights=[1e308] * n)) == list(Sampler(shards, 8, weights=[1.0] * n))
weights = inverse_frequency(shards)
for k in range(n):
    counts = [int((shards.label[:, f] == 1).sum()) for f in range(14) if shards.label[k, f] == 1]
    counts = counts or [int((shards.label != 1).all(dim=1).sum())]
    assert abs(weights[k].item() - 1 / min(counts)) < 1e-12
shards.label[:3] = torch.tensor([[0.0] * 14, [float("nan")] * 14, [0.0] * 13 + [float("nan")]])
weights = inverse_frequency(shards)
none = int(shards.label.eq(0).all(dim=1).sum())
assert weights[1] == weights[2] == 1 / n and abs(weights[0].item() - 1 / none) < 1e-12
for call in (lambda: Sampler(shards, 0), lambda: Sampler(shards, 2.5), lambda: Sampler(shards.records, 4),
             lambda: batches(shards, 0), lambda: batches(shards, -1), lambda: batches(shards, 2.5),
             lambda: batches(shards), lambda: sampler.set_epoch(-1), lambda: shards[1:3], lambda: shards[(1, 2)],
             lambda: shards[5.7], lambda: shards["7"], lambda: Sampler(shards, 8, rank=1),
             lambda: Sampler(shards, 8, seed=-1),
             lambda: Sampler(shards, 8, rank=2, world_size=2), lambda: Sampler(shards, 8, weights=[1.0]),
             lambda: Sampler(shards, 8, weights=[float("nan")] * n),
             lambda: Shards(sys.argv[1], "nothing"), lambda: Shards(sys.argv[1], channels=2)):
    fails(UsageError, call)
"""


@case("Sampler: ranks have each image once in chex-train's order, resume in mid-epoch, weights, refusals")
def _(work):
    python(work, "torch", SAMPLER, dataset())


DISTRIBUTED = """import sys
import torch
from chex_tools.torch import Sampler, Shards

if __name__ == "__main__":
    torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[3]),
                                         world_size=1)
    s = Sampler(Shards(sys.argv[1], "train"), 8)
    assert (s.rank, s.world_size) == (0, 1)
    torch.distributed.get_rank, torch.distributed.get_world_size = lambda: 1, lambda: 4
    s = Sampler(Shards(sys.argv[1], "train"), 8)
    assert (s.rank, s.world_size) == (1, 4)
"""


@case("a Sampler takes its rank from torch.distributed where it is initialised")
def _(work):
    python(work, "torch", DISTRIBUTED, dataset(), os.path.join(work, "rendezvous"), "0")


THREADS = """import sys
from chex_tools.torch import Shards, batches

class Counted(Shards):
    read = 0

    def __getitem__(self, k):
        if isinstance(k, list):
            self.read += 1
        return super().__getitem__(k)

def names(loader):
    return [name for image, label, about in loader for name in about["name"]]

def fail(image):
    raise ValueError("the transform fails")

shards = Counted(sys.argv[1], "train")
want = shards.text["name"].tolist()
assert names(batches(shards, 8, shuffle=False)) == want
first, second = names(batches(shards, 8)), names(batches(shards, 8))
assert sorted(first) == sorted(second) == sorted(want) and first != second and first != want
assert len(names(batches(shards, 10 * len(shards), threads=1))) == len(shards), "one batch"
shards.read = 0
loader = batches(shards, 1)
next(loader)
loader.close()  # waits for the threads
assert 1 <= shards.read <= 5, shards.read
shards.transform = fail
try:
    names(batches(shards, 8))
    raise SystemExit("no error")
except ValueError:
    pass
"""


@case("batches(): each image once, order, errors, at most 5 batches read ahead")
def _(work):
    python(work, "torch", THREADS, dataset())


WEIGHTS = """import json, os
import numpy as np
import torch
from chex_tools import IncompatibleError, read_run

def put(**arrays):
    header, data = {}, b""
    for name, a in arrays.items():
        header[name] = {"dtype": name, "shape": list(a.shape), "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    text = json.dumps(header).encode()
    with open("run/x.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)
    return read_run("run").weights("x")

os.mkdir("run")
with open("run/run.json", "w") as f:
    f.write("{}")
top = {8: 255, 16: 65535, 32: (1 << 32) - 1, 64: (1 << 63) - 1}
found = put(**{f"U{bits}": np.array([1, most], f"<u{bits // 8}") for bits, most in top.items()})
assert {name: t.tolist() for name, t in found.items()} == {f"U{bits}": [1, most] for bits, most in top.items()}, found
if not hasattr(torch, "uint64"):
    try:
        put(U64=np.array([1 << 63], "<u8"))
        raise SystemExit("no error")
    except IncompatibleError:
        pass
"""


@case("weights(): unsigned whole numbers, also with a PyTorch that does not have them")
def _(work):
    python(work, "torch", WEIGHTS)


UNKNOWN = """import sys
import numpy as np
from chex_tools import Dataset
labels = Dataset(sys.argv[1], "train").labels
assert (labels == 255).any()
if sys.argv[2] == "torch":
    from chex_tools.torch import Shards
    found = Shards(sys.argv[1], "train").label.numpy()
else:
    import chex_tools.tf
    found = np.stack([label.numpy() for _, label in chex_tools.tf.dataset(sys.argv[1], "train")])
assert (np.isnan(found) == (labels == 255)).all() and (found[labels != 255] == labels[labels != 255]).all()
"""


@case("unknown labels are NaN in PyTorch and TensorFlow")
def _(work):
    folder, out = os.path.join(CACHE, "in0"), os.path.join(work, "shards")
    dataset()
    findings = ["No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema",
                "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other",
                "Fracture", "Support Devices"]
    rows = []
    for n, name in enumerate(sorted(os.listdir(os.path.join(folder, "images")))[:24]):
        path = f"patient{n // 2:05}/study{n % 2 + 1}/view1_frontal.png"
        os.makedirs(os.path.join(work, "in", os.path.dirname(path)))
        shutil.copy(os.path.join(folder, "images", name), os.path.join(work, "in", path))
        rows.append([f"CheXpert/train/{path}", "Male", "60", "Frontal", "PA", "", "", ("1.0", "0.0", "-1.0")[n % 3],
                     "-1.0", *[""] * 10])
    write_csv(f"{work}/train.csv", ["Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *findings], rows)
    os.makedirs(os.path.join(work, "CheXpert"))
    os.rename(os.path.join(work, "in"), os.path.join(work, "CheXpert", "train"))
    run([program("chex-convert"), "-q", "-i", f"{work}/CheXpert/train", "-l", f"{work}/train.csv", "-o", out, "--size",
         "48", "--shard-size", "8"])
    assert manifest(out)["record"].get("unknown_labels")
    python(work, "torch", UNKNOWN, out, "torch")
    python(work, "tensorflow", UNKNOWN, out, "tf")


TENSORFLOW = """import sys
import numpy as np
import chex_tools.tf
from chex_tools import Dataset
import tensorflow as tf
folder = sys.argv[1]
data = Dataset(folder, "train")
for options in ({}, {"checksums": True}):
    found = list(chex_tools.tf.dataset(folder, "train", **options))
    assert len(found) == len(data)
    assert all((image.numpy()[:, :, 0] == r.image).all() and (label.numpy() == r.label).all()
               for (image, label), r in zip(found, data))
batched = chex_tools.tf.dataset(folder, "train", batch_size=16, shuffle=True, seed=3, about=True)
runs = [[name.decode() for batch in batched for name in batch[2]["filename"].numpy()] for _ in range(2)]
assert sorted(runs[0]) == sorted(runs[1]) == sorted(data.names.tolist()) and runs[0] != data.names.tolist()
image, label, about = next(iter(batched))
where = {name: k for k, name in enumerate(data.names.tolist())}
for k, name in enumerate(about["filename"].numpy()):
    r = data[where[name.decode()]]
    assert (image[k].numpy()[:, :, 0] == r.image).all() and about["age"][k] == r.age
    assert about["sex"][k].numpy().decode() == r.sex and about["view"][k].numpy().decode() == r.view
model = tf.keras.Sequential([tf.keras.layers.Rescaling(1 / 255), tf.keras.layers.Flatten(), tf.keras.layers.Dense(14)])
model.compile(loss=tf.keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(chex_tools.tf.dataset(folder, "train", batch_size=16, shuffle=True), verbose=0)
path = f"{folder}/{data.manifest['shards'][0]['name']}"
with open(path, "r+b") as f:
    f.seek(100)
    byte = f.read(1)[0]
    f.seek(100)
    f.write(bytes([byte ^ 1]))
assert len(list(chex_tools.tf.dataset(folder, "train"))) == len(data)
try:
    list(chex_tools.tf.dataset(folder, "train", checksums=True))
    raise SystemExit("no error")
except tf.errors.DataLossError:
    pass
"""


@case("tf.dataset(): the records in order, shuffled and batched; Keras trains on it; checksums")
def _(work):
    shutil.copytree(dataset(), os.path.join(work, "copy"))
    python(work, "tensorflow", TENSORFLOW, os.path.join(work, "copy"))


if __name__ == "__main__":
    sys.exit(case.main())
