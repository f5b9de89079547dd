#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several processes on one conversion: MPI ranks, and the parts of a job array (Python 3, stdlib only).

    check_ranks.py [PATTERN]      only the cases whose name matches the regular expression

The cases with ranks are skipped where there is no mpirun, or chex-convert was built without MPI.
"""
import functools
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

import mpi
from mpi import ENVIRONMENT, children, finish, gone, start, wait_for
import support
from support import (PATIENCE, Cases, Skip, cache_folder, complete, manifest, program, records, rejects, run, same_tree,
                     says, slurp, synth, write)

case = Cases()
CACHE = cache_folder("ranks")
SMALL = ["--size", "32", "--shard-size", "8"]
# Half a second or more: every image is decoded a second time with libpng.
SLOW = ["--size", "256", "--shard-size", "8", "--resize", "lanczos", "--cross-check", "100%", "-j", "1"]


@functools.lru_cache(None)
def base():
    """60 small images with lists, two of them damaged; read only."""
    folder = os.path.join(CACHE, "base")
    synth(folder, 60, "--size", "64")
    for path in sorted(glob.glob(f"{folder}/images/*"))[10:40:29]:
        write(path, slurp(path)[:200])
    return folder


@functools.lru_cache(None)
def larger():
    folder = os.path.join(CACHE, "larger")
    synth(folder, 300, "--size", "512")
    return folder


def command(folder, out, *options, how=tuple(SMALL)):
    return [program("chex-convert"), "-i", f"{folder}/images", "-l", f"{folder}/Data_Entry_2017_v2020.csv", "-o", out,
            "--allow-rejects", "5", *how, *options]


def ranks(count, *words):
    return mpi.ranks("chex-convert", count, *words)


@functools.lru_cache(None)
def straight(folder, how=tuple(SMALL)):
    """The folder that one process makes."""
    out = tempfile.mkdtemp(dir=CACHE)
    run(command(folder, out, how=how))
    complete(out)
    return out


def at_work(process, out, count):
    """The ranks, once each has a journal and one shard at least is done."""
    wait_for(lambda: len(glob.glob(f"{out}/.chex-journal-*")) == count and glob.glob(f"{out}/chestxray14-*")
             or process.poll() is not None)
    assert process.poll() is None, f"ended too soon: {process.communicate()[1]}"
    return children(process.pid, "chex-convert")


# ---- ranks ---------------------------------------------------------------------------------------------------------


@case("one to four ranks write the folder that one process writes")
def _(work):
    for count in (1, 2, 3, 4):
        done = run(ranks(count, *command(base(), f"{work}/{count}")), env=ENVIRONMENT)
        complete(f"{work}/{count}")
        same_tree(straight(base()), f"{work}/{count}")
        assert done.stderr.count("done     ") == 1, "rank 0 alone reports"
    assert len([r for r in rejects(f"{work}/4") if r["kind"] == "image"]) == 2


@case("ranks count rejects and notes as one process does", slow=True)
def _(work):
    one = json.loads(run(command(base(), f"{work}/one", "--json", "-q")).stdout)
    four = json.loads(run(ranks(4, *command(base(), f"{work}/four", "--json", "-q")), env=ENVIRONMENT).stdout)
    for name in ("converted", "rejects", "rejects_by_reason", "noticed"):
        assert one["result"][name] == four["result"][name], name


@case("a rejected image is reported with the rank that met it", slow=True)
def _(work):
    done = run(ranks(4, *command(base(), f"{work}/out")), env=ENVIRONMENT)
    assert done.stderr.count("reject 0") == 2, done.stderr


@case("more ranks than shards: some have nothing to do", slow=True)
def _(work):
    how = ("--size", "32", "--shard-size", "60", "--split", "none")
    run(ranks(3, *command(base(), f"{work}/out", how=how)), env=ENVIRONMENT)
    same_tree(straight(base(), how), f"{work}/out")


@case("a shard without any usable image borrows one from the shard of another rank", slow=True)
def _(work):
    folder, how = shutil.copytree(base(), f"{work}/copy"), ("--size", "32", "--shard-size", "2", "--split", "none")
    run(command(folder, f"{work}/first", "-q", how=how))
    first = next(records(f"{work}/first", s) for s in manifest(f"{work}/first")["shards"][1:2])
    for record in first:  # both images of the second shard, which is rank 1's
        write(f"{folder}/images/{record['filename'].decode()}", b"no image")
    how += ("--allow-rejects", "50")
    run(command(folder, f"{work}/one", how=how))
    run(ranks(4, *command(folder, f"{work}/four", how=how)), env=ENVIRONMENT)
    complete(f"{work}/four")
    same_tree(f"{work}/one", f"{work}/four")


@case("a reject of any rank together with a damaged archive prevents publication, as with one process", slow=True)
def _(work):
    folder, how = shutil.copytree(base(), f"{work}/copy"), ("--size", "32", "--shard-size", "8", "--split", "none")
    run(command(folder, f"{work}/first", "-q", how=how))
    names = [r["filename"].decode() for r in records(f"{work}/first", manifest(f"{work}/first")["shards"][1])]
    for path in glob.glob(f"{folder}/images/*"):
        if len(slurp(path)) == 200:  # what base() damaged
            shutil.copy(next(p for p in glob.glob(f"{folder}/images/*") if len(slurp(p)) > 200), path)
    write(f"{folder}/images/{names[0]}", b"no image")  # that of rank 1
    with tarfile.open(f"{work}/a.tar", "w") as tar:
        tar.add(f"{folder}/images", "images")
    write(f"{work}/a.tar", slurp(f"{work}/a.tar").rstrip(b"\0"))  # damaged, but only behind the last member
    line = [program("chex-convert"), "-i", f"{work}/a.tar", "-l", f"{folder}/Data_Entry_2017_v2020.csv", *how]
    for number, words in enumerate(([*line, "-o", f"{work}/0"], ranks(2, *line, "-o", f"{work}/1"),
                                    ranks(4, *line, "-o", f"{work}/2"))):
        says(run(words, 1, env=ENVIRONMENT), f"reject {names[0]}", "is damaged at byte .*; 1 image was rejected")
        assert not os.path.exists(f"{work}/{number}/manifest.json")


@case("rank 0's progress line shows its own part, with the number of parts", slow=True)
def _(work):
    done = run(ranks(3, *command(larger(), f"{work}/out", "--progress", "bar", how=tuple(SLOW))), env=ENVIRONMENT)
    says(done, r"convert  part 1 of 3 +\d+ %  \d+/\d\d  ")
    assert "part 2 of 3" not in done.stderr and "part 3 of 3" not in done.stderr, done.stderr
    done = run(command(larger(), f"{work}/part", "--part", "2/3", "--progress", "bar", how=tuple(SLOW)))
    says(done, r"convert  part 2 of 3 +\d+ %  \d+/\d\d  ")


@case("rejects of all ranks together are too many, though no rank has too many", slow=True)
def _(work):
    folder = shutil.copytree(base(), f"{work}/copy")
    for path in sorted(glob.glob(f"{folder}/images/*"))[::5] * 2 + sorted(glob.glob(f"{folder}/images/*"))[2::5]:
        write(path, b"no image")
    for count in (0, 4):
        words = command(folder, f"{work}/{count}")
        done = run(ranks(count, *words) if count else words, 1, env=ENVIRONMENT)
        says(done, r"stopped after 2\d rejects of 60 images: is this the right folder")
        assert not os.path.exists(f"{work}/{count}/manifest.json")
    run(ranks(4, *command(folder, f"{work}/4", "--allow-rejects", "30")), env=ENVIRONMENT)
    run(command(folder, f"{work}/0", "--allow-rejects", "30"))
    same_tree(f"{work}/0", f"{work}/4")


@case("images that are in no archive are reported once, with a list of all, and a run with the rest resumes", slow=True)
def _(work):
    paths = sorted(glob.glob(f"{base()}/images/*"))
    for name, some in (("a.tar", paths[:40]), ("b.tar", paths[40:])):
        with tarfile.open(f"{work}/{name}", "w") as tar:
            for path in some:
                tar.add(path, os.path.basename(path))
    said = []
    for count in (0, 3):
        words = command(base(), f"{work}/{count}")
        words[2] = f"{work}/a.tar"
        done = run(ranks(count, *words) if count else words, 3, env=ENVIRONMENT)
        says(done, "20 of 60 images are in none of the inputs", "missing  20 of 60 images: ", "with the other archives")
        said.append([line for line in done.stderr.splitlines() if re.match("missing|chex-convert:", line)])
    assert said[0] == [line.replace(f"{work}/3", f"{work}/0") for line in said[1]], said
    assert slurp(f"{work}/0/missing.txt") == slurp(f"{work}/3/missing.txt")
    words[2:3] = [f"{work}/a.tar", f"{work}/b.tar"]
    says(run(ranks(3, *words), env=ENVIRONMENT), "resume ")
    complete(f"{work}/3")
    same_tree(straight(base()), f"{work}/3")


@case("the lost images of a damaged archive are rejected by all ranks together, and reported once", slow=True)
def _(work):
    with tarfile.open(f"{work}/a.tar", "w") as tar:
        for path in sorted(glob.glob(f"{base()}/images/*")):
            tar.add(path, os.path.basename(path))
    write(f"{work}/a.tar", slurp(f"{work}/a.tar")[:-30000])
    said = []
    for count in (0, 3):
        words = command(base(), f"{work}/{count}", "--allow-rejects", "30")
        words[2] = f"{work}/a.tar"
        done = run(ranks(count, *words) if count else words, None, env=ENVIRONMENT)
        said.append((done.returncode if not count else said[0][0], done.stderr.count("damaged  "),
                     sorted(re.findall(r"reject (\S+): (.*)", done.stderr))))
        complete(f"{work}/{count}")
    assert said[0] == said[1] and said[0][2], said
    same_tree(f"{work}/0", f"{work}/3")


@case("--repair by ranks reports once that an image has changed", slow=True)
def _(work):
    folder, how = shutil.copytree(base(), f"{work}/copy"), ("--size", "32", "--shard-size", "8", "--split", "none")
    for count in (0, 3):
        out = f"{work}/{count}"
        run(command(folder, out, how=how))
        there = next(s for s in manifest(out)["shards"][1:] if s["images"] == 8)
        shard, name = there["name"], next(records(out, there))["filename"].decode()
        data = bytearray(slurp(f"{out}/{shard}"))
        data[200] ^= 1
        write(f"{out}/{shard}", bytes(data))
        image = slurp(f"{folder}/images/{name}")
        others = [p for p in sorted(glob.glob(f"{folder}/images/*")) if slurp(p) != image and len(slurp(p)) > 200]
        shutil.copy(others[0], f"{folder}/images/{name}")
        words = command(folder, out, "--repair", how=how)
        done = run(ranks(count, *words) if count else words, 1, env=ENVIRONMENT)
        write(f"{folder}/images/{name}", image)
        says(done, f"the source has changed: '{shard}'")
        assert done.stderr.count("source has changed") == 1, done.stderr
    same_tree(f"{work}/0", f"{work}/3")


@case("ranks resume in a folder whose files have other names too, as a backup has", slow=True)
def _(work):
    out = f"{work}/out"
    for part in (1, 3):
        run(command(base(), out, "--part", f"{part}/3"))
    os.mkdir(f"{work}/backup")
    for name in os.listdir(out):
        os.link(f"{out}/{name}", f"{work}/backup/{name}")
    before = {name: slurp(f"{work}/backup/{name}") for name in os.listdir(f"{work}/backup")}
    says(run(ranks(3, *command(base(), out)), env=ENVIRONMENT), "resume ")
    same_tree(straight(base()), out)
    assert before == {name: slurp(f"{work}/backup/{name}") for name in os.listdir(f"{work}/backup")}


@case("ranks find a complete data set complete, and replace it by force", slow=True)
def _(work):
    out = shutil.copytree(straight(base()), f"{work}/out")
    says(run(ranks(2, *command(base(), out)), None, env=ENVIRONMENT), "is complete already")
    same_tree(straight(base()), out)
    run(ranks(2, *command(base(), out, "--force", "--index", "dali")), env=ENVIRONMENT)
    assert glob.glob(f"{out}/*.idx")


@case("ranks with different options: the option is named, exit code 2, and nothing is written")
def _(work):
    for change, word in ((["--seed", "7"], "seed 7"), (["--verify"], "verify"), (["--repair"], "repair"),
                         (["-n"], "dry run")):
        done = run(ranks(2, *command(base(), f"{work}/out"), ":", "-np", "1",
                         *command(base(), f"{work}/out", *change)), 2, env=ENVIRONMENT)
        says(done, r"rank 2 \S+ does not do the same as rank 0", word)
        assert not os.path.exists(f"{work}/out")


@case("what one rank cannot read ends all of them, with its name")
def _(work):
    os.makedirs(f"{work}/empty/images")
    bad = command(base(), f"{work}/out")
    bad[2] = f"{work}/empty/images"
    done = run(ranks(1, *command(base(), f"{work}/out"), ":", "-np", "1", *bad), 3, env=ENVIRONMENT)
    says(done, r"rank 1 \S+: none of the 60 images of .* was found")


@case("the output must be the same folder on all ranks", slow=True)
def _(work):
    os.makedirs(f"{work}/a")
    os.makedirs(f"{work}/b")
    program_line = ["sh", "-c", f"cd {work}/$(test $OMPI_COMM_WORLD_RANK = 0 && echo a || echo b); exec \"$@\"", "sh",
                    *command(base(), "out")]
    done = run(ranks(2, *program_line), 4, env=ENVIRONMENT)
    says(done, r"rank 1 \S+: 'out' is not the folder that rank 0 sees")
    assert not os.path.exists(f"{work}/a/out/manifest.json")


@case("--dry-run shows how many shards a rank has, and writes nothing", slow=True)
def _(work):
    says(run(ranks(3, *command(base(), f"{work}/out", "-n")), env=ENVIRONMENT), "share    3 ranks, ")
    assert not os.path.exists(f"{work}/out")


@case("--part with ranks is a usage error", slow=True)
def _(work):
    says(run(ranks(2, *command(base(), f"{work}/out", "--part", "1/2")), 2, env=ENVIRONMENT), "--part")
    assert not os.path.exists(f"{work}/out")


@case("a rank that is killed ends the job, and any number of ranks resumes")
def _(work):
    for victim, then in ((0, 2), (-1, 4), (1, 0)):
        out = f"{work}/{then}"
        process = start(ranks(3, *command(larger(), out, how=tuple(SLOW))))
        pids = at_work(process, out, 3)
        os.kill(sorted(pids)[victim], signal.SIGKILL)
        _, code = finish(process)
        assert code != 0 and not os.path.exists(f"{out}/manifest.json")
        wait_for(lambda pids=pids: gone(pids))
        again = command(larger(), out, how=tuple(SLOW))
        says(run(ranks(then, *again) if then else again, env=ENVIRONMENT), "resume ")
        complete(out)
        same_tree(straight(larger(), tuple(SLOW)), out)


@case("a rank that hangs is named after five minutes, and all end with exit code 8", slow=True)
def _(work):
    jobs = []
    for victim in (0, 2):
        out = f"{work}/{victim}"
        process = start(ranks(3, *command(larger(), out, how=("--size", "900", *SLOW[2:]))))
        pids = at_work(process, out, 3)
        os.kill(sorted(pids)[victim], signal.SIGSTOP)
        jobs.append((victim, process, pids, out))
    for victim, process, pids, out in jobs:
        text = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 8, f"{process.returncode}: {text}"
        assert re.search(rf"rank {victim} \S+ is lost: no message for 300 s", text), text
        wait_for(lambda pids=pids: gone(pids))
        assert not os.path.exists(f"{out}/manifest.json")


@case("a stop signal at one rank, or sent by mpirun to all, saves and exits with 75")
def _(work):
    for number, all_of_them in ((signal.SIGTERM, False), (signal.SIGUSR1, True)):
        for tried in range(10):  # the run may come to its end before the signal does
            out = f"{work}/{number}-{tried}"
            process = start(ranks(3, *command(larger(), out, how=tuple(SLOW))))
            pids = at_work(process, out, 3)
            os.kill(process.pid if all_of_them else sorted(pids)[-1], number)
            text, code = finish(process)
            if code != 0:
                break
        assert code == 75, f"{code}: {text}"
        assert "stopped on request" in text
        assert not glob.glob(f"{out}/.chex.lock*"), "a lock is left"
        run(command(larger(), out, "--part", "2/2", how=tuple(SLOW)))
        run(command(larger(), out, how=tuple(SLOW)))
        same_tree(straight(larger(), tuple(SLOW)), out)


@case("a full disk at any rank is exit code 4, and a rerun with space resumes", slow=True)
def _(work):
    disk = f"{work}/disk"
    os.mkdir(disk)
    if run(["mount", "-t", "tmpfs", "-o", "size=3m", "chex-test", disk], None).returncode != 0:
        raise Skip("mount is not allowed here")
    try:
        how = ("--size", "128", "--shard-size", "8")
        out = f"{disk}/out"
        os.mkdir(out)
        process = start(ranks(3, *command(larger(), out, "-j", "1", how=how)))
        # The space was there when they looked; then somebody else takes it.
        wait_for(lambda: os.listdir(out) or process.poll() is not None)
        try:
            write(f"{disk}/other", bytes(3 << 20))
        except OSError:
            pass
        text, code = finish(process)
        assert code == 4, f"{code}: {text}"
        assert not os.path.exists(f"{out}/manifest.json")
        os.unlink(f"{disk}/other")
        run(["mount", "-o", "remount,size=20m", disk])
        run(ranks(2, *command(larger(), out, how=how)), env=ENVIRONMENT)
        same_tree(straight(larger(), how), out)
    finally:
        run(["umount", disk], None)


@case("a build without MPI does not fight over the folder when started by mpirun", slow=True)
def _(work):
    environment = dict(os.environ, PMI_RANK="3", PMI_SIZE="16")
    done = run(command(base(), f"{work}/out"), None, env=environment)
    if "has no MPI" not in done.stderr:
        raise support.OtherBuild("this build has MPI")
    assert done.returncode == 2
    says(done, "started as rank 3 of 16, but this build has no MPI: use --part, or build with it")
    assert not os.path.exists(f"{work}/out")


@case("srun that does not reach MPI is an error, not sixteen processes in one folder", slow=True)
def _(work):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM_"))}
    environment.update(ASAN_OPTIONS=ENVIRONMENT["ASAN_OPTIONS"], SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="2",
                       OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = run(command(base(), f"{work}/out"), 2, env=environment)
    says(done, "started as rank 0 of 2, but")
    assert not os.path.exists(f"{work}/out")
    # A batch script is one process, however many tasks its job has.
    del environment["SLURM_STEP_NUM_TASKS"]
    environment["SLURM_NTASKS"] = "16"
    run(command(base(), f"{work}/out"), env=environment)


# ---- parts ---------------------------------------------------------------------------------------------------------


@case("three parts one after the other, then the last call", slow=True)
def _(work):
    for part in (3, 1, 2):
        done = run(command(base(), f"{work}/out", "--part", f"{part}/3"))
        says(done, f"share    part {part} of 3: ", f"done     part {part} of 3: ", "next     .*without --part")
        assert not os.path.exists(f"{work}/out/manifest.json")
        assert not glob.glob(f"{work}/out/.chex.lock*")
    run(command(base(), f"{work}/out"))
    complete(f"{work}/out")
    same_tree(straight(base()), f"{work}/out")


@case("three parts at the same time, then the last call, which decodes nothing")
def _(work):
    how = ("--size", "64", "--shard-size", "8")
    parts = [subprocess.Popen(command(larger(), f"{work}/out", "--part", f"{p}/3", "-j", "1", how=how),
                              stderr=subprocess.PIPE, text=True) for p in (1, 2, 3)]
    for part in parts:
        text = part.communicate(timeout=PATIENCE)[1]
        assert part.returncode == 0, text
    images = shutil.copytree(f"{larger()}/images", f"{work}/images")
    for path in glob.glob(f"{images}/*"):
        write(path, b"")  # nothing that could be decoded
    last = command(larger(), f"{work}/out", how=how)
    last[2] = images
    run(last)
    same_tree(straight(larger(), how), f"{work}/out")


@case("the last call does what a lost part left", slow=True)
def _(work):
    run(command(larger(), f"{work}/out", "--part", "1/2", how=tuple(SLOW)))
    process = subprocess.Popen(command(larger(), f"{work}/out", "--part", "2/2", how=tuple(SLOW)),
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: glob.glob(f"{work}/out/.*.part") or process.poll() is not None)
    process.kill()
    process.wait()
    says(run(command(larger(), f"{work}/out", how=tuple(SLOW))), "resume ")
    complete(f"{work}/out")
    same_tree(straight(larger(), tuple(SLOW)), f"{work}/out")


@case("the same part twice, another number of parts, and a run without parts are refused while a part works", slow=True)
def _(work):
    process = subprocess.Popen(command(larger(), f"{work}/out", "--part", "1/2", how=tuple(SLOW)),
                               stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: glob.glob(f"{work}/out/.*.part") or process.poll() is not None)
        process.send_signal(signal.SIGSTOP)  # alive, and not done before we have looked
        for options in (["--part", "1/2"], ["--part", "2/3"], []):
            done = run(command(larger(), f"{work}/out", *options, how=tuple(SLOW)), 5)
            says(done, "part 1 of 2 of '.*' is in use by host .*which is alive")
        assert os.listdir(f"{work}/out").count(".chex.lock-00001-of-00002") == 1
        assert len(glob.glob(f"{work}/out/.chex.lock*")) == 1, "the others left nothing"
    finally:
        process.send_signal(signal.SIGCONT)
        process.wait()
    assert process.returncode == 0


@case("a part stopped by a signal exits with 75 and resumes", slow=True)
def _(work):
    process = subprocess.Popen(command(larger(), f"{work}/out", "--part", "1/2", how=tuple(SLOW)),
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: glob.glob(f"{work}/out/.*.part") or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 75
    says(run(command(larger(), f"{work}/out", "--part", "1/2", how=tuple(SLOW))), "resume ", "done     part 1 of 2")


@case("parts that are none, --force with --part: usage errors, nothing is written", slow=True)
def _(work):
    for part in ("0/3", "4/3", "1", "1/", "/3", "1/10000", "a/b", "1/3x", "-1/3"):
        says(run(command(base(), f"{work}/out", "--part", part), 2), "takes a part such as 3/16")
    says(run(command(base(), f"{work}/out", "--part", "1/3", "--force"), 2), "each part would remove the work")
    assert not os.path.exists(f"{work}/out")


@case("--dry-run of a part shows its share", slow=True)
def _(work):
    says(run(command(base(), f"{work}/out", "--part", "2/3", "-n")), r"share    part 2 of 3: \d+ of \d+ shards, \d+ im")
    assert not os.path.exists(f"{work}/out")


@case("a part of other data than the folder's is refused", slow=True)
def _(work):
    run(command(base(), f"{work}/out", "--part", "1/3"))
    says(run(command(base(), f"{work}/out", "--part", "2/3", "--seed", "9"), 6), "other data or options")


@case("chex-inspect knows a folder of parts for an unfinished conversion", slow=True)
def _(work):
    run(command(base(), f"{work}/out", "--part", "2/3"))
    done = run([program("chex-inspect"), f"{work}/out"], None)
    assert "unfinished conversion of data set" in done.stdout + done.stderr, done.stdout + done.stderr
    one = int(re.search(r"(\d+) shards? done", done.stdout + done.stderr).group(1))
    run(command(base(), f"{work}/out", "--part", "1/3"))
    done = run([program("chex-inspect"), f"{work}/out"], None)
    two = int(re.search(r"(\d+) shards? done", done.stdout + done.stderr).group(1))
    there = len([n for n in os.listdir(f"{work}/out") if ".tfrecord-" in n and n[0] != "." and not n.endswith(".idx")])
    assert 0 < one < two == there, f"{one} shards of one part, {two} of two, {there} there"


if __name__ == "__main__":
    sys.exit(case.main())
