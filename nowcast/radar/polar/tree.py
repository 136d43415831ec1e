"""The sweeps of a volume that xradar opened, and its files closed for certain afterwards."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from nowcast.radar.polar.cuts import lowest_cuts
from nowcast.radar.polar.sweep import Classify, Sweep, elevation_of, from_xradar, site_of
from nowcast.radar.site import Site

if TYPE_CHECKING:
    import xarray as xr


def sweeps_of(
    tree: xr.DataTree,
    classify: Classify,
    cuts: int,
    moment: str | None,
    site: Site | None = None,
) -> list[Sweep]:
    """Return the sweeps of the lowest cuts of xradar's DataTree of a volume, and close it.

    xradar's readers keep a handle for each sweep in reference cycles that closing the tree does not
    reach; an archive of some hundred files would use up all that a process may open.
    """
    try:
        return lowest_sweeps(tree, classify, cuts, moment, site)
    finally:
        tree.close()
        del tree
        gc.collect()


def lowest_sweeps(
    tree: xr.DataTree, classify: Classify, cuts: int, moment: str | None, site: Site | None
) -> list[Sweep]:
    """Return the sweeps of the lowest cuts of a DataTree, which stays open."""
    datasets = [tree[key].to_dataset() for key in tree.children if key.startswith("sweep_")]
    planes = [
        dataset
        for dataset in datasets
        if {"azimuth", "range"} <= set(dataset.dims) and min(dataset.sizes.values()) > 0
    ]
    low = lowest_cuts([elevation_of(dataset) for dataset in planes], cuts)
    site = site or site_of(tree.to_dataset())
    return [from_xradar(planes[i], site, classify, moment) for cut in low for i in cut]
