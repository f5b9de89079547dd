# SPDX-License-Identifier: Apache-2.0
"""A power loss: what can be left of a list of logged changes when the machine stops behind one of them.

The model is what POSIX promises and no more.  Bytes of a file are there for certain once its fsync has returned; those
written since are there, not there, or there by half, each write by itself.  Names are there for certain once the
folder's fsync has returned; each change of a name since is there or not, in any choice, but a rename never by half.
A size follows the same rules as the bytes.  An fsync of a file promises nothing of its name.
"""
import collections
import os

Op = collections.namedtuple("Op", "kind path offset data")


def read_log(path):
    """The operations of tests/faults/inject.c, in order."""
    with open(path, "rb") as f:
        data = f.read()
    at, ops = 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        kind, path_length, offset, size = data[at:end].split()
        path_end = end + 1 + int(path_length)
        data_end = path_end + int(size)
        ops.append(Op(kind.decode(), data[end + 1:path_end].decode(), int(offset), data[path_end:data_end]))
        at = data_end + 1
    return ops


class Inode:
    """A file without a name: the changes to its bytes, and how many of them are on the disk for certain."""

    def __init__(self):
        self.changes = []
        self.certain = 0

    def content(self, random):
        data = bytearray()
        for i, (kind, offset, piece) in enumerate(self.changes):
            if i >= self.certain:
                fate = random.choice(("kept", "lost", "half")) if random else "lost"
                if fate == "lost":
                    continue
                if fate == "half":
                    piece = piece[:random.randrange(len(piece) + 1)]
            if kind == "write":
                data.extend(bytes(max(0, offset + len(piece) - len(data))))
                data[offset:offset + len(piece)] = piece
            elif kind == "extend":
                data.extend(bytes(max(0, offset - len(data))))
            else:
                del data[offset:]
                data.extend(bytes(offset - len(data)))
        return bytes(data)


def after(ops, folder, random):
    """{name: bytes} of one state that the folder may be in behind these operations; without random: the least of it."""
    names, changes, certain = {}, [], 0  # names as the process sees them; changes of names; how many are certain

    for op in ops:
        name = os.path.basename(op.path)
        if op.kind == "create":
            names[name] = Inode()
            changes.append({name: names[name]})
        elif op.kind == "rename":
            to = os.path.basename(op.data.decode())
            names[to] = names.pop(name)
            changes.append({name: None, to: names[to]})
        elif op.kind == "link":
            to = os.path.basename(op.data.decode())
            names[to] = names[name]
            changes.append({to: names[name]})
        elif op.kind == "unlink":
            names.pop(name)
            changes.append({name: None})
        elif op.kind == "sync" and op.path == folder:
            certain = len(changes)
        elif op.kind == "sync":
            names[name].certain = len(names[name].changes)
        else:
            names[name].changes.append((op.kind, op.offset, op.data))
    left = {}
    for i, change in enumerate(changes):
        if i < certain or (random and random.random() < 0.5):
            for name, inode in change.items():
                if inode:
                    left[name] = inode
                else:
                    left.pop(name, None)
    bytes_of = {}  # one inode under two names has one content
    return {name: bytes_of.setdefault(id(inode), inode.content(random)) for name, inode in left.items()}
