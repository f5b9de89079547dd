#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chex-train --stage in a place like /tmp, where another user may make DIR/chex-ID-UID first.

    check_stage.py [PATTERN]      what --stage copies, and when again, is in check_train.py

Some cases need root, to make folders of another user and to run as one.
"""
import os
import re
import stat
import sys

from support import Cases, Skip, manifest, run, says, slurp, tree, write
from training import command, data, finish, run_folder, same_as_whole, train

NOBODY = 65534

case = Cases()


def need_root():
    if os.geteuid() != 0:
        raise Skip("only root can make files of another user")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def copy_name(user=None):
    return f"chex-{manifest(data())['dataset_id']}-{os.geteuid() if user is None else user}"


def shard_names():
    return [s["name"] for s in manifest(data())["shards"]]


def victim(folder):
    """A folder with files of names that --stage itself uses, or nearly uses; returns its content."""
    os.makedirs(folder)
    for name in (".notes.tmp.1", f".{shard_names()[0]}.tmp.1", "manifest.json", shard_names()[0], ".chex.lock.new.1.1"):
        write(os.path.join(folder, name), "precious")
    return tree(folder)


def refused(work, dir_, *reasons):
    """--stage ends with 2, says why and what to do, and never begins to train."""
    done = train(os.path.join(work, "refused"), "--stage", dir_, code=2)
    lines = [line for line in done.stderr.splitlines() if line.startswith("chex-train: ")]
    assert len(lines) == 1 and lines[0].startswith("chex-train: --stage: "), done.stderr
    says(done, *reasons, r"; remove it, or give another DIR$")
    assert not re.search("^ep ", done.stderr, re.M), done.stderr


@case("a symbolic link in the place of DIR/chex-ID-UID is not followed: 2, and its target keeps every file")
def _(work):
    dir_, target = os.path.join(work, "stage"), os.path.join(work, "victim")
    os.mkdir(dir_)
    before = victim(target)
    link = os.path.join(dir_, copy_name())
    os.symlink(target, link)
    refused(work, dir_, rf"'{re.escape(link)}' is a symbolic link of uid {os.geteuid()}, which is not followed")
    assert tree(target) == before and os.readlink(link) == target
    os.unlink(link)
    os.symlink(os.path.join(work, "nowhere"), link)
    refused(work, dir_, "is a symbolic link")
    assert not os.path.exists(os.path.join(work, "nowhere"))


@case("a folder DIR/chex-ID-UID that other users may write to is refused with 2, and keeps every file and its mode")
def _(work):
    dir_ = os.path.join(work, "stage")
    folder = os.path.join(dir_, copy_name())
    before = victim(folder)
    for bits in (0o777, 0o1777, 0o770, 0o702):
        os.chmod(folder, bits)
        refused(work, dir_, rf"other users may write to the folder '\S+' \(mode {bits:04o}\)")
        assert tree(folder) == before and mode(folder) == bits


@case("a folder DIR/chex-ID-UID of another user is refused with 2, and keeps every file")
def _(work):
    need_root()
    dir_ = os.path.join(work, "stage")
    folder = os.path.join(dir_, copy_name())
    before = victim(folder)
    os.chown(folder, NOBODY, NOBODY)
    os.chmod(folder, 0o700)
    refused(work, dir_, rf"the folder '\S+' belongs to another user \(uid {NOBODY}\)")
    assert tree(folder) == before and os.stat(folder).st_uid == NOBODY


@case("an ordinary user: a folder of root's is refused, a link of root's is not followed, an own folder is used")
def _(work):
    need_root()
    dir_, target, out = (os.path.join(work, name) for name in ("stage", "victim", "out"))
    before = victim(target)
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": {**os.environ, "HOME": "/"}}
    for folder in (dir_, target, out):
        os.makedirs(folder, exist_ok=True)
        os.chown(folder, NOBODY, NOBODY)
    os.chmod(work, 0o755)
    os.chmod(dir_, 0o1777)
    words = command(out, "--stage", dir_, "--epochs", 1)
    if run([*words, "-n"], None, **as_nobody).returncode != 0:
        raise Skip("another user cannot run this build or read its data")
    planted = os.path.join(dir_, copy_name(NOBODY))
    os.symlink(target, planted)
    says(run(words, 2, **as_nobody), "is a symbolic link of uid 0, which is not followed")
    assert tree(target) == before
    os.unlink(planted)
    os.mkdir(planted, 0o755)
    says(run(words, 2, **as_nobody), r"belongs to another user \(uid 0\)")
    assert not os.listdir(planted)
    os.rmdir(planted)
    run(words, **as_nobody)
    assert mode(planted) == 0o700 and os.stat(planted).st_uid == NOBODY
    train(run_folder(work), "--stage", dir_, "--epochs", 1)  # two users of one DIR
    assert {name: os.stat(os.path.join(dir_, name)).st_uid for name in os.listdir(dir_)} == {
        copy_name(NOBODY): NOBODY, copy_name(): os.geteuid()}


@case("a copy is closed to other users whatever the umask: folders 0700, files 0600; an old copy's folder is closed")
def _(work):
    dir_ = os.path.join(work, "above", "stage")
    folder = os.path.join(dir_, copy_name())
    out = run_folder(work)
    train(out, "--stage", dir_, umask=0)
    assert mode(dir_) == mode(folder) == 0o700 and mode(os.path.dirname(dir_)) == 0o777
    assert set(os.listdir(folder)) == {"manifest.json", *shard_names()}
    assert {name: mode(os.path.join(folder, name)) for name in os.listdir(folder)
            if mode(os.path.join(folder, name)) != 0o600} == {}
    same_as_whole(out)
    os.chmod(folder, 0o755)
    train(run_folder(work, "two"), "--stage", dir_, "--epochs", 1)
    assert mode(folder) == 0o700


@case("in the folder of a copy only temporary files of its own names are removed")
def _(work):
    dir_ = os.path.join(work, "stage")
    folder = os.path.join(dir_, copy_name())
    os.makedirs(folder)
    own = {f".{shard_names()[0]}.tmp.4242", ".manifest.json.tmp.17", ".manifest.json.tmp.1700"}
    shard = shard_names()[0]
    foreign = {".left.tmp.1", ".tmp.1", ".notes.tmp.tmp.1", "notes", ".manifest.json.tmp.", f".{shard}.tmp.x",
               f"{shard}.tmp.1", f".{shard}x.tmp.1", f".x{shard}.tmp.1"}
    for name in own | foreign:
        write(os.path.join(folder, name), name)
    train(run_folder(work), "--stage", dir_, "--epochs", 1)
    assert set(os.listdir(folder)) == {"manifest.json", *shard_names(), *foreign}
    for name in foreign:
        assert slurp(os.path.join(folder, name)) == name.encode(), name


@case("a link in the place of a shard or of the manifest of a copy is replaced, and its target keeps its bytes")
def _(work):
    dir_ = os.path.join(work, "stage")
    folder = os.path.join(dir_, copy_name())
    os.makedirs(folder)
    targets = {}
    for name in ("manifest.json", *shard_names()[:2]):  # one of them with the bytes that are wanted
        targets[name] = write(os.path.join(work, name), slurp(os.path.join(data(), name)))
    write(targets[shard_names()[0]], "precious")
    before = {name: slurp(path) for name, path in targets.items()}
    for name, path in targets.items():
        os.symlink(path, os.path.join(folder, name))
    out = run_folder(work)
    train(out, "--stage", dir_)
    same_as_whole(out)
    for name, path in targets.items():
        assert slurp(path) == before[name], name
        assert not os.path.islink(os.path.join(folder, name)), name
        assert slurp(os.path.join(folder, name)) == slurp(os.path.join(data(), name)), name


if __name__ == "__main__":
    sys.exit(finish(case))
