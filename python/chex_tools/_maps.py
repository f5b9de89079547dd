# SPDX-License-Identifier: Apache-2.0
"""The shards that this process has mapped into memory.  All Datasets share them."""
import errno
import mmap
import os
import stat
import sys
import weakref
from typing import Any, Union

from ._manifest import Manifest, Shard, refuse_replaced
from .errors import DamagedError, InputError, UsageError

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

# A map keeps a file descriptor open before Python 3.13, so there is one map of a file, whatever the number of Datasets.
_OPTIONS: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
_maps: "weakref.WeakValueDictionary[tuple[int, ...], mmap.mmap]" = weakref.WeakValueDictionary()


def text_path(path: Path) -> str:
    """A path as a text, also one that is bytes."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise UsageError(f"not a path: {path!r}") from None
    if "\0" in name:
        raise UsageError(f"a path with a NUL character: {name!r}")
    return name


def _cannot(path: str, e: OSError) -> InputError:
    hint = ""
    if e.errno in (errno.EMFILE, errno.ENFILE):
        hint = "; each mapped shard needs one: raise the limit with `ulimit -n`"
    return InputError(f"cannot read the shard '{path}': {e.strerror or e}{hint}")


def _key(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _check(found: os.stat_result, path: str, wanted: Shard) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"the shard '{path}' is not a regular file")
    if found.st_size != wanted.size:
        raise DamagedError(f"the shard '{path}' has {found.st_size} bytes, the manifest says {wanted.size}")


def shard_path(folder: str, wanted: Shard) -> str:
    """The path of a shard, which is a regular file of the size in the manifest."""
    path = os.path.join(folder, wanted.name)
    try:
        _check(os.stat(path), path, wanted)
    except InputError:
        raise
    except OSError as e:
        raise _cannot(path, e) from e
    return path


def _open_map(folder: str, wanted: Shard) -> mmap.mmap:
    path = os.path.join(folder, wanted.name)
    try:
        found = os.stat(path)
        _check(found, path, wanted)
        mapped = _maps.get(_key(found))
        if mapped is None:
            with open(path, "rb") as f:
                found = os.fstat(f.fileno())
                _check(found, path, wanted)
                mapped = mmap.mmap(f.fileno(), wanted.size, access=mmap.ACCESS_COPY, **_OPTIONS)
            _maps[_key(found)] = mapped
    except InputError:
        raise
    except OSError as e:
        raise _cannot(path, e) from e
    return mapped


def map_shard(folder: str, manifest: Manifest, shard: int) -> mmap.mmap:
    """A shard, mapped.  The map is closed when nobody uses it.

    It is copy on write, because PyTorch warns of memory that is read-only.  IncompatibleError: the data set in this
    folder is no longer that of this manifest, so the shard may have other images."""
    try:
        mapped = _open_map(folder, manifest.shards[shard])
    except (DamagedError, InputError):
        refuse_replaced(folder, manifest)
        raise
    refuse_replaced(folder, manifest)
    return mapped
