"""The storms of a simulated day: convective cores in shields of weaker rain, each with its life.

A shield is a mesoscale patch of stratiform rain; several cores are born and die in it. Both are
ellipses that grow faster than they fade. Their parts follow the hybrid rain cell of Féral et al.
(2003, Radio Science 38, doi:10.1029/2002RS002802): a Gaussian core in a flatter surrounding.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from nowcast.simulate.flow import Flow

Array = NDArray[np.float64]

# Farthest from the radar that the middle of a shield is when it is half through its life, metres.
REACH = 160e3
# Distance from a core, in its radii, beyond which its rain is negligible.
EDGE = 2.6
# Lives of shields in seconds, and cores in a shield.
SHORTEST, LONGEST = 90.0 * 60.0, 240.0 * 60.0
FEWEST_CORES, MOST_CORES = 4, 12


@dataclass(frozen=True)
class Cells:
    """Ellipses of rain, one entry of each array a cell."""

    #: Seconds, (n,).
    birth: Array
    life: Array
    #: Place of the cell (metres) at one time (seconds), (n,); the flow says where at others.
    when: Array
    x: Array
    y: Array
    peak: Array  #: Rain rate at the middle when it is strongest, mm h-1, (n,).
    #: Radii in metres and direction of the long one in radians, at ``when``, (n,).
    along: Array
    across: Array
    tilt: Array

    def __len__(self) -> int:
        return len(self.birth)

    def __getitem__(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Cells:
        return Cells(*(getattr(self, field.name)[which] for field in fields(self)))

    def alive(self, time: float) -> Cells:
        """Return the cells that have been born and not yet died."""
        return self[(time > self.birth) & (time < self.birth + self.life)]

    def vigour(self, time: float) -> Array:
        """Return the strength of cells, 0 to 1: half a sine with its peak at 0.4 of their lives."""
        age = np.clip((time - self.birth) / self.life, 0.0, 1.0)
        return np.sin(np.pi * age**0.75)

    def positions(self, flow: Flow, time: float) -> tuple[Array, Array]:
        """Return middles (n, 2) in metres and shapes (n, 2, 2) of the cells at a time.

        A shape maps metres from the middle to radii along the axes of the cell's ellipse.
        """
        matrix, shift = flow.carry(self.when, time)
        middles = np.einsum("nij,nj->ni", matrix, np.stack([self.x, self.y], axis=1)) + shift
        cos, sin = np.cos(self.tilt), np.sin(self.tilt)
        turned = np.array([[cos, sin], [-sin, cos]]) / [[self.along], [self.across]]
        frames = np.einsum("ijn,njk->nik", turned, np.linalg.inv(matrix))
        # Cells are smaller while they grow and when they fade.
        frames /= (0.55 + 0.45 * np.sqrt(self.vigour(time)))[:, None, None]
        return middles, frames


@dataclass(frozen=True)
class Storms:
    """Shields and the cores in them."""

    shields: Cells
    cores: Cells

    @classmethod
    def draw(cls, seed: int, hours: float, per_day: float) -> Storms:
        """Draw the storms of some hours, evenly spread over time and the area within :data:`REACH`.

        A longer simulation of the same seed begins with the same storms. Storms at its ends
        are cut.
        """
        start, interval, one, many = draw_numbers(seed, hours, per_day)
        shields = _shields(start, interval, one)
        number = FEWEST_CORES + np.floor((MOST_CORES + 1 - FEWEST_CORES) * one[8])
        storm, core = np.nonzero(np.arange(MOST_CORES) < number[:, None])
        parent, u = shields[storm], many[storm, core].T
        life = (35.0 + 55.0 * u[0]) * 60.0
        birth, radius = parent.birth + u[1] * (parent.life - life), 3.5e3 + 4.5e3 * u[4]
        return cls(shields, cores_in(parent, u, birth=birth, life=life, radius=radius, spread=0.55))


def draw_numbers(seed: int, hours: float, per_day: float) -> tuple[Array, float, Array, Array]:
    """Draw the random numbers of storms; for the arguments see `Storms.draw`.

    Returns the start of each storm's interval (n,) and its length, in seconds; and numbers between
    0 and 1: of each storm (9, n), and of each of its cores (n, MOST_CORES, 8).
    """
    interval = 86400.0 / per_day
    before = np.ceil(LONGEST / 2 / interval)
    count = int(np.ceil((hours * 3600.0 + LONGEST / 2) / interval) + before)
    # A row is a storm, so that the first ones do not depend on how many there are.
    one = np.random.default_rng((seed, 1, 0)).random((count, 9)).T
    many = np.random.default_rng((seed, 1, 1)).random((count, MOST_CORES, 8))
    return (np.arange(count) - before) * interval, interval, one, many


def _shields(start: Array, interval: float, u: Array) -> Cells:
    """Make shields from numbers between 0 and 1; each is half through its life in its interval.

    So rain is spread over all hours.
    """
    middle = start + interval * u[0]
    life = SHORTEST + (LONGEST - SHORTEST) * u[1]
    distance, direction = REACH * np.sqrt(u[2]), 2.0 * np.pi * u[3]
    along = 20e3 + 30e3 * u[4]
    return Cells(
        birth=middle - 0.5 * life,
        life=life,
        when=middle,
        x=distance * np.cos(direction),
        y=distance * np.sin(direction),
        peak=lognormal(u[5], 2.0, 0.5).clip(0.6, 6.0),
        along=along,
        across=along * (0.4 + 0.4 * u[6]),
        tilt=np.pi * (u[7]),
    )


def cores_in(
    parent: Cells, u: Array, *, birth: Array, life: Array, radius: Array, spread: float
) -> Cells:
    """Make a core in each of the given cells, of numbers u (8, n) between 0 and 1.

    Inside of 0.8 of the parent's ellipse, so that a core is in rain; ``spread`` is the standard
    deviation of the logarithm of its strength.
    """
    distance, direction = 0.8 * np.sqrt(u[2]), 2.0 * np.pi * u[3]
    along = distance * np.cos(direction) * parent.along
    across = distance * np.sin(direction) * parent.across
    cos, sin = np.cos(parent.tilt), np.sin(parent.tilt)
    return Cells(
        birth=birth,
        life=life,
        when=parent.when,
        x=parent.x + cos * along - sin * across,
        y=parent.y + sin * along + cos * across,
        peak=lognormal(u[5], 20.0, spread).clip(6.0, 70.0),
        along=radius,
        across=radius * (0.55 + 0.45 * u[6]),
        tilt=np.pi * u[7],
    )


def lognormal(u: Array, median: float, width: float) -> Array:
    """Return lognormal numbers from uniform ones, both (n,)."""
    from scipy.special import ndtri

    return median * np.exp(width * ndtri(np.clip(u, 1e-9, 1.0)))
