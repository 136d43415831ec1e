"""Simulated weather: rain at any time and place, and the motion of the air that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nowcast.simulate.flow import Flow
from nowcast.simulate.regime import ROUGH, draw_systems
from nowcast.simulate.storms import EDGE, Cells, Storms
from nowcast.simulate.texture import Field, Points, Texture

# Standard deviation of the logarithm of rain within shields and within cores.
ROUGH_SHIELD, ROUGH_CORE = 0.9, 0.4
# Rain weaker than this evaporates on its way, mm h-1; it makes the edges of rain ragged.
EVAPORATED = 0.25
# Largest rain rate, mm h-1, where cores overlap.
STRONGEST = 120.0


@dataclass(frozen=True)
class Weather:
    """Rain around a radar at (0, 0), determined by a seed: the truth for simulated scans.

    Storms are born, grow and fade while a sheared flow carries them. Persistence is soon wrong; an
    extrapolation along the flow stays right until a storm grows or fades.

    Parameters
    ----------
    seed : int
        Not negative.
    hours : float
        Length of the simulation from time 0. A longer one begins with the same weather.
    storms : float
        Storms in 24 hours within 160 km.
    organised : bool
        Whether storms go through stages that radars can distinguish, see
        `nowcast.simulate.regime`, instead of growing and fading independently.

    Examples
    --------
    >>> import numpy as np
    >>> weather = Weather(seed=0, hours=2)
    >>> x = y = np.arange(-100e3, 101e3, 2e3)
    >>> weather.rain_field(3600.0, x[None, :], y[:, None]).shape
    (101, 101)
    """

    seed: int = 0
    hours: float = 24.0
    storms: float = 56.0
    organised: bool = False

    @cached_property
    def flow(self) -> Flow:
        """The flow, which is the true motion."""
        return Flow.draw(np.random.default_rng((self.seed, 0)))

    @cached_property
    def cells(self) -> Storms:
        """Shields and cores of all storms."""
        draw = draw_systems if self.organised else Storms.draw
        return draw(self.seed, self.hours, self.storms)

    def motion(self, time: float, x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], ...]:
        """Return the rain's motion (u, v) in m/s at ``time`` seconds and metres east and north."""
        return self.flow.wind(time, x, y)

    def rain_field(self, time: float, x: ArrayLike, y: ArrayLike) -> Field:
        """Return the rain rate at the ground, mm h-1 float32, where x and y broadcast to.

        They are metres east and north of the radar; ``time`` is seconds from the start.
        """
        points = Points(
            np.atleast_1d(np.asarray(x, np.float32)), np.atleast_1d(np.asarray(y, np.float32))
        )
        shields, cores = self.cells.shields.alive(time), self.cells.cores.alive(time)
        weak = self._sum(shields, time, points, flat=True)
        strong = self._sum(cores, time, points, flat=False)
        rain = weak + strong
        wet = rain > 0.1 * EVAPORATED
        # Noise is looked up where there is rain to be rough: a fifth of the points.
        east, north = (axis[wet] for axis in np.broadcast_arrays(points.x, points.y))
        noise = Texture(self.seed).sample(self.flow, time, east, north)
        weak, strong = weak[wet], strong[wet]
        rough = ROUGH if self.organised else ROUGH_SHIELD
        weak *= np.exp(np.float32(rough) * noise)
        strong *= np.exp(np.float32(ROUGH_CORE) * noise)
        rain[:] = 0
        rain[wet] = np.clip(weak + strong - np.float32(EVAPORATED), 0, np.float32(STRONGEST))
        return rain.reshape(np.broadcast_shapes(np.shape(x), np.shape(y)))

    def _sum(self, cells: Cells, time: float, points: Points, *, flat: bool) -> Field:
        """Return the rain of some cells: exp(-q^2) of the radii from the middle, or flatter."""
        middles, frames = cells.positions(self.flow, time)
        # The rectangle around an ellipse: the lengths of the rows of the frame's inverse.
        reach = EDGE * np.sqrt(np.square(np.linalg.inv(frames)).sum(axis=2))
        strength = cells.peak * cells.vigour(time)
        total = np.zeros(points.shape, np.float32)
        for middle, extent, frame, peak in zip(middles, reach, frames, strength, strict=True):
            window = points.within(middle - extent, middle + extent)
            if window is None:
                continue
            part, dx, dy = window[0], window[1] - middle[0], window[2] - middle[1]
            dx, dy = dx.astype(np.float32), dy.astype(np.float32)
            (a, b), (c, d) = frame.astype(np.float32)
            q = np.square(a * dx + b * dy) + np.square(c * dx + d * dy)
            if flat:
                q *= np.sqrt(q)
            total[part] += np.float32(peak) * np.exp(-q)
        return total
