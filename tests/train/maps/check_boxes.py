#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boxes that maps find, and how well: beside scipy.ndimage and NumPy.

    check_boxes.py [PATTERN]      $CHECK_BOXES, or in $BUILDDIR

Regions are those of scipy.ndimage.label, overlaps are counted in pixels or computed in NumPy, intervals come from a
bootstrap with the same draws.
"""
import subprocess
import sys

from support import PATIENCE, Cases, program

try:
    import draws
    import numpy as np
    from box_measures import measures, measures_of_map, overlap, regions
except ImportError:
    print("skip: NumPy is missing\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)
case = Cases()
METHODS = ("map", "constant", "gauss", "chance")
CELLS = 5
RANDOM_BOXES = 9  # enum random_purpose


def compute(maps, boxes, findings, patients, replicates=0, threads=2):
    """What check-boxes prints: the found boxes of each map, {(finding, method): [measure][value, low, high]}."""
    count, height, width = maps.shape
    text = b"".join((boxes.astype("=f8").tobytes(), findings.astype("=u4").tobytes(), patients.astype("=u4").tobytes(),
                     maps.astype("=f4").tobytes()))
    command = [program("check-boxes"), height, width, count, findings.max() + 1, patients.max() + 1, CELLS, replicates,
               draws.SEED, threads]
    done = subprocess.run([str(c) for c in command], input=text, capture_output=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    found, values = [], {}
    for line in done.stdout.decode().splitlines():
        name, _, rest = line.partition(":")
        numbers = [tuple(float(x) for x in part.split()) for part in rest.split(",") if part.strip()]
        if name.startswith("found"):
            found.append(numbers)
        else:
            finding, method = name.split()
            values[int(finding), method] = np.array(numbers)
    return found, values


# ---- the same in NumPy -------------------------------------------------------------------------------------------


def spread(cells, height, width):
    """The bilinear map of check-boxes: the centre of cell i is width / CELLS * i + 2."""
    def between(pixels):
        at = np.clip((np.arange(pixels) - 2) / (width / CELLS), 0, CELLS - 1)
        first = np.minimum(at.astype(int), CELLS - 2)
        return first, at - first
    (y, v), (x, u) = between(height), between(width)
    v, cells = v[:, None], cells.astype(np.float64)
    above = (1 - u) * cells[y][:, x] + u * cells[y][:, x + 1]
    below = (1 - u) * cells[y + 1][:, x] + u * cells[y + 1][:, x + 1]
    return ((1 - v) * above + v * below).astype(np.float32)


def measures_of_constant(given, others):
    left, top, width, height = np.median([(b[0], b[1], b[2] - b[0], b[3] - b[1]) for b in others], axis=0)
    box = np.array([left, top, left + width, top + height])
    x, y = left + width / 2, top + height / 2
    inside = given[0] <= x <= given[2] and given[1] <= y <= given[3]
    return measures(given, [box], inside, overlap(given, [box])[1][0])


def measures_of_all(maps, boxes, findings):
    """[count][method][measure]"""
    count, height, width = maps.shape
    column, row = (np.exp(-0.5 * (4 * ((np.arange(n) + 0.5) / n - 0.5)) ** 2).astype(np.float32)
                   for n in (width, height))
    gauss, made = row[:, None] * column, []
    for i in range(count):
        others = [b for k, b in enumerate(boxes) if k != i and findings[k] == findings[i]]
        bits = draws.bits(RANDOM_BOXES, i, CELLS * CELLS)
        cells = ((bits >> np.uint64(11)) * 2.0 ** -53).astype(np.float32).reshape(CELLS, CELLS)
        chance = measures_of_map(boxes[i], spread(cells, height, width))
        chance[:2] = np.prod(boxes[i][2:] - boxes[i][:2]) / (height * width)
        made.append([measures_of_map(boxes[i], maps[i]), measures_of_constant(boxes[i], others),
                     measures_of_map(boxes[i], gauss), chance])
    return np.array(made)


def shares(made, findings, times, known):
    """[finding and mean][method][measure]; times: how often each box counts."""
    found = []
    for k in range(findings.max() + 1):
        n = times * (findings == k)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (made * n[:, None, None]).sum(axis=0) / n.sum()
        share[:, 14:] *= n.sum() / times.sum()
        found.append(share)
    defined = [found[k] for k in known if np.isfinite(found[k]).all()]
    return np.array([*found, np.mean(defined, axis=0)])


def draw_case(rng, count, height=40, width=48, findings=2):
    """Smooth maps with a bump near the box, as float32."""
    left, top = rng.random(count) * width * 0.6, rng.random(count) * height * 0.6
    right, bottom = left + 2 + rng.random(count) * width * 0.35, top + 2 + rng.random(count) * height * 0.3
    boxes = np.stack([left, top, right, bottom], axis=1)
    y, x = np.mgrid[:height, :width]
    maps = np.stack([
        spread(rng.normal(size=(CELLS, CELLS)).astype(np.float32), height, width) +
        4 * np.exp(-((x - b[0] - 3) ** 2 + (y - b[1] - 3) ** 2) / 60) for b in boxes])
    return maps.astype(np.float32), boxes, rng.integers(0, findings, count), rng.integers(0, count * 2 // 3, count)


# ---- cases -------------------------------------------------------------------------------------------------------


@case("the regions of a map are those of scipy.ndimage.label, of smooth maps, noise, a comb and a spiral")
def _(_work):
    rng = np.random.default_rng(1)
    comb = np.zeros((40, 48))
    comb[:, ::2] = 1
    comb[-1] = 1
    spiral = np.zeros((40, 48))
    for k in range(0, 18, 2):
        spiral[k, k:48 - k] = spiral[39 - k, k:48 - k] = spiral[k:40 - k, k] = spiral[k:40 - k, 47 - k] = 1
        spiral[k + 1, k] = 0
        spiral[k + 2, k + 1] = 1
    maps, *_rest = draw_case(rng, 40)
    made = [comb, comb[::-1], spiral, spiral[:, ::-1], np.zeros((40, 48)), np.full((40, 48), 3.5)]
    maps = np.concatenate([maps, rng.random((40, 40, 48)), made]).astype(np.float32)
    boxes = np.tile([3.0, 4.0, 20.0, 30.0], (len(maps), 1))
    found, _values = compute(maps, boxes, np.zeros(len(maps), int), np.arange(len(maps)))
    counted = 0
    for i, map_ in enumerate(maps):
        wanted = regions(map_)
        assert sorted(found[i]) == sorted(wanted), (i, found[i], wanted)
        counted += len(wanted)
    assert found[-1] == found[-2] == [] and counted > 2000, counted


@case("overlap, pointing game, mass, false boxes, controls and intervals are NumPy's")
def _(_work):
    maps, boxes, findings, patients = draw_case(np.random.default_rng(2), 90)
    _found, values = compute(maps, boxes, findings, patients, replicates=200)
    made = measures_of_all(maps, boxes, findings)
    wanted = shares(made, findings, np.ones(len(boxes)), (0, 1))
    drawn = np.array([shares(made, findings, draws.drawn(r, int(patients.max()) + 1)[patients], (0, 1))
                      for r in range(200)])
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    for k in (0, 1, -1):
        for m, method in enumerate(METHODS):
            got = values[k, method]
            assert np.abs(got[:, 0] - wanted[k, m]).max() < 1e-6, (k, method, got[:, 0], wanted[k, m])
            known = low[k, m] < high[k, m]
            assert (np.isfinite(got[:, 1]) == known).all(), (k, method, got, low[k, m], high[k, m])
            assert np.abs(got[known, 1] - low[k, m][known]).max() < 1e-6, (k, method)
            assert np.abs(got[known, 2] - high[k, m][known]).max() < 1e-6, (k, method)
    assert values[-1, "map"][0, 1] > values[-1, "chance"][0, 2], "the bumps are not found"


@case("any number of threads gives the same numbers")
def _(_work):
    data = draw_case(np.random.default_rng(3), 60)
    first = compute(*data, replicates=50, threads=1)
    for threads in (2, 5):
        other = compute(*data, replicates=50, threads=threads)
        assert first[0] == other[0]
        assert all(np.array_equal(first[1][key], other[1][key], equal_nan=True) for key in first[1])


@case("a finding with fewer than 20 boxes, or boxes of fewer than 5 patients, has no values")
def _(_work):
    maps, boxes, _findings, patients = draw_case(np.random.default_rng(4), 64)
    findings = np.array([0] * 24 + [1] * 19 + [2] * 21)
    patients[43:] = np.arange(21) % 4
    _found, values = compute(maps, boxes, findings, patients, replicates=20)
    for method in METHODS:
        assert np.isfinite(values[0, method][:, 0]).all()
        assert np.isnan(values[1, method]).all() and np.isnan(values[2, method]).all()
        assert np.array_equal(values[-1, method][:, 0], values[0, method][:, 0])


@case("a map that is hottest outside of its outermost cells points to the nearest place to the middle")
def _(_work):
    cells = np.zeros((CELLS, CELLS), np.float32)
    cells[0, 0] = 1
    map_ = spread(cells, 40, 48)
    assert (map_ == 1).sum() == 9
    for box, hit in (([2.0, 2.0, 10.0, 10.0], 1), ([0.0, 0.0, 2.0, 2.0], 0)):
        _found, values = compute(np.tile(map_, (20, 1, 1)), np.tile(box, (20, 1)), np.zeros(20, int), np.arange(20))
        assert values[0, "map"][0, 0] == hit, box


if __name__ == "__main__":
    sys.exit(case.main())
