# SPDX-License-Identifier: Apache-2.0
"""chex-train on a device as a user has it: whole runs of densenet-micro on synthetic images (a part of check_gpu.py).

What a run leaves in its folder must not depend on when it was stopped, killed or started again: best.safetensors, the
checkpoints, predictions and metrics are compared by their bytes.
"""
import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

from gpu_results import TooLong, program

EXACT = re.compile(r"step-.*|latest|best\.safetensors|predictions-.*|metrics-.*\.json|auroc.*\.svg")
EPOCHS = 3


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def kept(folder):
    """{name: SHA-256} of what must be the same."""
    return {name: digest(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if EXACT.fullmatch(name)}


def newest(folder):
    with open(os.path.join(folder, "latest"), encoding="ascii") as file:
        return file.readline().split()[0]


def same_end(folder, reference):
    """The newest checkpoint and all results; which older checkpoints stayed depends on when there was a save."""
    last = newest(reference)
    wanted, got = kept(reference), kept(folder)
    names = {n for n in wanted if not n.startswith("step-")} - {"latest"}
    names |= {last + ".safetensors", last + ".opt.safetensors"}
    assert newest(folder) == last, f"{newest(folder)} instead of {last}"
    differ = sorted(n for n in names if wanted.get(n) != got.get(n))
    assert not differ, f"other bytes in {', '.join(differ)}"
    return {"files": len(names)}


class Lab:
    """A data set, a folder for runs, and the commands."""

    def __init__(self, results, o):
        self.r, self.o = results, o
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a checkpoint is synced several times
        self.work = tempfile.mkdtemp(prefix="chex-gpu-", dir=memory)
        self.data = None

    def make_data(self, name, count, side, size, split="patient:50,25,25", shard=16):
        """A data set of so many synthetic images; its folder."""
        folder, images = os.path.join(self.work, name), os.path.join(self.work, name + ".images")
        self.r.run([program("chex-synth"), "-q", "-n", count, "--size", side, "-o", images])
        self.r.run([program("chex-convert"), "-q", "-i", images + "/images", "-l",
                    images + "/Data_Entry_2017_v2020.csv", "-o", folder, "--size", size, "--shard-size", shard,
                    "--split", split])
        return folder

    def folder(self, name):
        return os.path.join(self.work, name)

    def words(self, name, *more, device=None, precision=None, data=None):
        device = device or self.o.device
        words = [program("chex-train", self.o.device), "-d", data or self.data, "-o", self.folder(name)]
        words += ["--device", device]
        if device == self.o.device:
            words += ["--precision", precision or self.o.precisions[0]]
        # By its loss the last epoch is the best, so the best model is of the last start of a resumed run.
        return words + ["--model", "densenet-micro", "--crop", "32", "--batch", "16", "--epochs", str(EPOCHS),
                        "--select", "loss",
                        "--bootstrap", "20", "-j", "2", *map(str, more)]

    def train(self, name, *more, code=0, **where):
        return self.r.run(self.words(name, *more, **where), code, 120)

    def start(self, name, *more):
        return subprocess.Popen(self.words(name, "-v", *more), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)

    def straight(self):
        """The folder of a run that nobody disturbed."""
        if not os.path.exists(self.folder("straight")):
            self.train("straight")
        return self.folder("straight")


def wait_for(process, pattern, seconds):
    """Until the program has said this; what it said."""
    said, end = b"", time.monotonic() + seconds
    while not re.search(pattern, said, re.M):
        if not select.select([process.stderr], [], [], max(0, end - time.monotonic()))[0]:
            process.kill()
            process.communicate()
            raise TooLong(f"it never said /{pattern.decode()}/")
        more = os.read(process.stderr.fileno(), 65536)
        if not more:
            process.wait()
            raise AssertionError(f"it ended with {process.returncode} before it said /{pattern.decode()}/: "
                                 f"{said.decode(errors='replace')[-300:]}")
        said += more
    return said


def finish(process, seconds=60):
    """(exit code, what it said until then)"""
    try:
        said = process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"it did not end within {seconds} s") from None
    return process.returncode, said.decode(errors="replace")


# ---- cases -------------------------------------------------------------------------------------------------------

def two_runs(lab, precision):
    for name in ("a", "b"):
        lab.train(f"{precision}-{name}", precision=precision)
    a, b = kept(lab.folder(f"{precision}-a")), kept(lab.folder(f"{precision}-b"))
    assert a == b, f"other bytes in {sorted(n for n in set(a) | set(b) if a.get(n) != b.get(n))}"
    return {"files": len(a), "best": a.get("best.safetensors", "")[:16]}


def resumed(lab):
    lab.straight()
    lab.train("resumed", "--epochs", "1")
    lab.train("resumed")
    return same_end(lab.folder("resumed"), lab.straight())


def by_signal(lab, number, code):
    """Stopped in the second epoch of many; the command again, for as many epochs as a straight run has."""
    name = f"signal-{int(number)}"
    process = lab.start(name, "--epochs", "300", "--checkpoint-every", "3steps")
    wait_for(process, rb"^ep 2/", 60)
    process.send_signal(number)
    got, said = finish(process)
    assert got == code, f"exit code {got} instead of {code}: {said[-300:]}"
    step = int(newest(lab.folder(name))[5:])
    epochs = step // steps_of_epoch(lab) + 2
    lab.train(name, "--epochs", epochs)
    lab.train(name + "-straight", "--epochs", epochs)
    return dict(same_end(lab.folder(name), lab.folder(name + "-straight")), step=step)


def steps_of_epoch(lab):
    step = int(newest(lab.straight())[5:])
    assert step % EPOCHS == 0, f"{step} steps in {EPOCHS} epochs"
    return step // EPOCHS


def evaluation(lab, name, device):
    """The AUROC of the best model of a run, on this device."""
    done = lab.r.run(lab.words(name, "--eval-only", "--json", device=device), 0, 60)
    found = json.loads(done.stdout)
    return mean_auroc(found)


def mean_auroc(document):
    """The first number below a key "auroc", wherever the document has it."""
    if isinstance(document, dict):
        value = document.get("auroc")
        if isinstance(value, dict):
            value = value.get("value", value.get("mean"))
        if isinstance(value, (int, float)):
            return float(value)
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            found = mean_auroc(part)
            if found is not None:
                return found
    return None


def there_and_back(lab):
    """One epoch on the CPU, one on the device, one on the CPU: each resumes the other's checkpoint."""
    per_epoch, other = steps_of_epoch(lab), lab.o.against
    for epochs, device in ((1, other), (2, lab.o.device), (3, other)):
        done = lab.train("moved", "--epochs", epochs, device=device)
        assert newest(lab.folder("moved")) == f"step-{epochs * per_epoch:06}", newest(lab.folder("moved"))
        assert epochs == 1 or f"resume   step-{(epochs - 1) * per_epoch:06}" in done.stderr, done.stderr[-400:]
    there, here = evaluation(lab, "moved", lab.o.device), evaluation(lab, "moved", other)
    assert there is not None and here is not None, "an evaluation without an AUROC"
    assert abs(there - here) < 0.01, f"AUROC {there} on {lab.o.device}, {here} on {other}"
    return {"auroc": there, "auroc_there": here}


def out_of_memory(lab):
    """A micro-batch of a network that no device has room for: refused, with what is needed and what is there."""
    large = lab.make_data("large", 24, 256, 224)
    done = lab.r.run([program("chex-train", lab.o.device), "-d", large, "-o", lab.folder("too-much"),
                      "--device", lab.o.device, "--model", "densenet121", "--batch", "65536", "--micro-batch", "65536",
                      "-j", "2"], None, 60)
    said = [line for line in done.stderr.splitlines() if line.startswith("chex-train: ")]
    assert done.returncode in (4, 6), f"exit code {done.returncode}: {done.stderr[-300:]}"
    assert len(said) == 1 and re.search(r"\d [GT]B.*\d [GT]B", said[0]), f"neither needed nor free: {said}"
    return {"said": said[0]}


def poisoned(lab):
    """A copy of the data set, with a bit of the pixels of a training record flipped; the record's shard."""
    folder = os.path.join(lab.work, "poisoned")
    if os.path.exists(folder):
        shutil.rmtree(folder)
    shutil.copytree(lab.data, folder)
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    name = next(s["name"] for s in manifest["shards"] if "-train." in s["name"])
    with open(os.path.join(folder, name), "r+b") as file:
        file.seek(manifest["record"]["stride"] * 3 + manifest["record"]["pixel_offset"] + 5)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    return folder, name


def damaged_record(lab):
    folder, shard = poisoned(lab)
    done = lab.train("damaged", code=1, data=folder)
    assert shard in done.stderr and "checksum" in done.stderr, done.stderr[-300:]
    shutil.copy(os.path.join(lab.data, shard), os.path.join(folder, shard))
    lab.train("damaged", data=folder)
    same_end(lab.folder("damaged"), lab.straight())
    folder, _ = poisoned(lab)
    done = lab.train("passed-over", "--on-bad-record", "skip", code=1, data=folder)
    assert "1 damaged record skipped" in done.stderr, done.stderr[-300:]


def diverged(lab):
    """A rate that no network survives: 7, the last good checkpoint stays, and the run goes on from it."""
    lab.train("diverged", "--epochs", "1")
    before = kept(lab.folder("diverged"))
    done = lab.train("diverged", "--lr", "1e30", code=7)
    assert "not finite" in done.stderr, done.stderr[-300:]
    assert kept(lab.folder("diverged")) == before, "the last good checkpoint was changed"
    lab.train("diverged", "--lr", "1e-3")
    return same_end(lab.folder("diverged"), lab.straight())


def check_runs(r, o):
    lab = Lab(r, o)
    try:
        lab.data = lab.make_data("data", 160, 64, 36)
        for precision in o.precisions:
            r.case(f"two runs, {precision}: the same bytes", lambda precision=precision: two_runs(lab, precision))
        r.case("resumed after an epoch: the same bytes", lambda: resumed(lab))
        r.case("SIGTERM: 75, and the same bytes behind it", lambda: by_signal(lab, signal.SIGTERM, 75))
        r.case("kill -9: the same bytes behind it", lambda: by_signal(lab, signal.SIGKILL, -9))
        r.case(f"{o.against}, {o.device}, {o.against}: one run", lambda: there_and_back(lab))
        r.case("out of memory: what is needed, what is free", lambda: out_of_memory(lab))
        r.case("a damaged record", lambda: damaged_record(lab))
        r.case("a loss that is not finite", lambda: diverged(lab))
    finally:
        shutil.rmtree(lab.work, ignore_errors=True)
