"""Arrivals: what the moving frame brings to the grid at each lead time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.advection import carry, departures
from nowcast.lagrangian.cascade import Cascade
from nowcast.lagrangian.regional import regional_ranks

Float = NDArray[np.float32]


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
    """

    lead: int
    minutes: float
    points: Float
    moved: Float
    expected: Float
    rank: Float


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
    paths = departures(cascade.motion, leads, before=cascade.ages[-1])
    for lead, (field, points) in enumerate(zip(cascade.expected(leads), paths, strict=True), 1):
        if only is None or lead in only:
            expected = carry(field, points)
            moved = carry(cascade.last, points)
            rank = regional_ranks(expected, moved, spacing_km)
            yield Arrival(lead, lead * step_minutes, points, moved, expected, rank)
