"""Arrivals: what the moving frame brings to the grid at each lead time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from nowcast.lagrangian.advection import COARSENING, carry, departures
from nowcast.lagrangian.blocks import enlarge
from nowcast.lagrangian.cascade import Cascade
from nowcast.lagrangian.regional import regional_ranks

Float = NDArray[np.float32]

#: Standard error of motion in m s-1 at which margins count as the numbers say, and up to which
#: factor of it they count less or more; chosen over all sources of docs/measurements/forecast.md.
USUAL, FACTOR = 3.7, 4.0


@dataclass(frozen=True)
class Arrival:
    """Fields at one lead time, where the rain is by then.

    Attributes
    ----------
    lead : int
        Steps ahead, from 1.
    minutes : float
        Lead time.
    points : ndarray, (2, node_y, node_x) float32
        Where the air at the nodes came from, see `nowcast.lagrangian.advection.departures`.
    moved : ndarray, (y, x) float32
        The last frame, carried along, mm h-1.
    expected : ndarray, (y, x) float32
        The expected field, dB rain.
    rank : ndarray, (y, x) float32
        Its ranks, see `nowcast.lagrangian.regional.regional_ranks`.
    sure : ndarray, (y, x) float32
        Factor by which margins of ranks count: 1 where the error of motion is `USUAL`, less where
        the rain may have gone elsewhere.
    """

    lead: int
    minutes: float
    points: Float
    moved: Float
    expected: Float
    rank: Float
    sure: Float


def arrivals(
    cascade: Cascade,
    leads: int,
    *,
    spacing_km: float,
    step_minutes: float,
    only: frozenset[int] | None = None,
) -> Iterator[Arrival]:
    """Give the arrival of each lead.

    Parameters
    ----------
    cascade : Cascade
    leads : int
        Number of steps.
    spacing_km, step_minutes : float
        Of the grid and of the frames.
    only : frozenset of int, optional
        Leads, from 1, that are wanted; all by default.
    """
    known = np.sqrt(USUAL / np.clip(cascade.error, USUAL / FACTOR, USUAL * FACTOR))
    paths = departures(cascade.motion, leads, before=cascade.ages[-1])
    for lead, (field, points) in enumerate(zip(cascade.expected(leads), paths, strict=True), 1):
        if only is None or lead in only:
            expected = carry(field, points)
            moved = carry(cascade.last, points)
            rank = regional_ranks(expected, moved, spacing_km)
            nodes = (points + 0.5) / cascade.side - 0.5
            sure = map_coordinates(known, nodes, order=1, mode="nearest")
            sure = enlarge(sure[np.newaxis], moved.shape, COARSENING)[0]
            yield Arrival(lead, lead * step_minutes, points, moved, expected, rank, sure)
