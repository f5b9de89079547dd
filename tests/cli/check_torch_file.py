#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train --init with files of torch.save(): the bytes of a run from the same weights as safetensors; every other
pickle is refused, and none of its code runs.

    check_torch_file.py [PATTERN]   cases with PyTorch itself run with CHEX_SLOW=1; the others write the files by hand
"""
import copy
import functools
import io
import json
import math
import os
import shutil
import struct
import sys
import tarfile
import zipfile

from support import Cases, peak_kib, program, python_with, run, says, slurp, write
from training import command, data, header, scratch, whole, with_header

case = Cases()
DTYPES = {"F32": "FloatStorage", "I64": "LongStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage"}
MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")


# ---- pickles by hand -----------------------------------------------------------------------------------------------


def text(value):
    value = value.encode()
    return b"X" + struct.pack("<I", len(value)) + value


def number(value):
    return b"J" + struct.pack("<i", value)


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def name(module, word):
    return b"c" + module.encode() + b"\n" + word.encode() + b"\n"


def rows(shape):
    """Strides of values row by row."""
    return [math.prod(shape[i + 1:]) for i in range(len(shape))]


ORDERED = name("collections", "OrderedDict")


def tensor(key, stored, shape, stride=None, offset=0, kind="FloatStorage", module="torch"):
    storage = b"(" + text("storage") + name(module, kind) + text(key) + text("cpu") + number(stored) + b"tQ"
    return (name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + number(offset) + numbers(shape)
            + numbers(rows(shape) if stride is None else stride) + b"\x89" + ORDERED + b")RtR")


def dictionary(items):
    return b"}(" + b"".join(text(k) + v for k, v in items) + b"u"


def pairs(items):
    """A dictionary as Python 2 wrote it: OrderedDict([[key, value], ...])."""
    return ORDERED + b"](" + b"".join(b"](" + text(k) + v + b"e" for k, v in items) + b"e\x85R"


def program_of(value):
    return b"\x80\x02" + value + b"."


def zipped(value, storages, method=zipfile.ZIP_STORED, more=(), again=()):
    """A zip of torch.save(); its list has the members `again` a second time, under other names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("archive/data.pkl", program_of(value))
        for member, content in more:
            archive.writestr(f"archive/{member}", content)
        for key, content in storages.items():
            archive.writestr(f"archive/data/{key}", content)
        for key in again:
            member = copy.copy(archive.getinfo(f"archive/data/{key}"))
            member.filename = member.orig_filename = f"archive/data/{key}-again"
            archive.filelist.append(member)
    return out.getvalue()


def old(value, storages, sizes, little=b"\x88"):
    """The format before PyTorch 1.6."""
    keys = b"](" + b"".join(map(text, storages)) + b"e"
    head = MAGIC + program_of(number(1001)) + program_of(b"}" + text("little_endian") + little + b"s")
    blobs = b"".join(struct.pack("<Q", len(content) // sizes[key]) + content for key, content in storages.items())
    return head + program_of(value) + program_of(keys) + blobs


@functools.lru_cache(None)
def weights():
    """{name: (dtype, shape, bytes)} of a run of densenet-micro."""
    path = os.path.join(whole(), "best.safetensors")
    blob, top = slurp(path), header(path)
    start = 8 + struct.unpack_from("<Q", blob)[0]
    return {key: (e["dtype"], e["shape"], blob[start + e["data_offsets"][0]:start + e["data_offsets"][1]])
            for key, e in top.items() if key != "__metadata__"}


def as_torch(rename=lambda key: key, make=dictionary):
    """A pickle of weights(), their storages and the bytes of a value in each."""
    items, storages, sizes = [], {}, {}
    for i, (key, (dtype, shape, content)) in enumerate(weights().items()):
        size = 8 if dtype == "I64" else 4
        items.append((rename(key), tensor(str(i), len(content) // size, shape, kind=DTYPES[dtype])))
        storages[str(i)], sizes[str(i)] = content, size
    return make(items), storages, sizes


# ---- runs ----------------------------------------------------------------------------------------------------------


def one_step(work, path):
    """The command of a run of one step from these weights."""
    out = os.path.join(work, "run")
    shutil.rmtree(out, ignore_errors=True)
    return [*command(out, "--epochs", "1", "--max-steps", "1", "--seed", "3", "-q"), "--init", path]


def first_step(work, path, code=0):
    """The bytes of the checkpoint after one step from these weights."""
    out = os.path.join(work, "run")
    done = run(one_step(work, path), code)
    return slurp(f"{out}/step-000001.safetensors") if code == 0 else done


@functools.lru_cache(None)
def from_safetensors():
    path = os.path.join(scratch(), "plain.safetensors")
    shutil.copy(os.path.join(whole(), "best.safetensors"), path)
    with_header(path, lambda top: top.pop("__metadata__"))
    return first_step(scratch(), path)


def same(work, blob, what):
    assert first_step(work, write(f"{work}/x.pth", blob)) == from_safetensors(), f"{what}: other bytes"


def refused(work, blob, code, *patterns):
    done = first_step(work, write(f"{work}/x.pth", blob), code)
    says(done, *patterns)
    assert not os.path.exists(f"{work}/run"), "a refused file made a run"


def refused_small(work, blob, *patterns):
    """It is refused, with less memory than 300 MiB."""
    peak, done = peak_kib([str(word) for word in one_step(work, write(f"{work}/x.pth", blob))], 6)
    says(done, *patterns)
    assert peak < 300 << 10, f"{peak} KiB for {len(blob)} bytes"


# ---- the same bytes ------------------------------------------------------------------------------------------------


@case("a zip of torch.save() starts the same run as safetensors, byte by byte")
def _(work):
    value, storages, _ = as_torch()
    same(work, zipped(value, storages, more=[("byteorder", "little"), ("version", "3\n")]), "zip")


@case("so does the format before PyTorch 1.6")
def _(work):
    same(work, old(*as_torch()), "old")


@case("dictionaries under state_dict or model, prefixes, old names, parameters and storages of a GPU")
def _(work):
    value, storages, sizes = as_torch(lambda key: "module." + key)
    same(work, zipped(dictionary([("epoch", number(3)), ("state_dict", value), ("loss", b"G" + bytes(8))]), storages),
         "state_dict")
    same(work, zipped(dictionary([("model", dictionary([("state_dict", value)]))]), storages), "model")
    for prefix in ("_orig_mod.", "module._orig_mod.", "net."):  # torch.compile, and with DataParallel; Lightning
        same(work, zipped(*as_torch(lambda key, prefix=prefix: prefix + key)[:2]), prefix)
    value, _, _ = as_torch(lambda key: key.replace("norm1", "norm.1").replace("conv2", "conv.2")
                           if "denselayer" in key else key)
    same(work, old(value, storages, sizes), "old names")
    value = as_torch()[0].replace(name("torch", "FloatStorage"), name("torch.cuda", "FloatStorage"))
    same(work, zipped(value, storages), "cuda")
    first, (_, shape, content) = next(iter(weights().items()))
    plain = tensor("0", len(content) // 4, shape)
    parameter = name("torch._utils", "_rebuild_parameter") + b"(" + plain + b"\x88N" + b"tR"
    assert plain in as_torch()[0], first
    same(work, zipped(as_torch()[0].replace(plain, parameter), storages), "parameter")
    same(work, zipped(as_torch(make=pairs)[0], storages), "pairs")


@case("tensors that share one storage, and strides: channels_last and a transposed matrix")
def _(work):
    floats = {key: e for key, e in weights().items() if e[0] == "F32"}
    items, content, counters = [], b"", {}
    for key, (_, shape, values) in floats.items():
        value = memoryview(values).cast("f")
        stride = rows(shape)
        if len(shape) == 4:
            n, c, h, w = shape
            stride = [c * h * w, 1, w * c, c]
        elif len(shape) == 2:
            stride = [1, shape[0]]
        stored = [0.0] * len(value)
        for i, v in enumerate(value):
            place, left = 0, i
            for size, step in zip(reversed(shape), reversed(stride)):
                place += left % size * step
                left //= size
            stored[place] = v
        items.append((key, (len(content) // 4, shape, stride)))
        content += struct.pack(f"<{len(stored)}f", *stored)
    total = len(content) // 4
    made = [(key, tensor("all", total, shape, stride, offset)) for key, (offset, shape, stride) in items]
    for key, (dtype, shape, values) in weights().items():
        if dtype == "I64":
            made.append((key, tensor(key, 1, shape, kind="LongStorage")))
            counters[key] = values
    same(work, zipped(dictionary(made), {"all": content, **counters}), "shared")
    other = [(key, tensor("all", total, shape, None, offset)) for key, (offset, shape, _) in items]
    assert first_step(work, write(f"{work}/y.pth", zipped(dictionary(other), {"all": content}))) != \
        from_safetensors(), "without strides the weights would be the same: nothing was tested"


@case("a safetensors file whose length begins as a pickle does is no pickle")
def _(work):
    path = os.path.join(whole(), "best.safetensors")
    top = header(path)
    top.pop("__metadata__")
    body = json.dumps(top).encode()
    size = 8 + struct.unpack_from("<Q", slurp(path))[0]
    length = 0x10280
    assert len(body) < length and struct.pack("<Q", length)[:2] == b"\x80\2"
    same(work, struct.pack("<Q", length) + body.ljust(length) + slurp(path)[size:], "safetensors")


@case("a last layer of another size gets random weights; --eval-only and -n read the file too")
def _(work):
    value, storages, _ = as_torch()
    key = "classifier.weight"
    found = weights()[key][1]
    number_of = str(list(weights()).index(key))
    count = found[0] * found[1]
    value = value.replace(tensor(number_of, count, found), tensor(number_of, count, found[::-1]))
    path = write(f"{work}/head.pth", zipped(value, storages))
    done = run([*command(f"{work}/run", "-n"), "--init", path])
    says(done, "last layer")
    path = write(f"{work}/x.pth", zipped(*as_torch()[:2]))
    for file, out in ((path, "a.csv"), (f"{whole()}/best.safetensors", "b.csv")):
        run([program("chex-train"), "-q", "-d", data(), "--model", "densenet-micro", "--crop", "32", "--init", file,
             "--eval-only", "--predict", f"{work}/{out}", "--bootstrap", "0"])
    assert slurp(f"{work}/a.csv") == slurp(f"{work}/b.csv")


# ---- refusals ------------------------------------------------------------------------------------------------------


@case("no name of a pickle is called but those of tensors; the error says which, and nothing runs")
def _(work):
    value, storages, sizes = as_torch()
    bait = f"{work}/ran"
    for module, word in (("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "exec"),
                         ("subprocess", "Popen"), ("torch", "load"), ("torch.hub", "load"), ("torch", "FloatStorage2"),
                         ("torch._utils", "_rebuild_tensor_v3"), ("numpy.core.multiarray", "scalar"),
                         ("__main__", "Net"), ("argparse", "Namespace")):
        attack = name(module, word) + b"(" + text(f"touch {bait}") + b"tR"
        for blob in (zipped(dictionary([("a", attack), ("state_dict", value)]), storages),
                     old(dictionary([("a", attack), ("state_dict", value)]), storages, sizes)):
            refused(work, blob, 6, rf"it needs '{module}\.{word}', which is not a tensor")
    stack = text("posix") + text("system") + b"\x93" + text(f"touch {bait}") + b"\x85R"
    refused(work, zipped(stack, storages), 6, "it needs 'posix.system'")
    hidden = name("collections", "OrderedDict") + b")R}" + text("__reduce__") + name("os", "system") + b"sb"
    refused(work, zipped(hidden, storages), 6, "it needs 'os.system'")
    for operation in (b"\x81", b"i", b"o", b"\x82\1", b"P1\n"):  # NEWOBJ, INST, OBJ, EXT1, PERSID
        refused(work, zipped(b"N)" + operation, storages), 6, f"the operation 0x{operation[0]:02x} at byte 4")
    refused(work, zipped(name("torch", "FloatStorage") + b")R", storages), 6, "it calls 'torch.FloatStorage'")
    assert not os.path.exists(bait), "code of the file ran"
    refused(work, zipped(name("a\x1b[31m", "b"), storages), 6, r"needs 'a\\x1b\[31m\.b'")


@case("tensors outside of their storage, sizes that overflow, missing storages")
def _(work):
    blob = struct.pack("<4f", 1, 2, 3, 4)
    big = 2**31 - 1

    def one(*words, storages=None, **more):
        return zipped(dictionary([("a", tensor(*words, **more))]), {"0": blob} if storages is None else storages)

    refused(work, one("0", 4, [5]), 6, "larger than its storage")
    refused(work, one("0", 4, [2, 2], [3, 1]), 6, "larger than its storage")
    refused(work, one("0", 4, [4], offset=1), 6, "larger than its storage")
    refused(work, one("0", 4, [2], [-1]), 6, "not numbers from 0 on")
    refused(work, one("0", 4, [2], offset=-1), 6, "not a storage, an offset, a shape")
    refused(work, one("0", 4, [big] * 4, [1] * 4), 6, "its shape overflows")
    refused(work, one("0", 4, [1] * 9), 6, "at most 8 numbers")
    refused(work, one("0", 5, [5]), 6, "the storage '0' has another size")
    refused(work, one("1", 4, [4]), 6, "the storage '1' is missing")
    refused(work, one("../../etc/passwd", 4, [4]), 6, "is missing")
    refused(work, one("0", big, [big], storages={}), 6, "is missing")
    refused(work, zipped(b"N", {}), 6, "no dictionary of tensors")
    refused(work, zipped(dictionary([]), {}), 6, "no tensors")
    refused(work, zipped(b"]q\0h\0a", {}), 6, "no dictionary of tensors")
    refused(work, zipped(b"Nr\xff\xff\xff\xff", {}), 6, "more than 1000000 values")
    refused(work, zipped(b"N" * 1000001, {}), 6, "more than 1000000 values")
    refused(work, zipped(b"N0", {}), 6, "leaves no value")
    refused(work, zipped(b"h\5", {}), 6, "has not kept")
    refused(work, zipped(b"X\xff\xff\xff\xff", {}), 6, "ends within an operation")
    # A value of 2^31 elements without strides: it fits, but it is no tensor of the network.
    refused(work, one("0", 4, [big, big], [0, 0]), 6, "tensors of densenet-micro do not fit")
    twice = dictionary([("a", tensor("0", 4, [4])), ("a", tensor("0", 4, [4]))])
    refused(work, zipped(twice, {"0": blob}), 6, "'a': it occurs twice")


@case("one value used many times: elements, tensors and names are limited, so a small file takes little memory")
def _(work):
    one = {"0": struct.pack("<4f", 1, 2, 3, 4)}
    kept = ORDERED + b"q\0" + text("a") + b"N\x86q\1"
    lists = kept + b"](" + b"h\1" * 100000 + b"e\x85q\2" + b"h\0h\2R0" * 2000
    refused_small(work, zipped(lists, one), "the lists and dictionaries of the pickle have more than 4000000 elements")
    for made in (b"](" + b"h\1" * 1000 + b"e0", b"(" + b"h\1" * 1000 + b"t0", b"}(" + b"h\1" * 1000 + b"u0"):
        refused_small(work, zipped(kept + made * 4000, one), "have more than 4000000 elements")

    def many(key, count):
        first = text(key) + b"q\0" + tensor("0", 4, [4]) + b"q\1"
        return zipped(b"}(" + first + b"h\0h\1" * (count - 1) + b"u", one)

    refused_small(work, many("k" * 200000, 10000), "the name of a tensor has more than 512 bytes")
    refused_small(work, many("k" * 513, 1), "the name of a tensor has more than 512 bytes")
    refused_small(work, many("k", 65537), "it has more than 65536 tensors")
    refused_small(work, many("k" * 512, 65536), "it occurs twice")


@case("members of a zip that overlap would be read many times: together they are not larger than the file")
def _(work):
    value, storages, _ = as_torch()
    refused(work, zipped(value, storages, again=storages), 6,
            "the list of the zip is damaged: its members together are larger than the file")


@case("the error says what is too long: a member of the zip, or the name of a module")
def _(work):
    value, storages, _ = as_torch()
    refused(work, zipped(value, storages, more=[("byteorder", "l" * 65)]), 6,
            "member 'archive/byteorder' of the zip has more than 64 bytes")
    refused(work, zipped(value, storages, more=[("byteorder", "l" * 64)]), 6, "not little-endian")
    refused(work, zipped(b"N" * (16 << 20), {}), 6, "member 'archive/data.pkl' of the zip has more than 16777216 bytes")
    refused(work, zipped(name("a" * 256, "b"), {}), 6, "a name of more than 255 bytes")
    refused(work, zipped(name("a", "b" * 255), {}), 6, "it needs 'a.bbb")
    refused(work, zipped(name("torch", "Float\0Storage"), {}), 6, "a name with a zero byte")


@case("other files: a compressed zip, another zip, big-endian values, the oldest format, another pickle")
def _(work):
    value, storages, sizes = as_torch()
    refused(work, zipped(value, storages, zipfile.ZIP_DEFLATED), 6, "compressed or encrypted")
    refused(work, zipped(value, storages, more=[("byteorder", "big")]), 6, "not little-endian")
    refused(work, old(value, storages, sizes, b"\x89"), 6, "not little-endian")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "x")
    refused(work, out.getvalue(), 3, "none of torch.save")
    refused(work, program_of(b"N") * 5, 3, "a Python pickle, but none of torch.save")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("storages"))
    refused(work, out.getvalue(), 3, r"before 0\.1\.10; this converts it: python3 -c")


@case("every truncation, and a changed byte of a storage or of the list, is refused")
def _(work):
    value, storages, sizes = as_torch()
    blob = zipped(value, storages)
    for cut in sorted({len(blob) * i // 12 for i in range(1, 12)} | {len(blob) - 1, len(blob) - 22, 4, 30}):
        refused(work, blob[:cut], 6, "x.pth")
    before = old(value, storages, sizes)
    for cut in [len(before) * i // 8 for i in range(1, 8)] + [len(before) - 1, 20]:
        refused(work, before[:cut], 6, "x.pth")
    place = blob.index(next(iter(storages.values()))) + 5
    refused(work, blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1:], 6, "CRC-32 does not match")
    place = blob.index(b"archive/data.pkl") + 40
    refused(work, blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1:], 6, "data.pkl' of the zip: its CRC-32")
    place = blob.rindex(b"PK\1\2")
    refused(work, blob[:place] + b"XX" + blob[place + 2:], 6, "list of the zip is damaged")


# ---- PyTorch itself ------------------------------------------------------------------------------------------------

TORCH = """
import os, sys
sys.path.append(sys.argv[1])
import torch, torchvision
from safetensors.torch import save_file

torch.manual_seed(4)
model = torchvision.models.DenseNet(16, (4, 4, 4), 32, num_classes=14)
with torch.no_grad():
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 1.5)
for dtype in ("float32", "float16", "bfloat16", "float64"):
    state = model.to(getattr(torch, dtype)).state_dict()
    save_file(state, f"{dtype}.safetensors")
    torch.save(state, f"{dtype}.zip.pth")
    torch.save(state, f"{dtype}.old.pth", _use_new_zipfile_serialization=False)
    torch.save(state, f"{dtype}.protocol4.pth", pickle_protocol=4)
    optimizer = torch.optim.Adam(model.parameters())
    torch.save({"epoch": 3, "state_dict": {"module." + k: v for k, v in state.items()},
                "optimizer": optimizer.state_dict(), "best": 0.5, "name": None}, f"{dtype}.nested.pth")
    last = model.to(memory_format=torch.channels_last)
    assert not all(v.is_contiguous() for v in last.state_dict().values())
    torch.save(last.state_dict(), f"{dtype}.channels_last.pth")
    torch.save(dict(last.named_parameters()) | dict(last.named_buffers()), f"{dtype}.parameters.pth")
    flat = torch.cat([v.flatten() for v in state.values() if v.is_floating_point()])
    shared, at = dict(state), 0
    for key, v in state.items():
        if v.is_floating_point():
            shared[key] = flat[at:at + v.numel()].view(v.shape)
            at += v.numel()
    torch.save(shared, f"{dtype}.shared.pth")
    model = model.to(memory_format=torch.contiguous_format)

class Attack:
    def __reduce__(self):
        return os.system, ("touch ran",)

torch.save({"state_dict": state, "a": Attack()}, "attack.pth")
torch.save(model, "model.pth")
"""


@case("files that PyTorch writes: types, protocols, nested, channels_last, shared, old; an attack", slow=True)
def _(work):
    find = "import os, safetensors; print(os.path.dirname(os.path.dirname(safetensors.__file__)))"
    where = run([python_with("safetensors"), "-c", find]).stdout.strip()
    run([python_with("torchvision"), write(f"{work}/make.py", TORCH), where], cwd=work)
    compared = 0
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        wanted = first_step(work, f"{work}/{dtype}.safetensors")
        for path in sorted(p for p in os.listdir(work) if p.startswith(dtype + ".") and p.endswith(".pth")):
            assert first_step(work, f"{work}/{path}") == wanted, f"{path}: other bytes"
            compared += 1
    assert compared == 28, compared
    says(first_step(work, f"{work}/attack.pth", 6), r"it needs 'posix\.system'")
    says(first_step(work, f"{work}/model.pth", 6), r"it needs 'torchvision\.models\.densenet\.DenseNet'")
    assert not os.path.exists(f"{work}/ran")
    print(f"     {compared} files of torch.save() give the bytes of safetensors")


sys.exit(case.main())
