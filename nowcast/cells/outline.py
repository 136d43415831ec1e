"""Cells in one frame: the rain around each prominent peak, and its outline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float32]
Labels = NDArray[np.int32]


def label_cells(
    rain: Float, *, threshold: float, saddle: float, smooth: float, least: float
) -> Labels:
    """Label the cells of a frame (y, x) 1, 2, ...; 0 elsewhere. NaN belongs to no cell.

    Peaks are h-maxima of the smoothed rain in decibels, so the drop between two of them is relative
    to the lower one. Each cell is the watershed of its peak. For the arguments see
    `nowcast.track_cells`; ``smooth`` and ``least`` are in pixels.
    """
    from scipy.ndimage import find_objects, gaussian_filter, generate_binary_structure
    from scipy.ndimage import label as connected
    from skimage.measure import label
    from skimage.morphology import local_maxima, reconstruction
    from skimage.segmentation import watershed

    known = np.isfinite(rain)
    # Divided by the known weight, so that rain next to missing data is not smoothed towards dry.
    weight = gaussian_filter(known.astype(np.float32), smooth)
    total = gaussian_filter(np.where(known, rain, 0).astype(np.float32), smooth)
    mean = total / np.maximum(weight, np.float32(1e-6))
    inside = known & (mean >= threshold)
    if not inside.any():
        return np.zeros(rain.shape, np.int32)
    height = -10 * np.log10(saddle)
    decibels = 10 * np.log10(np.maximum(mean, threshold) / threshold)
    # Outside it is deeper than the height, so that weak rain on its own has a peak too.
    decibels = np.where(inside, decibels, -height - 1).astype(np.float64)
    # skimage's h_maxima marks both of two equal peaks, however high the saddle between them.
    cut = np.full_like(decibels, -height - 1)
    cross = generate_binary_structure(2, 1)
    areas, _ = connected(inside, cross)
    sizes = np.bincount(areas.ravel())
    # Area by area, since it sorts all pixels of a box: those that are too small hold no cell.
    for number, box in enumerate(find_objects(areas), start=1):
        if sizes[number] >= least:
            area = areas[box] == number
            top = np.where(area, decibels[box], -height - 1)
            cut[box][area] = reconstruction(top - height, top, footprint=cross)[area]
    peaks = label(local_maxima(cut, connectivity=1), connectivity=1)
    cells = watershed(-decibels, peaks, mask=inside)
    sizes = np.bincount(cells.ravel())
    large = sizes >= least
    large[0] = False
    numbers = np.where(large, np.cumsum(large), 0).astype(np.int32)
    return numbers[cells]


def rings(inside: NDArray[np.bool_]) -> list[NDArray[np.float64]]:
    """Return the outline of a cell, then its holes, each closed, (n, 2) rows and columns.

    The outline turns counter-clockwise where rows go north, and holes the other way, as GeoJSON
    wants it.
    """
    from skimage.measure import find_contours

    contours = [ring - 1 for ring in find_contours(np.pad(inside, 1).astype(np.float64), 0.5)]
    contours.sort(key=lambda ring: -abs(_area(ring)))
    return [
        ring if (_area(ring) > 0) == (k == 0) else ring[::-1] for k, ring in enumerate(contours)
    ]


def _area(ring: NDArray[np.float64]) -> float:
    y, x = ring.T
    return float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2
