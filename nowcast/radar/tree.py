"""The sweeps of a volume that xradar opened, and its files closed for certain afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nowcast.radar.site import Site
from nowcast.radar.sweep import site_of

if TYPE_CHECKING:
    import xarray as xr


@contextmanager
def sweeps_of(tree: xr.DataTree) -> Iterator[tuple[Site | None, list[xr.Dataset]]]:
    """Give site and sweeps of xradar's DataTree of a volume.

    xradar's readers keep a handle for each sweep in reference cycles that closing the tree does not
    reach; an archive of some hundred files would use up all that a process may open.
    """
    try:
        yield (
            site_of(tree.to_dataset()),
            [tree[key].to_dataset() for key in tree.children if key.startswith("sweep_")],
        )
    finally:
        tree.close()
        del tree
        gc.collect()
