"""The elevation cuts of a volume: the lowest sweeps, and the one to use of each cut."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nowcast.radar.polar.sweep import Classify, Sweep, elevation_of, from_xradar, site_of

if TYPE_CHECKING:
    import xarray as xr

# Sweeps closer than this belong to one cut. The two of a NEXRAD split cut differ by up to 0.09
# degrees (message 1), neighbouring cuts of other radars by 0.2 and more.
SAME_CUT = 0.12
# Birdbath scans look straight up and are no rain map.
HIGHEST = 45.0


def lowest_cuts(elevations: Sequence[float], count: int) -> list[list[int]]:
    """Return the indices of the sweeps in each of the ``count`` lowest cuts, lowest first.

    Examples
    --------
    >>> lowest_cuts([0.48, 0.5, 1.5, 2.4], 2)
    [[0, 1], [2]]
    """
    order = sorted(
        (i for i, elevation in enumerate(elevations) if elevation <= HIGHEST),
        key=lambda i: (elevations[i], i),
    )
    cuts: list[list[int]] = []
    for index in order:
        if cuts and elevations[index] - elevations[cuts[-1][0]] <= SAME_CUT:
            cuts[-1].append(index)
        else:
            cuts.append([index])
    return [sorted(cut) for cut in cuts[:count]]


def join_moments(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Return sweeps with the moments of one turn, read from several files, joined."""
    joined: list[Sweep] = []
    for sweep in sweeps:
        for i, known in enumerate(joined):
            if known.same_turn(sweep):
                joined[i] = known.joined(sweep)
                break
        else:
            joined.append(sweep)
    return joined


def usable_sweeps(sweeps: Sequence[Sweep], count: int) -> list[Sweep]:
    """Return one sweep with reflectivity for each of the ``count`` lowest cuts, lowest first.

    If a cut was scanned twice, the sweep with the longest range is used: in a NEXRAD split cut that
    is the surveillance sweep, not the Doppler one whose echoes fold. Of equal ones (SAILS) the
    first in time is used.
    """
    with_echo = [sweep for sweep in sweeps if sweep.dbz is not None]
    cuts = lowest_cuts([sweep.elevation for sweep in with_echo], count)
    return [
        min((with_echo[i] for i in cut), key=lambda sweep: (-sweep.reach, sweep.time))
        for cut in cuts
    ]


def sweeps_of(tree: xr.DataTree, classify: Classify, cuts: int, moment: str | None) -> list[Sweep]:
    """Return the sweeps of the lowest cuts of xradar's DataTree of a volume, and close it.

    xradar's readers keep a handle for each sweep in reference cycles, which closing the tree does
    not free; some hundred files would use up a process's handles.
    """
    try:
        return lowest_sweeps(tree, classify, cuts, moment)
    finally:
        tree.close()
        del tree
        gc.collect()


def lowest_sweeps(
    tree: xr.DataTree, classify: Classify, cuts: int, moment: str | None
) -> list[Sweep]:
    """Return the sweeps of the lowest cuts of a DataTree, which stays open."""
    datasets = [tree[key].to_dataset() for key in tree.children if key.startswith("sweep_")]
    planes = [
        dataset
        for dataset in datasets
        if {"azimuth", "range"} <= set(dataset.dims) and min(dataset.sizes.values()) > 0
    ]
    low = lowest_cuts([elevation_of(dataset) for dataset in planes], cuts)
    site = site_of(tree.to_dataset())
    return [from_xradar(planes[i], site, classify, moment) for cut in low for i in cut]
