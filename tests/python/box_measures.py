# SPDX-License-Identifier: Apache-2.0
"""The measures of boxes.h, by scipy.ndimage and NumPy."""
import numpy as np
from support import Skip

try:
    from scipy import ndimage
except ImportError:
    ndimage = None

IOU, IOBB = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]), np.array([0.1, 0.25, 0.5, 0.75, 0.9])


def regions(map_):
    """The boxes of a map, by scipy."""
    if ndimage is None:
        raise Skip("SciPy is missing")
    values, found = map_.astype(np.float64), []
    if values.max() == values.min():
        return found
    scaled = (values - values.min()) * (255 / (values.max() - values.min()))
    for cut in (60, 180):
        labels, _ = ndimage.label(scaled >= cut)
        found += [(float(x.start), float(y.start), float(x.stop), float(y.stop))
                  for y, x in ndimage.find_objects(labels)]
    return found


def overlap(given, found):
    """(IoU, IoBB) with each found box."""
    given, found = np.asarray(given, float), np.asarray(found, float).reshape(-1, 4)
    sides = np.minimum(given[2:], found[:, 2:]) - np.maximum(given[:2], found[:, :2])
    both = np.prod(np.maximum(sides, 0), axis=1)
    area = np.prod(found[:, 2:] - found[:, :2], axis=1)
    return both / (np.prod(given[2:] - given[:2]) + area - both), both / area


def measures(given, found, point, mass):
    """In the order of enum box_measure: found are boxes, point and mass are known."""
    iou, iobb = overlap(given, found)
    return np.concatenate([[point, mass], (iou[:, None] > IOU).any(axis=0), (iobb[:, None] > IOBB).any(axis=0),
                           (iobb[:, None] <= IOBB).sum(axis=0)])


def measures_of_map(given, map_):
    height, width = map_.shape
    y, x = np.mgrid[:height, :width] + 0.5
    inside = (x >= given[0]) & (x <= given[2]) & (y >= given[1]) & (y <= given[3])
    hot = map_ == map_.max()
    away = np.where(hot, (x - width / 2) ** 2 + (y - height / 2) ** 2, np.inf)
    point = inside.flat[away.argmin()] and map_.max() > map_.min()
    positive = np.maximum(map_.astype(np.float64), 0)
    mass = positive[inside].sum() / positive.sum() if positive.sum() > 0 else 0
    return measures(given, regions(map_), point, mass)
