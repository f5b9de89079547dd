# SPDX-License-Identifier: Apache-2.0
"""The random draws of the programs, computed in NumPy: Philox4x32-10 (Salmon et al. 2011)."""
import numpy as np

BOOTSTRAP, SWAP, SEED = 4, 5, 1


def bits(purpose, a, count):
    """64 bits for each i < count of the stream (SEED, purpose, a)."""
    mask, c = np.uint64(0xffffffff), [np.arange(count, dtype=np.uint64)] + [
        np.full(count, x, np.uint64) for x in (a, 0, purpose)]
    k0, k1 = SEED, 0
    for _ in range(10):
        p0, p1 = np.uint64(0xd2511f53) * c[0], np.uint64(0xcd9e8d57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & mask, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
             p0 & mask]
        k0, k1 = (k0 + 0x9e3779b9) & 0xffffffff, (k1 + 0xbb67ae85) & 0xffffffff
    return c[1] << np.uint64(32) | c[0]


def drawn(replicate, patients):
    """How often each patient is drawn."""
    chosen = [int(x) * patients >> 64 for x in bits(BOOTSTRAP, replicate, patients)]
    return np.bincount(chosen, minlength=patients)
