# SPDX-License-Identifier: Apache-2.0
"""The order of the images in an epoch of chex-train, a pure function of seed and epoch.

It is computed as train/data/order.c does: Fisher and Yates' shuffle with the numbers of Philox4x32-10 (Salmon et al.,
SC 2011), so it is the same on every machine and in every version of NumPy.
"""
import hashlib
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import UsageError

if TYPE_CHECKING:
    from ._dataset import Dataset

ORDER = 2  # enum random_purpose of train/math/random.h
WEIGHTED = 1 << 16  # not used by chex-train
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number, also one of NumPy or PyTorch, as an int.  UsageError: it is none, or out of its range."""
    try:
        number = operator.index(value)
    except (TypeError, ValueError):
        raise UsageError(f"{what} is a whole number, not {value!r}") from None
    if not least <= number <= most:
        raise UsageError(f"{what} is from {least} to {most}, not {number}")
    return number


def whole_seed(seed: Any) -> int:
    """A seed as an int."""
    return whole(seed, "a seed", 0, (1 << 63) - 1)


def whole_epoch(epoch: Any) -> int:
    """The number of an epoch as an int."""
    return whole(epoch, "an epoch", 0, (1 << 32) - 1)


def whole_window(window: Any) -> int:
    """A number of shards as an int."""
    return whole(window, "a window of shards", 0, (1 << 63) - 1)


def random_bits(seed: int, purpose: int, a: int, first: int, count: int) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """The numbers first, first + 1, ... of a stream, 64 bits each."""
    c0 = np.arange(first, first + count, dtype=np.uint64)
    c1, c2, c3 = (np.full(count, v, np.uint64) for v in (a, 0, purpose))
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1 = (p1 >> _SHIFT) ^ c1 ^ np.uint64(k0), p1 & _MASK
        c2, c3 = (p0 >> _SHIFT) ^ c3 ^ np.uint64(k1), p0 & _MASK
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c1 << _SHIFT | c0


def random_uniform(seed: int, purpose: int, a: int, count: int) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """Numbers in [0, 1) with 53 bits."""
    return (random_bits(seed, purpose, a, 0, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _shuffle(items: list[int], seed: int, epoch: int, first: int) -> int:
    """Shuffle the list with the numbers from first on; returns the next one."""
    draws = len(items) - 1
    if draws < 1:
        return first
    bits = random_bits(seed, ORDER, epoch, first, draws)
    below = np.arange(len(items), 1, -1, dtype=np.uint64)
    high = (bits >> _SHIFT) * below  # (bits * below) >> 64, without 128 bits
    places = (high + ((bits & _MASK) * below >> _SHIFT)) >> _SHIFT
    for i, k in zip(range(draws, 0, -1), places.tolist()):
        items[i], items[k] = items[k], items[i]
    return first + draws


def epoch_order(data: "Dataset", seed: int = 1, epoch: int = 0,
                window: int = 0) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The indices of the images of data in the order of this epoch; the first epoch is 0.

    For a whole split it is the order of `chex-train --seed SEED`, with `--shuffle WINDOW` if window is not 0: shuffle
    the shards, then the images of each window of consecutive shards."""
    seed, epoch, window = whole_seed(seed), whole_epoch(epoch), whole_window(window)
    count = len(data)
    if window == 0:
        out = list(range(count))
        _shuffle(out, seed, epoch, 0)
        return np.array(out, dtype=np.int64)
    shard = data.places[:, 0]
    first = np.flatnonzero(np.diff(shard, prepend=-1)).tolist() + [count]
    shards = list(range(len(first) - 1))
    following = _shuffle(shards, seed, epoch, 0)
    out = []
    for begin in range(0, len(shards), window):
        some = [k for s in shards[begin:begin + window] for k in range(first[s], first[s + 1])]
        following = _shuffle(some, seed, epoch, following)
        out += some
    return np.array(out, dtype=np.int64)


def order_hash(data: "Dataset", order: "np.ndarray[Any, np.dtype[np.int64]]") -> str:
    """The hash of an order that `chex-train -v` and metrics.jsonl have, to compare orders."""
    return hashlib.sha256(data.places[order].astype("<u4").tobytes()).hexdigest()[:16]
